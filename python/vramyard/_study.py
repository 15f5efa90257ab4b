"""The commands whatif, compare, replay and top of the program, with their results as objects."""

from __future__ import annotations

import csv
import html
import json
import os
import tempfile
from typing import Any, Dict, List, Mapping, Optional, Sequence, Tuple, Union

from vramyard._call import Error, Path, call, flags
from vramyard._table import Table, picture


class Result:
    """A result of the program. print() shows what the program prints; json has every figure, as docs/metrics.md lists them."""

    def __init__(self, text: str, figures: Dict[str, Any], table: Table):
        self.text = text
        self.json = figures
        self.table = table

    @property
    def verdict(self) -> str:
        """The first sentence of the program."""
        return self.text.partition("\n")[0]

    def __str__(self) -> str:
        return self.text

    def __repr__(self) -> str:
        return f"<vramyard.{type(self).__name__}: {self.verdict}>"

    def _repr_html_(self) -> str:
        return f"<p><b>{html.escape(self.verdict)}</b></p>{self.table._repr_html_()}"


class Answer(Result):
    """The answer of whatif: which setting would have saved a run."""

    @property
    def verdict(self) -> str:
        """The answer in one sentence."""
        return str(self.json["answer"]["text"][0])

    @property
    def kind(self) -> str:
        """The kind of the answer: carried, setting, pools, strategy, none, too-little, no-card, releases, cannot-tell (docs/whatif.md)."""
        return str(self.json["answer"]["verdict"])

    @property
    def setting(self) -> Optional[str]:
        """The recommended setting or allocator as the table names it, such as "caching expandable_segments:True"."""
        return self.json["answer"].get("label") or None

    @property
    def environment(self) -> Dict[str, str]:
        """The environment variables of the recommended setting: os.environ.update(answer.environment)."""
        return _variables(self.json["answer"].get("environment"))

    @property
    def environment_before(self) -> Dict[str, str]:
        """The same for releases of PyTorch before json["answer"]["since"], which read other names."""
        return _variables(self.json["answer"].get("before"))

    @property
    def need_bytes(self) -> Optional[int]:
        """A capacity on which the recommended setting completes the run."""
        need: Optional[int] = self.json["answer"].get("need_bytes")
        return need

    @property
    def saved_bytes(self) -> Optional[int]:
        """The recorded peak of reserved bytes minus need_bytes; None if one of them is unknown."""
        recorded = self.json.get("recorded", {}).get("peak_reserved_bytes")
        return recorded - self.need_bytes if recorded and self.need_bytes else None

    @property
    def how_sure(self) -> List[str]:
        """Sentences about the accuracy of the answer."""
        return list(self.json["answer"]["how_sure"])

    def _repr_html_(self) -> str:
        lines = "".join(f"<pre>export {html.escape(name)}={html.escape(value)}</pre>" for name, value in self.environment.items())
        rest = html.escape(" ".join(self.json["answer"]["text"][1:]))
        recipe = html.escape("\n".join(self.json["answer"].get("recipe", ())))
        return f"<p><b>{html.escape(self.verdict)}</b></p>{lines}<p>{rest}</p><pre>{recipe}</pre>{self.table._repr_html_()}"


def _variables(settings: Optional[Sequence[str]]) -> Dict[str, str]:
    return dict(s.partition("=")[::2] for s in settings or ())


class Comparison(Result):
    """The result of compare: a row for each strategy on each trace."""


class Replay(Result):
    """The result of replay: one row, and the memory over the run."""

    @property
    def series(self) -> Table:
        """The requested, allocated and reserved bytes over the run, in at most 2,048 points. simulate has every event."""
        points = self.json["series"]["points"]
        return Table(points, list(points[0]) if points else [])

    def _repr_html_(self) -> str:
        points = self.json["series"]["points"]
        drawn = {"reserved": [p["reserved_bytes"] for p in points], "allocated": [p["allocated_bytes"] for p in points]}
        return f"<p><b>{html.escape(self.verdict)}</b></p>{picture(self.json['trace'], drawn)}{self.table._repr_html_()}"


class Top(Result):
    """The result of top: the owners of memory at the peak (table) and at the last refused request (failure)."""

    @property
    def failure(self) -> Optional[Table]:
        """The owners when the last request was refused; None without a refused request."""
        at = self.json.get("failure")
        return Table(at["holders"], _HOLDERS) if at else None

    @property
    def categories(self) -> Table:
        """The memory at the peak by category: weights, gradients, optimizer, activations."""
        return Table(self.json["peak"]["categories"], ["name", "bytes", "block_count"])


_HOLDERS = ["name", "bytes", "block_count", "category"]
_RUNS = ["strategy", "min_capacity_bytes", "peak_reserved_bytes", "reservation_waste", "device_calls", "oom_count"]


