#!/usr/bin/env bash
# Ten minutes on a card: makes a bundle, if there is none yet, and runs it.
#
#   bash benchmarks/gpu/run.sh [flags of "gpu run"]
#
# The bundle is out/gpu, or what VRAMYARD_BUNDLE names. Only to make it Go is needed, and compilers of C and C++ for the part
# that PyTorch loads: on a machine without Go carry one there that another machine has made.
set -euo pipefail
root=$(cd "$(dirname "$0")/../.." && pwd)
bundle=$(realpath -m -- "${VRAMYARD_BUNDLE:-$root/out/gpu}")
if [ ! -x "$bundle/gpu" ]; then
	if ! command -v go >/dev/null; then
		echo "gpu: no Go here and no bundle in $bundle: make one with \"go run ./benchmarks/gpu build $bundle\" elsewhere and bring it" >&2
		exit 1
	fi
	(cd "$root" && go run ./benchmarks/gpu build "$bundle")
fi
exec "$bundle/gpu" run "$@"
