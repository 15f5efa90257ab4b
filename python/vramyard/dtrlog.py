"""Record the operators of a PyTorch program as a log, which `vramyard remat` runs within a memory budget.

    from vramyard import dtrlog

    with dtrlog.record("step.log.gz"):
        step()

    dtrlog.steps("step.log.gz", step, count=5)      # records five runs of the step: the median of each time

    python -m vramyard.dtrlog step.log.gz train.py ARG...   # a whole script, its weights included

It needs PyTorch 1.13 or newer and no other package. docs/remat.md describes the contents of a log and the cost of recording.
"""

from __future__ import annotations

import contextlib
import gzip
import hashlib
import json
import os
import runpy
import statistics
import sys
import tempfile
import time
from typing import Any, Callable, Dict, FrozenSet, Iterator, List, NamedTuple, Optional, Sequence, Set, Tuple, Union

import torch
from torch.multiprocessing.reductions import StorageWeakRef
from torch.utils._python_dispatch import TorchDispatchMode

# StorageWeakRef.expired without its wrappers: it is called for every storage before every operator.
_expired = torch.UntypedStorage._expired

Path = Union[str, "os.PathLike[str]"]

# Operators whose schema omits that they write to arguments (pytorch/pytorch#73050), with the names of these arguments.
_UNDECLARED_WRITES = {name: ("running_mean", "running_var")
                      for name in ("native_batch_norm", "cudnn_batch_norm", "miopen_batch_norm")}

# Namespaces of collective operators, which one process alone cannot rerun.
_COLLECTIVES = ("c10d", "c10d_functional", "_c10d_functional")


class _Kind(NamedTuple):
    """The properties of an operator, from its schema."""

    name: str
    arguments: Tuple[str, ...]
    written: FrozenSet[str]  # names of the arguments that it writes to
    random: bool
    collective: bool


def _kind(func: Any) -> _Kind:
    namespace, name = func._schema.name.split("::")
    arguments = func._schema.arguments
    written = {a.name for a in arguments if a.alias_info is not None and a.alias_info.is_write}
    written.update(a for a in _UNDECLARED_WRITES.get(name, ()) if a in {b.name for b in arguments})
    packet = getattr(func, "overloadpacket", None)
    overloads = [getattr(packet, o) for o in packet.overloads()] if packet is not None else [func]
    # Not every version tags randn, but one of its overloads takes a generator.
    tag = getattr(torch.Tag, "nondeterministic_seeded", None)
    random = tag in getattr(func, "tags", ()) or any("Generator" in str(a.type) for o in overloads for a in o._schema.arguments)
    shown = name if namespace == "aten" else f"{namespace}.{name}"
    return _Kind(shown, tuple(a.name for a in arguments), frozenset(written), random, namespace in _COLLECTIVES)


def _tensors(value: Any) -> Iterator[torch.Tensor]:
    """Yields the tensors of an argument or a result, in order."""
    if isinstance(value, torch.Tensor):
        yield value
    elif isinstance(value, (list, tuple)):
        for v in value:
            yield from _tensors(v)


def _untyped(t: torch.Tensor) -> Any:
    """Returns the untyped storage of a tensor, in every version of PyTorch."""
    try:
        return t.untyped_storage() if hasattr(t, "untyped_storage") else t.storage().untyped()
    except (NotImplementedError, RuntimeError) as err:
        raise TypeError(f"dtrlog: a tensor of layout {t.layout}: want tensors with a storage") from err


def _shape(t: torch.Tensor) -> Tuple[Any, ...]:
    """Returns the properties that distinguish the views of one storage."""
    return t.dtype, t.storage_offset(), tuple(t.shape), tuple(t.stride())


class _Storage:
    """A storage that was live when it was last checked."""

    def __init__(self, storage: Any, constant: bool):
        # The weak reference expires with the last tensor, tensors that autograd keeps in C++ included. While it is held, its
        # address is not reused for another storage.
        self.weak = StorageWeakRef(storage)
        self.bytes = storage.nbytes()
        self.constant = constant
        self.names: Dict[Tuple[Any, ...], str] = {}  # by shape: the name of each defined view

    def newest(self) -> str:
        return next(reversed(list(self.names.values())))


