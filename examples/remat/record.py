"""Record the op logs beside this file: one training step of each program.

    python3 examples/remat/record.py [NAME...]      # such as cnn or batches/vit-b8; without a name all of them

It needs PyTorch and takes some minutes on a CPU. A step is run five times; the log has the median of each time. The memory
that PyTorch's own profiler counts in one more step goes to measured.json, for the tests. resnet50 and vit are recorded at
three batch sizes, a log for each, without that.
"""

import functools
import json
import pathlib
import statistics
import subprocess
import sys
import time

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent.parent / "python"))

import torch  # noqa: E402
from torch import nn  # noqa: E402
from torch.profiler import ProfilerActivity, profile  # noqa: E402

from vramyard import dtrlog  # noqa: E402

SEED = 1234
STEPS = 5
BATCHES = 4, 8, 12


class Bottleneck(nn.Module):
    """A block of a ResNet-50."""

    def __init__(self, channels, width, stride):
        super().__init__()
        out = 4 * width
        self.body = nn.Sequential(
            nn.Conv2d(channels, width, 1, bias=False), nn.BatchNorm2d(width), nn.ReLU(inplace=True),
            nn.Conv2d(width, width, 3, stride, 1, bias=False), nn.BatchNorm2d(width), nn.ReLU(inplace=True),
            nn.Conv2d(width, out, 1, bias=False), nn.BatchNorm2d(out))
        self.skip = nn.Sequential()
        if stride != 1 or channels != out:
            self.skip = nn.Sequential(nn.Conv2d(channels, out, 1, stride, bias=False), nn.BatchNorm2d(out))

    def forward(self, x):
        y = self.body(x)
        y += self.skip(x)
        return torch.relu_(y)


def classifier(model, batch):
    """A model that classifies images of 224 by 224, SGD with momentum."""
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
    images, labels = torch.randn(batch, 3, 224, 224), torch.randint(0, 1000, (batch,))
    return optimizer, lambda: nn.functional.cross_entropy(model(images), labels)


def resnet(width):
    """A ResNet-50 whose first convolution has width channels."""
    blocks, channels = [], width
    for stage, depth in enumerate([3, 4, 6, 3]):
        for i in range(depth):
            blocks.append(Bottleneck(channels, width << stage, 2 if stage > 0 and i == 0 else 1))
            channels = 4 * width << stage
    return nn.Sequential(
        nn.Conv2d(3, width, 7, 2, 3, bias=False), nn.BatchNorm2d(width), nn.ReLU(inplace=True), nn.MaxPool2d(3, 2, 1), *blocks,
        nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(channels, 1000))


def cnn():
    """A ResNet-50 of half the width on 8 images of 224 by 224, SGD with momentum."""
    return classifier(resnet(32), 8)


def resnet50(batch):
    """A ResNet-50, SGD with momentum."""
    return classifier(resnet(64), batch)


class VisionTransformer(nn.Module):
    """A ViT-S/16: 12 layers of width 384, 6 heads, patches of 16 by 16."""

    def __init__(self):
        super().__init__()
        width = 384
        self.patches = nn.Conv2d(3, width, 16, 16)
        self.token, self.positions = nn.Parameter(torch.zeros(1, 1, width)), nn.Parameter(0.02 * torch.randn(1, 197, width))
        layer = nn.TransformerEncoderLayer(width, 6, 4 * width, dropout=0.0, activation="gelu", batch_first=True, norm_first=True)
        self.body = nn.TransformerEncoder(layer, 12, nn.LayerNorm(width))
        self.head = nn.Linear(width, 1000)

    def forward(self, images):
        x = self.patches(images).flatten(2).transpose(1, 2)
        x = torch.cat([self.token.expand(len(x), -1, -1), x], dim=1) + self.positions
        return self.head(self.body(x)[:, 0])


def vit(batch):
    """A ViT-S/16, SGD with momentum."""
    return classifier(VisionTransformer(), batch)


