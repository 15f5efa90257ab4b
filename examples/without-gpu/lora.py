"""Fine-tunes a decoder of 1.1 billion bf16 parameters with LoRA adapters and checkpointed layers."""

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.checkpoint import checkpoint

WORDS, WIDTH, HEADS, LAYERS, HIDDEN, LENGTH, BATCH, RANK = 32000, 2048, 16, 22, 5632, 1024, 4, 16


class Adapted(nn.Module):
    """A frozen matrix with a trained product of two narrow ones beside it."""

    def __init__(self, n, m):
        super().__init__()
        self.frozen = nn.Linear(n, m, bias=False).requires_grad_(False)
        self.down, self.up = nn.Linear(n, RANK, bias=False), nn.Linear(RANK, m, bias=False)

    def forward(self, x):
        return self.frozen(x) + self.up(self.down(x))


class Layer(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)
        self.q, self.k, self.v, self.o = (Adapted(WIDTH, WIDTH) for _ in range(4))
        self.gate, self.up, self.down = Adapted(WIDTH, HIDDEN), Adapted(WIDTH, HIDDEN), Adapted(HIDDEN, WIDTH)

    def forward(self, x):
        b, t, _ = x.shape
        h = self.norm1(x)
        q, k, v = (p(h).view(b, t, HEADS, -1).transpose(1, 2) for p in (self.q, self.k, self.v))
        a = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.o(a.transpose(1, 2).reshape(b, t, WIDTH))
        h = self.norm2(x)
        return x + self.down(F.silu(self.gate(h)) * self.up(h))


torch.set_default_dtype(torch.bfloat16)
with torch.device("cuda"):
    words = nn.Embedding(WORDS, WIDTH).requires_grad_(False)
    layers = nn.ModuleList(Layer() for _ in range(LAYERS))
    head = nn.Linear(WIDTH, WORDS, bias=False).requires_grad_(False)
optimizer = torch.optim.AdamW([p for p in layers.parameters() if p.requires_grad], lr=1e-4)
for step in range(3):
    x = torch.randint(0, WORDS, (BATCH, LENGTH + 1), device="cuda")
    h = words(x[:, :-1])
    for layer in layers:
        h = checkpoint(layer, h, use_reentrant=False)
    F.cross_entropy(head(h).float().flatten(0, 1), x[:, 1:].flatten()).backward()
    optimizer.step()
    optimizer.zero_grad()
