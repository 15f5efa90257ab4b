"""Trains a UNet of four levels on images of 256 x 256."""

import torch
import torch.nn as nn
import torch.nn.functional as F


def double(n, m):
    return nn.Sequential(
        nn.Conv2d(n, m, 3, padding=1), nn.GroupNorm(8, m), nn.SiLU(),
        nn.Conv2d(m, m, 3, padding=1), nn.GroupNorm(8, m), nn.SiLU(),
    )


class UNet(nn.Module):
    def __init__(self, widths=(64, 128, 256, 512)):
        super().__init__()
        self.down = nn.ModuleList(double(n, m) for n, m in zip((3,) + widths, widths))
        pairs = list(zip(widths[1:], widths))[::-1]
        self.grow = nn.ModuleList(nn.ConvTranspose2d(n, m, 2, 2) for n, m in pairs)
        self.up = nn.ModuleList(double(n, m) for n, m in pairs)
        self.out = nn.Conv2d(widths[0], 3, 1)

    def forward(self, x):
        kept = []
        for level in self.down:
            x = level(F.max_pool2d(x, 2) if kept else x)
            kept.append(x)
        kept.pop()
        for grow, level in zip(self.grow, self.up):
            x = level(torch.cat((kept.pop(), grow(x)), 1))
        return self.out(x)


model = UNet().cuda()
optimizer = torch.optim.Adam(model.parameters(), lr=1e-4)
for step in range(3):
    x, y = torch.randn(2, 8, 3, 256, 256, device="cuda")
    F.mse_loss(model(x), y).backward()
    optimizer.step()
    optimizer.zero_grad()
