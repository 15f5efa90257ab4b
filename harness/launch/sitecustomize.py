"""Every Python process below `vramyard run` loads this file at its start.

It loads the stand-ins for the CUDA libraries before anything else can load NVIDIA's, and records
PyTorch's memory history from the first tensor on, or has PyTorch allocate through a strategy.
"""

import ctypes
import functools
import json
import os
import sys
import threading
import time


def _preload():
    for path in os.environ["VRAMYARD_STANDINS"].split(os.pathsep):
        ctypes.CDLL(path, mode=ctypes.RTLD_GLOBAL)


def _library():
    """The library that connects this process to the device."""
    return ctypes.CDLL(os.environ["VRAMYARD_STANDINS"].split(os.pathsep)[0])


def _mark(kind, number):
    """Tells the device of a step (1), a request that found no memory (2) or the exception that ends the program (4)."""
    call = _library().vramyard_device
    call.restype, call.argtypes = ctypes.c_uint64, [ctypes.c_uint64, ctypes.c_void_p, ctypes.c_void_p]
    argument, result = (ctypes.c_uint64 * 4)(kind, number), (ctypes.c_uint64 * 2)()
    call(_MARK, ctypes.byref(argument), ctypes.byref(result))


_MARK = 30  # DEVICE_MARK of device/standin/native/ops.h


class _Reads:
    """Counts, by line of the program, the copies of unknown values to the host."""

    def __init__(self, torch):
        from vramyard_reads import Program

        self.torch = torch
        self.program = Program(torch, __file__)
        self.lines = {}  # by instruction: its line, the number of reads, and the operators of PyTorch of the first one
        self.callback = ctypes.CFUNCTYPE(None)(self.read)  # must live as long as the library has it
        _library().vramyard_watch_reads(self.callback)

    def read(self):
        """Runs in the thread that reads, which has no frame if it is one of PyTorch's own."""
        frame = self.program.innermost(sys._getframe(0).f_back or sys._current_frames().get(threading.main_thread().ident))
        key = frame and (frame.f_code, frame.f_lasti)
        if key not in self.lines:
            text = ctypes.create_string_buffer(1024)
            _library().vramyard_operators(text, ctypes.c_size_t(len(text)))
            self.lines[key] = [self.program.line(frame), 0, text.value.decode().split()]
        self.lines[key][1] += 1

    def write(self, path):
        counts = {}
        for line, n, operators in self.lines.values():
            key = line, self.shape(operators)
            counts[key] = counts.get(key, 0) + n
        with open(path, "w", encoding="utf-8") as f:
            json.dump([{"line": line, "operator": shape, "read_count": n} for (line, shape), n in counts.items()], f)

    def shape(self, operators):
        """The outermost operator whose result has a shape that depends on values; "" without one."""
        for name in reversed(operators):
            # The name of an overload follows that of its operator: index_Tensor, but also masked_select.
            for i in [len(name)] + [i for i in range(len(name) - 1, 0, -1) if name[i] == "_"]:
                operator = getattr(getattr(self.torch.ops.aten, name[:i], None), name[i + 1 :] or "default", None)
                if self.torch.Tag.dynamic_output_shape in getattr(operator, "tags", ()):
                    return name[:i]
        return ""


