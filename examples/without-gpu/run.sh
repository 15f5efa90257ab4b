#!/bin/sh
# Prints a row of the table of docs/without-gpu.md for each program: run.sh PYTHON ["PROGRAM ARGUMENT..."]...
# The environment variable VRAMYARD names the built program, and DEVICE the card.
set -eu
cd "$(dirname "$0")"
python=$1
shift
[ $# -gt 0 ] || set -- "gpt.py fp32" "gpt.py bf16" "gpt.py fp16" lora.py resnet50.py unet.py lstm.py vit.py generate.py \
    streams.py overlap.py graphs.py fsdp2.py 7b.py
rules=$("$python" - <<'END'
from importlib.metadata import version
release = tuple(map(int, version("torch").split("+")[0].split(".")[:2]))
print(next(rules for first, rules in (((2, 13), "2.13"), ((2, 12), "2.12"), ((2, 10), "2.11"), ((0, 0), "2.6")) if release >= first))
END
)
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
for program in "$@"; do
    rm -f "$dir/snapshot"
    # shellcheck disable=SC2086 # the arguments of a program are words
    "${VRAMYARD:-vramyard}" run --device "${DEVICE:-sim:a100-80g}" --fast-init --snapshot "$dir/snapshot" -- \
        "$python" $program >"$dir/out" 2>"$dir/err" || { tail -n 3 "$dir/err" >&2; echo "| $program | failed |"; continue; }
    text=$("${VRAMYARD:-vramyard}" verify --config "{\"rules\":\"$rules\"}" "$dir/snapshot") || true
    placed=$(echo "$text" | sed -n 's/^\([0-9]* of [0-9]*\) allocations predicted.*/\1/p')
    peak=$(echo "$text" | sed -n 's/^peak reserved:.*recorded .*(\([0-9]*\) bytes)$/\1/p')
    card=$(tr '\n' ' ' <"$dir/out" | sed -n 's/.*smallest listed card large enough is the \([^(]*\) (.*/\1/p')
    echo "| $program | $peak | $placed | $card |"
done
