"""Events of a trace in the forms of Python, as lines of the text form of docs/traces.md."""

from __future__ import annotations

import itertools
import json
import re
from typing import Any, Callable, Dict, Iterable, List, Mapping, Tuple

from vramyard._call import Error

# An event is a tuple, such as ("alloc", 1, 4096), ("alloc", 1, 4096, 7) on stream 7, or ("free", 1). Events are a list of them, a
# dictionary of columns, or a table of pandas, polars, pyarrow or NumPy with the columns of docs/traces.md.
Events = Any

_ALL_STREAMS = 2**64 - 1
_DEFAULTS: Dict[str, Any] = {
    "kind": "", "id": 0, "size_bytes": 0, "stream": 0, "align_bytes": 0, "hint": "", "arg": 0, "time_ns": -1, "tag": "", "site": 0,
    "thread": 0, "life": "",
}

# The text form of each kind: its words, and the columns that follow them.
_FORMS = {
    "alloc": ("a", "id size_bytes"), "free": ("f", "id"), "completed": ("done", "id"), "use": ("use", "id stream"),
    "live-at-start": ("live", "id size_bytes"), "mark": ("mark", "tag"), "trim": ("trim", ""), "frontier": ("frontier", "arg"),
    "drain": ("drain", "stream"), "poll": ("poll", ""), "pool-begin": ("pool begin", "arg"), "pool-end": ("pool end", "arg"),
    "pool-release": ("pool release", "arg"), "refused": ("refused", "size_bytes"), "fault": ("fault", "arg"), "clear-stats": ("clear", ""),
}
_REQUESTS = ("alloc", "live-at-start", "refused")

# The keys of a request, and how each value is written.
_KEYS: Dict[str, Tuple[str, Callable[[Any], str]]] = {
    "align_bytes": ("align", str), "stream": ("stream", str), "hint": ("hint", str), "arg": ("before", str),
    "tag": ("tag", lambda text: json.dumps(text, ensure_ascii=False)), "site": ("site", hex), "thread": ("thread", str), "life": ("life", str),
}


def _general(row: Mapping[str, Any]) -> str:
    """Returns the line of an event with any columns."""
    kind = row["kind"]
    if kind not in _FORMS:
        raise Error(f"kind {kind!r}: want one of {', '.join(_FORMS)}")
    word, names = _FORMS[kind]
    value = {**_DEFAULTS, **row}
    parts = [word, *(_quoted(value[name]) for name in names.split())]
    if kind in _REQUESTS:
        parts += [f"{key}={show(value[name])}" for name, (key, show) in _KEYS.items() if value[name] != _DEFAULTS[name]]
    elif kind == "pool-begin":
        parts += [f"stream={value['stream']}"] if value["stream"] != _ALL_STREAMS else []
        parts += [f"options={value['tag']}"] if value["tag"] else []
    if value["time_ns"] >= 0:
        parts.append(f"t={value['time_ns']}")
    return " ".join(parts)


def _quoted(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False) if isinstance(value, str) else str(value)


def _of_tuple(event: Tuple[Any, ...]) -> str:
    """Returns the line of a tuple: its kind, then the columns of _FORMS. An alloc may have a stream at the end."""
    kind, *rest = event
    names = _FORMS[kind][1].split() if kind in _FORMS else []
    if kind == "alloc" and len(rest) == 3:
        names.append("stream")
    if kind in _FORMS and len(rest) != len(names):
        raise Error(f"{event!r}: want ({', '.join([repr(kind), *names])})")
    return _general({"kind": kind, **dict(zip(names, rest))})


def _lines_of_tuples(events: Iterable[Tuple[Any, ...]]) -> List[str]:
    lines: List[str] = []
    for event in events:
        try:
            if event[0] == "free" and len(event) == 2:
                lines.append(f"f {event[1]}")
            elif event[0] == "alloc" and len(event) == 3:
                lines.append(f"a {event[1]} {event[2]}")
            else:
                lines.append(_of_tuple(event))
        except Error as err:
            raise Error(f"event {len(lines)}: {err}") from None
        except (TypeError, KeyError, IndexError, ValueError):
            raise Error(f"event {len(lines)}: {event!r}: want a tuple, such as ('alloc', 1, 4096)") from None
    return lines


def _values(column: Any) -> List[Any]:
    """Returns the values of a column of any library as objects of Python."""
    for method in ("tolist", "to_list", "to_pylist"):
        if hasattr(column, method):
            return list(getattr(column, method)())
    return list(column)


def _columns(events: Any) -> Dict[str, List[Any]]:
    """Returns the columns of a table."""
    names = getattr(getattr(events, "dtype", None), "names", None) or getattr(events, "column_names", None)
    if names is None:
        names = events.keys() if isinstance(events, Mapping) else events.columns
    if {"size", "size_bytes"} <= set(names):
        raise Error("columns size and size_bytes: want one of them")
    columns = {"size_bytes" if name == "size" else str(name): _values(events[name]) for name in names}
    if unknown := [name for name in columns if name not in _DEFAULTS]:
        raise Error(f"column {unknown[0]!r}: want one of {', '.join(_DEFAULTS)}")
    if "kind" not in columns:
        raise Error(f"the columns {', '.join(columns)} lack kind, such as alloc or free")
    if len({len(values) for values in columns.values()}) > 1:
        raise Error("the columns differ in length")
    return columns


def _lines_of_columns(columns: Dict[str, List[Any]]) -> List[str]:
    lines: List[str] = []
    names = list(columns)
    plain = set(names) <= {"kind", "id", "size_bytes", "stream"}
    basic = zip(*(columns.get(name) or itertools.repeat(_DEFAULTS[name]) for name in ("kind", "id", "size_bytes", "stream")))
    for (kind, ident, count, stream), row in zip(basic, zip(*columns.values())):
        if plain and kind == "free":
            lines.append(f"f {ident}")
        elif plain and kind == "alloc":
            lines.append(f"a {ident} {count} stream={stream}" if stream else f"a {ident} {count}")
        else:
            try:
                lines.append(_general(dict(zip(names, row))))
            except (Error, TypeError) as err:
                raise Error(f"event {len(lines)}: {err}") from None
    return lines


def to_text(events: Events) -> str:
    """Returns events as a trace in the text form, a line for each event."""
    table = isinstance(events, Mapping) or any(hasattr(events, name) for name in ("columns", "column_names"))
    table = table or getattr(getattr(events, "dtype", None), "names", None) is not None
    if not table and not isinstance(events, Iterable):
        raise Error(f"events {events!r}: want a list of tuples, columns or a table")
    lines = _lines_of_columns(_columns(events)) if table else _lines_of_tuples(events)
    text = "\n".join(lines) + "\n"
    if text.count("\n") > max(len(lines), 1):
        at = next(i for i, line in enumerate(lines) if "\n" in line)
        raise Error(f"event {at}: {lines[at]!r}: want values without a line break")
    return text


def located(err: Error, lines_before: int = 0) -> Error:
    """Returns an error about a line of to_text as an error about its event."""
    text = re.sub(r"^stdin:(\d+): ", lambda m: f"event {int(m[1]) - 1 - lines_before}: ", str(err))
    return Error(text, err.status)
