"""Replay traces of the torch dialect through PyTorch's caching allocator, and print its answers.

The program runs with a CUDA build of PyTorch over the stand-ins. It reads jobs from standard input,
one JSON object a line: the trace, the file for the answers, the memory fraction or null, and the
variables of the environment, which hold the settings and the device. Each job runs in a child of
this process, because PyTorch is imported once and reads its settings once. A line on standard output
ends a job: "ok", or the reason why it failed. testdata/vectors/README.md describes the traces and
the answers.
"""

import json
import os
import sys
import traceback

import torch

GROUPS = ["allocation", "segment", "active", "inactive_split", "allocated_bytes", "reserved_bytes",
          "active_bytes", "inactive_split_bytes", "requested_bytes"]
COUNTS = ["num_alloc_retries", "num_ooms", "num_sync_all_streams", "num_device_alloc", "num_device_free",
          "max_split_size"]


class Raw:
    """A block of caching_allocator_alloc, freed like a tensor when nothing refers to it."""

    def __init__(self, address):
        self.address = address

    def data_ptr(self):
        return self.address

    def __del__(self):
        torch.cuda.caching_allocator_delete(self.address)


class Replay:
    """A trace in progress. Answers are kept until the end: the history orders them."""

    def __init__(self):
        self.streams = {0: torch.cuda.default_stream()}
        self.live = {}  # tensors by ID
        self.answers = []  # (entries of the history before it or None, kind, ...)
        self.seeds = None  # the tensors that captures made and no line has named: addresses and sizes
        self.handles = {}  # handles of graph pools by pool
        self.captured = {}  # graphs by pool, in the order of their captures
        self.capture = {}  # graph and context of the stream by pool, while the graph is captured
        self.mempools = {}  # MemPools by pool
        self.using = {}  # contexts of use_mem_pool by pool
        self.begun = {}  # by pool: how often its MemPool was begun and not released
        self.numbers = {}  # pools by their ID in PyTorch
        enable_history()

    def stream(self, k):
        while len(self.streams) <= k:
            self.streams[len(self.streams)] = torch.cuda.Stream()
        return self.streams[k]

    def run(self, words):
        op, args = words[0], [int(w) for w in words[1:]]
        getattr(self, "do_" + op)(*args)

    def do_a(self, id, size, stream=0):
        if size == 0:
            self.answers.append((None, "null", id))
            return
        before = allocated()
        try:
            with torch.cuda.stream(self.stream(stream)):
                self.live[id] = torch.empty(size, dtype=torch.uint8, device="cuda")
        except torch.cuda.OutOfMemoryError:
            self.answers.append((len(history()), "oom", id))
            return
        self.answers.append((None, "alloc", id, self.live[id].data_ptr(), allocated() - before, stream))

    def do_w(self, id, size, stream=0):
        if size == 0:
            self.answers.append((None, "null", id))
            return
        before = allocated()
        try:
            with torch.cuda.stream(self.stream(stream)):
                self.live[id] = Raw(torch.cuda.caching_allocator_alloc(size))
        except torch.cuda.OutOfMemoryError:
            self.answers.append((len(history()), "oom", id))
            return
        self.answers.append((None, "alloc", id, self.live[id].data_ptr(), allocated() - before, stream))

    def do_g(self, id, size):
        if self.seeds is None:
            self.seeds = seed_tensors()
        if not self.seeds:
            self.do_a(id, size)
            return
        address, block = self.seeds.pop(0)
        self.answers.append((None, "alloc", id, address, block, 0))

    def do_f(self, id):
        if id in self.live:
            self.answers.append((None, "free", id, self.live[id].data_ptr()))
            del self.live[id]

    def do_r(self, id, stream):
        if id in self.live:
            self.live[id].record_stream(self.stream(stream))
            self.answers.append((None, "use", id, stream))

    def do_d(self, stream):
        self.stream(stream).synchronize()

    def do_e(self):
        torch.cuda.empty_cache()

    def do_b(self, pool, stream=None):
        if stream is None:
            begin_pool(pool)
        else:
            with torch.cuda.stream(self.stream(stream)):
                torch._C._cuda_beginAllocateCurrentStreamToPool(0, (0, pool))

    def do_c(self, pool, stream):
        if pool not in self.handles:
            self.handles[pool] = torch.cuda.graph_pool_handle()
            self.numbers[tuple(self.handles[pool])] = pool
        if self.seeds is None:
            self.seeds = seed_tensors()
        graph = torch.cuda.CUDAGraph()
        self.captured.setdefault(pool, []).append(graph)
        # The stream is current until the end of the capture, as with torch.cuda.graph.
        current = torch.cuda.stream(self.stream(stream))
        current.__enter__()
        self.capture[pool] = graph, current
        before, entries = allocated(), len(history())
        # In the other modes, other streams cannot reserve segments during the capture.
        graph.capture_begin(pool=self.handles[pool], capture_error_mode="relaxed")
        self.seeds += made_since(before, entries)

    def do_m(self, pool, **options):
        if pool not in self.mempools:
            self.mempools[pool] = torch.cuda.MemPool(**options)
            self.numbers[self.mempools[pool].id] = pool
        self.begun[pool] = self.begun.get(pool, 0) + 1
        self.using[pool] = torch.cuda.use_mem_pool(self.mempools[pool])
        self.using[pool].__enter__()

    def do_o(self, pool):
        self.do_m(pool, use_on_oom=True)

    def do_s(self, pool):
        self.do_m(pool, no_split=True)

    def do_n(self, pool):
        if pool in self.capture:
            if self.seeds:
                raise SystemExit("each graph allocates a seed of its own")
            graph, current = self.capture.pop(pool)
            graph.capture_end()
            current.__exit__(None, None, None)
        elif pool in self.using:
            self.using.pop(pool).__exit__(None, None, None)
        else:
            end_pool(pool)

    def do_x(self, pool):
        if pool in self.captured:
            self.captured[pool].pop(0).reset()
        elif pool in self.mempools:
            # The end of a context releases the pool; the MemPool itself is one more user. Its deletion
            # also empties its cache, for which the traces have no line.
            self.begun[pool] -= 1
            if self.begun[pool] == 0:
                torch._C._cuda_releasePool(0, self.mempools[pool].id)
        else:
            torch._C._cuda_releasePool(0, (0, pool))

    def do_t(self):
        stats = torch.cuda.memory_stats()
        free, total = torch.cuda.mem_get_info()
        keys = ["allocated_bytes", "active_bytes", "reserved_bytes", "inactive_split_bytes", "requested_bytes", "segment"]
        figures = [stats.get(k + ".all.current", "-") for k in keys] + [total - free]
        self.answers.append((len(history()), "totals", figures))

    def render(self):
        entries = history()
        first = [e["addr"] for e in entries if e["action"] in ("segment_alloc", "segment_map")]
        base = min(first, default=0)
        number = {s.cuda_stream: k for k, s in self.streams.items()}
        owner, pending, used, at = {}, {}, {}, 0  # streams and IDs of the blocks

        def consume(entry):
            action = entry["action"]
            if action.startswith("segment_"):
                print("!", action, entry["addr"] - base, entry["size"], number[entry["stream"]])
            elif action == "oom":
                print(f"! oom device_free={entry['device_free']} size={entry['size']} stream={number[entry['stream']]}")
            elif action == "free_completed" and entry["addr"] in pending:
                print("! free_completed", pending.pop(entry["addr"]))
            return action

        for upto, kind, *rest in self.answers:
            while upto is not None and at < upto:
                consume(entries[at])
                at += 1
            if kind == "alloc":
                id, addr, size, stream = rest
                while consume(entries[at]) != "alloc":
                    at += 1
                assert entries[at]["addr"] == addr
                at += 1
                used[id] = set()
                owner[id] = stream
                print(id, addr - base, size)
            elif kind == "use":
                if rest[1] != owner[rest[0]]:
                    used[rest[0]].add(rest[1])
            elif kind == "free":
                id, addr = rest
                while consume(entries[at]) != "free_requested":
                    at += 1
                at += 1
                if used[id]:
                    pending[addr] = id
                else:
                    assert entries[at]["action"] == "free_completed"
                    at += 1
            elif kind == "oom":
                print(rest[0], "OOM")
            elif kind == "null":
                print(rest[0], "NULL 0")
            elif kind == "totals":
                print("t", *rest[0])
        for entry in entries[at:]:
            consume(entry)
        return base, number, self.numbers


