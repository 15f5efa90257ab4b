"""Holds memory in two processes at a time: shared.py GIB has that many in the second."""

import multiprocessing
import sys

import torch


def child(taken, end):
    held = torch.empty(4 << 30, dtype=torch.uint8, device="cuda")
    taken.set()
    end.wait(60)
    del held


if __name__ == "__main__":
    spawn = multiprocessing.get_context("spawn")
    taken, end = spawn.Event(), spawn.Event()
    other = spawn.Process(target=child, args=(taken, end))
    other.start()
    taken.wait(60)
    try:
        held = torch.empty(int(sys.argv[1]) << 30, dtype=torch.uint8, device="cuda")
    finally:
        end.set()
        other.join()
