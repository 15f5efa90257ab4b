"""Writes the snapshots that are measured into a directory: six made up, and those that are named, decompressed.

python3 make.py DIRECTORY ENTRIES [FILE...]
"""

import gzip
import lzma
import os
import pickle
import sys

PLACES = [{"filename": f"/srv/model/layer{i % 50}.py", "line": i, "name": f"call{i}"} for i in range(2000)]
DEPTH = 30


def stack(i):
    """A stack of which neighbours share all but the three innermost frames, and no two are equal."""
    inner = [PLACES[(i * 7 + k * 13) % 2000] for k in range(3)]
    return inner + [PLACES[(i // 50 + k) % 2000] for k in range(3, DEPTH)]


def trace(n, stack_of):
    """A history of n entries; stack_of gives the stack of one, or None."""
    actions = ("alloc", "free_requested", "free_completed")
    for i in range(n):
        k = i // 3
        entry = {
            "action": actions[i % 3],
            "addr": 0x7F00_0000_0000 + 512 * (k * 7919 % 100_003),
            "size": 4096 + k * 31 % 977 * 512,
            "stream": 0,
            "time_us": 1_700_000_000_000_000 + 3 * i,
        }
        frames = stack_of(i)
        if frames is not None:
            entry["frames"] = frames
        yield entry


def write(path, entries):
    with open(path, "wb") as f:
        pickle.dump({"segments": [], "device_traces": [list(entries)]}, f, protocol=4)


def main(directory, n, files):
    shared = [stack(i * 50) for i in range(500)]
    made = [
        ("no stacks", n, lambda i: None),
        ("500 stacks, shared lists", n, lambda i: shared[i * 7 % 500]),
    ]
    for count in (n // 5, n // 50):
        made.append(("500 stacks, a list each", count, lambda i: list(shared[i * 7 % 500])))
        made.append(("a stack each", count, stack))
    for name, count, stack_of in made:
        write(os.path.join(directory, f"{count:,} entries, {name}"), trace(count, stack_of))
    opens = {".xz": lzma.open, ".gz": gzip.open}
    for path in files:
        with opens.get(os.path.splitext(path)[1], open)(path, "rb") as f:
            data = f.read()
        with open(os.path.join(directory, os.path.basename(path).split(".pickle")[0]), "wb") as f:
            f.write(data)


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), sys.argv[3:])
