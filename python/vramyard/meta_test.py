"""Tests of vramyard.meta: python3 -m unittest vramyard.meta_test, in the folder above. They need PyTorch."""

import json
import os
import subprocess
import sys
import tempfile
import textwrap
import unittest


class Trace:
    """A trace that was read, with the bytes of tensors at its peak and at its end."""

    def __init__(self, path):
        self.operators, self.config = set(), {}
        self.live, self.sizes, self.marks, self.pools, self.streams, self.most, now = {}, [], [], [], [], 0, 0
        with open(path, encoding="utf-8") as lines:
            for line in lines:
                word, _, rest = line.strip().partition(" ")
                if word == "a":
                    number, size, tag = rest.split(" ", 2)
                    self.live[number] = int(size), tag
                    self.sizes.append(int(size))
                    self.operators.add(tag.split('"')[1].split()[0])
                    self.streams.append(int(tag[7]) if tag.startswith("stream=") else 0)
                    now += int(size)
                    self.most = max(self.most, now)
                elif word == "f":
                    now -= self.live.pop(rest)[0]  # KeyError unless it is live
                elif word == "mark":
                    self.marks.append(rest)
                elif word == "pool":
                    self.pools.append(rest)
                elif rest.startswith("config="):
                    self.config = json.loads(rest[len("config="):])


