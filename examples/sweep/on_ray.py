"""Computes the shards of plan.parquet as tasks of Ray, and merges them: python on_ray.py, in a folder that all nodes share."""

import os
import subprocess

import ray

SHARDS = 8  # change these two lines
STORE = "cells"  # a folder that all nodes share, or s3://bucket/prefix


@ray.remote(num_cpus=1, max_retries=3, retry_exceptions=True)
def shard(k, folder):
    run = ["vramyard", "sweep", "run", "plan.parquet", "--store", STORE, "--shard", f"{k}/{SHARDS}", "--workers", "1"]
    status = subprocess.run(run, cwd=folder).returncode
    if status not in (0, 3):  # 3: all cells are in the store, and some have a failure as their result
        raise RuntimeError(f"shard {k}: status {status}")


ray.init()
ray.get([shard.remote(k, os.getcwd()) for k in range(1, SHARDS + 1)])
subprocess.run(["vramyard", "sweep", "merge", "plan.parquet", "--store", STORE, "-o", "results.parquet"], check=True)
