"""Trains a ViT-B/16 on images of 224 x 224 in bf16."""

import torch
import torch.nn as nn
import torch.nn.functional as F

WIDTH = 768


class ViT(nn.Module):
    def __init__(self):
        super().__init__()
        self.cut = nn.Conv2d(3, WIDTH, 16, 16)
        self.first = nn.Parameter(torch.zeros(1, 1, WIDTH))
        self.places = nn.Parameter(torch.zeros(1, 197, WIDTH))
        layer = nn.TransformerEncoderLayer(WIDTH, 12, 4 * WIDTH, 0.0, F.gelu, batch_first=True, norm_first=True)
        self.body = nn.TransformerEncoder(layer, 12, enable_nested_tensor=False)
        self.head = nn.Linear(WIDTH, 1000)

    def forward(self, x):
        x = self.cut(x).flatten(2).transpose(1, 2)
        x = torch.cat((self.first.expand(x.shape[0], -1, -1), x), 1) + self.places
        return self.head(self.body(x)[:, 0])


model = ViT().cuda()
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
for step in range(3):
    x = torch.randn(64, 3, 224, 224, device="cuda")
    y = torch.randint(0, 1000, (64,), device="cuda")
    with torch.autocast("cuda", dtype=torch.bfloat16):
        loss = F.cross_entropy(model(x), y)
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
