"""The program vramyard: where it is, and the command that runs it."""

from __future__ import annotations

import os
import pathlib
import shutil
import subprocess
import sys
from typing import NoReturn

_NAME = "vramyard.exe" if os.name == "nt" else "vramyard"
_INSIDE = pathlib.Path(__file__).parent / "bin" / _NAME


def find() -> str:
    """Return the path of the program: the variable VRAMYARD, or else the one in this package, or else the one on PATH."""
    named = os.environ.get("VRAMYARD")
    if named:
        if not os.path.isfile(named):
            raise FileNotFoundError(f"VRAMYARD={named}: want the path of the program vramyard")
        return named
    if _INSIDE.is_file():
        return str(_INSIDE)
    for folder in os.get_exec_path():
        path = shutil.which("vramyard", path=folder)
        if path and not _is_this_command(path):
            return path
    raise FileNotFoundError(f"there is no program vramyard: want it at {_INSIDE}, as in a wheel of a release, on PATH, "
                            "or its path in the variable VRAMYARD")


def _is_this_command(path: str) -> bool:
    """Report whether a file is the command of this package, which would look for the program again."""
    return os.path.isfile(sys.argv[0]) and os.path.samefile(path, sys.argv[0])


def main() -> NoReturn:
    """Run the program with the arguments of this process."""
    try:
        program = find()
    except FileNotFoundError as error:
        sys.exit(f"vramyard: {error}")
    command = [program, *sys.argv[1:]]
    if os.name == "nt":  # exec would return to the shell before the program ends
        sys.exit(subprocess.run(command).returncode)
    os.execv(program, command)
