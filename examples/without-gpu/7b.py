"""Trains a decoder of 6.7 billion bf16 parameters for two steps."""

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.checkpoint import checkpoint

WORDS, WIDTH, HEADS, LAYERS, HIDDEN, LENGTH = 32000, 4096, 32, 32, 11008, 2048


def linear(n, m):
    return nn.Linear(n, m, bias=False)


class Layer(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)
        self.qkv, self.out = linear(WIDTH, 3 * WIDTH), linear(WIDTH, WIDTH)
        self.gate, self.up, self.down = linear(WIDTH, HIDDEN), linear(WIDTH, HIDDEN), linear(HIDDEN, WIDTH)

    def forward(self, x):
        b, t, _ = x.shape
        q, k, v = self.qkv(self.norm1(x)).view(b, t, 3, HEADS, -1).permute(2, 0, 3, 1, 4)
        a = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.out(a.transpose(1, 2).reshape(b, t, WIDTH))
        h = self.norm2(x)
        return x + self.down(F.silu(self.gate(h)) * self.up(h))


torch.set_default_dtype(torch.bfloat16)
with torch.device("cuda"):
    words, head = nn.Embedding(WORDS, WIDTH), linear(WIDTH, WORDS)
    layers = nn.ModuleList(Layer() for _ in range(LAYERS))
model = nn.ModuleList((words, layers, head))
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)
for step in range(2):
    x = torch.randint(0, WORDS, (1, LENGTH + 1), device="cuda")
    h = words(x[:, :-1])
    for layer in layers:
        h = checkpoint(layer, h, use_reentrant=False)
    F.cross_entropy(head(h).float().flatten(0, 1), x[:, 1:].flatten()).backward()
    optimizer.step()
    optimizer.zero_grad()