class _Steps:
    """Tells the device of the steps of the optimizers, and reports what the answer of a run names."""

    def __init__(self, torch):
        self.torch = torch
        self.reads = None
        self.process = os.getpid()
        self.steps = 0
        self.stepping = set()  # optimizers that have stepped in this step of the program
        self.expected = None  # optimizers that step in each step of the program
        self.recording = False
        torch.cuda._lazy_call(self.start)

    def start(self):
        """Begins to record, when PyTorch first uses the GPU."""
        import atexit

        atexit.register(self.leave)
        self.reads = _Reads(self.torch)
        self.recording = True

    def ending(self):
        """Runs before a step ends."""

    def leave(self):
        """Runs when the process ends."""
        if os.getpid() == self.process:
            _library().vramyard_watch_reads(None)
            if self.expected and self.stepping & self.expected:
                self.count()
            self.report()
            self.raised()

    def raised(self):
        """Tells the device of the exception that ended the program, and whether exhausted memory caused it."""
        error = last = getattr(sys, "last_exc", None) or getattr(sys, "last_value", None)
        while error is not None and not isinstance(error, self.torch.cuda.OutOfMemoryError):
            error = error.__cause__
        if last is not None:
            _mark(4, int(error is not None))

    def path(self, ending):
        return os.path.join(os.environ["VRAMYARD_SNAPSHOTS"], "%d%s" % (self.process, ending))

    def report(self):
        _library().vramyard_report(os.fsencode(self.path(".areas")))
        self.reads.write(self.path(".reads"))

    def stepped(self, optimizer, *_):
        """Counts the steps of the program.

        A step ends when all optimizers that stepped in the last one have stepped, in the first one all that exist, or
        at the latest when one of them steps again.
        """
        if id(optimizer) in self.stepping:
            self.end_step()
        self.stepping.add(id(optimizer))
        if self.expected is None:
            self.expected = self.optimizers()
        if self.stepping >= self.expected:
            self.end_step()

    def optimizers(self):
        """The optimizers whose steps are reported, which excludes wrappers around others."""
        import gc

        known = [o for o in gc.get_objects() if issubclass(type(o), self.torch.optim.Optimizer)]
        return {id(o) for o in known if getattr(type(o).step, "hooked", False)}

    def count(self):
        self.steps += 1
        self.expected, self.stepping = self.stepping, set()
        if self.recording:
            self.ending()
            _mark(1, self.steps)

    def end_step(self):
        self.count()
        if self.steps >= int(os.environ.get("VRAMYARD_STEPS") or sys.maxsize):
            raise SystemExit(0)


class _Strategy(_Steps):
    """Has PyTorch allocate through a strategy, whose library records a trace."""

    def __init__(self, torch):
        import vramyard_torch as allocator

        sys.modules["vramyard.torch"] = allocator  # for a program that has the package
        allocator.use(library=os.environ["VRAMYARD_ALLOCATOR"])
        self.stats = allocator.stats
        self.refused = 0
        super().__init__(torch)

    def leave(self):
        self.ending()
        super().leave()

    def ending(self):
        """Tells the device of the requests that found no memory since the last call."""
        if os.getpid() != self.process:
            return
        devices = [d for d in self.stats()["devices"] if d["ooms"] > 0]
        refused = sum(d["ooms"] for d in devices)
        for _ in range(refused - self.refused):
            _mark(2, devices[0]["refused_bytes"])
        self.refused = refused