class _Recorder(TorchDispatchMode):
    """Writes a line for every operator and release. Constants go to the head of the log, because they are never released."""

    def __init__(self, head: Any, body: Any):
        super().__init__()
        self.head, self.body = head, body
        self.live: Dict[int, _Storage] = {}  # by address
        self.kinds: Dict[Any, _Kind] = {}
        self.count = 0
        self.line(head, INSTRUCTION="ANNOTATE", ANNOTATION="START")

    @staticmethod
    def line(to: Any, **fields: Any) -> None:
        to.write(json.dumps(fields, separators=(",", ":")).encode() + b"\n")

    def call(self, name: str, results: Sequence[Tuple[str, int, int]], args: Sequence[str], ns: int, **more: Any) -> None:
        """Writes a CALL. A result is its name, its bytes and the index of the argument that it views, or -1."""
        self.line(self.body, INSTRUCTION="CALL", NAME=name, RESULT=[r[0] for r in results], ARGS=list(args), TIME=str(ns), **more)
        for result, size, alias in results:
            self.line(self.body, INSTRUCTION="MEMORY", NAME=result, MEMORY=str(size))
            self.line(self.body, INSTRUCTION="ALIAS", NAME=result, ALIAS=str(alias))

    def release(self, names: Sequence[str]) -> None:
        for name in names:
            self.line(self.body, INSTRUCTION="RELEASE", NAME=name)

    def annotate(self, what: str) -> None:
        self.line(self.body, INSTRUCTION="ANNOTATE", ANNOTATION=what)

    def new_name(self) -> str:
        self.count += 1
        return f"t{self.count}"

    def release_expired(self) -> None:
        """Releases the names of storages that have expired."""
        for key in [key for key, s in self.live.items() if _expired(s.weak.cdata)]:
            self.release(list(self.live.pop(key).names.values()))

    def add_storage(self, t: torch.Tensor, constant: bool) -> Tuple[_Storage, str]:
        """Adds a storage, with a name for the first tensor seen of it."""
        storage, name = _untyped(t), self.new_name()
        s = self.live[storage._cdata] = _Storage(storage, constant)
        s.names[_shape(t)] = name
        return s, name

    def known(self, t: torch.Tensor) -> Optional[_Storage]:
        return self.live.get(_untyped(t)._cdata)

    def name(self, t: torch.Tensor) -> str:
        """Returns the name of a tensor. A tensor that no recorded operator has produced becomes a constant."""
        s = self.known(t)
        if s is None:
            s, name = self.add_storage(t, constant=True)
            self.line(self.head, INSTRUCTION="CONSTANT", NAME=name)
            self.line(self.head, INSTRUCTION="MEMORY", NAME=name, MEMORY=str(s.bytes))
            return name
        known = s.names.get(_shape(t))
        if known is None:  # a view that no operator produced, or one of a storage written to since
            known = self.new_name()
            self.call("as_strided", [(known, 0, 0)], [s.newest()], 0)
            s.names[_shape(t)] = known
        return known

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        if func.namespace == "profiler":  # annotations without effect
            return func(*args, **kwargs)
        kind = self.kinds.get(func)
        if kind is None:
            kind = self.kinds[func] = _kind(func)
        self.release_expired()
        given = list(zip(kind.arguments, args)) + list(kwargs.items())
        inputs = [(argument, t) for argument, value in given for t in _tensors(value)]
        names = [self.name(t) for _, t in inputs]
        more = self.rerun_fields(kind, inputs, kwargs)
        if torch.cuda.is_initialized():
            torch.cuda.synchronize()
        start = time.perf_counter_ns()
        out = func(*args, **kwargs)
        if torch.cuda.is_initialized():
            torch.cuda.synchronize()
        ns = time.perf_counter_ns() - start
        written = self.written(kind, inputs, dict(given))
        self.write_operator(kind, [t for _, t in inputs], names, written, list(_tensors(out)), ns, more)
        return out

    def rerun_fields(self, kind: _Kind, inputs: Sequence[Tuple[str, torch.Tensor]], kwargs: Any) -> Dict[str, Any]:
        """Returns the fields on rerunning an operator that is about to run: RECOMPUTABLE, and SEED for a random one."""
        if kind.collective:
            return {"RECOMPUTABLE": False}
        if not kind.random:
            return {}
        device = torch.device(kwargs.get("device") or (inputs[0][1].device if inputs else "cpu"))
        if kwargs.get("generator") is not None:
            generator = kwargs["generator"]
        elif device.type == "cpu":
            generator = torch.default_generator
        elif device.type == "cuda":
            index = torch.cuda.current_device() if device.index is None else device.index
            generator = torch.cuda.default_generators[index]
        else:
            return {"RECOMPUTABLE": False}
        state = hashlib.blake2b(generator.get_state().numpy().tobytes(), digest_size=8).digest()
        return {"SEED": str(int.from_bytes(state, "big") >> 2)}

    def written(self, kind: _Kind, inputs: Sequence[Tuple[str, torch.Tensor]], given: Dict[str, Any]) -> List[int]:
        """Returns the indices of inputs whose storage an operator has written to, one for each storage."""
        seen: Set[int] = set()
        found = []
        for i, (argument, t) in enumerate(inputs):
            if argument.startswith("running_") and not given.get("training", True):
                continue  # in evaluation, normalization only reads its statistics
            key = _untyped(t)._cdata
            # A tensor that set_ has moved to another storage was not written to.
            if argument in kind.written and key in self.live and key not in seen:
                seen.add(key)
                found.append(i)
        return found

    def write_operator(self, kind: _Kind, inputs: List[torch.Tensor], names: List[str], written: List[int],
                       outputs: List[torch.Tensor], ns: int, more: Dict[str, Any]) -> None:
        """Writes the lines of an operator that has run."""
        changed = {_untyped(inputs[i])._cdata for i in written}
        # Normalization that writes its statistics does not read them, so its results can be recomputed without them.
        read = [i for i in range(len(inputs)) if i not in written] if kind.name in _UNDECLARED_WRITES else list(range(len(inputs)))
        where: Dict[int, int] = {}  # by storage: the first argument in it
        for at, i in enumerate(read):
            where.setdefault(_untyped(inputs[i])._cdata, at)
        results, made = [], []
        for t in outputs:
            s, key = self.known(t), _untyped(t)._cdata
            if s is None:
                s, name = self.add_storage(t, constant=False)
                results.append((name, s.bytes, -1))
                made.append(name)
            elif key in where and key not in changed and _shape(t) not in s.names:
                name = s.names[_shape(t)] = self.new_name()
                results.append((name, 0, where[key]))
        if results:
            self.call(kind.name, results, [names[i] for i in read], ns, **more)
            ns = 0
        elif inputs and not written and not outputs:  # it returned a value that is no tensor, such as item()
            name = self.new_name()
            self.call(kind.name, [(name, 0, -1)], names, ns, **more)
            self.release([name])
        # One run has produced the results and the mutations, so the MUTATE has the results as arguments.
        self.mutate(kind.name, inputs, names if not results else [names[i] for i in written] + made,
                    written if not results else list(range(len(written))), written, ns, more)

    def mutate(self, name: str, inputs: List[torch.Tensor], args: List[str], at: List[int], written: List[int], ns: int,
               more: Dict[str, Any]) -> None:
        """Writes the MUTATE of an operator. Input written[k] is the argument args[at[k]]."""
        stores = [self.live[_untyped(inputs[i])._cdata] for i in written]
        sizes = [_untyped(inputs[i]).nbytes() for i in written]
        # A constant is not recomputable after a mutation: no copy of its old content exists from which to repeat it.
        for constant in (True, False):
            now = [k for k, s in enumerate(stores) if s.constant == constant and s.bytes == sizes[k]]
            if now:
                fields = {**more, "RECOMPUTABLE": False} if constant else more
                self.line(self.body, INSTRUCTION="MUTATE", NAME=name, ARGS=args, MUTATE=[at[k] for k in now], TIME=str(ns), **fields)
                ns = 0
        for k, s in enumerate(stores):
            old = [n for n in s.names.values() if n != args[at[k]]]
            s.names = {_shape(inputs[written[k]]): args[at[k]]}
            if s.bytes != sizes[k]:  # resized, which a MUTATE cannot express
                s.bytes, s.constant, fresh = sizes[k], False, self.new_name()
                self.call(name, [(fresh, s.bytes, -1)], args, ns, **more)
                old.append(args[at[k]])
                s.names, ns = {_shape(inputs[written[k]]): fresh}, 0
            self.release(old)


