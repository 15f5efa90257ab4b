"""Let PyTorch allocate its GPU memory through a strategy of Vramyard.

    import vramyard.torch
    vramyard.torch.use("tlsf", trace="run.trace")   # before the first use of the GPU
    ...
    print(vramyard.torch.stats()["devices"][0]["peak_reserved_bytes"])

docs/pytorch.md describes every setting, the supported features and the limitations.
"""

from __future__ import annotations

import ctypes
import json
import os
import pathlib
import shutil
import subprocess
import warnings
from typing import Any, Mapping, Optional, Union

Path = Union[str, "os.PathLike[str]"]

_SOURCE = pathlib.Path(__file__).resolve().parent.parent.parent
_BUILT = pathlib.Path(__file__).resolve().parent / "bin" / "libvramyard.so"
_lib: Optional[ctypes.CDLL] = None

# The setters of PyTorch's allocator, and the function of the library for each.
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


def build(path: Path) -> None:
    """Build the library. It needs Go, a C and a C++ compiler, and this file in a checkout of the repository."""
    for tool in ("go", os.environ.get("CC", "cc"), os.environ.get("CXX", "c++")):
        if shutil.which(tool) is None:
            raise RuntimeError(f"vramyard: {path} does not exist, and {tool}, which builds it, is not installed: "
                               "build it on another machine and set VRAMYARD_LIBRARY to its path (docs/pytorch.md)")
    if not (_SOURCE / "go.mod").exists():
        raise RuntimeError(f"vramyard: {path} does not exist, and {_SOURCE} is not a checkout of the repository to build it from")
    subprocess.run(
        ["go", "build", "-buildmode=c-shared", "-o", str(path), "./cmd/libvramyard"],
        cwd=_SOURCE, check=True, env={**os.environ, "CGO_ENABLED": "1"})


def load(library: Optional[Path] = None) -> pathlib.Path:
    """Load the library: the argument, or else VRAMYARD_LIBRARY, or else bin/libvramyard.so beside this file, built if missing."""
    global _lib
    named = library or os.environ.get("VRAMYARD_LIBRARY")
    path = pathlib.Path(named).absolute() if named else _BUILT
    if not path.exists():
        if named:
            raise FileNotFoundError(f"vramyard: {path} does not exist: want libvramyard.so")
        build(path)
    lib = ctypes.CDLL(str(path))
    for function in ("vramyard_alloc", "vramyard_free", "vramyard_stats_json", *_OPTIONAL.values()):
        if not hasattr(lib, function):
            raise RuntimeError(f"vramyard: {path} has no function {function}: want libvramyard.so of this version")
    lib.vramyard_stats_json.restype = ctypes.c_char_p
    lib.vramyard_last_error.restype = ctypes.c_char_p
    lib.vramyard_dump_trace.argtypes = [ctypes.c_char_p]
    _lib = lib
    return path


def use(strategy: Optional[str] = None, config: Union[str, Mapping[str, Any], None] = None, trace: Optional[Path] = None,
        stats: Optional[Path] = None, poison: Optional[bool] = None, device: Optional[str] = None,
        library: Optional[Path] = None) -> Any:
    """Make PyTorch allocate through a strategy from now on, in the whole process.

    An argument that is None leaves its environment variable as it is. The config is a JSON object, as text or as a dictionary.
    Returns PyTorch's allocator object. Raises RuntimeError if PyTorch has used the GPU already or does not support another
    allocator. The settings themselves are checked at the first allocation, which raises the error.
    """
    import torch

    if torch.cuda.is_initialized():
        raise RuntimeError("vramyard: PyTorch has used the GPU already: call use() before the first tensor on it")
    if config is not None and not isinstance(config, str):
        config = json.dumps(config)
    settings = {"STRATEGY": strategy, "CONFIG": config, "TRACE": trace, "STATS": stats, "DEVICE": device,
                "POISON": None if poison is None else str(int(poison))}
    for name, value in settings.items():
        if value is not None and not isinstance(value, (str, os.PathLike)):
            raise TypeError(f"vramyard: {name.lower()}: {value!r}: want a string")
    path = load(library)
    allocator = torch.cuda.memory.CUDAPluggableAllocator(str(path), "vramyard_alloc", "vramyard_free")
    inner = allocator.allocator()
    if not hasattr(inner, "set_record_stream_fn"):
        raise RuntimeError("vramyard: this version of PyTorch has no set_record_stream_fn; without it a block "
                           "could be reused while another stream reads it")
    for name, value in settings.items():  # only after all checks: a failure changes nothing
        if value is not None:
            os.environ["VRAMYARD_" + name] = os.fspath(value)
    for setter, function in _OPTIONAL.items():
        if not hasattr(inner, setter):
            warnings.warn(f"vramyard: this version of PyTorch has no {setter}, so {function} is never called")
            continue
        getattr(inner, setter)(ctypes.cast(getattr(_lib, function), ctypes.c_void_p).value)
    torch.cuda.memory.change_current_allocator(allocator)
    return allocator


def _loaded() -> ctypes.CDLL:
    if _lib is None:
        raise RuntimeError("vramyard: call use() first")
    return _lib


def stats() -> dict[str, Any]:
    """Return the statistics, which docs/pytorch.md lists."""
    found: dict[str, Any] = json.loads(_loaded().vramyard_stats_json())
    return found


def dump_trace(path: Path = "") -> None:
    """Write the trace recorded so far to a file, by default to the file in VRAMYARD_TRACE."""
    if _loaded().vramyard_dump_trace(os.fspath(path).encode()) != 0:
        raise RuntimeError(_loaded().vramyard_last_error().decode())
