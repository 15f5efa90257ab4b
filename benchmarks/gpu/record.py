"""Record PyTorch's memory snapshot of a small program on the GPU.

    python3 benchmarks/gpu/record.py cnn_train snapshot.pickle

The history begins before the first tensor on the GPU, so that nothing is missing in it. Weights and inputs are drawn
from a seed. Facts about the recording are printed as one line of JSON. docs/gpu.md says how the snapshots are used.
"""

import argparse
import json
import os
import pickle
import sys
import zlib

SEED = 1234

# A snapshot that is larger than this when it is compressed goes without stacks.
MOST_BYTES = 700_000


def cnn_train(torch, steps):
    """Train a residual network on batches of images of which each fourth one is smaller."""
    nn = torch.nn

    class Block(nn.Module):
        def __init__(self, channels, out, stride):
            super().__init__()
            self.first = nn.Sequential(nn.Conv2d(channels, out, 3, stride, 1, bias=False), nn.BatchNorm2d(out), nn.ReLU())
            self.second = nn.Sequential(nn.Conv2d(out, out, 3, 1, 1, bias=False), nn.BatchNorm2d(out))
            self.skip = nn.Conv2d(channels, out, 1, stride, bias=False)

        def forward(self, x):
            return torch.relu(self.second(self.first(x)) + self.skip(x))

    widths = [64, 64, 128, 128, 256, 256, 512, 512]
    blocks = [Block(a, b, 1 if a == b else 2) for a, b in zip([64] + widths, widths)]
    model = nn.Sequential(
        nn.Conv2d(3, 64, 7, 2, 3, bias=False), nn.BatchNorm2d(64), nn.ReLU(), nn.MaxPool2d(3, 2, 1), *blocks,
        nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(512, 1000)).cuda()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
    for step in range(steps):
        batch = 20 if step % 4 == 3 else 32
        images = torch.randn(batch, 3, 160, 160).cuda(non_blocking=True)
        labels = torch.randint(0, 1000, (batch,)).cuda(non_blocking=True)
        loss = nn.functional.cross_entropy(model(images), labels)
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        optimizer.step()
        loss.item()


def transformer_train(torch, steps):
    """Train a small language model on batches whose length differs from step to step."""
    nn = torch.nn
    vocabulary, width, layers = 8192, 512, 6
    embedding = nn.Embedding(vocabulary, width).cuda()
    body = nn.TransformerEncoder(
        nn.TransformerEncoderLayer(width, 8, 4 * width, dropout=0.0, batch_first=True, norm_first=True), layers,
        enable_nested_tensor=False).cuda()
    head = nn.Linear(width, vocabulary).cuda()
    parameters = [*embedding.parameters(), *body.parameters(), *head.parameters()]
    optimizer = torch.optim.AdamW(parameters, lr=3e-4)
    for step in range(steps):
        length = 128 + 64 * (step * 5 % 7)
        tokens = torch.randint(0, vocabulary, (8, length + 1)).cuda(non_blocking=True)
        mask = nn.Transformer.generate_square_subsequent_mask(length).cuda()
        logits = head(body(embedding(tokens[:, :-1]), mask=mask))
        loss = nn.functional.cross_entropy(logits.reshape(-1, vocabulary), tokens[:, 1:].reshape(-1))
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        optimizer.step()
        loss.item()


def transformer_kv(torch, steps):
    """Answer requests with a transformer whose cache of keys and values grows by a token a step."""
    nn = torch.nn
    width, heads, layers, requests = 1024, 16, 4, 4
    each = width // heads
    blocks = [(nn.Linear(width, 3 * width).cuda(), nn.Linear(width, 4 * width).cuda(), nn.Linear(4 * width, width).cuda())
              for _ in range(layers)]

    def forward(x, cache):
        for i, (attend, widen, narrow) in enumerate(blocks):
            length = x.shape[1]
            query, key, value = (t.reshape(1, length, heads, each).transpose(1, 2) for t in attend(x).chunk(3, dim=-1))
            if cache[i] is not None:
                key, value = torch.cat([cache[i][0], key], dim=2), torch.cat([cache[i][1], value], dim=2)
            cache[i] = (key, value)
            y = nn.functional.scaled_dot_product_attention(query, key, value, is_causal=length > 1)
            x = x + y.transpose(1, 2).reshape(1, length, width)
            x = x + narrow(nn.functional.gelu(widen(x)))
        return x

    with torch.no_grad():
        caches = {}
        for step in range(steps):
            if step % (steps // requests or 1) == 0:  # a request comes with its prompt, and the oldest may go
                if len(caches) == requests - 1:
                    del caches[min(caches)]
                caches[step] = [None] * layers
                forward(torch.randn(1, 64 + 96 * (step % 3), width).cuda(), caches[step])
            for cache in caches.values():
                forward(torch.randn(1, 1, width).cuda(), cache)
        torch.cuda.synchronize()


# What is recorded, and how many steps of it.
PROGRAMS = {"cnn_train": (cnn_train, 5), "transformer_train": (transformer_train, 5), "transformer_kv": (transformer_kv, 16)}


def shorten(snapshot):
    """Cut the paths of files in stacks to what follows the directory of packages: they tell about the machine."""
    seen = set()
    roots = sorted((os.path.join(os.path.abspath(p), "") for p in sys.path if p), key=len, reverse=True)

    def cut(frames):
        for frame in frames or ():
            if id(frame) in seen:
                continue
            seen.add(id(frame))
            name = frame.get("filename", "")
            for root in roots:
                if name.startswith(root):
                    frame["filename"] = name[len(root):]
                    break

    for history in snapshot.get("device_traces", ()):
        for entry in history:
            cut(entry.get("frames"))
    for segment in snapshot.get("segments", ()):
        cut(segment.get("frames"))
        for block in segment.get("blocks", ()):
            cut(block.get("frames"))


def without_frames(snapshot):
    """Take the stacks out."""
    for history in snapshot.get("device_traces", ()):
        for entry in history:
            entry.pop("frames", None)
    for segment in snapshot.get("segments", ()):
        segment["frames"] = []
        for block in segment.get("blocks", ()):
            block["frames"] = []


def main():
    p = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    p.add_argument("program", choices=sorted(PROGRAMS))
    p.add_argument("file", help="where the snapshot goes")
    arguments = p.parse_args()
    os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")  # without which cuBLAS is not deterministic
    import torch

    program, steps = PROGRAMS[arguments.program]
    torch.manual_seed(SEED)
    torch.use_deterministic_algorithms(True, warn_only=True)
    torch.cuda.memory._record_memory_history(enabled="all", context="alloc", stacks="python", max_entries=1_000_000)
    program(torch, steps)
    torch.cuda.synchronize()
    snapshot = torch.cuda.memory._snapshot()
    torch.cuda.memory._record_memory_history(enabled=None)
    shorten(snapshot)
    data, frames = pickle.dumps(snapshot, protocol=4), True
    if len(zlib.compress(data, 6)) > MOST_BYTES:
        without_frames(snapshot)
        data, frames = pickle.dumps(snapshot, protocol=4), False
    with open(arguments.file, "wb") as f:
        f.write(data)
    print(json.dumps({
        "what": program.__doc__.strip().rstrip("."), "steps": steps, "seed": SEED, "frames": frames,
        "events": sum(len(history) for history in snapshot.get("device_traces", ()))}))
    return 0


if __name__ == "__main__":
    sys.exit(main())
