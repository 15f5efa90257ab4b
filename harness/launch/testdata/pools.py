"""Has pools.py complete the history of a program without PyTorch, and prints the entries with their pools."""

import types

from vramyard_pools import Pools

MIB = 1 << 20
history, segments, stats = [], {}, {"reserved_bytes.all.allocated": 0}
capturing = False


def listed():
    held = [dict(device=0, address=a, total_size=n, stream=s, segment_pool_id=p) for a, (n, s, p) in segments.items()]
    return {"segments": held, "device_traces": [[dict(e) for e in history]]}


class Graph:
    def capture_end(self, fails=False):
        if fails:
            raise RuntimeError("the capture was invalidated")


memory = types.SimpleNamespace(
    _cuda_beginAllocateToPool=lambda *_: None, _cuda_endAllocateToPool=lambda *_, **__: None, _snapshot=listed
)
torch = types.SimpleNamespace(
    _C=types.SimpleNamespace(),
    cuda=types.SimpleNamespace(
        graphs=types.SimpleNamespace(CUDAGraph=Graph),
        memory=memory,
        memory_stats=lambda _: stats,
        device_count=lambda: 1,
        is_current_stream_capturing=lambda: capturing,
    ),
)
pools = Pools(torch)


def take(at, pool, action="segment_alloc", size=20 * MIB):
    history.append({"action": action, "addr": at * MIB, "size": size, "stream": pool[0]})
    segments[at * MIB] = size, pool[0], pool
    stats["reserved_bytes.all.allocated"] += size


def give_back(at, action="segment_free"):
    history.append({"action": action, "addr": at * MIB, "size": segments.pop(at * MIB)[0], "stream": 0})


def refuse():
    history.append({"action": "oom", "device_free": 5, "size": 9, "stream": 3 if capturing else 0})
    pools.refused(0)


def show(title):
    snapshot = listed()
    pools.complete(snapshot)
    print(title, *(f"{e['action']}@{e.get('addr', 0) // MIB}:{e.get('pool_id', '-')}" for e in snapshot["device_traces"][0]))


take(0, (0, 0))
give_back(0)  # the address is taken again by a graph
capturing = True
take(0, (3, 0))
refuse()
try:
    Graph().capture_end(fails=True)
except RuntimeError:
    capturing = False
give_back(0)
take(0, (0, 0))
refuse()
memory._cuda_beginAllocateToPool(0, (0, 7))
take(40, (0, 7), "segment_map")
take(60, (0, 7), "segment_map")
refuse()
memory._cuda_endAllocateToPool(0, mempool_id=(0, 7))
give_back(60, "segment_unmap")
show("all:")
history, segments = history[:0], {}
take(80, (0, 0))
show("begun again:")
history, named = [{"action": "segment_alloc", "addr": 0, "size": 1, "stream": 0, "pool_id": (4, 0)}], Pools(torch)
named.complete(listed())
Graph().capture_end()
print("named:", named.named, named.histories)
