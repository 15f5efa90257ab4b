"""Let PyTorch allocate its GPU memory through a strategy of Vramyard.

    import vramyard_torch
    vramyard_torch.use("tlsf", trace="run.trace")   # before anything touches the GPU
    ...
    print(vramyard_torch.stats()["devices"][0]["peak_reserved_bytes"])

docs/pytorch.md says what works, what does not, and what every setting means.
"""

import ctypes
import json
import os
import pathlib
import subprocess
import warnings

_SOURCE = pathlib.Path(__file__).resolve().parent.parent
_lib = None

# The setters of PyTorch's allocator, and the functions for them.
_OPTIONAL = {
    "set_init_fn": "vramyard_init",
    "set_reset_fn": "vramyard_reset",
    "set_memory_fraction_fn": "vramyard_memory_fraction",
    "set_base_alloc_fn": "vramyard_base_alloc",
    "set_record_stream_fn": "vramyard_record_stream",
    "set_begin_allocate_to_pool": "vramyard_begin_allocate_to_pool",
    "set_end_allocate_to_pool_fn": "vramyard_end_allocate_to_pool",
    "set_release_pool": "vramyard_release_pool",
}


def build(path):
    """Build the library; needs Go, a C++ compiler, and this file where it lies in the repository."""
    subprocess.run(
        ["go", "build", "-buildmode=c-shared", "-o", str(path), "./cmd/libvramyard"],
        cwd=_SOURCE, check=True, env={**os.environ, "CGO_ENABLED": "1"})


def load(library=None):
    """Load the library: the one given, that of VRAMYARD_LIBRARY, or the one beside this file, built if it is not there."""
    global _lib
    path = pathlib.Path(library or os.environ.get("VRAMYARD_LIBRARY") or pathlib.Path(__file__).resolve().parent / "libvramyard.so")
    if not path.exists():
        build(path)
    _lib = ctypes.CDLL(str(path))
    _lib.vramyard_stats_json.restype = ctypes.c_char_p
    _lib.vramyard_last_error.restype = ctypes.c_char_p
    _lib.vramyard_dump_trace.argtypes = [ctypes.c_char_p]
    return path


def use(strategy=None, config=None, trace=None, stats=None, poison=None, device=None, library=None):
    """Make PyTorch use a strategy from now on, for the whole process. What is None stays as the environment has it."""
    import torch

    if torch.cuda.is_initialized():
        raise RuntimeError("vramyard: PyTorch has used the GPU already: call use() before the first tensor on it")
    if config is not None and not isinstance(config, str):
        config = json.dumps(config)
    settings = {"STRATEGY": strategy, "CONFIG": config, "TRACE": trace, "STATS": stats, "DEVICE": device,
                "POISON": None if poison is None else str(int(poison))}
    for name, value in settings.items():
        if value is not None:
            os.environ["VRAMYARD_" + name] = str(value)
    path = load(library)
    allocator = torch.cuda.memory.CUDAPluggableAllocator(str(path), "vramyard_alloc", "vramyard_free")
    inner = allocator.allocator()
    for setter, function in _OPTIONAL.items():
        if not hasattr(inner, setter):
            if setter == "set_record_stream_fn":
                raise RuntimeError(f"vramyard: this version of PyTorch has no {setter}, without which memory is not safe")
            warnings.warn(f"vramyard: this version of PyTorch has no {setter}: what {function} is for does not work")
            continue
        getattr(inner, setter)(ctypes.cast(getattr(_lib, function), ctypes.c_void_p).value)
    torch.cuda.memory.change_current_allocator(allocator)
    return allocator


def _loaded():
    if _lib is None:
        raise RuntimeError("vramyard: call use() first")
    return _lib


def stats():
    """Return the statistics, as docs/pytorch.md lists them."""
    return json.loads(_loaded().vramyard_stats_json())


def dump_trace(path=""):
    """Write the trace so far, to the file of VRAMYARD_TRACE without a path."""
    if _loaded().vramyard_dump_trace(str(path).encode()) != 0:
        raise RuntimeError(_lib.vramyard_last_error().decode())