class _Settings:
    """Notes the calls that change the settings of PyTorch's allocator, and adds them to the memory history."""

    def __init__(self, torch):
        self.torch = torch
        self.first = None  # the settings before the first call
        self.calls = []  # settings, microseconds, and by device the blocks ever granted before
        self.forgotten = {}  # by device: blocks granted before the program reset its counters
        for name in ("_cuda_cudaCachingAllocator_set_allocator_settings", "_accelerator_setAllocatorSettings"):
            self.follow(name, self.change)
        self.follow("_cuda_resetAccumulatedMemoryStats", self.reset)

    def follow(self, name, call):
        run = getattr(self.torch._C, name, None)
        if run is not None:
            setattr(self.torch._C, name, functools.wraps(run)(functools.partial(call, run)))

    def change(self, run, settings):
        first = self.first or self.torch.cuda.memory._snapshot()["allocator_settings"]
        run(settings)
        self.first = first
        granted = [self.granted(i) for i in range(self.torch.cuda.device_count())]
        self.calls.append((settings, time.time_ns() // 1000, granted))

    def reset(self, run, device):
        granted = self.granted(device)
        run(device)
        self.forgotten[device] = granted

    def granted(self, device):
        return self.forgotten.get(device, 0) + self.torch.cuda.memory_stats(device).get("allocation.all.allocated", 0)

    def complete(self, snapshot):
        """Adds an entry for each call, and has the settings of the start.

        An entry follows the last block that was granted before the call, and the frees that the clock shows before it.
        """
        if not self.calls:
            return
        snapshot["allocator_settings"] = self.first
        for device, entries in enumerate(snapshot["device_traces"]):
            allocs = [i for i, e in enumerate(entries) if e["action"] == "alloc"]
            lost = self.granted(device) - len(allocs)  # more than the history keeps
            for settings, now, granted in reversed(self.calls if entries else []):
                before = granted[device] - lost
                at = allocs[before - 1] + 1 if before > 0 else 0
                while at < len(entries) and entries[at]["action"].startswith("free_") and entries[at].get("time_us", now) <= now:
                    at += 1
                entry = {"action": "conf", "addr": 0, "size": 0, "stream": 0, "frames": [], "settings": settings}
                if "time_us" in entries[max(at - 1, 0)]:
                    entry["time_us"] = entries[max(at - 1, 0)]["time_us"]
                entries.insert(at, entry)


class _Recorder(_Steps):
    """Records PyTorch's memory history, and writes it when memory ends and when the process ends."""

    def start(self):
        memory, entries = self.torch.cuda.memory, int(os.environ.get("VRAMYARD_ENTRIES", "1000000"))
        try:
            memory._record_memory_history(max_entries=entries, stacks="python")
        except TypeError:  # before 2.1
            memory._record_memory_history(True, trace_alloc_max_entries=entries, trace_alloc_record_context=True)
        from vramyard_pools import Pools

        self.pools = Pools(self.torch)
        self.settings = _Settings(self.torch)
        self.torch._C._cuda_attach_out_of_memory_observer(self.exhausted)
        self.follow_blocks()
        super().start()

    def follow_blocks(self):
        """Reports every block to the stand-ins: the contents of a freed block are forgotten."""
        c10 = ctypes.CDLL(os.path.join(os.path.dirname(self.torch.__file__), "lib", "libc10.so"))
        set_trace = c10._ZN3c104impl8GPUTrace9set_traceEPKNS0_13PyInterpreterE
        set_trace.restype, set_trace.argtypes = None, [ctypes.c_void_p]
        set_trace(ctypes.addressof(ctypes.c_void_p.in_dll(_library(), "vramyard_tracer")))

    def exhausted(self, device, request, total, free):
        _mark(2, request)
        self.pools.refused(device)
        self.write()
        self.report()  # a process without memory may end at once

    def leave(self):
        self.write()
        super().leave()

    def write(self):
        if not self.recording or os.getpid() != self.process:
            return
        import pickle

        path, snapshot = self.path(".pickle"), self.torch.cuda.memory._snapshot()
        self.pools.complete(snapshot)
        self.settings.complete(snapshot)
        with open(path + ".new", "wb") as f:
            pickle.dump(snapshot, f)
        os.replace(path + ".new", path)


def _without_initialization(torch):
    """Leaves new parameters as they are: their values do not matter."""
    init = torch.nn.init
    for name in dir(init):
        if name.endswith("_") and not name.startswith("_") and callable(getattr(init, name)):
            setattr(init, name, lambda tensor, *_, **__: tensor)


def _attach(torch):
    if not hasattr(torch, "cuda") or not hasattr(torch._C, "_cuda_attach_out_of_memory_observer"):
        return
    recorder = _Strategy(torch) if os.environ.get("VRAMYARD_ALLOCATOR") else _Recorder(torch)
    from torch.optim.optimizer import register_optimizer_step_post_hook

    register_optimizer_step_post_hook(recorder.stepped)
    if os.environ.get("VRAMYARD_FAST_INIT"):
        _without_initialization(torch)


class _Finder:
    """Finds torch once, as the other finders do, and attaches the recorder after its import."""

    def find_spec(self, name, path=None, target=None):
        if name != "torch":
            return None
        sys.meta_path.remove(self)
        import importlib.util

        spec = importlib.util.find_spec(name)
        if spec is None or spec.loader is None:
            return spec
        run = spec.loader.exec_module

        def exec_module(module):
            run(module)
            _attach(module)

        spec.loader.exec_module = exec_module
        return spec


def _chain():
    """Runs the sitecustomize that this one hides, if there is one."""
    import importlib.machinery
    import importlib.util

    here = os.path.dirname(os.path.abspath(__file__))
    rest = [p for p in sys.path if os.path.abspath(p or ".") != here]
    spec = importlib.machinery.PathFinder.find_spec("sitecustomize", rest)
    if spec is not None and spec.loader is not None:
        spec.loader.exec_module(importlib.util.module_from_spec(spec))


_preload()
sys.meta_path.insert(0, _Finder())
_chain()
