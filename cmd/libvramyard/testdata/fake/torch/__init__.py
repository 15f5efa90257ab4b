"""As much of PyTorch as the scripts of this repository touch, for tests without a GPU.

Nothing is computed. What would be a tensor on the GPU takes a block, of PyTorch's own allocator, which is a counter here, or
of the one that was set; losses are drawn from the seed. Memory is written only where a test asks for it:

FAKE_NO_GPU=1          there is no GPU
FAKE_LOSS_OF=tlsf      the losses differ on that strategy
FAKE_STALE_ON=caching  memory of that strategy is written after it was freed
FAKE_UNSTEADY=1        no loss is the same twice
"""

import ctypes
import os
import sys
import time
import types

__version__ = "2.6.0+fake"
version = types.SimpleNamespace(cuda="12.4")

_now = {"allocator": None, "initialized": False, "seed": 0, "history": None}


# The native allocator: a counter, and a history.

_SEGMENT = {"at": 0x7F0000000000, "size": 1 << 36}
_native = {"next": _SEGMENT["at"], "live": {}}
_FRAMES = [{"filename": os.path.join(p, "model", "layers.py"), "name": "forward", "line": 7} for p in sys.path[1:2]]


def _note(action, address, size):
    if _now["history"] is not None:
        _now["history"].append({"action": action, "addr": address, "size": size, "stream": 0, "frames": _FRAMES})


def _allocate(size):
    _now["initialized"] = True
    if _now["allocator"] is not None:
        return _now["allocator"].alloc(size, 0, None)
    size = (size + 511) // 512 * 512
    address, _native["next"] = _native["next"], _native["next"] + size
    if not _native["live"] and address == _SEGMENT["at"]:
        _note("segment_alloc", address, _SEGMENT["size"])
    _native["live"][address] = size
    _note("alloc", address, size)
    return address


def _release(address, size):
    if _now["allocator"] is not None:
        _now["allocator"].free(address, size, 0, None)
        if os.environ.get("FAKE_STALE_ON") == os.environ.get("VRAMYARD_STRATEGY"):
            ctypes.memset(address, 7, 16)
        return
    size = _native["live"].pop(address)
    _note("free_requested", address, size)
    _note("free_completed", address, size)


# Tensors and modules.

class Tensor:
    shape = (1, 64)

    def __init__(self, size=0):
        self.size = size
        self.address = _allocate(size) if size else None

    def __del__(self):
        if self.address:
            _release(self.address, self.size)

    def cuda(self, **_):
        return Tensor(1 << 16)

    def to(self, *_, **__):
        return self.cuda()

    def chunk(self, n, **_):
        return [Tensor(self.size) for _ in range(n)]

    def record_stream(self, stream):
        if _now["allocator"] is not None:
            record = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p)(_now["allocator"].inner.functions["set_record_stream_fn"])
            record(self.address, stream.handle)

    def item(self):
        _now["seed"] = (_now["seed"] * 1103515245 + 12345) % (1 << 31)
        other = _now["allocator"] is not None and os.environ.get("FAKE_LOSS_OF") == os.environ.get("VRAMYARD_STRATEGY")
        return (_now["seed"] + other + ("FAKE_UNSTEADY" in os.environ) * time.monotonic()) / (1 << 31)

    def __getitem__(self, _):
        return Tensor(self.size)

    def __add__(self, _):
        return Tensor(self.size)

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        return lambda *_, **__: Tensor(self.size)


def _on_gpu(*_, **__):
    return Tensor(1 << 17)


class Module:
    def __init__(self, *_, **__):
        self.weights = []

    def __call__(self, *args, **keywords):
        return self.forward(*args, **keywords)

    forward = _on_gpu

    def parameters(self):
        return self.weights

    def cuda(self):
        self.weights = [Tensor(1 << 18)]
        return self

    def to(self, _):
        return self.cuda()


class _Names:
    """Whatever is asked for, made by a function."""

    def __init__(self, make, **known):
        self._make = make
        self.__dict__.update(known)

    def __getattr__(self, name):
        return self._make(name)


class _Mask(Module):
    generate_square_subsequent_mask = staticmethod(lambda _: Tensor())


nn = _Names(lambda name: type(name, (Module,), {}), Module=Module, Transformer=_Mask, functional=_Names(lambda _: _on_gpu))


