"""Train a small model, the same way each time, with PyTorch's own allocator or one of Vramyard's.

    python3 examples/pytorch/train.py --strategy tlsf --trace run.trace
    python3 examples/pytorch/train.py --strategy tlsf --compare     # same losses as with the native allocator?
    python3 examples/pytorch/train.py --all --poison                # every strategy, with freed memory filled

The losses are printed as hexadecimal floats, so that two runs can be compared bit for bit. --compare and --all run
each allocator in a process of its own, because a process cannot change it, and exit with status 1 if a loss differs.
"""

import argparse
import os
import pathlib
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent.parent / "python"))

# One preset of each strategy; "vramyard strategies" lists them all.
STRATEGIES = ["caching", "caching:expandable", "bfc", "bfc:growth", "bestfit", "tlsf", "buddy", "slab", "slabbuddy",
              "async:keep", "vmm", "stitch"]


def train(steps, side_stream):
    """Return the losses of some steps."""
    import torch
    from torch import nn

    torch.manual_seed(1)
    torch.use_deterministic_algorithms(True)
    torch.backends.cudnn.benchmark = False  # would query statistics that a pluggable allocator lacks
    gpu = torch.device("cuda")
    model = nn.Sequential(
        nn.Linear(256, 1024), nn.GELU(), nn.LayerNorm(1024),
        nn.TransformerEncoderLayer(1024, 8, 2048, dropout=0.0, batch_first=True), nn.Linear(1024, 256),
    ).to(gpu)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    copies = torch.cuda.Stream() if side_stream else torch.cuda.current_stream()
    draws = torch.Generator().manual_seed(2)
    losses = []
    for step in range(steps):
        length = 16 + 8 * (step % 5)  # sizes change from step to step
        batch = torch.randn(8, length, 256, generator=draws)
        with torch.cuda.stream(copies):
            data = batch.to(gpu, non_blocking=True)
        torch.cuda.current_stream().wait_stream(copies)
        data.record_stream(torch.cuda.current_stream())
        loss = nn.functional.mse_loss(model(data), data.roll(1, dims=1))
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses


def child(arguments, strategy):
    """Run a strategy, None for PyTorch's own allocator, in a process of its own; return what it printed."""
    command = [sys.executable, __file__, "--steps", str(arguments.steps)]
    environment = dict(os.environ)
    if strategy is not None:
        command += ["--strategy", strategy]
        if arguments.poison:
            command.append("--poison")
    if arguments.one_stream:
        command.append("--one-stream")
    done = subprocess.run(command, env=environment, stdout=subprocess.PIPE, text=True)
    if done.returncode != 0:
        return f"failed with status {done.returncode}"
    return done.stdout


def main():
    p = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    p.add_argument("--strategy", help="strategy of Vramyard; without it PyTorch's own allocator")
    p.add_argument("--steps", type=int, default=20)
    p.add_argument("--trace", help="file for the trace of PyTorch's requests")
    p.add_argument("--stats", help="file for the statistics")
    p.add_argument("--poison", action="store_true", help="fill freed memory, and check it when it is reused")
    p.add_argument("--one-stream", action="store_true", help="copy on the stream that computes")
    p.add_argument("--compare", action="store_true", help="compare the losses with a run on PyTorch's own allocator")
    p.add_argument("--all", action="store_true", help="compare every strategy")
    p.add_argument("--list", action="store_true", help="list the strategies of --all and exit")
    arguments = p.parse_args()
    if arguments.list:
        print("\n".join(STRATEGIES))
        return 0
    if arguments.steps < 1:
        p.error("--steps: want at least 1")
    if (arguments.compare or arguments.all) and (arguments.trace or arguments.stats):
        p.error("--trace and --stats describe one run: want neither with --compare or --all")
    if arguments.strategy is None and (arguments.trace or arguments.stats or arguments.poison) and not arguments.all:
        p.error("--trace, --stats and --poison want --strategy")
    os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")  # makes cuBLAS deterministic

    if arguments.compare or arguments.all:
        names = STRATEGIES if arguments.all else [arguments.strategy]
        if names == [None]:
            p.error("--compare wants --strategy")
        native = child(arguments, None)
        if native.startswith("failed"):
            print("native", native)
            return 1
        different = 0
        for name in names:
            got = child(arguments, name)
            same = got == native
            different += not same
            print(name, f"{arguments.steps} losses equal bit for bit" if same else f"DIFFERENT: {got.strip()}")
        return 1 if different else 0

    if arguments.strategy is not None:
        import vramyard.torch

        vramyard.torch.use(arguments.strategy, trace=arguments.trace, stats=arguments.stats, poison=arguments.poison)
    for loss in train(arguments.steps, not arguments.one_stream):
        print(loss.hex())
    if arguments.strategy is not None:
        if arguments.poison:
            import torch

            torch.cuda.empty_cache()  # checks all freed memory, and fails if it was written
        found = vramyard.torch.stats()["devices"][0]
        print(f"{found['allocs']} blocks, at most {found['peak_reserved_bytes']} bytes reserved", file=sys.stderr)
    return 0


if __name__ == "__main__":
    sys.exit(main())
