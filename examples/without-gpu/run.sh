#!/bin/sh
# Prints the figures of docs/without-gpu.md, one row for each program: run.sh PYTHON ["PROGRAM ARGUMENT..."]...
# Columns: reserved peak, placed allocations, smallest card and peak of live bytes by vramyard run; live and reserved peak by vramyard.meta.
# The environment variable VRAMYARD names the built program, DEVICE the card, and STRATEGY the rules of the release: caching, or caching:2.13.
set -eu
cd "$(dirname "$0")"
python=$1
shift
[ $# -gt 0 ] || set -- "gpt.py fp32" "gpt.py bf16" "gpt.py fp16" lora.py resnet50.py unet.py lstm.py vit.py generate.py \
    streams.py overlap.py graphs.py fsdp2.py 7b.py
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
vramyard=${VRAMYARD:-vramyard}
run() {
    "$vramyard" run --device "${DEVICE:-sim:a100-80g}" "$@" >"$dir/out" 2>"$dir/err"
}
# figures FILE NAME... prints figures of a replay through PyTorch's allocator, with addresses as on Linux.
figures() {
    "$vramyard" replay --strategy "${STRATEGY:-caching}" --sim '{"policy":"top-down"}' --json "$dir/figures" "$1" >"$dir/out"
    shift
    for name in "$@"; do
        sed -n "s/^  \"$name\": \([0-9]*\),\$/\1 | /p" "$dir/figures" | head -n 1
    done | tr -d '\n'
}
for program in "$@"; do
    rm -f "$dir/snapshot" "$dir/trace"
    # shellcheck disable=SC2086 # the arguments of a program are words
    run --fast-init --snapshot "$dir/snapshot" -- "$python" $program || { tail -n 3 "$dir/err" >&2; echo "| $program | failed |"; continue; }
    card=$(tr '\n' ' ' <"$dir/out" | sed -n 's/.*smallest listed card large enough is the \([^(]*\) (.*/\1/p')
    text=$("$vramyard" verify "$dir/snapshot") || true
    placed=$(echo "$text" | sed -n 's/^\([0-9]* of [0-9]*\) allocations predicted.*/\1/p')
    peak=$(echo "$text" | sed -n 's/^peak reserved:.*recorded .*(\([0-9]*\) bytes)$/\1/p')
    # PyTorch's CUDA build loads only with the libraries of CUDA. The module does not call them, so "vramyard run" has no answer.
    # shellcheck disable=SC2086
    PYTHONPATH=../../python run -- "$python" -m vramyard.meta --trace "$dir/trace" $program || true
    echo "| $program | $peak | $placed | $card | $(figures "$dir/snapshot" peak_requested_bytes)$(figures "$dir/trace" peak_requested_bytes peak_reserved_bytes)"
done
