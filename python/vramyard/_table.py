"""Tables for notebooks and data frames."""

from __future__ import annotations

import html
import importlib
import io
from typing import TYPE_CHECKING, Any, Dict, Iterator, List, Mapping, Optional, Sequence

from vramyard._call import Error, Path

if TYPE_CHECKING:
    import pandas
    import polars
    import pyarrow


def library(name: str) -> Any:
    """Returns an optional library. Raises Error if it is not installed."""
    try:
        return importlib.import_module(name)
    except ImportError:
        name = name.partition(".")[0]
        raise Error(f"this needs {name}: pip install {name}") from None


def _installed(name: str) -> bool:
    try:
        return importlib.import_module(name) is not None
    except ImportError:
        return False


def size(count: Optional[float]) -> str:
    """Returns a number of bytes as the program writes it, such as "14.48 GiB"."""
    if count is None:
        return "—"
    for unit in ("B", "KiB", "MiB", "GiB"):
        if abs(count) < 1024:
            break
        count /= 1024
    else:
        unit = "TiB"
    return f"{count:.0f} B" if unit == "B" else f"{count:.2f} {unit}"


def _cell(column: str, value: Any) -> str:
    if value is None:
        return "—"
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return str(value)
    if column.endswith("bytes"):
        return size(value)
    return f"{value:,}" if isinstance(value, int) else f"{value:.3f}"


class Frame:
    """Columns that become a data frame: a base of Table, Trace and Curve."""

    def to_arrow(self) -> pyarrow.Table:
        """Returns a table of pyarrow."""
        raise NotImplementedError

    def to_polars(self) -> polars.DataFrame:
        """Returns a data frame of polars."""
        raise NotImplementedError

    def to_pandas(self) -> pandas.DataFrame:
        """Returns a data frame of pandas."""
        raise NotImplementedError

    def __arrow_c_stream__(self, requested_schema: Any = None) -> Any:
        """Returns the columns by the interface of Arrow, for DuckDB and others. It needs pyarrow or polars."""
        frame = self.to_arrow() if _installed("pyarrow") else self.to_polars()
        return frame.__arrow_c_stream__(requested_schema)


# Longer tables are shown in part.
_MOST_ROWS = 60


class Table(Frame):
    """A table of a result, as the program writes it: a row for each run or owner.

    A row is a dictionary: table[0]["strategy"]. The columns of data frames are in docs/metrics.md.
    """

    def __init__(self, rows: Sequence[Dict[str, Any]], shown: Sequence[str], parquet: Optional[bytes] = None):
        self.rows: List[Dict[str, Any]] = list(rows)
        self._shown = [c for c in shown if self.rows and c in self.rows[0]]
        self._parquet = parquet

    @property
    def columns(self) -> List[str]:
        """The names of the columns."""
        return list(self.rows[0]) if self.rows else []

    def to_arrow(self) -> pyarrow.Table:
        if self._parquet is None:
            return library("pyarrow").Table.from_pylist(self.rows)
        return library("pyarrow.parquet").read_table(library("pyarrow").BufferReader(self._parquet))

    def to_parquet(self, path: Path) -> None:
        """Writes the table as Parquet: the file of the program, where it writes one."""
        if self._parquet is None:
            library("pyarrow.parquet").write_table(self.to_arrow(), path)
            return
        with open(path, "wb") as f:
            f.write(self._parquet)

    def to_polars(self) -> polars.DataFrame:
        found = library("polars")
        frame: polars.DataFrame = found.DataFrame(self.rows) if self._parquet is None else found.read_parquet(io.BytesIO(self._parquet))
        return frame

    def to_pandas(self) -> pandas.DataFrame:
        found = library("pandas")
        arrow = self._parquet is not None and _installed("pyarrow")
        frame: pandas.DataFrame = self.to_arrow().to_pandas() if arrow else found.DataFrame(self.rows)
        return frame

    def __len__(self) -> int:
        return len(self.rows)

    def __iter__(self) -> Iterator[Dict[str, Any]]:
        return iter(self.rows)

    def __getitem__(self, row: int) -> Dict[str, Any]:
        return self.rows[row]

    def _titles(self) -> List[str]:
        return [c.replace("_bytes", "").replace("_", " ") for c in self._shown]

    def _cells(self) -> List[List[str]]:
        return [[_cell(c, row.get(c)) for c in self._shown] for row in self.rows[:_MOST_ROWS]]

    def _left_out(self) -> str:
        """Returns the last line of a long table, or ""."""
        return f"{len(self) - _MOST_ROWS:,} more rows" if len(self) > _MOST_ROWS else ""

    def __repr__(self) -> str:
        lines = [self._titles(), *self._cells()]
        widths = [max(map(len, column)) for column in zip(*lines)]
        shown = ["  ".join(cell.ljust(width) for cell, width in zip(line, widths)).rstrip() for line in lines]
        return "\n".join(filter(None, [*shown, self._left_out()]))

    def _repr_html_(self) -> str:
        head = "".join(f"<th>{html.escape(title)}</th>" for title in self._titles())
        body = "".join("<tr>" + "".join(f"<td>{html.escape(cell)}</td>" for cell in line) + "</tr>" for line in self._cells())
        return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>{self._left_out()}" if self.rows else ""


def picture(title: str, curves: Mapping[str, Sequence[int]]) -> str:
    """Returns curves over one axis as SVG in HTML. Of neighboring values the highest is drawn."""
    width, height, colors = 640, 160, ("#4477aa", "#cc6677")
    count = max(1, *map(len, curves.values()))
    most = max(1, *(max(values, default=0) for values in curves.values()))
    step = -(-count // width)
    lines = []
    for color, values in zip(colors, curves.values()):
        points = " ".join(f"{i * width / count:.1f},{height - max(values[i:i + step]) * height / most:.1f}"
                          for i in range(0, len(values), step))
        lines.append(f'<polyline points="{points}" fill="none" stroke="{color}"/>')
    legend = " · ".join(f'<span style="color:{color}">{html.escape(name)}</span>' for name, color in zip(curves, colors))
    return (f'<div>{html.escape(title)}<br><svg width="{width}" height="{height}" viewBox="0 0 {width} {height}">'
            f'{"".join(lines)}</svg><br>{legend}, highest {size(most)}</div>')


