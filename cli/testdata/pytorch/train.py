"""Trains a small transformer for a number of steps: train.py BATCH STEPS."""

import sys

import torch
import torch.nn.functional as F
from torch import nn

batch, steps = int(sys.argv[1]), int(sys.argv[2])
model = nn.TransformerEncoder(nn.TransformerEncoderLayer(256, 8, 1024, batch_first=True), 4).cuda()
optimizer = torch.optim.AdamW(model.parameters())
for _ in range(steps):
    x = torch.randn(batch, 128, 256, device="cuda")
    F.mse_loss(model(x), x).backward()
    optimizer.step()
    optimizer.zero_grad()
