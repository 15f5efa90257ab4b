"""Loads a pickle and prints the seconds of CPU time and the bytes that the peak of the process grew by."""

import pickle
import sys
import time


def peak():
    with open("/proc/self/status") as f:
        return next(int(line.split()[1]) * 1024 for line in f if line.startswith("VmHWM"))


before, start = peak(), time.process_time()
with open(sys.argv[1], "rb") as f:
    loaded = pickle.load(f)
print(time.process_time() - start, peak() - before)