def transformer():
    """A causal language model of 6 layers, width 256, on 8 texts of 256 tokens, with dropout; Adam."""
    vocabulary, width, length = 8192, 256, 256
    embedding, positions = nn.Embedding(vocabulary, width), nn.Parameter(0.02 * torch.randn(length, width))
    body = nn.TransformerEncoder(nn.TransformerEncoderLayer(width, 8, 4 * width, dropout=0.1, batch_first=True, norm_first=True), 6)
    head = nn.Linear(width, vocabulary, bias=False)
    parameters = [*embedding.parameters(), positions, *body.parameters(), *head.parameters()]
    optimizer = torch.optim.Adam(parameters, lr=3e-4)
    mask = torch.triu(torch.full((length, length), float("-inf")), diagonal=1)
    texts = torch.randint(0, vocabulary, (8, length + 1))

    def loss():
        out = head(body(embedding(texts[:, :-1]) + positions, mask=mask))
        return nn.functional.cross_entropy(out.flatten(0, 1), texts[:, 1:].flatten())
    return optimizer, loss


def recurrent():
    """A language model of two LSTM cells of width 256, unrolled over 20 tokens of 128 texts, gradients clipped; Adam."""
    vocabulary, width, length = 4096, 256, 20
    embedding, head = nn.Embedding(vocabulary, width), nn.Linear(width, vocabulary)
    cells = nn.ModuleList([nn.LSTMCell(width, width), nn.LSTMCell(width, width)])
    parameters = [*embedding.parameters(), *cells.parameters(), *head.parameters()]
    optimizer = torch.optim.Adam(parameters, lr=1e-3)
    texts = torch.randint(0, vocabulary, (128, length + 1))

    def loss():
        states, total = [None, None], 0.0
        for t in range(length):
            x = embedding(texts[:, t])
            for i, cell in enumerate(cells):
                states[i] = cell(x, states[i])
                x = states[i][0]
            total = total + nn.functional.cross_entropy(head(x), texts[:, t + 1])
        return total / length
    optimizer.clipped = parameters
    return optimizer, loss


def step_of(optimizer, loss):
    """Return one training step."""
    def step():
        optimizer.zero_grad(set_to_none=True)
        loss().backward()
        if hasattr(optimizer, "clipped"):
            nn.utils.clip_grad_norm_(optimizer.clipped, 1.0)
        optimizer.step()
    return step


def measure(step):
    """Return figures of a step without the recorder: its time, and the peak and final change of PyTorch's allocated bytes."""
    times = []
    for _ in range(3):
        start = time.perf_counter_ns()
        step()
        times.append(time.perf_counter_ns() - start)
    with profile(activities=[ProfilerActivity.CPU], profile_memory=True) as profiler:
        step()
    given = most = 0
    for event in profiler.profiler.kineto_results.events():
        if event.name() == "[memory]":
            given += event.nbytes()
            most = max(most, given)
    return {"torch": torch.__version__, "step_ns": statistics.median(times), "peak_bytes": most, "end_bytes": given}


def main():
    """Record the programs that were named."""
    programs = {f.__name__: f for f in (cnn, transformer, recurrent)}
    programs.update({f"batches/{f.__name__}-b{batch}": functools.partial(f, batch) for f in (resnet50, vit) for batch in BATCHES})
    names = sys.argv[1:] or list(programs)
    for name in names:
        if name not in programs:
            sys.exit(f"record.py: no program {name}: want {', '.join(programs)}")
    if len(names) > 1:  # one process each: the profiler would count memory of earlier programs
        for name in names:
            subprocess.run([sys.executable, __file__, name], check=True)
        return
    name, facts = names[0], HERE / "measured.json"
    torch.manual_seed(SEED)
    step = step_of(*programs[name]())
    dtrlog.steps(HERE / f"{name}.log.gz", step, STEPS)
    if isinstance(programs[name], functools.partial):
        return
    measured = json.loads(facts.read_text()) if facts.exists() else {}
    measured[name] = measure(step)
    facts.write_text(json.dumps(measured, indent=1, sort_keys=True) + "\n")
    print(name, measured[name])


if __name__ == "__main__":
    main()
