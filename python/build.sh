#!/usr/bin/env bash
# Builds the wheel of this platform: bash python/build.sh OUT. It needs Go, git and Python with hatchling, which is
# installed into out/build if it is not there.
#
# With GOOS and GOARCH it builds the wheel of another platform, which has the program only. The wheel of Linux also has
# libvramyard.so, and that of Linux on x86-64 the stand-ins for CUDA: these need compilers of C and C++ and objdump. Its
# tag names the newest C library that they need, so a wheel for older systems is built on an older system, such as the
# image manylinux_2_28.
#
# The same commit, Go, compilers and platform give the same bytes.
set -euo pipefail
[ $# -eq 1 ] || { echo 'usage: bash python/build.sh OUT' >&2; exit 2; }
mkdir -p "$1"
out=$(cd "$1" && pwd)
cd "$(dirname "$0")/.."

SOURCE_DATE_EPOCH=$(git log -1 --format=%ct) # of the files in the wheel
export SOURCE_DATE_EPOCH GOFLAGS="-trimpath -buildvcs=true -gcflags=all=-dwarf=false" # -s below drops DWARF
umask 022
system=$(go env GOOS) arch=$(go env GOARCH)
bin=$(mktemp -d)
trap 'rm -rf "$bin"' EXIT
native() { env -u GOOS -u GOARCH "$@"; }

name=vramyard
[ "$system" != windows ] || name=vramyard.exe
CGO_ENABLED=0 go build -ldflags '-s -w -buildid=' -o "$bin/$name" ./cmd/vramyard
CGO_ENABLED=0 native go run ./cmd/vramyard licenses >"$bin/licenses.txt"

case $arch in
amd64) machine=x86_64 ;;
arm64) machine=aarch64 ;;
*) echo "GOARCH=$arch: want amd64 or arm64" >&2; exit 2 ;;
esac
case $system in
linux) tag=manylinux_2_17_$machine.manylinux2014_$machine ;; # what the program needs of the C library has no version
darwin) tag=macosx_12_0_${machine/aarch64/arm64} ;;                               # the oldest system of Go's
windows) tag=win_$arch ;;
*) echo "GOOS=$system: want linux, darwin or windows" >&2; exit 2 ;;
esac

if [ "$system/$arch" = "$(go env GOHOSTOS)/$(go env GOHOSTARCH)" ] && [ "$system" = linux ]; then
	CGO_ENABLED=1 go build -buildmode=c-shared -ldflags '-s -w -buildid=' -o "$bin/libvramyard.so" ./cmd/libvramyard
	rm "$bin/libvramyard.h"
	PYTHONPATH=python PYTHONDONTWRITEBYTECODE=1 python3 -c \
		'import sys; from vramyard import cudnn_table; cudnn_table.build(sys.argv[1])' "$bin"
	if [ "$arch" = amd64 ]; then
		CGO_ENABLED=0 go run ./device/standin/wheels build "$bin/standins" device/standin/testdata/wheels/*.json
	fi
	glibc=$(find "$bin" -name '*.so*' -exec objdump -T {} + | grep -o 'GLIBC_2\.[0-9]*' | sort -uV | tail -n1)
	tag=manylinux_${glibc#GLIBC_}_$machine
	tag=${tag/2./2_}
fi

python=$(command -v python3)
if ! "$python" -c 'import hatchling' 2>/dev/null; then
	python=out/build/bin/python
	[ -x "$python" ] || python3 -m venv out/build
	"$python" -c 'import hatchling' 2>/dev/null ||
		"$python" -m pip install --quiet "$(sed -n 's/^requires = \["\(.*\)"\]$/\1/p' pyproject.toml)"
fi
VRAMYARD_WHEEL_BIN=$bin VRAMYARD_WHEEL_TAG=py3-none-$tag "$python" -m hatchling build -t wheel -d "$out"