@contextlib.contextmanager
def _marking(recorder: _Recorder) -> Iterator[None]:
    """Writes an annotation at each call of autograd for gradients."""
    def marked(real: Callable[..., Any]) -> Callable[..., Any]:
        def run(*args: Any, **kwargs: Any) -> Any:
            recorder.annotate("BACKWARD")
            return real(*args, **kwargs)
        return run

    real = torch.autograd.backward, torch.autograd.grad
    torch.autograd.backward, torch.autograd.grad = map(marked, real)
    try:
        yield
    finally:
        torch.autograd.backward, torch.autograd.grad = real


@contextlib.contextmanager
def _output(path: Path) -> Iterator[Any]:
    """Opens a file that appears complete at the end or, after an error, not at all. A name ending in .gz compresses it."""
    path = os.fspath(path)
    part = path + ".part"
    try:
        with open(part, "wb") as raw:
            if path.endswith(".gz"):
                with gzip.GzipFile(filename="", fileobj=raw, mode="wb", mtime=0) as packed:
                    yield packed
            else:
                yield raw
        os.replace(part, path)
    except BaseException:
        with contextlib.suppress(FileNotFoundError):
            os.remove(part)
        raise


@contextlib.contextmanager
def record(path: Path) -> Iterator[None]:
    """Records the operators of the with block. If the block raises an exception, no log is left.

    Operators are timed one by one, on a GPU with a synchronization before and after each. The log is collected in a temporary
    file; the memory for recording grows with the number of live tensors and of constants.
    """
    with _output(path) as out, tempfile.TemporaryFile() as body:
        recorder = _Recorder(out, body)
        with _marking(recorder), recorder:
            yield
        recorder.release_expired()
        body.seek(0)
        for piece in iter(lambda: body.read(1 << 20), b""):
            out.write(piece)


