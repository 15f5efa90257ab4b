"""Record what a PyTorch program computes as an op log, which Vramyard runs within a budget of memory.

    import dtrlog

    with dtrlog.record("step.log.gz"):
        step()

    dtrlog.steps("step.log.gz", step, count=5)      # five runs of the same step: the median of each time

    python3 dtrlog.py step.log.gz train.py ARG...   # a whole script, its weights included

It needs PyTorch 1.13 or newer and nothing else. docs/remat.md says what is in a log, what is not, and what recording costs.
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
from typing import Any, Callable, Dict, Iterator, List, NamedTuple, Optional, Sequence, Set, Tuple, Union

import torch
from torch.multiprocessing.reductions import StorageWeakRef
from torch.utils._python_dispatch import TorchDispatchMode

# What StorageWeakRef.expired asks, without the way there: it is asked of every storage before every operator.
_expired = torch.UntypedStorage._expired

Path = Union[str, "os.PathLike[str]"]

# Operators that write to arguments although their schema does not say so (pytorch/pytorch#73050): the names of these arguments.
_UNSAID_WRITES = {name: ("running_mean", "running_var") for name in ("native_batch_norm", "cudnn_batch_norm", "miopen_batch_norm")}

# Operators of other processes' data cannot be run again by one process.
_COLLECTIVES = ("c10d", "c10d_functional", "_c10d_functional")


class _Kind(NamedTuple):
    """What the schema of an operator says."""

    name: str
    arguments: Tuple[str, ...]
    written: frozenset  # names of arguments
    random: bool
    shared: bool  # with other processes


def _kind(func: Any) -> _Kind:
    namespace, name = func._schema.name.split("::")
    arguments = func._schema.arguments
    written = {a.name for a in arguments if a.alias_info is not None and a.alias_info.is_write}
    written.update(a for a in _UNSAID_WRITES.get(name, ()) if a in {b.name for b in arguments})
    packet = getattr(func, "overloadpacket", None)
    overloads = [getattr(packet, o) for o in packet.overloads()] if packet is not None else [func]
    # randn is not tagged in every version, but one of its overloads takes a generator.
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
    """Returns the storage of a tensor without a type, as every version has it."""
    try:
        return t.untyped_storage() if hasattr(t, "untyped_storage") else t.storage().untyped()
    except (NotImplementedError, RuntimeError) as err:
        raise TypeError(f"dtrlog: a tensor of layout {t.layout} has no storage to record") from err


def _shape(t: torch.Tensor) -> Tuple[Any, ...]:
    """Returns what tells views of one storage apart."""
    return t.dtype, t.storage_offset(), tuple(t.shape), tuple(t.stride())


class _Storage:
    """A storage that lives, or did when it was last looked at."""

    def __init__(self, storage: Any, constant: bool):
        # A weak reference: it tells when the last tensor is gone, those included that autograd keeps in C++, and its number is
        # not given to another storage while it is held.
        self.weak = StorageWeakRef(storage)
        self.bytes = storage.nbytes()
        self.constant = constant
        self.names: Dict[Tuple[Any, ...], str] = {}  # by shape, those that are defined

    def newest(self) -> str:
        return next(reversed(list(self.names.values())))


class _Recorder(TorchDispatchMode):
    """Writes a line for everything that happens. Constants go to the head of the log: they are there all the time."""

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

    def fresh(self) -> str:
        self.count += 1
        return f"t{self.count}"

    def bury(self) -> None:
        """Releases what nobody refers to any more."""
        for key in [key for key, s in self.live.items() if _expired(s.weak.cdata)]:
            self.release(list(self.live.pop(key).names.values()))

    def born(self, t: torch.Tensor, constant: bool) -> Tuple[_Storage, str]:
        """Notes a storage by the first tensor that shows it."""
        storage, name = _untyped(t), self.fresh()
        s = self.live[storage._cdata] = _Storage(storage, constant)
        s.names[_shape(t)] = name
        return s, name

    def known(self, t: torch.Tensor) -> Optional[_Storage]:
        return self.live.get(_untyped(t)._cdata)

    def name(self, t: torch.Tensor) -> str:
        """Returns the name of a tensor. One that no recorded operator made was there before, or came from outside."""
        s = self.known(t)
        if s is None:
            s, name = self.born(t, constant=True)
            self.line(self.head, INSTRUCTION="CONSTANT", NAME=name)
            self.line(self.head, INSTRUCTION="MEMORY", NAME=name, MEMORY=str(s.bytes))
            return name
        name = s.names.get(_shape(t))
        if name is None:  # a view that no operator made, or one of what has been written to since
            name = self.fresh()
            self.call("as_strided", [(name, 0, 0)], [s.newest()], 0)
            s.names[_shape(t)] = name
        return name

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        if func.namespace == "profiler":  # marks for people
            return func(*args, **kwargs)
        kind = self.kinds.get(func)
        if kind is None:
            kind = self.kinds[func] = _kind(func)
        self.bury()
        given = list(zip(kind.arguments, args)) + list(kwargs.items())
        inputs = [(argument, t) for argument, value in given for t in _tensors(value)]
        names = [self.name(t) for _, t in inputs]
        more = self.again(kind, inputs, kwargs)
        if torch.cuda.is_initialized():
            torch.cuda.synchronize()
        start = time.perf_counter_ns()
        out = func(*args, **kwargs)
        if torch.cuda.is_initialized():
            torch.cuda.synchronize()
        ns = time.perf_counter_ns() - start
        written = self.written(kind, inputs, dict(given))
        self.note(kind, [t for _, t in inputs], names, written, list(_tensors(out)), ns, more)
        return out

    def again(self, kind: _Kind, inputs: Sequence[Tuple[str, torch.Tensor]], kwargs: Any) -> Dict[str, Any]:
        """Says whether an operator that is about to run could run again, and with which state of the generator."""
        if kind.shared:
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
        """Returns the inputs whose storage an operator has written to, one for each storage."""
        seen: Set[int] = set()
        found = []
        for i, (argument, t) in enumerate(inputs):
            if argument.startswith("running_") and not given.get("training", True):
                continue  # normalization that only reads its statistics
            key = _untyped(t)._cdata
            # What set_ has put into another storage was not written to.
            if argument in kind.written and key in self.live and key not in seen:
                seen.add(key)
                found.append(i)
        return found

    def note(self, kind: _Kind, inputs: List[torch.Tensor], names: List[str], written: List[int], outputs: List[torch.Tensor],
             ns: int, more: Dict[str, Any]) -> None:
        """Writes down an operator that has run."""
        changed = {_untyped(inputs[i])._cdata for i in written}
        # Normalization that writes its statistics does not read them: what it returns can be made again without.
        read = [i for i in range(len(inputs)) if i not in written] if kind.name in _UNSAID_WRITES else list(range(len(inputs)))
        where = {}  # the first that lies in a storage of what is read
        for at, i in enumerate(read):
            where.setdefault(_untyped(inputs[i])._cdata, at)
        results, made = [], []
        for t in outputs:
            s, key = self.known(t), _untyped(t)._cdata
            if s is None:
                s, name = self.born(t, constant=False)
                results.append((name, s.bytes, -1))
                made.append(name)
            elif key in where and key not in changed and _shape(t) not in s.names:
                name = s.names[_shape(t)] = self.fresh()
                results.append((name, 0, where[key]))
        if results:
            self.call(kind.name, results, [names[i] for i in read], ns, **more)
            ns = 0
        elif inputs and not written and not outputs:  # it told the program something of its inputs
            name = self.fresh()
            self.call(kind.name, [(name, 0, -1)], names, ns, **more)
            self.release([name])
        # What was written and what was returned came of one run: the one can only be had with the other.
        self.mutate(kind.name, inputs, names if not results else [names[i] for i in written] + made,
                    written if not results else list(range(len(written))), written, ns, more)

    def mutate(self, name: str, inputs: List[torch.Tensor], args: List[str], at: List[int], written: List[int], ns: int,
               more: Dict[str, Any]) -> None:
        """Writes down what an operator has written to: input written[k] is called args[at[k]]."""
        stores = [self.known(inputs[i]) for i in written]
        sizes = [_untyped(inputs[i]).nbytes() for i in written]
        # What was there before the recording outlives it: nobody keeps a copy of it from which it could be written again.
        for constant in (True, False):
            now = [k for k, s in enumerate(stores) if s.constant == constant and s.bytes == sizes[k]]
            if now:
                fields = {**more, "RECOMPUTABLE": False} if constant else more
                self.line(self.body, INSTRUCTION="MUTATE", NAME=name, ARGS=args, MUTATE=[at[k] for k in now], TIME=str(ns), **fields)
                ns = 0
        for k, s in enumerate(stores):
            old = [n for n in s.names.values() if n != args[at[k]]]
            s.names = {_shape(inputs[written[k]]): args[at[k]]}
            if s.bytes != sizes[k]:  # resized: a MUTATE cannot say that
                s.bytes, s.constant, fresh = sizes[k], False, self.fresh()
                self.call(name, [(fresh, s.bytes, -1)], args, ns, **more)
                old.append(args[at[k]])
                s.names, ns = {_shape(inputs[written[k]]): fresh}, 0
            self.release(old)


@contextlib.contextmanager
def _marking(recorder: _Recorder) -> Iterator[None]:
    """Marks where the program asks autograd for gradients."""
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
    """A file that is there whole at the end, or not at all; compressed if its name ends in .gz."""
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
    """Records what the block computes. If the block fails, no log is left.

    Operators are timed one by one, on a GPU with a wait before and after each. The log goes through a temporary file; memory
    grows with the tensors that live and with the number of constants.
    """
    with _output(path) as out, tempfile.TemporaryFile() as body:
        recorder = _Recorder(out, body)
        with _marking(recorder), recorder:
            yield
        recorder.bury()
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
    """Writes one log out of several of the same structure, uncompressed ones, with the median of each time."""
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
        print("usage: python3 dtrlog.py LOG SCRIPT [ARG...]", file=sys.stderr)
        return 2
    log, script = argv[0], argv[1]
    if not os.path.isfile(script):
        print(f"dtrlog: no script {script}", file=sys.stderr)
        return 1
    sys.argv = list(argv[1:])
    sys.path[0] = os.path.dirname(os.path.abspath(script))
    try:
        with record(log):
            try:
                left = runpy.run_path(script, run_name="__main__")  # what the script holds at its end is alive until the log ends
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
