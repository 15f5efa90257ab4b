"""Traces as tables, and the memory of PyTorch's allocator over a list of events."""

from __future__ import annotations

import array
import ast
import html
import json
import os
import sys
import tempfile
import weakref
from typing import TYPE_CHECKING, Any, Dict, List, Mapping, Optional, Sequence, Union

from vramyard import _events
from vramyard._call import Error, Path, call, flags
from vramyard._table import Frame, library, picture, size

if TYPE_CHECKING:
    import pandas
    import polars
    import pyarrow

    Column = array.array[int]

Events = _events.Events


class Trace(Frame):
    """A trace in a file, with its events as columns. Every function that takes a path accepts it."""

    def __init__(self, path: Path, part: Optional[str] = None, more: Sequence[str] = ()):
        self.path = os.fspath(path)
        self._part = part
        self._more = list(more)
        self._info: Optional[Dict[str, Any]] = None
        folder = tempfile.TemporaryDirectory(prefix="vramyard-")
        self._parquet = os.path.join(folder.name, "trace.parquet")
        weakref.finalize(self, folder.cleanup)
        call(["trace", "convert", *flags(part=part), *more], [self.path, self._parquet])

    def __fspath__(self) -> str:
        return self._parquet if self._part or self._more else self.path

    @property
    def info(self) -> Dict[str, Any]:
        """The figures of vramyard trace info."""
        if self._info is None:
            self._info = json.loads(call(["trace", "info", *flags(part=self._part, json="-"), *self._more], [self.path]))[0]
        return self._info

    @property
    def header(self) -> Dict[str, str]:
        """Facts about the program, such as framework, for write_trace."""
        return {entry["key"]: entry["value"] for entry in self.info.get("meta") or ()}

    def to_arrow(self) -> pyarrow.Table:
        return library("pyarrow.parquet").read_table(self._parquet)

    def to_polars(self) -> polars.DataFrame:
        frame: polars.DataFrame = library("polars").read_parquet(self._parquet)
        return frame

    def to_pandas(self) -> pandas.DataFrame:
        library("pandas")
        frame: pandas.DataFrame = self.to_arrow().to_pandas()
        return frame

    def to_parquet(self, path: Path) -> None:
        """Writes the trace as Parquet, the columns of docs/traces.md."""
        write_trace(self, path)

    def __len__(self) -> int:
        return int(self.info["events"])

    def __repr__(self) -> str:
        return f"<vramyard.Trace {self.path}: {len(self):,} events>"

    def _repr_html_(self) -> str:
        kinds = ", ".join(f"{kind['count']:,} {kind['kind']}" for kind in self.info["kinds"])
        return f"<p><b>{html.escape(self.path)}</b>: {len(self):,} events: {html.escape(kinds)}</p>"


def read_trace(path: Path, *, part: Optional[str] = None, more: Sequence[str] = ()) -> Trace:
    """Reads a trace of any format in docs/traces.md.

    part is the device or allocator of a file with several. more are further flags of vramyard trace convert, such as "--memory=8GiB".
    """
    return Trace(path, part, more)


def write_trace(events: Union[Events, Path], path: Path, header: Optional[Mapping[str, str]] = None) -> None:
    """Writes events as a trace: text, CSV or Parquet by the ending of the path.

    events are in one of the forms of simulate, or a file, which is converted. The header holds facts such as {"framework": "PyTorch"};
    {"name": "run"} replaces the name of the file.
    """
    if isinstance(events, (str, os.PathLike)):
        if header:
            raise Error("header: the events of a file keep the header of the file; write a table, such as read_trace(file).to_arrow(), instead")
        call(["trace", "convert"], [events, path])
        return
    if odd := [key for key, value in (header or {}).items() if "\n" in f"{key}{value}"]:
        raise Error(f"header {odd[0]!r}: want text without a line break")
    name = os.path.basename(os.fspath(path)).partition(".")[0]
    lines = [f"# {key}={value}\n" for key, value in {"name": name, **(header or {})}.items()]
    text = "".join(lines) + _events.to_text(events)
    try:
        call(["trace", "convert", *_room(text)], ["-", path], text)
    except Error as err:
        raise _events.located(err, len(lines)) from None


