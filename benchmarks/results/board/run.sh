#!/usr/bin/env bash
# Writes the results of docs/board.md again: bash benchmarks/results/board/run.sh, three minutes of one core. The
# strategies that plan ahead learn from the trace that they then run, so their plans are exact.
set -euo pipefail
cd "$(dirname "$0")"
work=$(mktemp -d)
trap 'rm -rf "$work" plan.parquet' EXIT
go build -trimpath -o "$work/vramyard" ../../../cmd/vramyard
sweep() { # STUDY RESULTS; the plan lies here, so that the paths in the results are relative to this folder
	"$work/vramyard" sweep plan "$1" -o plan.parquet
	"$work/vramyard" sweep run plan.parquet --store "$work/cells"
	"$work/vramyard" sweep merge plan.parquet --store "$work/cells" -o "$2"
}
sweep study.yaml online.parquet
sed -n 's/^  - \([a-z]*_.*\)/\1/p' study.yaml | while read -r trace; do
	printf 'traces: [%s]\nlearn: %s\nstrategies: [pgmo, stalloc]\n' "$trace" "$trace" >"$work/study.yaml"
	sweep "$work/study.yaml" "planned-$trace.parquet"
done
sweep remat.yaml remat.parquet
sweep remat-moves.yaml remat-moves.parquet
