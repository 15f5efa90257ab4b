"""Uses private pools: two CUDA graphs that share one, a third graph that is destroyed, a MemPool."""

import gc

import torch

MIB = 1 << 20


def work(n):
    """Leaves holes of several sizes."""
    kept = [torch.empty(n * MIB // 2, dtype=torch.uint8, device="cuda") for _ in range(4)]
    del kept[1], kept[1]
    kept.append(torch.empty(n * MIB // 4, dtype=torch.uint8, device="cuda") + 1)
    return kept


before = work(24)
graphs = []
for shared in (False, True):
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph, pool=graphs[0][0].pool() if shared else None):
        inside = work(16)
    graphs.append((graph, inside))
before[0] = None
outside = work(8)
for graph, _ in graphs:
    graph.replay()

graph = torch.cuda.CUDAGraph()
with torch.cuda.graph(graph):
    inside = work(12)
graph.reset()
del graph, inside
gc.collect()
torch.cuda.empty_cache()
later = work(20)

if hasattr(torch.cuda, "MemPool"):
    pool = torch.cuda.MemPool()
    with torch.cuda.use_mem_pool(pool):
        pooled = work(32)
    later = None
    with torch.cuda.use_mem_pool(pool):
        more = work(4)
last = work(28)
