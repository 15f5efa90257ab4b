#!/usr/bin/env bash
# Prints how long shards of a study take besides their cells: bash benchmarks/overhead.sh, half a minute of one core. The
# study has 10,528 cells of 14 traces in 64 shards. TMPDIR is the place of the store. Other load distorts the times.
set -euo pipefail
cd "$(dirname "$0")/.."
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
go build -trimpath -o "$work/vramyard" ./cmd/vramyard
cat >"$work/study.yaml" <<'STUDY'
traces: [cpu_gpt2_train_varlen, cpu_resnet50_train, cpu_unet_train, meta_llama7b_fsdp8, meta_llama7b_lora,
  meta_moe_ep_train, meta_resnet50_b256, w1-live1000-pairs20000, w1-live2000-pairs20000, w2-steps20, w3-pairs20000,
  lognormal-live1000-pairs10000, loguniform-live1000-pairs10000, uniform-live1000-pairs10000]
strategies:
  - strategy: caching
    conf:
      expandable_segments: ["", "True"]
      max_split_size_mb: ["", 32, 64, 128, 256, 512]
      roundup_power2_divisions: ["", 2, 4, 8, 16]
      garbage_collection_threshold: ["", 0.6, 0.8]
  - bfc:growth
  - bfc:gc
  - async
  - async:keep
  - rmm:pool
  - rmm:arena
  - tlsf:growth
  - bestfit:growth
devices: [sim, sim:24GiB, sim:a100-80g, sim:h100-80g]
searches: [replay]
STUDY
"$work/vramyard" sweep plan "$work/study.yaml" -o "$work/plan.parquet"
for shard in 1 10 19 28 37 46 55 64; do
	began=$EPOCHREALTIME
	"$work/vramyard" sweep run "$work/plan.parquet" --shard $shard/64 --workers 1 --store "$work/$shard" >"$work/summary"
	ended=$EPOCHREALTIME
	grep -rhoE '"cell_seconds":[0-9.e-]+' "$work/$shard/cells" |
		awk -F: -v shard="$shard" -v began="$began" -v ended="$ended" '{ cells += $2 }
			END { printf "shard %2d: %3d cells, %.3f s of work, %.3f s besides it\n", shard, NR, cells, ended - began - cells }'
done
