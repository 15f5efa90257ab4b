"""Names the private pools in PyTorch's memory history, for releases whose entries do not name them.

These releases name the pool of each segment that exists. The memory of an open pool does not go back, so all segments
are listed when the program ends the capture of a graph or closes a MemPool. Memory that is never listed under a private
pool belongs to the default pool.
"""

import bisect
import functools
import threading

_DEFAULT = (0, 0)
_STEP = 2 << 20  # segments and mapped pages start at multiples of it


class Pools:
    """Follows the pools of a program, and completes snapshots."""

    def __init__(self, torch):
        self.torch = torch
        self.named = False  # the entries of this release name their pools
        self.histories = {}  # by device
        self.open = []  # the threads and pools of MemPools that are open
        self.listed = 0  # bytes ever reserved, at the last listing
        self.lock = threading.RLock()  # around the histories: threads may end captures
        self.follow(torch.cuda.graphs.CUDAGraph, "capture_end", self.list)
        for owner in (torch._C, torch.cuda.memory):
            for name in dir(owner):
                if name.startswith("_cuda_beginAllocate"):
                    self.follow(owner, name, self.begin)
                elif name.startswith("_cuda_endAllocate"):
                    self.follow(owner, name, self.end)

    def follow(self, owner, name, then):
        """Has a function call another one with its arguments, also if it fails."""
        run = getattr(owner, name)

        @functools.wraps(run)
        def followed(*args, **kwargs):
            try:
                return run(*args, **kwargs)
            finally:
                if not self.named:
                    then(*args, *kwargs.values())

        setattr(owner, name, followed)

    def begin(self, _, pool, *__):
        self.open.append((threading.get_ident(), tuple(pool)))

    def end(self, _, pool, *__):
        self.open = [o for o in self.open if o[1] != tuple(pool)]
        self.list()

    def list(self, *_):
        """Lists the segments if there are new ones."""
        cuda = self.torch.cuda
        reserved = sum(cuda.memory_stats(i).get("reserved_bytes.all.allocated", 0) for i in range(cuda.device_count()))
        if reserved != self.listed:
            self.listed = reserved
            self.complete(cuda.memory._snapshot())

    def refused(self, device):
        """Notes the pool of a request that found no memory."""
        pools = [pool for thread, pool in self.open if thread == threading.get_ident()]
        if not pools:  # the pool of a capture is not known before its end
            pools = [None if self.torch.cuda.is_current_stream_capturing() else _DEFAULT]
        self.histories.setdefault(device, _History()).refused.append(pools[-1])

    def complete(self, snapshot):
        """Adds pools to the entries about segments and refused requests, under the name of later releases."""
        for device, entries in enumerate(snapshot["device_traces"]):
            segments = [s for s in snapshot["segments"] if s["device"] == device]
            self.named = self.named or any("pool_id" in e for e in entries[:1])
            if self.named or not all("segment_pool_id" in s for s in segments):
                return
            with self.lock:
                self.histories.setdefault(device, _History()).complete(entries, segments)


class _History:
    """What is known of the history of a device."""

    def __init__(self):
        self.seen = []  # entries about segments
        self.pools = []  # their pools
        self.held = {}  # by address: the pool of the memory that is held
        self.refused = []  # pools of refused requests; None for the one that a capture of the stream uses

    def complete(self, entries, segments):
        about = [e for e in entries if e["action"].startswith("segment_")]
        key = [(e["action"], e["addr"], e["size"]) for e in about]
        if key[: len(self.seen)] != self.seen:
            return  # the program began a history of its own, or this one is longer than PyTorch keeps
        self.learn(about[len(self.seen) :], segments)
        self.seen = key
        for e, pool in zip(about, self.pools):
            e["pool_id"] = pool
        for i, (e, pool) in enumerate(zip((e for e in entries if e["action"] == "oom"), self.refused)):
            of_stream = (tuple(s["segment_pool_id"]) for s in segments if s["stream"] == e["stream"])
            e["pool_id"] = self.refused[i] = pool or max(of_stream, default=_DEFAULT)

    def learn(self, entries, segments):
        """Finds the pools of new entries from the segments that are held after them."""
        segments = sorted(segments, key=lambda s: s["address"])
        starts = [s["address"] for s in segments]
        taken, returned = {}, set()
        for i, e in reversed(list(enumerate(entries))):
            if e["action"] in ("segment_free", "segment_unmap"):
                returned.update(self.steps(e))
            elif e["addr"] not in returned:
                at = bisect.bisect(starts, e["addr"]) - 1
                if at >= 0 and e["addr"] < starts[at] + segments[at]["total_size"]:
                    taken[i] = tuple(segments[at]["segment_pool_id"])
        for i, e in enumerate(entries):
            if e["action"] in ("segment_free", "segment_unmap"):
                pool = self.held.get(e["addr"], _DEFAULT)
            else:
                pool = taken.get(i, _DEFAULT)
                self.held.update(dict.fromkeys(self.steps(e), pool))
            self.pools.append(pool)

    def steps(self, entry):
        return range(entry["addr"], entry["addr"] + entry["size"], _STEP)