def _room(text: str) -> List[str]:
    """Returns the flag that lets the program read events which this process holds already."""
    return flags(memory=f"{1 + (len(text) >> 25)}GiB")  # some 150 bytes for a line, of at least 4 bytes


class Curve(Frame):
    """The memory of an allocator after each event, as arrays of integers: numpy.asarray takes them without a copy."""

    event: Column  # index of the event
    requested: Column  # bytes that the live blocks asked for
    allocated: Column  # bytes of the live blocks, as the allocator rounded them
    reserved: Column  # bytes held from the device
    ooms: Column  # 1 at an event that found no memory, else 0

    def __init__(self, file: Path):
        with open(file, "rb") as f:
            head = f.read(10)
            shape = ast.literal_eval(f.read(int.from_bytes(head[8:], "little")).decode())
            values = array.array("Q", f.read())
        if sys.byteorder == "big":
            values.byteswap()
        names = [name for name, _ in shape["descr"]]
        self._columns = {name: values[i::len(names)] for i, name in enumerate(names)}
        self.event, self.requested, self.allocated, self.reserved, self.ooms = self._columns.values()

    @property
    def peak_reserved(self) -> int:
        """The most bytes that were reserved."""
        return max(self.reserved, default=0)

    @property
    def peak_allocated(self) -> int:
        """The most bytes of live blocks, as the allocator rounded them."""
        return max(self.allocated, default=0)

    @property
    def first_oom(self) -> Optional[int]:
        """The index of the first event that found no memory; None if every request was granted."""
        return self.ooms.index(1) if 1 in self.ooms else None

    def to_arrow(self) -> pyarrow.Table:
        found = library("pyarrow")
        return found.table({name: found.Array.from_buffers(found.uint64(), len(column), [None, found.py_buffer(column)])
                            for name, column in self._columns.items()})

    def to_polars(self) -> polars.DataFrame:
        found = library("polars")
        frame: polars.DataFrame = found.DataFrame({name: found.Series(column, dtype=found.UInt64) for name, column in self._columns.items()})
        return frame

    def to_pandas(self) -> pandas.DataFrame:
        found = library("pandas")
        frame: pandas.DataFrame = found.DataFrame({name: library("numpy").asarray(column) for name, column in self._columns.items()})
        return frame

    def __len__(self) -> int:
        return len(self.event)

    def __repr__(self) -> str:
        failed = "" if self.first_oom is None else f", out of memory at event {self.first_oom}"
        return f"<vramyard.Curve: {len(self):,} events, {size(self.peak_reserved)} reserved at the peak{failed}>"

    def _repr_html_(self) -> str:
        return picture(repr(self)[1:-1], {"reserved": self.reserved, "allocated": self.allocated})


def simulate(events: Union[Events, Path], conf: str = "", *, capacity: Optional[str] = None, release: Optional[str] = None) -> Curve:
    """Returns the memory that PyTorch's allocator reserves after each event.

    events are a list of tuples, ("alloc", id, bytes), ("alloc", id, bytes, stream) and ("free", id); a dictionary of columns or a data
    frame with kind, id, size and stream; or a trace in a file. conf is the value of PYTORCH_CUDA_ALLOC_CONF, capacity the memory of the
    card ("24GiB"; without it memory never ends), release the release of PyTorch to follow: "2.6", "2.11", "2.12" or "2.13".
    """
    config: Dict[str, Any] = {"conf": conf}
    if release is not None:
        config["rules"] = release
    bound = flags(sim={"capacity": 0}) if capacity is None else flags(device=f"sim:{capacity}")
    arguments = flags(strategy="caching", config=config) + bound
    with tempfile.TemporaryDirectory(prefix="vramyard-") as folder:
        curve = os.path.join(folder, "curve.npy")
        command = ["replay", *arguments, *flags(curve=curve)]
        if isinstance(events, (str, os.PathLike)):
            call(command, [events])
            return Curve(curve)
        text = _events.to_text(events)
        try:
            call([*command, *_room(text)], ["-"], text)
        except Error as err:
            raise _events.located(err) from None
        return Curve(curve)
