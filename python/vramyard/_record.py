"""Memory snapshots of a PyTorch program, for vramyard whatif and the other commands."""

from __future__ import annotations

import contextlib
import inspect
import os
import sys
from typing import Any, Dict, Iterator

from vramyard._call import Error, Path
from vramyard._table import library, size


class _Recording:
    """A history of PyTorch's allocator, with a mark at the beginning of each step of an optimizer."""

    def __init__(self, path: Path, max_entries: int, stacks: str):
        self.torch = torch = library("torch")
        self.path = os.path.abspath(os.fspath(path))
        self.failed = False  # the observer has written a snapshot
        self.steps = 0
        self.leader = self.last = 0  # optimizers: the one whose steps are marked, and the one of the latest step
        if not os.path.isdir(os.path.dirname(self.path)):
            raise Error(f"{self.path}: want an existing folder for the snapshot")
        if not torch.cuda.is_available():
            raise Error("PyTorch finds no GPU to record: want one, or `vramyard run`, which simulates it")
        if torch.cuda.get_allocator_backend() != "native":
            raise Error(f"PyTorch allocates through {torch.cuda.get_allocator_backend()}: want its own allocator, which has a history")
        torch.cuda.init()
        # A history that is on belongs to somebody: starting it again would clear it.
        self.started = not getattr(torch._C, "_cuda_isHistoryEnabled", bool)()
        if self.started:
            record = torch.cuda.memory._record_memory_history
            options: Dict[str, Any] = {"max_entries": max_entries, "stacks": stacks}
            if "global_record_annotations" in inspect.signature(record).parameters:
                options["global_record_annotations"] = True  # marks of every thread
            record(**options)
        torch._C._cuda_attach_out_of_memory_observer(self.exhausted)
        self.hook = library("torch.optim.optimizer").register_optimizer_step_post_hook(self.stepped)
        self.active = True
        self.mark(1)

    def mark(self, step: int) -> None:
        with self.torch.autograd.profiler.record_function(f"step {step}"):
            pass

    def stepped(self, optimizer: Any, *_: Any) -> None:
        """Marks the next step. Of several optimizers the first is followed, until another one makes two steps in a row."""
        if self.leader in (0, id(optimizer)) or self.last == id(optimizer):
            self.leader = id(optimizer)
            self.steps += 1
            self.mark(self.steps + 1)
        self.last = id(optimizer)

    def exhausted(self, device: int, requested: int, total: int, free: int) -> None:
        """PyTorch calls it when a request fails, while every tensor is in place."""
        if self.active:
            self.failed = True
            self.write(f"a request for {size(requested)} found no memory: ")

    def write(self, why: str = "") -> None:
        try:
            self.torch.cuda.memory._dump_snapshot(self.path + ".new")
            os.replace(self.path + ".new", self.path)
        except OSError as err:  # which must not hide the error of the program
            print(f"vramyard: {self.path}: {err.strerror}", file=sys.stderr)
        else:
            print(f"vramyard: {why}snapshot written; next: vramyard whatif {self.path}", file=sys.stderr)

    def end(self, failing: bool) -> None:
        """Writes the snapshot, unless the program ends with an error that the observer has recorded."""
        if not (failing and self.failed):
            self.write()
        self.active = False
        self.hook.remove()
        if self.started:
            self.torch.cuda.memory._record_memory_history(enabled=None)


@contextlib.contextmanager
def record(path: Path, *, max_entries: int = 1_000_000, stacks: str = "python") -> Iterator[None]:
    """Records a part of a PyTorch program and writes a memory snapshot at its end.

        with vramyard.record("run.pickle"):
            train()

    If the part runs out of memory, the snapshot is of that moment. Each step of an optimizer is a mark. max_entries bounds the history
    of each GPU; stacks="all" adds the frames of C++. It needs PyTorch 2.1 or newer.
    """
    recording = _Recording(path, max_entries, stacks)
    try:
        yield
    except BaseException:
        recording.end(failing=True)
        raise
    recording.end(failing=False)


def on_oom(path: Path, *, max_entries: int = 1_000_000, stacks: str = "python") -> None:
    """Records the program from now on, and writes a memory snapshot whenever a request finds no memory.

    Call it before the model is made. The arguments are those of record.
    """
    _Recording(path, max_entries, stacks)
