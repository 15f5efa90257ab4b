"""Calls of the program vramyard."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import warnings
from typing import Any, List, Mapping, Optional, Sequence, Union

from vramyard import _program

Path = Union[str, "os.PathLike[str]"]


class Error(RuntimeError):
    """A failed call of the program. The text is the line that the program wrote; status is its exit status."""

    def __init__(self, text: str, status: Optional[int] = None):
        super().__init__(text)
        self.status = status


def flags(**values: Any) -> List[str]:
    """Returns arguments of the program: None and False omit a flag, and a mapping is JSON."""
    arguments = []
    for name, value in values.items():
        name = name.replace("_", "-")
        if value is True:
            arguments.append(f"--{name}")
        elif value is not None and value is not False:
            if isinstance(value, Mapping):
                value = json.dumps(dict(value))
            elif isinstance(value, (list, tuple)):
                value = ",".join(value)
            elif isinstance(value, os.PathLike):
                value = os.fspath(value)
            arguments.append(f"--{name}={value}")
    return arguments


def call(command: Sequence[str], operands: Sequence[Path] = (), text: Optional[str] = None) -> str:
    """Runs a command of the program and returns its standard output. The text is its standard input.

    Warnings of the program become warnings of Python. Raises Error if the command fails.
    """
    try:
        program = _program.find()
    except FileNotFoundError as err:
        raise Error(str(err)) from None
    try:
        done = subprocess.run([program, *command, "--", *(os.fspath(o) for o in operands)], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                              input=b"" if text is None else text.encode())
    except OSError as err:
        raise Error(f"{program}: {err.strerror}") from None
    said = done.stderr.decode(errors="replace").strip()
    if done.returncode != 0:
        raise Error(said.rpartition("\n")[2].removeprefix("vramyard: ") or f"status {done.returncode}", done.returncode)
    for line in said.splitlines():
        warnings.warn(line, stacklevel=_caller())
    return done.stdout.decode()


def _caller() -> int:
    """Returns the stack level of the innermost function outside this package, for call."""
    level, frame = 0, sys._getframe(1)
    while frame.f_back is not None and frame.f_globals.get("__package__") == __package__:
        level, frame = level + 1, frame.f_back
    return level + 1
