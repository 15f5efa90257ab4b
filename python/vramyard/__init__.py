"""GPU memory from Python: why a run went out of memory, which setting would have saved it, and how allocators compare.

    import vramyard
    print(vramyard.whatif("run.pickle"))

The program vramyard does the work. docs/python.md shows the functions; vramyard.torch lets PyTorch allocate through a strategy,
vramyard.meta records a program without CUDA, and vramyard.dtrlog records the operators of a training step.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from vramyard import cudnn_table as cudnn_table
    from vramyard import dtrlog as dtrlog
    from vramyard import meta as meta
    from vramyard import reads as reads
    from vramyard import torch as torch
    from vramyard._call import Error as Error
    from vramyard._record import on_oom as on_oom
    from vramyard._record import record as record
    from vramyard._study import Answer as Answer
    from vramyard._study import Comparison as Comparison
    from vramyard._study import Replay as Replay
    from vramyard._study import Top as Top
    from vramyard._study import compare as compare
    from vramyard._study import replay as replay
    from vramyard._study import top as top
    from vramyard._study import whatif as whatif
    from vramyard._table import Table as Table
    from vramyard._trace import Curve as Curve
    from vramyard._trace import Trace as Trace
    from vramyard._trace import read_trace as read_trace
    from vramyard._trace import simulate as simulate
    from vramyard._trace import write_trace as write_trace

_MODULES = ("cudnn_table", "dtrlog", "meta", "reads", "torch")
_NAMES = {
    "_call": ("Error",),
    "_record": ("on_oom", "record"),
    "_study": ("Answer", "Comparison", "Replay", "Top", "compare", "replay", "top", "whatif"),
    "_table": ("Table",),
    "_trace": ("Curve", "Trace", "read_trace", "simulate", "write_trace"),
}
__all__ = sorted(name for names in _NAMES.values() for name in names)


def __getattr__(name: str) -> Any:
    """Loads a module of the package when it is first used."""
    if name in _MODULES:
        return importlib.import_module("vramyard." + name)
    for module, names in _NAMES.items():
        if name in names:
            return getattr(importlib.import_module("vramyard." + module), name)
    raise AttributeError(f"module 'vramyard' has no attribute '{name}'")


def __dir__() -> list[str]:
    return [*__all__, *_MODULES]
