"""Every Python process below `vramyard run` loads this file at its start.

It loads the stand-ins for the CUDA libraries before anything else can load NVIDIA's, and records
PyTorch's memory history from the first tensor on, or has PyTorch allocate through a strategy.
"""

import ctypes
import os
import sys


def _preload():
    for path in os.environ["VRAMYARD_STANDINS"].split(os.pathsep):
        ctypes.CDLL(path, mode=ctypes.RTLD_GLOBAL)


def _library():
    """The library that connects this process to the device."""
    return ctypes.CDLL(os.environ["VRAMYARD_STANDINS"].split(os.pathsep)[0])


def _mark(kind, number):
    """Tells the device of a step (1) or of a request that found no memory (2)."""
    call = _library().vramyard_device
    call.restype, call.argtypes = ctypes.c_uint64, [ctypes.c_uint64, ctypes.c_void_p, ctypes.c_void_p]
    argument, result = (ctypes.c_uint64 * 4)(kind, number), (ctypes.c_uint64 * 2)()
    call(_MARK, ctypes.byref(argument), ctypes.byref(result))


_MARK = 30  # DEVICE_MARK of device/standin/native/ops.h


class _Steps:
    """Tells the device of the steps of the optimizers."""

    def __init__(self, torch):
        self.torch = torch
        self.process = os.getpid()
        self.steps = {}
        self.recording = False
        torch.cuda._lazy_call(self.start)

    def start(self):
        """Begins to record, when PyTorch first uses the GPU."""
        self.recording = True

    def ending(self):
        """Runs before a step ends."""

    def stepped(self, optimizer, *_):
        n = self.steps[id(optimizer)] = self.steps.get(id(optimizer), 0) + 1
        if self.recording and n == max(self.steps.values()):
            self.ending()
            _mark(1, n)
        if n >= int(os.environ.get("VRAMYARD_STEPS") or sys.maxsize):
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

    def start(self):
        import atexit

        atexit.register(self.ending)
        super().start()

    def ending(self):
        """Tells the device of the requests that found no memory since the last call."""
        if os.getpid() != self.process:
            return
        devices = [d for d in self.stats()["devices"] if d["ooms"] > 0]
        refused = sum(d["ooms"] for d in devices)
        for _ in range(refused - self.refused):
            _mark(2, devices[0]["refused_bytes"])
        self.refused = refused


class _Recorder(_Steps):
    """Records PyTorch's memory history, and writes it when memory ends and when the process ends."""

    def start(self):
        import atexit

        memory, entries = self.torch.cuda.memory, int(os.environ.get("VRAMYARD_ENTRIES", "1000000"))
        try:
            memory._record_memory_history(max_entries=entries, stacks="python")
        except TypeError:  # before 2.1
            memory._record_memory_history(True, trace_alloc_max_entries=entries, trace_alloc_record_context=True)
        self.torch._C._cuda_attach_out_of_memory_observer(self.exhausted)
        self.follow_blocks()
        atexit.register(self.write)
        super().start()

    def follow_blocks(self):
        """Reports every block to the stand-ins: the contents of a freed block are forgotten."""
        c10 = ctypes.CDLL(os.path.join(os.path.dirname(self.torch.__file__), "lib", "libc10.so"))
        set_trace = c10._ZN3c104impl8GPUTrace9set_traceEPKNS0_13PyInterpreterE
        set_trace.restype, set_trace.argtypes = None, [ctypes.c_void_p]
        set_trace(ctypes.addressof(ctypes.c_void_p.in_dll(_library(), "vramyard_tracer")))

    def exhausted(self, device, request, total, free):
        _mark(2, request)
        self.write()

    def write(self):
        if not self.recording or os.getpid() != self.process:
            return
        path = os.path.join(os.environ["VRAMYARD_SNAPSHOTS"], "%d.pickle" % self.process)
        self.torch.cuda.memory._dump_snapshot(path + ".new")
        os.replace(path + ".new", path)
        _library().vramyard_report()


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
