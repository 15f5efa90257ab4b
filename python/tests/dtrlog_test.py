"""Tests of vramyard.dtrlog: python3 -m unittest tests.dtrlog_test, in the folder above. They need PyTorch.

If the environment variable DTRLOG_KEEP names a folder, the logs are written there and kept.
"""

import contextlib
import gzip
import io
import json
import os
import pathlib
import random
import subprocess
import sys
import tempfile
import unittest

import torch
from torch import nn
from torch.profiler import ProfilerActivity, profile

from vramyard import dtrlog


class LogMemory:
    """The memory of a log: the storage of each name, and the peak of bytes if every mutation were in place."""

    def __init__(self, lines):
        self.storage, self.size, self.references, self.constants = {}, {}, {}, set()
        self.live = self.most = 0
        lines = iter(lines)
        for line in lines:
            kind = line["INSTRUCTION"]
            if kind == "CONSTANT":
                self.constants.add(line["NAME"])
                self.add(line["NAME"], int(next(lines)["MEMORY"]))
            elif kind == "CALL":
                for name in line["RESULT"]:
                    size, alias = int(next(lines)["MEMORY"]), int(next(lines)["ALIAS"])
                    self.add(name, size, None if alias < 0 else self.of(line["ARGS"][alias]))
                for name in line["ARGS"]:
                    self.of(name)
            elif kind == "MUTATE":
                for name in line["ARGS"]:
                    self.of(name)
            elif kind == "RELEASE":
                storage = self.storage.pop(line["NAME"])
                self.references[storage] -= 1
                if self.references[storage] == 0:
                    self.live -= self.size[storage]
            self.most = max(self.most, self.live)

    def of(self, name):
        return self.storage[name]  # KeyError unless the name is defined

    def add(self, name, size, storage=None):
        if storage is None:
            storage, self.size[name] = name, size
            self.live += size
        self.storage[name] = storage
        self.references[storage] = self.references.get(storage, 0) + 1

    def constant_bytes(self):
        return sum(self.size[name] for name in self.constants)


