"""Measures the work areas of cuDNN's convolutions on a real card, for `vramyard run --cudnn table=FILE`:

    python -m vramyard.cudnn_table FILE -- python train.py

The program runs as usual, with a library before cuDNN that records each executed convolution and its work area. FILE
gets one row for each convolution; rows that it has already stay. The wheel of Linux
has the library; in a checkout of the repository, with its python folder on PYTHONPATH, a C++ compiler builds it.
"""

import os
import pathlib
import subprocess
import sys
import tempfile
from typing import List

PYTHON = pathlib.Path(__file__).resolve().parent.parent
NATIVE = PYTHON.parent / "device" / "standin" / "native"
BUILT = PYTHON / "vramyard" / "bin" / "cudnn_table.so"


def build(folder: str) -> str:
    """Compiles the library that records, and returns its path."""
    library = os.path.join(folder, "cudnn_table.so")
    sources = [PYTHON / "native" / "cudnn_table.cc", NATIVE / "dnngraph.cc"]
    if not sources[0].exists():
        sys.exit(f"vramyard: {sources[0]} does not exist: want a wheel of Linux, or the package in a checkout of the repository")
    compiler = os.environ.get("CXX", "c++").split()
    options = ["-std=c++17", "-O2", "-fPIC", "-shared", "-fvisibility=hidden", "-fno-exceptions", "-fno-rtti"]
    subprocess.run([*compiler, *options, f"-I{NATIVE}", "-o", library, *map(str, sources), "-ldl"], check=True)
    return library


def merge(table: List[str], rows: List[str]) -> List[str]:
    """Returns the lines of a table with more rows. Of the rows of one convolution the last holds: cuDNN's benchmark
    mode tries several plans before it stays with one."""
    comments = [line for line in table if line.startswith("#")]
    sizes = dict(line.rsplit(" ", 1) for line in [*table, *rows] if line and not line.startswith("#"))
    return comments + [f"{convolution} {size}" for convolution, size in sorted(sizes.items())]


def main(arguments: List[str]) -> int:
    if len(arguments) < 3 or arguments[1] != "--":
        sys.exit("usage: python -m vramyard.cudnn_table FILE -- PROGRAM [ARGUMENT...]")
    table, command = pathlib.Path(arguments[0]), arguments[2:]
    with tempfile.TemporaryDirectory() as folder:
        rows = pathlib.Path(folder, "rows")
        recorder = str(BUILT) if BUILT.exists() else build(folder)
        preload = " ".join(filter(None, [recorder, os.environ.get("LD_PRELOAD")]))
        status = subprocess.call(command, env=dict(os.environ, LD_PRELOAD=preload, VRAMYARD_ROWS=str(rows)))
        found = rows.read_text().splitlines() if rows.exists() else []
    old = table.read_text().splitlines() if table.exists() else []
    table.write_text("".join(line + "\n" for line in merge(old, found)))
    return status


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