def steps(path: Path, step: Callable[[], Any], count: int = 5) -> None:
    """Runs a step once, then records it count times, and writes one log with the median of each time.

    Raises ValueError if the steps differ in anything but their times and random numbers.
    """
    if count < 1:
        raise ValueError(f"dtrlog: {count} steps: want at least 1")
    step()
    with tempfile.TemporaryDirectory() as folder:
        logs = [os.path.join(folder, str(i)) for i in range(count)]
        for log in logs:
            with record(log):
                step()
        median(logs, path)


def median(logs: Sequence[Path], path: Path) -> None:
    """Merges uncompressed logs of the same structure into one log with the median of each time."""
    with contextlib.ExitStack() as stack, _output(path) as out:
        files = [stack.enter_context(open(log, "rb")) for log in logs]
        number = 0
        while True:
            number += 1
            lines = [f.readline() for f in files]
            if not any(lines):
                return
            fields = [json.loads(line) if line else {} for line in lines]
            times = [f.pop("TIME", None) for f in fields]
            seeds = [f.pop("SEED", None) for f in fields]
            for i, other in enumerate(fields):
                if other != fields[0]:
                    raise ValueError(f"dtrlog: runs 1 and {i + 1} differ in line {number}: {lines[0].decode().strip() or 'the end'} and "
                                     f"{lines[i].decode().strip() or 'the end'}")
            if times[0] is not None:
                fields[0]["TIME"] = str(statistics.median_low(map(int, times)))
            if seeds[0] is not None:
                fields[0]["SEED"] = seeds[0]
            _Recorder.line(out, **fields[0])


def main(argv: Sequence[str]) -> int:
    """Records a whole script."""
    if len(argv) < 2 or argv[0].startswith("-"):
        print("usage: python -m vramyard.dtrlog LOG SCRIPT [ARG...]", file=sys.stderr)
        return 2
    log, script = argv[0], argv[1]
    if not os.path.isfile(script):
        print(f"dtrlog: {script}: want the file of a script", file=sys.stderr)
        return 1
    sys.argv = list(argv[1:])
    sys.path[0] = os.path.dirname(os.path.abspath(script))
    try:
        with record(log):
            try:
                left = runpy.run_path(script, run_name="__main__")  # keeps the script's globals live until the log ends
            except SystemExit as end:
                if end.code not in (None, 0):
                    raise
        del left
    except OSError as err:
        if err.filename not in (log, log + ".part"):
            raise
        print(f"dtrlog: {log}: {err.strerror}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
