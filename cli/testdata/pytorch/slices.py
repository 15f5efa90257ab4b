"""Changes slices of uploads, and a counter in a graph. A comment says which lines read unknown values, and how often."""

import torch

for dtype in torch.uint8, torch.bfloat16, torch.float32, torch.int64:
    upload, computed = torch.arange(64).to(dtype).cuda(), torch.ones(64, dtype=dtype, device="cuda")
    upload[8:16] += computed[8:16]
    assert upload[:8].tolist() + upload[16:].tolist() == [*range(8), *range(16, 64)]
    upload[15:17].tolist()  # value x4

counter, graph = torch.zeros((), dtype=torch.int64, device="cuda"), torch.cuda.CUDAGraph()
with torch.cuda.graph(graph):
    counter += 1
graph.replay()
counter.item()  # value
