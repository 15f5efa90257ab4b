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
def steps_are_counted_on_the_device():
    torch.set_default_device("cuda")
    try:
        model, count = nn.Sequential(nn.Linear(8, 8), nn.BatchNorm1d(8)), torch.zeros(2, dtype=torch.int64)
        for foreach in (True, False):
            optimizer = torch.optim.AdamW(model.parameters(), foreach=foreach)
            for _ in range(3):
                model(torch.randn(4, 8)).sum().backward()
                optimizer.step()
                count += 2
            steps = [s["step"] for s in optimizer.state.values()]
            assert [s.item() for s in steps] == [3.0] * 4, steps
    finally:
        torch.set_default_device(None)
    assert model[1].num_batches_tracked.item() == 6
    assert (count - 5).tolist() == [7, 7], count


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


@feature
def ranges_have_their_values():
    for t in (torch.int64, torch.int32, torch.float64, torch.float32, torch.bfloat16, torch.half, torch.uint8):
        assert torch.arange(2, 20, 3, device="cuda", dtype=t).tolist() == torch.arange(2, 20, 3, dtype=t).tolist(), t


@feature
def convolutions():
    model = nn.Sequential(nn.Conv2d(3, 16, 3), nn.BatchNorm2d(16), nn.ReLU(), nn.Conv2d(16, 32, 3, groups=2)).cuda()
    model(torch.randn(4, 3, 32, 32, device="cuda")).sum().backward()
    nn.ConvTranspose2d(4, 8, 3).cuda()(torch.randn(2, 4, 8, 8, device="cuda")).sum().backward()
    nn.Conv3d(4, 8, 3).cuda()(torch.randn(2, 4, 8, 8, 8, device="cuda")).sum().backward()


@feature
def channels_last_convolutions():
    model = nn.Sequential(nn.Conv2d(3, 16, 3), nn.BatchNorm2d(16)).cuda().to(memory_format=torch.channels_last)
    x = torch.randn(4, 3, 32, 32, device="cuda").to(memory_format=torch.channels_last)
    with torch.autocast("cuda", dtype=torch.bfloat16):
        model(x).sum().backward()


@feature
def recurrent_networks():
    nn.LSTM(32, 64, 2, batch_first=True, dropout=0.1).cuda()(torch.randn(4, 10, 32, device="cuda"))[0].sum().backward()
    nn.LSTM(32, 64, proj_size=16).cuda()(torch.randn(4, 10, 32, device="cuda"))[0].sum().backward()
    nn.GRU(32, 64, 2, bidirectional=True).cuda()(torch.randn(4, 10, 32, device="cuda"))[0].sum().backward()
    nn.RNN(32, 64, bias=False).cuda()(torch.randn(4, 10, 32, device="cuda"))[0].sum().backward()


@feature
def transforms_and_sparse_matrices():
    torch.fft.irfft2(torch.fft.rfft2(torch.randn(8, 64, 64, device="cuda")))
    torch.sparse.mm(torch.eye(100, device="cuda").to_sparse_csr(), torch.randn(100, 10, device="cuda"))


@feature
def linear_algebra():
    a = torch.randn(64, 64, device="cuda")
    for f in (torch.linalg.svd, torch.linalg.eigh, torch.linalg.inv, torch.linalg.cholesky, torch.linalg.qr, torch.linalg.lu_factor):
        f(a)
    torch.linalg.svd(torch.randn(3, 16, 8, device="cuda"))
    torch.linalg.eigh(torch.randn(3, 16, 16, device="cuda"))
    torch.linalg.solve(a, a)
    torch.linalg.lstsq(a, a)


@feature
def profiles():
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU, torch.profiler.ProfilerActivity.CUDA]):
        torch.ones(10, device="cuda") + 1


@feature
def exceptions_that_free_tensors():
    from torch.utils.checkpoint import checkpoint

    layer = nn.Sequential(nn.Linear(64, 64), nn.GELU(), nn.Linear(64, 64)).cuda()
    x = torch.randn(8, 64, device="cuda", requires_grad=True)
    checkpoint(layer, checkpoint(layer, x, use_reentrant=False), use_reentrant=False).sum().backward()


@feature
def data_parallel_with_nccl():
    import tempfile

    import torch.distributed as dist

    with tempfile.NamedTemporaryFile() as f:
        dist.init_process_group("nccl", init_method="file://" + f.name, rank=0, world_size=1)
        model = nn.parallel.DistributedDataParallel(nn.Linear(10, 10).cuda())
        model(torch.randn(4, 10, device="cuda")).sum().backward()
        x = torch.tensor([1, 2], device="cuda")
        dist.all_reduce(x)
        parts = torch.zeros(2, dtype=torch.int64, device="cuda")
        dist.all_gather_into_tensor(parts, x)
        assert parts.tolist() == [1, 2]
        dist.barrier()
        dist.destroy_process_group()


for f in FEATURES:
    try:
        f()
        print("ok", f.__name__)
    except Exception as e:
        print("FAIL", f.__name__, type(e).__name__, " ".join(str(e).split())[:500])
sys.stdout.flush()
