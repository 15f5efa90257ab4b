"""Is refused memory and ends as the argument says."""

import sys

import torch


def ask(gib):
    return torch.empty(gib << 30, dtype=torch.uint8, device="cuda")


how = sys.argv[1]
if how == "at first":
    ask(40)
held = torch.ones(1 << 20, device="cuda")
for size in (50, 60):
    try:
        ask(size)
    except torch.OutOfMemoryError:
        pass
more = torch.ones(1 << 24, device="cuda")
if how == "of memory":
    try:
        ask(70)
    except torch.OutOfMemoryError as error:
        raise RuntimeError("training failed") from error
sys.excepthook = lambda *_: None  # a program may have its own
raise ValueError("of something else")
