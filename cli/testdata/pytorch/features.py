"""Uses one feature of PyTorch's CUDA build after the other, and prints "ok NAME" or the reason why it failed."""

import os
import sys

import torch
import torch.nn.functional as F
from torch import nn

FEATURES = []


def feature(f):
    FEATURES.append(f)
    return f


@feature
def uploads_have_their_contents():
    assert torch.tensor([1, 2, 3]).cuda().tolist() == [1, 2, 3]
    assert torch.full((5,), 3.0, device="cuda").tolist() == [3.0] * 5
    assert torch.ones(4, dtype=torch.bfloat16, device="cuda").tolist() == [1.0] * 4


@feature
def computed_values_are_zero():
    for _ in range(3):
        assert torch.randn(1000, device="cuda").tolist() == [0.0] * 1000
        torch.ones(1000, device="cuda").cpu()


@feature
def training():
    model = nn.Sequential(nn.Linear(64, 256), nn.GELU(), nn.Linear(256, 64)).cuda()
    optimizer = torch.optim.AdamW(model.parameters())
    for _ in range(3):
        model(torch.randn(32, 64, device="cuda")).pow(2).mean().backward()
        optimizer.step()
        optimizer.zero_grad()


@feature
def mixed_precision():
    model, scaler = nn.Linear(64, 64).cuda(), torch.amp.GradScaler("cuda")
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    with torch.autocast("cuda", dtype=torch.float16):
        loss = model(torch.randn(32, 64, device="cuda")).sum()
    scaler.scale(loss).backward()
    scaler.step(optimizer)
    scaler.update()


@feature
def attention():
    q = torch.randn(2, 8, 256, 64, device="cuda", dtype=torch.bfloat16, requires_grad=True)
    F.scaled_dot_product_attention(q, q, q, is_causal=True).sum().backward()


@feature
def sorting_and_indexing():
    x = torch.randn(1 << 16, device="cuda")
    x.sort(), x.topk(10), x.cumsum(0), x.unique(), x[x > 0], torch.multinomial(torch.rand(10, device="cuda"), 3)
    str(x)


@feature
def streams():
    x, s = torch.empty(1 << 20, device="cuda"), torch.cuda.Stream()
    with torch.cuda.stream(s):
        x + 1
    x.record_stream(s)
    del x
    torch.cuda.synchronize()


@feature
def graphs():
    x, s, g = torch.zeros(1000, device="cuda"), torch.cuda.Stream(), torch.cuda.CUDAGraph()
    s.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(s):
        x * 2
    torch.cuda.current_stream().wait_stream(s)
    with torch.cuda.graph(g):
        x * 2 + torch.ones(100_000, device="cuda").sum()
    g.replay()


@feature
def pinned_memory():
    x = torch.randn(1000).pin_memory()
    assert x.is_pinned()
    x.cuda(non_blocking=True)


@feature
def workers_of_a_loader():
    from torch.utils.data import DataLoader, TensorDataset

    for (batch,) in DataLoader(TensorDataset(torch.randn(16, 4)), batch_size=8, num_workers=1, pin_memory=True):
        batch.cuda()


@feature
def a_forked_child_may_not_use_the_device():
    child = os.fork()
    if child == 0:
        try:
            torch.cuda.synchronize()
        except Exception:
            os._exit(0)
        os._exit(1)
    assert os.waitpid(child, 0)[1] == 0


@feature
def memory_ends_as_on_a_card():
    free, total = torch.cuda.mem_get_info()
    assert free < total
    try:
        torch.empty(total, dtype=torch.uint8, device="cuda")
    except torch.OutOfMemoryError as e:
        assert "Tried to allocate" in str(e), e
    else:
        raise AssertionError("memory without end")


for f in FEATURES:
    try:
        f()
        print("ok", f.__name__)
    except Exception as e:
        print("FAIL", f.__name__, type(e).__name__, " ".join(str(e).split())[:500])
sys.stdout.flush()