class Meta(unittest.TestCase):
    def run_script(self, text, *options, status=0):
        with tempfile.TemporaryDirectory() as folder:
            script = os.path.join(folder, "train.py")
            with open(script, "w", encoding="utf-8") as f:
                f.write("import torch, torch.nn as nn, torch.nn.functional as F\n" + textwrap.dedent(text))
            trace = os.path.join(folder, "run.trace")
            done = subprocess.run([sys.executable, "-m", "vramyard.meta", "--trace", trace, *options, script], capture_output=True, text=True,
                                  check=False, env={**os.environ, "PATH": "", "CUDA_VISIBLE_DEVICES": ""})
            self.assertEqual(status, done.returncode, done.stderr)
            return done, Trace(trace)

    def test_sizes(self):
        """Allocations and frees follow the storages, views excluded. Tensors on the CPU keep their values."""
        _, trace = self.run_script("""
            a = torch.empty(1000, device="cuda")
            b = a.view(10, 100)[1:]
            del a
            c = b.clone()
            assert b.device == c.device == torch.device("cuda:0") and b.is_cuda and not b.is_cpu
            host = torch.arange(4)
            assert host.sum().item() == 6
            d = host.cuda()
            assert d.to("cuda") is d and d.cpu().tolist() == [0, 0, 0, 0]
            del b
            torch.cuda.empty_cache()
            """)
        self.assertEqual([4000, 3600, 32], trace.sizes)
        self.assertEqual(["conf", "rules"], list(trace.config))  # whatif compares with these settings

    def test_training(self):
        """A module that is moved keeps its tied parameters. Steps of the optimizer are marks, and states appear in the first."""
        done, trace = self.run_script("""
            m = nn.Sequential(nn.Linear(64, 64, bias=False), nn.ReLU(), nn.Linear(64, 64, bias=False))
            m[2].weight = m[0].weight
            o = torch.optim.Adam(m.parameters())
            m.to("cuda")
            assert m[2].weight is m[0].weight
            for _ in range(5):
                loss = m(torch.randn(8, 64, device="cuda")).square().mean()
                o.zero_grad()
                loss.backward()
                o.step()
                print(loss.item())
            """, "--until-step", "3")
        self.assertEqual(['"step 1"', '"step 2"', '"step 3"'], trace.marks)
        self.assertEqual([64 * 64 * 4, 8 * 64 * 4], trace.sizes[:2])  # the weight once, then the first input
        self.assertIn("were read as zeros at train.py:", done.stderr)

    def test_mixed_precision(self):
        """Autocast casts as on CUDA, and a scaler works."""
        self.run_script("""
            m = nn.Linear(16, 16).cuda()
            o = torch.optim.SGD(m.parameters(), lr=0.1)
            scaler = torch.amp.GradScaler("cuda")
            with torch.autocast("cuda", dtype=torch.float16):
                y = m(torch.randn(4, 16, device="cuda"))
                assert y.dtype == torch.float16
                assert y.softmax(1).dtype == torch.float32
                assert (y @ m.weight).dtype == torch.float16
                loss = F.cross_entropy(y, torch.zeros(4, dtype=torch.long, device="cuda"))
            assert loss.dtype == torch.float32
            scaler.scale(loss).backward()
            assert m.weight.grad.dtype == torch.float32
            scaler.step(o)
            scaler.update()
            """)

    def test_attention_and_dropout(self):
        """No matrix of attention weights appears, and the mask of a dropout has one byte for each element."""
        _, trace = self.run_script("""
            q = torch.randn(1, 2, 512, 64, device="cuda", dtype=torch.float16, requires_grad=True)
            y = F.dropout(F.scaled_dot_product_attention(q, q, q), 0.1)
            """)
        self.assertLess(max(trace.sizes), 512 * 512)
        self.assertIn(1 * 2 * 512 * 64, trace.sizes)

    def test_scratch(self):
        """Workspaces of cuBLAS, buffers of reductions and copies appear, and gradients are added in place, as on a GPU."""
        _, trace = self.run_script("""
            w = torch.empty(768, 768, device="cuda", requires_grad=True)
            x = torch.empty(4096, 768, device="cuda")
            F.linear(x, w, w[0])  # by cuBLASLt
            x.sum(0)
            a, b, c = w @ w, w @ w, w * 2
            ((c @ a) * (c @ b)).sum().backward()
            """)
        self.assertEqual([768 * 768 * 4, 4096 * 768 * 4, 4096 * 768 * 4], trace.sizes[:3])
        self.assertIn(4096 * 1024 * 2 + 16 * 1024 * 8, trace.sizes)
        self.assertIn(1 << 20, trace.sizes)
        at = trace.sizes.index(768 * 4)
        self.assertEqual([768 * 4, 768 * 4 * 64 * 128, 6 * 4], trace.sizes[at:at + 3])  # 64 blocks of 128 threads share an output
        self.assertNotIn("add", trace.operators)

    def test_streams_and_graphs(self):
        """Memory belongs to the stream of its allocation, and a capture has a pool."""
        _, trace = self.run_script("""
            a, s = torch.empty(1000, device="cuda"), torch.cuda.Stream()
            with torch.cuda.stream(s):
                assert torch.cuda.current_stream() == s != torch.cuda.default_stream()
                b = a + 1
                b.record_stream(torch.cuda.default_stream())
            graph = torch.cuda.CUDAGraph()
            with torch.cuda.graph(graph):
                assert torch.cuda.is_current_stream_capturing()
                c = a * 2
            graph.replay()
            del graph, c
            """)
        self.assertEqual(([0, 1, 2], ["begin 1", "end 1", "release 1"]), (trace.streams, trace.pools))

    def test_recurrent_networks(self):
        """A network is one call of cuDNN, and its weights are in one piece of memory."""
        _, trace = self.run_script("""
            for kind in (nn.LSTM, nn.GRU, nn.RNN):
                net = kind(64, 128, 2, batch_first=True).to("cuda")
                y, _ = net(torch.empty(8, 16, 64, device="cuda"))
                assert y.shape == (8, 16, 128)
                y.sum().backward()
                assert net.weight_ih_l0.grad.shape == net.weight_ih_l0.shape
            """)
        weights = 4 * (4 * 128) * (64 + 128 + 128 + 128 + 4)
        self.assertEqual(2, trace.sizes.count(weights))  # of an LSTM: the weights, and their gradients
        self.assertLess(len(trace.sizes), 200)

    def test_shards(self):
        """A rank of FSDP2 runs with the fake process group, and frees gathered parameters."""
        self.run_script("""
            import torch.distributed as dist
            from torch.distributed.device_mesh import init_device_mesh
            from torch.distributed.fsdp import fully_shard
            from torch.testing._internal.distributed.fake_pg import FakeStore
            dist.init_process_group("fake", rank=0, world_size=8, store=FakeStore())
            mesh = init_device_mesh("cuda", (8,))
            with torch.device("meta"):
                model = nn.Sequential(nn.Linear(512, 512), nn.Linear(512, 512))
            for part in [*model, model]:
                fully_shard(part, mesh=mesh)
            model.to_empty(device="cuda")
            shards = torch.cuda.memory_allocated()
            assert 2 * (512 * 64 + 64) * 4 <= shards < 512 * 512 * 4, shards
            model(torch.empty(4, 512, device="cuda")).sum().backward()
            assert torch.cuda.max_memory_allocated() > 512 * 512 * 4
            """)

    def test_queries(self):
        """Queries of torch.cuda have answers: memory is that of live tensors."""
        self.run_script("""
            assert torch.cuda.is_available() and torch.cuda.device_count() == 1 and torch.cuda.current_device() == 0
            assert "simulated by Vramyard" in torch.cuda.get_device_properties(0).name
            a = torch.empty(1000, device="cuda:0")
            assert torch.cuda.memory_allocated() == 4096, torch.cuda.memory_allocated()
            del a
            assert torch.cuda.memory_allocated() == 0 and torch.cuda.max_memory_allocated() == 4096
            with torch.cuda.stream(torch.cuda.Stream()):
                torch.cuda.synchronize()
            torch.cuda.Event(enable_timing=True).record()
            torch.cuda.manual_seed_all(1)
            """)

    def test_data_dependent(self):
        """A shape that depends on values is an error, which names the line of the script."""
        done, _ = self.run_script("""
            x = torch.ones(4, device="cuda")
            x.nonzero()
            """, status=1)
        self.assertIn("train.py:4: the result of aten.nonzero.default depends on values", done.stderr)
        self.assertIn("vramyard run", done.stderr)

    def test_arguments(self):
        """The script has its own arguments. A script that is missing is an error."""
        self.run_script("import sys; assert sys.argv[1:] == []")
        done = subprocess.run([sys.executable, "-m", "vramyard.meta", "missing.py"], capture_output=True, text=True, check=False)
        self.assertEqual((1, True), (done.returncode, "missing.py: want the file of a script" in done.stderr), done.stderr)


if __name__ == "__main__":
    unittest.main()