class Case(unittest.TestCase):
    def setUp(self):
        kept = os.environ.get("DTRLOG_KEEP")
        if kept is None:
            temporary = tempfile.TemporaryDirectory()
            self.addCleanup(temporary.cleanup)
            kept = temporary.name
        self.folder = pathlib.Path(kept)
        torch.manual_seed(7)

    def path(self, ending=".log"):
        return str(self.folder / (self._testMethodName + ending))

    def read(self, path=None):
        with open(path or self.path(), encoding="utf-8") as f:
            return [json.loads(line) for line in f]

    def summary(self):
        """Returns one short line for each line of the log, without times."""
        words = []
        for line in self.read():
            kind = line["INSTRUCTION"]
            if kind in ("CALL", "MUTATE"):
                self.assertGreaterEqual(int(line["TIME"]), 0)
                to = line.get("RESULT") or line["MUTATE"]
                words.append(f"{kind} {line['NAME']} {line['ARGS']} -> {to}" + ("" if line.get("RECOMPUTABLE", True) else " once"))
            elif kind == "MEMORY":
                words.append(f"{line['NAME']} {line['MEMORY']}")
            elif kind == "ALIAS":
                if line["ALIAS"] != "-1":
                    words.append(f"{line['NAME']} views {line['ALIAS']}")
            else:
                words.append(f"{kind} {line.get('NAME') or line['ANNOTATION']}")
        return words

    def test_operators_views_and_releases(self):
        x = torch.ones(4)
        with dtrlog.record(self.path()):
            y = x * 2
            z = torch.cat([y, x, x])
            del y
            v = z[2:4]
            del z
            w = v + 1
            del v
        del w
        self.assertEqual(self.summary(), [
            "ANNOTATE START", "CONSTANT t1", "t1 16", "CALL mul ['t1'] -> ['t2']", "t2 16",
            "CALL cat ['t2', 't1', 't1'] -> ['t3']", "t3 48", "RELEASE t2", "CALL slice ['t3'] -> ['t4']", "t4 0", "t4 views 0",
            "CALL add ['t4'] -> ['t5']", "t5 8", "RELEASE t3", "RELEASE t4"])

    def test_mutations_in_place(self):
        weight, x = torch.ones(4), torch.ones(4)
        with dtrlog.record(self.path()):
            y = x * 2
            half = y[:2]
            y.add_(weight)
            half.mul_(2)   # the view is a new tensor, of the new content
            weight.sub_(y)
            weight.sub_(y)
        self.assertEqual(self.summary(), [
            "ANNOTATE START", "CONSTANT t1", "t1 16", "CONSTANT t4", "t4 16",
            "CALL mul ['t1'] -> ['t2']", "t2 16", "CALL slice ['t2'] -> ['t3']", "t3 0", "t3 views 0",
            "MUTATE add_ ['t2', 't4'] -> [0]", "RELEASE t3",
            "CALL as_strided ['t2'] -> ['t5']", "t5 0", "t5 views 0", "MUTATE mul_ ['t5'] -> [0]", "RELEASE t2",
            "CALL as_strided ['t5'] -> ['t6']", "t6 0", "t6 views 0",
            "MUTATE sub_ ['t4', 't6'] -> [0] once", "MUTATE sub_ ['t4', 't6'] -> [0] once"])

    def test_tensors_kept_by_autograd_are_live(self):
        x = torch.ones(1000, requires_grad=True)
        with dtrlog.record(self.path()):
            y = x.exp()
            loss = y.sum()
            del y  # exp keeps its result for the backward pass
            loss.backward()
        said = self.summary()
        self.assertLess(said.index("ANNOTATE BACKWARD"), said.index("RELEASE t2"))
        self.assertIn("CALL exp ['t1'] -> ['t2']", said)
        self.assertEqual(LogMemory(self.read()).live, 4000 + 4 + 4000, "x, loss and the gradient")

    def test_statistics_of_normalization(self):
        norm, x = nn.BatchNorm1d(3), torch.randn(5, 3)
        with dtrlog.record(self.path()):
            norm(x)
        written = [line for line in self.read() if line["INSTRUCTION"] == "MUTATE" and "batch_norm" in line["NAME"]]
        self.assertEqual([len(line["MUTATE"]) for line in written], [2])
        self.assertIs(written[0]["RECOMPUTABLE"], False)
        call = [line for line in self.read() if line["INSTRUCTION"] == "CALL" and "batch_norm" in line["NAME"]]
        self.assertEqual(len(call[0]["ARGS"]), 3, "x, weight and bias: in training the statistics are not read")
        norm.eval()
        with dtrlog.record(self.path()):
            norm(x)
        self.assertFalse([line for line in self.read() if line["INSTRUCTION"] == "MUTATE"])

    def test_random_operators_record_their_seed(self):
        def seeds():
            torch.manual_seed(1)
            with dtrlog.record(self.path()):
                nn.functional.dropout(torch.ones(8), 0.5)
                torch.randn(3)
                torch.randperm(3, generator=own)
                torch.ones(3).normal_()
            return [line["SEED"] for line in self.read() if "SEED" in line]
        own = torch.Generator().manual_seed(3)
        first = seeds()
        self.assertEqual(len(first), 4)
        self.assertEqual(len(set(first)), 4)
        self.assertEqual(seeds()[3], first[3])
        self.assertNotEqual(seeds()[2], first[2], "a generator of its own has gone on")

    def test_results_in_given_tensors(self):
        x, out = torch.ones(4), torch.empty(0)
        with dtrlog.record(self.path()):
            torch.add(x, 1, out=out)  # grows
            torch.add(x, 2, out=out)  # fits
        self.assertEqual(self.summary(), [
            "ANNOTATE START", "CONSTANT t1", "t1 16", "CONSTANT t2", "t2 0", "CALL add ['t1', 't2'] -> ['t3']", "t3 16", "RELEASE t2",
            "MUTATE add ['t1', 't3'] -> [1]"])

    def test_operator_with_several_mutations(self):
        weights = [torch.ones(2), torch.ones(3)]
        with dtrlog.record(self.path()):
            made = [w * 1 for w in weights]
            torch._foreach_add_(weights + made, 1)
        self.assertEqual(self.summary()[-2:], [
            "MUTATE _foreach_add_ ['t1', 't3', 't2', 't4'] -> [0, 1] once", "MUTATE _foreach_add_ ['t1', 't3', 't2', 't4'] -> [2, 3]"])

    def test_reading_a_value(self):
        x = torch.ones(4)
        with dtrlog.record(self.path()):
            x.sum().item()
        self.assertEqual(self.summary()[-4:], ["CALL _local_scalar_dense ['t2'] -> ['t3']", "t3 0", "RELEASE t3", "RELEASE t2"])

    def test_failed_program_leaves_no_log(self):
        x = torch.ones(2)
        with self.assertRaises(RuntimeError), dtrlog.record(self.path()):
            x @ torch.ones(3)
        with self.assertRaises(TypeError) as caught, dtrlog.record(self.path()):
            torch.ones(2).to_sparse()
        self.assertIn("layout torch.sparse_coo: want tensors with a storage", str(caught.exception))
        self.assertFalse([name for name in os.listdir(self.folder) if name.startswith(self._testMethodName)])

    def test_medians_of_steps(self):
        net = nn.Sequential(nn.Linear(8, 8), nn.Dropout(0.5), nn.Linear(8, 1))
        optimizer = torch.optim.SGD(net.parameters(), lr=0.1, momentum=0.9)
        x = torch.randn(4, 8)

        def step():
            optimizer.zero_grad(set_to_none=True)
            net(x).sum().backward()
            optimizer.step()
        dtrlog.steps(self.path(".log.gz"), step, 3)
        with gzip.open(self.path(".log.gz"), "rt") as f:
            self.assertGreater(len(f.readlines()), 50)
        raw = pathlib.Path(self.path(".log.gz")).read_bytes()
        self.assertEqual(raw[4:8], b"\0\0\0\0", "no time of day")

        logs = [self.folder / f"{i}.part" for i in range(3)]
        for log, ns in zip(logs, (9, 2, 5)):
            log.write_text(f'{{"NAME":"f","TIME":"{ns}","SEED":"{ns}"}}\n')
        out = self.folder / "median.part"
        dtrlog.median(logs, out)
        self.assertEqual(out.read_text(), '{"NAME":"f","TIME":"5","SEED":"9"}\n')
        logs[1].write_text('{"NAME":"g","TIME":"3","SEED":"1"}\n')
        with self.assertRaisesRegex(ValueError, "runs 1 and 2 differ in line 1: .*f.* and .*g"):
            dtrlog.median(logs, out)
        for path in [*logs, out]:
            with contextlib.suppress(FileNotFoundError):
                path.unlink()

    def test_memory_equals_the_allocators(self):
        net = nn.Sequential(
            nn.Conv2d(3, 8, 3, padding=1), nn.BatchNorm2d(8), nn.ReLU(inplace=True), nn.MaxPool2d(2), nn.Dropout(0.2),
            nn.Flatten(), nn.Linear(8 * 16 * 16, 10))
        optimizer = torch.optim.Adam(net.parameters())
        x, labels = torch.randn(16, 3, 32, 32), torch.randint(0, 10, (16,))

        def step():
            optimizer.zero_grad(set_to_none=True)
            nn.functional.cross_entropy(net(x), labels).backward()
            optimizer.step()
        step()
        with profile(activities=[ProfilerActivity.CPU], profile_memory=True) as profiler:
            step()
        given = most = 0
        for event in profiler.profiler.kineto_results.events():
            if event.name() == "[memory]":
                given += event.nbytes()
                most = max(most, given)
        with dtrlog.record(self.path()):
            step()
        replay = LogMemory(self.read())
        self.assertEqual(replay.live - replay.constant_bytes(), given, "the gradients")
        # The workspace of operators is in the allocator's peak and not in the log.
        self.assertLessEqual(replay.most - replay.constant_bytes(), most)
        self.assertGreaterEqual(replay.most - replay.constant_bytes(), 0.9 * most)

    def test_random_programs(self):
        for seed in range(5):
            draw, path = random.Random(seed), self.path(f"{seed}.log")
            torch.manual_seed(seed)
            held = [torch.randn(6, 6) for _ in range(3)]
            with dtrlog.record(path):
                for _ in range(150):
                    x, y = draw.choice(held), draw.choice(held)
                    made = draw.choice([
                        lambda: x + y.sum(), lambda: x.t(), lambda: x[: draw.randrange(1, 7)], lambda: x.mul_(2), lambda: x.view(-1),
                        lambda: torch.cat([x.flatten(), y.flatten()]), lambda: x.chunk(2), lambda: x.detach(), lambda: torch.sort(x.flatten()),
                        lambda: x.flatten()[:3].copy_(y.flatten()[:3]), lambda: x.zero_(), lambda: torch.randn(6, 6), lambda: x.numpy() is None,
                        lambda: torch.add(x, 1, out=torch.empty(0)), lambda: nn.functional.dropout(x, 0.5), lambda: x.max().item(),
                        lambda: torch.from_numpy(y.numpy() + 1)])
                    with contextlib.suppress(RuntimeError):  # incompatible shapes
                        held.extend(dtrlog._tensors(made()))
                    while len(held) > 12:
                        held.pop(draw.randrange(len(held)))
                for t in held:
                    t.sum()  # a tensor from outside becomes a constant when it is read
                del x, y, made, t
            with open(path, encoding="utf-8") as f:
                replay = LogMemory(map(json.loads, f))
            storages = {dtrlog._untyped(t)._cdata: dtrlog._untyped(t).nbytes() for t in held}
            self.assertEqual(replay.live, sum(storages.values()), f"seed {seed}")

    def test_whole_scripts(self):
        script = self.folder / "script.py.part"
        script.write_text("import sys, torch\nassert sys.argv[1:] == ['a'] and __name__ == '__main__'\nx = torch.ones(5)\n")
        run = [sys.executable, "-m", "vramyard.dtrlog"]
        done = subprocess.run([*run, self.path(), str(script), "a"], capture_output=True, text=True)
        self.assertEqual((done.returncode, done.stdout, done.stderr), (0, "", ""))
        self.assertEqual(self.summary(), ["ANNOTATE START", "CALL ones [] -> ['t1']", "t1 20"])
        os.remove(self.path())
        for arguments, code, message in [
                ([], 2, "usage: python -m vramyard.dtrlog LOG SCRIPT [ARG...]\n"),
                ([self.path(), "none.py"], 1, "dtrlog: none.py: want the file of a script\n"),
                (["no/such/x.log", str(script), "a"], 1, "dtrlog: no/such/x.log: No such file or directory\n")]:
            done = subprocess.run([*run, *arguments], capture_output=True, text=True)
            self.assertEqual((done.returncode, done.stderr), (code, message))
        done = subprocess.run([*run, self.path(), str(script)], capture_output=True, text=True)
        self.assertIn("AssertionError", done.stderr)
        self.assertEqual(done.returncode, 1)
        self.assertFalse(os.path.exists(self.path()))
        script.unlink()


if __name__ == "__main__":
    unittest.main()
