"""Memory that CUDA operators of PyTorch take beside their results: workspaces of cuBLAS, and buffers of reductions and of attention.

The sizes follow from the shapes and from the properties of an A100. Work areas that only NVIDIA's libraries know are not here.
"""

from __future__ import annotations

import os
import re
from typing import Any, Iterable, List, Sequence, Set, Tuple

import torch

RELEASE = tuple(int(n) for n in re.findall(r"\d+", torch.__version__)[:2])
PROCESSORS, THREADS = 108, 2048  # multiprocessors of an A100, and threads of each

_BLAS = "mm bmm addmm baddbmm addmv mv dot vdot _addmm_activation".split()
_SUMS = "sum mean linalg_vector_norm nansum prod".split()


def backward() -> bool:
    """Reports whether the autograd engine runs, which has a thread and a handle of cuBLAS of its own."""
    return bool(torch._C._current_graph_task_id() != -1)


class Scratch:
    """Records the scratch memory of operators in a trace."""

    def __init__(self, trace: Any):
        self.trace = trace
        self.workspaces: Set[Tuple[bool, int]] = set()  # by thread and stream: PyTorch before 2.15 keeps them
        pairs = re.findall(r":(\d+):(\d+)", os.environ.get("CUBLAS_WORKSPACE_CONFIG", "")) or [(4096, 2), (16, 8)]
        self.blas = sum(int(size) * int(count) << 10 for size, count in pairs)
        size = os.environ.get("CUBLASLT_WORKSPACE_SIZE", "")
        self.lt = int(size if re.fullmatch(r"\d+", size) else 1024) << 10

    def hold(self, name: str, sizes: Sequence[int]) -> List[Tuple[int, int]]:
        return [(self.trace.take(size, name), size) for size in sizes if size > 0]

    def release(self, held: Sequence[Tuple[int, int]]) -> None:
        """Gives memory back, the last first."""
        for number, size in reversed(held):
            self.trace.give(number, size)

    def temporary(self, name: str, sizes: Sequence[int]) -> None:
        self.release(self.hold(name, sizes))

    def before(self, name: str, args: Sequence[Any]) -> List[Tuple[int, int]]:
        """Records the copies that an operator makes of its arguments before it takes memory for its results."""
        which = {"convolution_backward": slice(0, 1), "embedding": slice(1, 2)}.get(name, slice(0))
        return self.hold(name, _copies(args[which]))

    def after(self, func: Any, args: Sequence[Any], out: Any, copies: Sequence[Tuple[int, int]]) -> None:
        """Records the memory that an operator takes after its results and gives back before it ends."""
        name = func._schema.name.split("::")[-1]
        if name in _BLAS:
            self.multiply(name, args, out)
        elif name in _SUMS:
            dims = [a for a, s in zip(args, func._schema.arguments) if s.name == "dim"]
            dims = [dims[0]] if dims and isinstance(dims[0], int) else dims[0] if dims else []
            self.temporary(name, reduction(args[0], dims or [], out))
        elif name == "mse_loss" and out.dim() == 0:
            self.temporary(name, [args[0].nbytes, *reduction(args[0], [], out)])
        elif name == "convolution_backward" and out[2] is not None:  # the gradient of the bias
            self.temporary(name, reduction(args[0], [0, *range(2, args[0].dim())], out[2]))
        elif name == "_scaled_dot_product_flash_attention_backward":
            rows = args[1].shape[0] * args[1].shape[1] * _up(args[1].shape[2], 128) * 4
            self.temporary(name, _copies(t.transpose(1, 2) for t in (args[0], args[4])) + [rows, rows * _up(args[1].shape[3], 32)])
        elif name == "_scaled_dot_product_efficient_attention_backward":
            rows = args[1].shape[0] * args[1].shape[1] * args[1].shape[2] * 4
            self.temporary(name, [rows * args[1].shape[3], rows, rows])
        self.release(copies)

    def multiply(self, name: str, args: Sequence[Any], out: torch.Tensor) -> None:
        if out.numel() == 0:
            return
        lt = name in ("addmm", "_addmm_activation") and args[0].dim() == 1 and args[0].shape[0] == out.shape[1] and min(args[2].shape) > 1
        key = backward(), self.trace.stream
        if RELEASE >= (2, 15):
            self.temporary(name, [] if lt else [self.blas])
        elif key not in self.workspaces:
            self.workspaces.add(key)
            self.hold(name, [self.blas])
        if lt:
            self.temporary(name, [self.lt])


def _copies(tensors: Iterable[torch.Tensor]) -> List[int]:
    """Returns the bytes of contiguous copies of the tensors that need one."""
    return [t.nbytes for t in tensors if not (t.is_contiguous() or t.dim() == 4 and t.is_contiguous(memory_format=torch.channels_last))]


def _up(n: int, unit: int) -> int:
    return -(-n // unit) * unit


def _pow2(n: int) -> int:
    return 1 << (n.bit_length() - 1) if n > 0 else 1


def _merged(t: torch.Tensor, reduced: Set[int]) -> Tuple[List[Tuple[int, int]], List[Tuple[int, int]]]:
    """Returns the reduced and the kept dimensions as (stride, size), the fastest first. Adjacent ones are one."""
    groups: Tuple[List[Tuple[int, int]], List[Tuple[int, int]]] = [], []
    for side, group in ((True, groups[0]), (False, groups[1])):
        for stride, size in sorted((t.stride(d), t.shape[d]) for d in range(t.dim()) if (d in reduced) == side and t.shape[d] > 1):
            if group and group[-1][0] * group[-1][1] == stride:
                group[-1] = group[-1][0], group[-1][1] * size
            else:
                group.append((stride, size))
    return groups


def reduction(t: torch.Tensor, dims: Sequence[int], out: torch.Tensor) -> List[int]:
    """Returns the buffers of a reduction whose blocks of threads share an output: partial results, and semaphores.

    A block has at most 512 threads. Its rows and columns, and then several blocks, divide the values of one output until a thread has
    enough of them.
    """
    outputs = out.numel()
    if t.numel() == 0 or t.numel() == outputs:
        return []
    inputs, reduced = t.numel() // outputs, {d % t.dim() for d in dims or range(t.dim())}
    over, kept = _merged(t, reduced)
    fastest = not kept or (bool(over) and over[0][0] < kept[0][0])
    columns, rows = (inputs, outputs) if fastest else (outputs, inputs)
    width = 1  # outputs of a thread
    if fastest and over[0][0] == 1 and columns > 128 and len(over) == 1 and not kept:
        columns //= 4
    elif not fastest and kept[0][0] == 1:
        width = 4
        while any(n % width for n in [kept[0][1], *(stride for stride, _ in [*over, *kept[1:]])]):
            width //= 2
        columns //= width
    most = 512 // width
    x_most, y_most = min(_pow2(columns), most), min(_pow2(rows), most)
    x = min(x_most, 32)
    y = min(y_most, most // x)
    x = min(x_most, most // y)
    values, blocks = inputs, outputs // width  # of a thread, and of the grid
    if fastest:
        values = -(-values // x)
    else:
        blocks = -(-blocks // x)
    split = values >= min(y * 16, 256)
    if split:
        values = -(-values // y)
    else:
        blocks = -(-blocks // y)
    target = PROCESSORS * (THREADS // (x * y))
    if not split or values < 256 or blocks > target:
        return []
    share = max(min(-(-target // blocks), -(-values // 16)), -(-values // 256))  # blocks that share an output
    if share < 2:
        return []
    return [max(4, out.element_size()) * outputs * share * (1 if fastest else x * width), 4 * blocks]
