#!/bin/bash
#SBATCH --job-name=sweep
#SBATCH --array=0-7
#SBATCH --cpus-per-task=1
#SBATCH --time=04:00:00
#SBATCH --signal=TERM@120
#SBATCH --requeue
#SBATCH --output=sweep-%A_%a.log
#SBATCH --open-mode=append
# One task of the array computes one shard. Change the size of the array above, and the store: a folder that all nodes
# share, or s3://bucket/prefix.
store=cells

srun --cpus-per-task="$SLURM_CPUS_PER_TASK" vramyard sweep run plan.parquet --store "$store" --shard auto \
	--workers "$SLURM_CPUS_PER_TASK"
status=$?
# 75: stopped by SIGTERM, which comes 120 seconds before the limit of time, and which ends the task after the cells in
# progress. The same task continues later.
if [ "$status" = 75 ]; then
	scontrol requeue "${SLURM_ARRAY_JOB_ID}_$SLURM_ARRAY_TASK_ID"
fi
exit "$status"
