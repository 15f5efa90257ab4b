module github.com/vramyard/vramyard/benchmarks/snapshots

go 1.26.0

require github.com/vramyard/vramyard v0.0.0

require (
	github.com/klauspost/compress v1.20.3 // indirect
	github.com/xi2/xz v0.0.0-20171230120015-48954b6210f8 // indirect
	golang.org/x/exp v0.0.0-20260908205506-85c1c2202aba // indirect
)

replace github.com/vramyard/vramyard => ../..

exclude github.com/smartystreets/goconvey v1.8.1
