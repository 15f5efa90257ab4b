"""Records snapshots in a folder with vramyard.record and vramyard.on_oom: record.py FOLDER."""

import os
import sys

import torch
import vramyard
from torch import nn

folder = sys.argv[1]


def make():
    model = nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 64)).cuda()
    return model, torch.optim.Adam(model.parameters())


def train(steps, made=None):
    model, optimizer = made or make()
    for _ in range(steps):
        model(torch.randn(8, 64, device="cuda")).square().mean().backward()
        optimizer.step()
        optimizer.zero_grad()


def exhaust():
    return [torch.empty(64 << 20, device="cuda") for _ in range(1000)]


def fails(path):
    """Records a part that runs out of memory."""
    with vramyard.record(path):
        train(2)
        exhaust()


try:
    vramyard.record("missing/run.pickle").__enter__()
except vramyard.Error as err:
    assert "want an existing folder for the snapshot" in str(err), err

torch.cuda.init()
torch.cuda.memory._record_memory_history(enabled=None)  # vramyard run has begun one
with vramyard.record(os.path.join(folder, "ends.pickle")):
    train(3)
assert not torch._C._cuda_isHistoryEnabled()
try:
    fails(os.path.join(folder, "fails.pickle"))
except torch.OutOfMemoryError:
    torch.cuda.empty_cache()
else:
    sys.exit("memory has no end")
with vramyard.record(os.path.join(folder, "survives.pickle")):
    try:
        exhaust()
    except torch.OutOfMemoryError:
        pass
    train(2)
vramyard.on_oom(os.path.join(folder, "oom.pickle"))
made = make()
with vramyard.record(os.path.join(folder, "inner.pickle")):  # continues the history of on_oom
    train(1, made)
assert torch._C._cuda_isHistoryEnabled()
train(1, made)
exhaust()