class _Optimizer(Module):
    def __init__(self, parameters, **_):
        super().__init__()
        self.parameters_of_model = list(parameters)

    def zero_grad(self, **_):
        pass

    def step(self):
        if not self.weights:
            self.weights = [Tensor(1 << 18) for _ in self.parameters_of_model]


optim = _Names(lambda name: type(name, (_Optimizer,), {}))
backends = types.SimpleNamespace(cudnn=types.SimpleNamespace())


class Generator:
    def manual_seed(self, _):
        return self


def manual_seed(seed):
    _now["seed"] = seed


class _Nothing:
    def __enter__(self):
        return self

    def __exit__(self, *_):
        return False


def no_grad():
    return _Nothing()


def use_deterministic_algorithms(_, warn_only=False):
    pass


def device(name):
    return name


def randn(*_, generator=None):
    return Tensor()


def randint(*_):
    return Tensor()


def relu(x):
    return x


def cat(tensors, dim):
    return Tensor(sum(t.size for t in tensors))


# The GPU.

class _Inner:
    def __init__(self):
        self.functions = {}


for _name in ("set_init_fn", "set_reset_fn", "set_memory_fraction_fn", "set_base_alloc_fn", "set_record_stream_fn",
              "set_begin_allocate_to_pool", "set_end_allocate_to_pool_fn", "set_release_pool"):
    def _set(self, address, _name=_name):
        if not address:
            raise ValueError(_name)
        self.functions[_name] = address
    setattr(_Inner, _name, _set)


class CUDAPluggableAllocator:
    def __init__(self, path, alloc_name, free_name):
        library = ctypes.CDLL(path)
        self.alloc, self.free = getattr(library, alloc_name), getattr(library, free_name)
        self.alloc.restype = ctypes.c_void_p
        self.alloc.argtypes = [ctypes.c_size_t, ctypes.c_int, ctypes.c_void_p]
        self.free.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int, ctypes.c_void_p]
        self.inner = _Inner()

    def allocator(self):
        return self.inner


def _change_current_allocator(allocator):
    if _now["initialized"]:
        raise RuntimeError("Can't swap an already initialized allocator")
    _now["allocator"], _now["initialized"] = allocator, True


def _empty_cache():
    if _now["allocator"] is not None:
        ctypes.CFUNCTYPE(None)(_now["allocator"].inner.functions["set_reset_fn"])()


def _record_memory_history(enabled="all", context="all", stacks="all", max_entries=1):
    _now["history"] = [] if enabled else None


def _snapshot():
    blocks, at = [], _SEGMENT["at"]
    for address, size in sorted(_native["live"].items()):
        if address > at:
            blocks.append({"address": at, "size": address - at, "requested_size": 0, "state": "inactive", "frames": []})
        blocks.append({"address": address, "size": size, "requested_size": size, "state": "active_allocated", "frames": []})
        at = address + size
    end = _SEGMENT["at"] + _SEGMENT["size"]
    blocks.append({"address": at, "size": end - at, "requested_size": 0, "state": "inactive", "frames": []})
    live = sum(_native["live"].values())
    return {
        "segments": [{
            "device": 0, "address": _SEGMENT["at"], "total_size": _SEGMENT["size"], "allocated_size": live, "active_size": live,
            "requested_size": live, "stream": 0, "segment_type": "large", "segment_pool_id": (0, 0), "is_expandable": False,
            "frames": [], "blocks": blocks}],
        "device_traces": [list(_now["history"])],
        "allocator_settings": {"PYTORCH_CUDA_ALLOC_CONF": ""},
    }


class _Stream(_Nothing):
    handle = None

    def wait_stream(self, _):
        pass


cuda = types.SimpleNamespace(
    is_initialized=lambda: _now["initialized"], is_available=lambda: "FAKE_NO_GPU" not in os.environ,
    Stream=_Stream, current_stream=_Stream, stream=lambda s: s, synchronize=lambda: None, empty_cache=_empty_cache,
    memory=types.SimpleNamespace(
        CUDAPluggableAllocator=CUDAPluggableAllocator, change_current_allocator=_change_current_allocator,
        _record_memory_history=_record_memory_history, _snapshot=_snapshot))
