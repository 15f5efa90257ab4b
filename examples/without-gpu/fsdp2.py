"""Trains the first of 8 ranks of a sharded transformer; the other ranks are PyTorch's fake group."""

import torch
import torch.distributed as dist
import torch.nn as nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import MixedPrecisionPolicy, fully_shard
from torch.testing._internal.distributed.fake_pg import FakeStore

WORDS, WIDTH, LAYERS = 32000, 2048, 16
dist.init_process_group("fake", rank=0, world_size=8, store=FakeStore())
mesh = init_device_mesh("cuda", (8,))
policy = MixedPrecisionPolicy(param_dtype=torch.bfloat16, reduce_dtype=torch.float32)
with torch.device("meta"):
    layers = [
        nn.TransformerEncoderLayer(WIDTH, 16, 4 * WIDTH, 0.0, batch_first=True, norm_first=True)
        for _ in range(LAYERS)
    ]
    model = nn.Sequential(nn.Embedding(WORDS, WIDTH), *layers, nn.Linear(WIDTH, WORDS, bias=False))
for part in model:
    fully_shard(part, mesh=mesh, mp_policy=policy)
fully_shard(model, mesh=mesh, mp_policy=policy)
model.to_empty(device="cuda")
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)
for step in range(3):
    x = torch.randint(0, WORDS, (2, 1024), device="cuda")
    nn.functional.cross_entropy(model(x).flatten(0, 1), x.flatten()).backward()
    optimizer.step()
    optimizer.zero_grad()