def seed_tensors():
    """Make the tensors that all graphs share, and return (address, size of the block) of each.

    In some releases, 2.6 among them, the generator of random numbers keeps its seed and offset in memory
    from the first graph on. In 2.12 and 2.13 each graph has its own pair; from 2.14 on only graphs that
    draw random numbers have one.
    """
    before, entries = allocated(), len(history())
    seed_tensors.graph = torch.cuda.CUDAGraph()
    if hasattr(seed_tensors.graph, "register_generator_state"):
        seed_tensors.graph.register_generator_state(torch.cuda.default_generators[0])
    return made_since(before, entries)


def made_since(before, entries):
    """Return the address and the size of each block that was allocated since then, all of one size."""
    made = [e["addr"] for e in history()[entries:] if e["action"] == "alloc"]
    return [(address, (allocated() - before) // len(made)) for address in made]


def enable_history():
    if hasattr(torch._C, "_cuda_record_memory_history_legacy"):
        torch.cuda.memory._record_memory_history("all", context=None, stacks="python", max_entries=1 << 30)
    else:
        torch.cuda.memory._record_memory_history(True, record_context=False, trace_alloc_max_entries=1 << 30,
                                                 trace_alloc_record_context=False)


def history():
    return [e for e in torch.cuda.memory._snapshot()["device_traces"][0] if e["action"] != "snapshot"]


def allocated():
    return torch._C._cuda_memoryStats(0)["allocated_bytes"]["all"]["allocated"]


def begin_pool(pool):
    for name in ("_cuda_beginAllocateToPool", "_cuda_beginAllocateCurrentThreadToPool"):
        if hasattr(torch._C, name):
            getattr(torch._C, name)(0, (0, pool))
            return
    raise SystemExit("no redirection of all streams")


def end_pool(pool):
    for name in ("_cuda_endAllocateToPool", "_cuda_endAllocateCurrentStreamToPool"):
        if hasattr(torch._C, name):
            try:
                getattr(torch._C, name)(0, (0, pool))
            except TypeError:  # 2.2 and older end the only redirection
                getattr(torch._C, name)(0)
            return


def state(base, number, pools):
    stats = torch.cuda.memory_stats()
    for group in GROUPS:
        for pool in ("all", "small_pool", "large_pool"):
            key = group + "." + pool
            if key + ".current" in stats:
                print("= stat", key, *(stats[key + "." + w] for w in ("current", "peak", "allocated", "freed")))
    for group in ("oversize_allocations", "oversize_segments"):
        print("= stat", group, *(stats[group + "." + w] for w in ("current", "peak", "allocated", "freed")))
    for name in COUNTS:
        if name in stats:
            print("= count", name, stats[name])
    for s in sorted(torch.cuda.memory_snapshot(), key=lambda s: s["address"]):
        kind = "expandable" if s.get("is_expandable") else "fixed"
        id = tuple(s.get("segment_pool_id", (0, 0)))
        pool = "%d,%d" % ((0, pools[id]) if id in pools else id)
        print("= segment", s["address"] - base, s["total_size"], number[s["stream"]], s["segment_type"], kind,
              f"pool={pool} allocated={s['allocated_size']} active={s['active_size']} requested={s.get('requested_size', '-')}")
        at = s["address"]
        for b in s["blocks"]:
            print("= block", at - base, b["size"], b.get("requested_size", "-"), b["state"])
            at += b["size"]


def run(job):
    """Run a job in a child, and return None or the reason why it failed."""
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        code = 0
        try:
            os.environ.update(job["environment"])
            sys.stdout = open(job["answers"], "w")
            torch.cuda.init()
            if job["fraction"] is not None:
                torch.cuda.set_per_process_memory_fraction(float(job["fraction"]))
            replay = Replay()
            with open(job["trace"]) as lines:
                for line in lines:
                    if line.strip() and line[0] != "#":
                        replay.run(line.split())
            state(*replay.render())
            sys.stdout.flush()
        except BaseException as e:
            traceback.print_exc()
            os.write(writer, f"{type(e).__name__}: {e}".splitlines()[0].encode()[:2000])
            code = 1
        os._exit(code)
    os.close(writer)
    reason = os.read(reader, 4096).decode()
    os.close(reader)
    _, status = os.waitpid(child, 0)
    return None if status == 0 else reason or f"ended with status {status}"


for job in sys.stdin:
    print(run(json.loads(job)) or "ok", flush=True)
