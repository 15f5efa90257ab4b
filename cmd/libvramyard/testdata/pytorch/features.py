"""Uses the features of PyTorch that reach the allocator, one after the other, and prints the outcome of each."""

import torch
import torch.nn as nn
import torch.nn.functional as F
import vramyard.torch


def stats():
    return vramyard.torch.stats()["devices"][0]


class Block(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.before, self.behind = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.mlp = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))

    def forward(self, x):
        b, t, w = x.shape
        q, k, v = self.qkv(self.before(x)).view(b, t, 3, self.heads, w // self.heads).permute(2, 0, 3, 1, 4)
        x = x + self.out(F.scaled_dot_product_attention(q, k, v, is_causal=True).transpose(1, 2).reshape(b, t, w))
        return x + self.mlp(self.behind(x))


def gpt():
    m = nn.Sequential(nn.Embedding(1000, 128), Block(128, 4), Block(128, 4), nn.Linear(128, 1000)).cuda()
    o = torch.optim.AdamW(m.parameters())
    for _ in range(2):
        x = torch.randint(0, 1000, (4, 64), device="cuda")
        with torch.autocast("cuda", dtype=torch.bfloat16):
            loss = F.cross_entropy(m(x).flatten(0, 1), x.flatten())
        loss.backward()
        o.step()
        o.zero_grad()
    return stats()["allocs"] > 100


def streams():
    before = stats()["recorded_streams"]
    s = torch.cuda.Stream()
    x = torch.ones(1 << 20, device="cuda")
    with torch.cuda.stream(s):
        y = x + 1
    x.record_stream(s)
    del x
    torch.cuda.synchronize()
    return stats()["recorded_streams"] == before + 1


def memory():
    live = stats()["allocated_bytes"]
    try:
        torch.empty(8 << 30, dtype=torch.uint8, device="cuda")
    except torch.OutOfMemoryError as e:
        text = str(e)
    return ("CUDA out of memory. Tried to allocate 8.00 GiB." in text and "of strategy" in text
            and stats()["allocated_bytes"] == live and torch.ones(10, device="cuda").tolist() == [1] * 10)


def empty():
    x = torch.empty(64 << 20, dtype=torch.uint8, device="cuda")
    del x
    torch.cuda.empty_cache()
    return stats()["empty_cache_calls"] > 0


def contents():
    x = torch.full((1000,), 3.0, device="cuda")
    ok = x.tolist() == [3.0] * 1000
    del x
    return ok and torch.empty(1000, device="cuda").tolist() == [0.0] * 1000


def graph():
    x = torch.ones(1000, device="cuda")
    g = torch.cuda.CUDAGraph()
    held = stats()["reserved_bytes"]
    with torch.cuda.graph(g):
        y = x * 2 + torch.ones(8 << 20, device="cuda").sum()
    g.replay()
    torch.cuda.synchronize()
    grew = stats()["reserved_bytes"] > held
    del y, g
    return grew


def pool():
    p = torch.cuda.MemPool()
    held = stats()["reserved_bytes"]
    with torch.cuda.use_mem_pool(p):
        x = torch.ones(8 << 20, device="cuda")
    grew = stats()["reserved_bytes"] > held
    del x, p
    return grew


for f in (gpt, streams, memory, empty, contents, graph, pool):
    try:
        print(f.__name__, "ok" if f() else "wrong", flush=True)
    except Exception as e:
        print(f.__name__, type(e).__name__ + ":", str(e).splitlines()[0], flush=True)
