"""As much of PyTorch as python/vramyard_torch.py touches, over the same library, for tests without a GPU.

Memory is never written: the simulated device has none.
"""

import ctypes
import types

_now = {"allocator": None, "initialized": False}


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


def change_current_allocator(allocator):
    if _now["initialized"]:
        raise RuntimeError("Can't swap an already initialized allocator")
    _now["allocator"], _now["initialized"] = allocator, True


def empty_cache():
    ctypes.CFUNCTYPE(None)(_now["allocator"].inner.functions["set_reset_fn"])()


cuda = types.SimpleNamespace(
    is_initialized=lambda: _now["initialized"], empty_cache=empty_cache,
    memory=types.SimpleNamespace(CUDAPluggableAllocator=CUDAPluggableAllocator, change_current_allocator=change_current_allocator))
