"""Which line of a program reads a value that only a GPU would know."""

from __future__ import annotations

import os
import sys
from types import FrameType, ModuleType
from typing import Dict, Optional

_PACKAGES = (os.sep + "site-packages" + os.sep, os.sep + "dist-packages" + os.sep)


class Program:
    """The files of a program: all but PyTorch's, those of Python itself, and the helpers named here."""

    def __init__(self, torch: ModuleType, *helpers: str):
        self._torch = os.path.dirname(os.path.abspath(str(torch.__file__))) + os.sep
        self._python = os.path.dirname(os.path.abspath(os.__file__)) + os.sep
        self._helpers = {os.path.abspath(h) for h in helpers}
        self._names: Dict[str, Optional[str]] = {}

    def innermost(self, frame: Optional[FrameType]) -> Optional[FrameType]:
        """Returns the innermost frame of the program among a frame and its callers."""
        while frame is not None and self._name(frame.f_code.co_filename) is None:
            frame = frame.f_back
        return frame

    def line(self, frame: Optional[FrameType]) -> str:
        """Returns the line of such a frame, such as "train.py:12"; "?" without one."""
        return "?" if frame is None else f"{self._name(frame.f_code.co_filename)}:{frame.f_lineno}"

    def _name(self, file: str) -> Optional[str]:
        if file not in self._names:
            self._names[file] = self._path(file)
        return self._names[file]

    def _path(self, file: str) -> Optional[str]:
        """Returns the path of a file below the folder that Python imports it from; None for a file outside the program."""
        if file.startswith("<"):  # other names of this form are code that a library generated
            return file if file in ("<string>", "<stdin>") else None
        file = os.path.abspath(file)
        if file in self._helpers or file.startswith(self._torch):
            return None
        if file.startswith(self._python) and not any(p in file for p in _PACKAGES):
            return None
        folders = [os.path.join(os.path.abspath(p), "") for p in sys.path]
        return file[max((len(f) for f in folders if file.startswith(f)), default=0):]
