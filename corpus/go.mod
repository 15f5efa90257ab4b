// The archive is a module of its own without packages, so that the module above it is downloaded without these files.
module github.com/vramyard/vramyard/corpus

go 1.26