def _study(command: str, operands: Sequence[Path], more: Sequence[str], arguments: List[str], nested: str,
           shown: Sequence[str]) -> Tuple[str, Dict[str, Any], Table]:
    """Runs a command with a table, and returns its text, its figures and its table. nested is the field with the runs."""
    with tempfile.TemporaryDirectory(prefix="vramyard-") as folder:
        files = {form: os.path.join(folder, "result." + form) for form in ("json", "csv", "parquet")}
        text = call([command, *arguments, *flags(**files), *more], operands)
        with open(files["json"], encoding="utf-8") as f:
            figures: Dict[str, Any] = json.load(f)
        with open(files["csv"], encoding="utf-8", newline="") as f:
            columns, *cells = csv.reader(f)
        with open(files["parquet"], "rb") as binary:
            parquet = binary.read()
    runs = figures[nested] if nested else [figures]
    values = [_values(runs, name, [row[i] for row in cells]) for i, name in enumerate(columns)]
    return text, figures, Table([dict(zip(columns, row)) for row in zip(*values)], shown, parquet)


def _values(runs: Sequence[Mapping[str, Any]], column: str, cells: List[str]) -> List[Any]:
    """Returns the values of a column of the CSV. It is text if it is text in the JSON, or cannot be read as anything else."""
    if any(isinstance(_field(run, column), str) for run in runs):
        return list(cells)
    try:
        return [json.loads(cell) if cell else None for cell in cells]
    except ValueError:
        return list(cells)


def _field(run: Mapping[str, Any], column: str) -> Any:
    """Returns the field of a column, whose name has a point between an object and its field."""
    value: Any = run
    for name in column.split("."):
        value = value.get(name) if isinstance(value, dict) else None
    return value


def whatif(path: Path, *, device: Optional[str] = None, grid: Optional[Path] = None, part: Optional[str] = None,
           html: Optional[Path] = None, more: Sequence[str] = ()) -> Answer:
    """Finds the setting or allocator that would have saved a run.

    path is a memory snapshot of PyTorch or any other trace. device is the card in question ("sim:24GiB", "sim:l4-24g"), by default the
    recorded one; grid the settings to try: "quick", "full" or a YAML file; part the device of a file with several; html a file for a
    report with pictures. more are further flags of vramyard whatif.
    """
    shown = ["label", "min_capacity_bytes", "carried", "peak_reserved_bytes", "device_calls", "oom_count"]
    arguments = flags(device=device, grid=grid, part=part, html=html)
    return Answer(*_study("whatif", [path], more, arguments, "runs", shown))


def compare(traces: Union[Path, Sequence[Path]], strategies: Union[str, Sequence[str], None] = None, *, device: Optional[str] = None,
            capacity: Optional[str] = None, config: Optional[Mapping[str, Any]] = None, part: Optional[str] = None,
            html: Optional[Path] = None, more: Sequence[str] = ()) -> Comparison:
    """Compares the memory and time of strategies on traces.

    traces are files, or names of traces inside the program. strategies are names with presets or settings, such as "bfc:growth" or
    'caching{"conf":"max_split_size_mb:128"}'. The other arguments are flags of vramyard compare, and more are further ones.
    """
    all_traces = [traces] if isinstance(traces, (str, os.PathLike)) else list(traces)
    if not all_traces:
        raise Error("traces: want at least one file, or one name of a trace inside the program")
    shown = ["trace", *_RUNS] if len(all_traces) != 1 else _RUNS
    arguments = flags(strategies=strategies, device=device, capacity=capacity, config=config, part=part, html=html)
    return Comparison(*_study("compare", all_traces, more, arguments, "runs", shown))


def replay(trace: Path, strategy: str = "caching", *, config: Optional[Mapping[str, Any]] = None, device: Optional[str] = None,
           part: Optional[str] = None, html: Optional[Path] = None, more: Sequence[str] = ()) -> Replay:
    """Replays a trace through one strategy. The arguments are those of compare; more are further flags of vramyard replay."""
    arguments = flags(strategy=strategy, config=config, device=device, part=part, html=html)
    return Replay(*_study("replay", [trace], more, arguments, "", ["trace", *_RUNS]))


def top(path: Path, *, part: Optional[str] = None, more: Sequence[str] = ()) -> Top:
    """Lists the owners of memory at the peak and at the failure. more are further flags of vramyard top."""
    with tempfile.TemporaryDirectory(prefix="vramyard-") as folder:
        file = os.path.join(folder, "result.json")
        text = call(["top", *flags(part=part, json=file), *more], [path])
        with open(file, encoding="utf-8") as f:
            figures: Dict[str, Any] = json.load(f)
    return Top(text, figures, Table(figures["peak"]["holders"], _HOLDERS))
