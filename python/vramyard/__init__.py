"""Vramyard's modules for PyTorch programs. vramyard.meta estimates the memory of a program without CUDA."""

import importlib
from typing import Any

_MODULES = ("cudnn_table", "dtrlog", "meta", "reads", "torch")


def __getattr__(name: str) -> Any:
    """Loads a module of the package when it is first used."""
    if name in _MODULES:
        return importlib.import_module("vramyard." + name)
    raise AttributeError(f"module 'vramyard' has no attribute '{name}'")
