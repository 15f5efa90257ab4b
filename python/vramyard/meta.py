"""Record the GPU memory of a PyTorch program on a machine without CUDA, as a trace for `vramyard whatif`.

    python -m vramyard.meta train.py ARG...

CUDA tensors of the script are fake: they have a shape and no memory. Tensors on the CPU are real. The trace has the sizes of tensors
only: work areas of cuBLAS and cuDNN and scratch memory inside operators are missing. docs/without-gpu.md compares it with
`vramyard run`. It needs PyTorch 2.4 or newer.
"""

from __future__ import annotations

import argparse
import contextlib
import functools
import json
import os
import runpy
import shutil
import subprocess
import sys
import types
import weakref
from typing import Any, Callable, Dict, Iterator, Optional, Sequence, Tuple

import torch
import torch._dynamo  # before any function is replaced: it compares signatures
from torch._subclasses import fake_tensor
from torch._subclasses.fake_tensor import FakeTensor, FakeTensorMode
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_map

from vramyard.reads import Program

_ROUND = 512  # PyTorch's allocator counts blocks of this size
_PROGRAM = Program(torch, __file__)

# Functions that autocast runs in its lower precision, in float32, and with a result in float32.
_LOWER = ("linear bilinear matmul __matmul__ __rmatmul__ mm mv bmm addmm addmv addbmm baddbmm addr einsum conv1d conv2d conv3d "
          "conv_transpose1d conv_transpose2d conv_transpose3d prelu scaled_dot_product_attention").split()
_FLOAT = ("exp expm1 log log10 log1p log2 pow __pow__ reciprocal rsqrt softplus layer_norm group_norm norm cosine_similarity nll_loss kl_div "
          "l1_loss smooth_l1_loss huber_loss mse_loss binary_cross_entropy_with_logits dist cdist logsumexp").split()
_RESULT = "softmax log_softmax cumsum cumprod sum prod".split()
_SOFTMAX = {"softmax": torch._softmax, "log_softmax": torch._log_softmax}


def _place() -> str:
    return _PROGRAM.line(_PROGRAM.innermost(sys._getframe(1)))


class MetaError(Exception):
    """An operator that needs values of a fake tensor, or that PyTorch cannot run without values."""


class Trace:
    """Writes a trace in the text form, and counts the bytes of live storages."""

    def __init__(self, path: str):
        self.file = open(path, "w", encoding="utf-8")
        self.live: Dict[int, Tuple[int, int, Any]] = {}  # by address of the storage: id, bytes, weak reference
        self.count = self.bytes = self.peak = self.steps = 0
        self.line(f"# framework=PyTorch\n# torch={torch.__version__.split('+')[0]}\n# not_in_file=work areas of cuBLAS and cuDNN, "
                  "scratch memory inside operators, streams, times")

    def line(self, text: str) -> None:
        if not self.file.closed:
            self.file.write(text + "\n")

    def alloc(self, storage: Any, operator: str) -> None:
        """Records a storage, unless it is recorded already with this size."""
        key, size = storage._cdata, storage.nbytes()
        old = self.live.get(key)
        if old is not None and old[1] == size:
            return
        if old is not None:
            self.free(key, old[0])
        if size == 0:
            return
        self.count += 1
        number = self.count
        self.live[key] = number, size, weakref.ref(storage, lambda _: self.free(key, number))
        self.line(f"a {number} {size} tag={json.dumps(operator + ' ' + _place())}")
        self.bytes += -(-size // _ROUND) * _ROUND
        self.peak = max(self.peak, self.bytes)

    def free(self, key: int, number: int) -> None:
        entry = self.live.get(key)
        if entry is not None and entry[0] == number:
            del self.live[key]
            self.bytes -= -(-entry[1] // _ROUND) * _ROUND
            self.line(f"f {number}")

    def step(self) -> None:
        self.steps += 1
        self.line(f'mark "step {self.steps}"')


class Gpu(TorchDispatchMode):
    """Runs operators on CUDA tensors without their contents, and all others as they are."""

    def __init__(self, trace: Trace):
        super().__init__()
        self.trace = trace
        self.fake = FakeTensorMode()
        self.reads: Dict[str, int] = {}  # by place: how often the program read a value of a fake tensor

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = dict(kwargs or {})
        flat = list(_tensors((args, list(kwargs.values()))))
        fakes = [t for t in flat if isinstance(t, FakeTensor)]
        target = kwargs.get("device")
        target = None if target is None else torch.device(target)
        # Fake tensors are meta tensors for C++, which asks for more on "meta".
        if target is not None and target.type == "meta" and (fakes or torch._C._current_autograd_node() is not None):
            target = torch.device("cuda", 0)
        if not fakes and (target is None or target.type != "cuda"):
            return func(*args, **kwargs)
        if target is not None and target.type == "cuda":
            kwargs["device"] = torch.device("cuda", target.index or 0)
        name = func._schema.name.split("::")[-1]
        if name in ("_local_scalar_dense", "equal"):
            return self.read(fakes[0].dtype if name != "equal" else torch.bool)
        kwargs.pop("pin_memory", None) if fakes or kwargs.get("device") else None
        real: Dict[int, torch.Tensor] = {}  # by id of its fake form: a tensor of the CPU
        fake_args, fake_kwargs = tree_map(lambda v: self.faked(v, real), (args, kwargs))
        out = self.run(func, fake_args, fake_kwargs)
        for t in fakes:  # a resized storage
            self.record(t, name)
        return tree_map(lambda v: self.result(v, real, name), out)

    def run(self, func: Any, args: Any, kwargs: Any) -> Any:
        try:
            with self.fake:
                if func in (torch.ops.aten._softmax.default, torch.ops.aten._log_softmax.default) and args[2]:
                    return torch.empty_like(args[0], dtype=torch.float32)  # its form for shapes refuses bfloat16
                return func(*args, **kwargs)
        except (fake_tensor.DynamicOutputShapeException, fake_tensor.DataDependentOutputException) as err:
            raise MetaError(f"{_place()}: the result of {func} depends on values, which fake tensors lack: run the program by `vramyard "
                            "run`, or compute this part on the CPU or with fixed shapes") from err
        except (fake_tensor.UnsupportedOperatorException, NotImplementedError) as err:
            if all(r.alias_info is not None and r.alias_info.is_write for r in func._schema.returns):
                return args[0] if func._schema.returns else None  # it only writes to its arguments
            raise MetaError(f"{_place()}: {func} has no implementation for shapes: register one (torch.library.register_fake), or run "
                            "the program by `vramyard run`") from err

    def faked(self, value: Any, real: Dict[int, torch.Tensor]) -> Any:
        """Returns the fake form of a tensor on the CPU, and any other value as it is."""
        if not isinstance(value, torch.Tensor) or isinstance(value, FakeTensor):
            return value
        fake = FakeTensor(self.fake, torch.empty_strided(value.size(), value.stride(), dtype=value.dtype, device="meta"), value.device)
        real[id(fake)] = value
        return fake

    def result(self, value: Any, real: Dict[int, torch.Tensor], operator: str) -> Any:
        """Returns an output of an operator: recorded if it is fake, of zeros if it is on the CPU."""
        if not isinstance(value, FakeTensor):
            return value
        if value.fake_device.type == "cuda":
            self.record(value, operator)
            return value
        if id(value) in real:
            return real[id(value)]
        self.read(value.dtype)
        return torch.zeros(value.shape, dtype=value.dtype)

    def record(self, t: FakeTensor, operator: str) -> None:
        if t.layout != torch.strided:
            raise MetaError(f"{_place()}: {operator} has a result of layout {t.layout}: want dense tensors, or run the program by `vramyard run`")
        self.trace.alloc(t.untyped_storage(), operator)

    def read(self, dtype: torch.dtype) -> Any:
        """Returns the value that the program reads from a fake tensor."""
        place = _place()
        self.reads[place] = self.reads.get(place, 0) + 1
        return False if dtype == torch.bool else 0.0 if dtype.is_floating_point else 0j if dtype.is_complex else 0


def _tensors(value: Any) -> Iterator[torch.Tensor]:
    if isinstance(value, torch.Tensor):
        yield value
    elif isinstance(value, (list, tuple)):
        for v in value:
            yield from _tensors(v)


def _replace(owner: Any, name: str, make: Callable[[Any], Any]) -> None:
    """Replaces a function that the owner has, with a wrapper that keeps its name."""
    real = getattr(owner, name, None)
    if real is not None:
        made = make(real)
        with contextlib.suppress(AttributeError):
            made = functools.wraps(real)(made)
        setattr(owner, name, made)


def _fake_tensors() -> None:
    """Makes fake tensors meta tensors for C++, which then needs no CUDA, and CUDA tensors for Python."""
    def new(real: Any) -> Any:
        subclass = torch.Tensor._make_subclass

        def made(cls: Any, data: Any, requires_grad: bool = False, **more: Any) -> Any:
            return subclass(cls, data, requires_grad, **{**more, "dispatch_device": False})

        def run(cls: Any, mode: Any, elem: Any, device: Any, *args: Any, **more: Any) -> Any:
            device = torch.device(device)
            torch.Tensor._make_subclass = staticmethod(made)
            try:
                return real(cls, mode, elem, torch.device("cuda", 0) if device.type == "meta" else device, *args, **more)
            finally:
                torch.Tensor._make_subclass = subclass
        return run

    FakeTensor.__new__ = staticmethod(new(FakeTensor.__new__))
    fake_tensor.init_gpu_context = lambda *_: None
    FakeTensor.is_cuda = property(lambda t: t.fake_device.type == "cuda")
    FakeTensor.is_cpu = property(lambda t: t.fake_device.type == "cpu")
    FakeTensor.is_meta = property(lambda t: t.fake_device.type == "meta")
    FakeTensor.get_device = lambda t: t.fake_device.index if t.fake_device.index is not None else -1
    FakeTensor.record_stream = lambda *_: None
    FakeTensor.pin_memory = torch.Tensor.pin_memory = lambda t, *_, **__: t
    FakeTensor.__repr__ = lambda t, **_: f"tensor(..., device='{t.fake_device}', size={tuple(t.shape)}, dtype={t.dtype})"
    FakeTensor.__deepcopy__ = _deepcopy
    import torch.optim.optimizer as optimizer
    import torch.utils._foreach_utils as foreach
    for types_ in {id(m._foreach_supported_types): m._foreach_supported_types for m in (optimizer, foreach)}.values():
        types_.append(FakeTensor)
    torch._C._set_only_lift_cpu_tensors(True)
    # A parameter that a module moves remains the same object, as on a GPU. Weak references to it do not matter for that.
    torch.__future__.set_swap_module_params_on_conversion(True)
    torch.utils.weakref = types.SimpleNamespace(getweakrefs=lambda _: [])


def _deepcopy(t: Any, memo: Any) -> Any:
    if id(t) not in memo:
        copy = t.detach().clone().requires_grad_(t.requires_grad)
        memo[id(t)] = torch.nn.Parameter(copy, t.requires_grad) if isinstance(t, torch.nn.Parameter) else copy
    return memo[id(t)]


def _conversions() -> None:
    """Gives "cuda" an index, and returns tensors that are on their device already."""
    def to(real: Any) -> Any:
        def run(t: Any, *args: Any, **more: Any) -> Any:
            if args and isinstance(args[0], torch.Tensor):
                args = (args[0].device, args[0].dtype, *args[1:])
            other = more.pop("other", None)
            if other is not None:
                args = (other.device, other.dtype)
            device, dtype, blocking, layout = torch._C._nn._parse_to(*args, **{k: v for k, v in more.items() if k != "copy"})
            if device is not None and device.type == "cuda":
                device = torch.device("cuda", device.index or 0)
            copy = more.get("copy", False) or (len(args) > 3 and args[3]) or False
            if isinstance(t, FakeTensor) and device in (None, t.device) and dtype in (None, t.dtype) and layout is None and not copy:
                return t
            fields = {"device": device, "dtype": dtype, "memory_format": layout}
            return real(t, non_blocking=blocking, copy=copy, **{k: v for k, v in fields.items() if v is not None})
        return run

    _replace(torch.Tensor, "to", to)
    _replace(torch.Tensor, "cuda", lambda _: lambda t, device=None, non_blocking=False, **more: t.to(
        torch.device("cuda", device) if isinstance(device, int) else device or "cuda", non_blocking=non_blocking, **more))


class Autocast:
    """Casts the arguments of functions as autocast does on CUDA. C++ does not, because it has meta tensors."""

    def __init__(self) -> None:
        self.cache: Dict[int, Tuple[Any, Any]] = {}
        for owner in (torch, torch.Tensor, torch.nn.functional):
            for names, make in ((_LOWER, self.lower), (_FLOAT, self.full), (_RESULT, self.result)):
                for name in names:
                    _replace(owner, name, make)
        _replace(torch.nn.functional, "cross_entropy", self.cross_entropy)
        _replace(torch.autocast, "__exit__", self.exit)

    def exit(self, real: Any) -> Any:
        def run(this: Any, *args: Any) -> Any:
            done = real(this, *args)
            if not torch.is_autocast_enabled("cuda"):
                self.cache.clear()
            return done
        return run

    def active(self, args: Any) -> bool:
        return torch.is_autocast_enabled("cuda") and any(t.is_cuda for t in _tensors(args))

    def cast(self, value: Any, dtype: torch.dtype) -> Any:
        if isinstance(value, (list, tuple)):
            return type(value)(self.cast(v, dtype) for v in value)
        if not isinstance(value, FakeTensor) or not value.is_floating_point() or value.dtype in (dtype, torch.float64):
            return value
        if not (value.is_leaf and value.requires_grad and value.dtype == torch.float32 and torch.is_autocast_cache_enabled()):
            return value.to(dtype)
        if id(value) not in self.cache:
            self.cache[id(value)] = value, value.to(dtype)
        return self.cache[id(value)][1]

    def casting(self, real: Any, choose: Callable[[], torch.dtype]) -> Any:
        def run(*args: Any, **more: Any) -> Any:
            if not self.active((args, list(more.values()))):
                return real(*args, **more)
            dtype = choose()
            args, more = self.cast(args, dtype), {k: self.cast(v, dtype) for k, v in more.items()}
            with torch.autocast("cuda", enabled=False):
                return real(*args, **more)
        return run

    def lower(self, real: Any) -> Any:
        return self.casting(real, lambda: torch.get_autocast_dtype("cuda"))

    def full(self, real: Any) -> Any:
        return self.casting(real, lambda: torch.float32)

    def result(self, real: Any) -> Any:
        def run(t: Any, *args: Any, **more: Any) -> Any:
            low = isinstance(t, FakeTensor) and t.is_cuda and t.dtype in (torch.float16, torch.bfloat16)
            if low and more.get("dtype") is None and torch.is_autocast_enabled("cuda"):
                more["dtype"] = torch.float32
            kernel = _SOFTMAX.get(real.__name__)
            dim = more.get("dim", args[0] if args else None)
            if low and kernel is not None and dim is not None and more.get("dtype") == torch.float32:
                return kernel(t, dim, True)  # CUDA's kernel converts while it reads
            return real(t, *args, **more)
        return run

    def cross_entropy(self, real: Any) -> Any:
        def run(t: Any, target: Any, weight: Any = None, *args: Any, **more: Any) -> Any:
            if not self.active((t,)) or args or target.is_floating_point() or more.get("label_smoothing") or t.dim() < 2:
                return real(t, target, weight, *args, **more)
            more.pop("label_smoothing", None)
            return torch.nn.functional.nll_loss(torch.nn.functional.log_softmax(t, dim=1), target, weight, **more)
        return run


def _kernels() -> None:
    """Chooses the kernels that PyTorch chooses by the device of its arguments."""
    def dropout(real: Any) -> Any:
        def run(t: Any, p: float = 0.5, training: bool = True, inplace: bool = False) -> Any:
            if isinstance(t, FakeTensor) and t.is_cuda and training and 0 < p < 1 and not inplace:
                return torch.native_dropout(t, p, True)[0]
            return real(t, p, training, inplace)
        return run

    def attention(real: Any) -> Any:
        def run(q: Any, k: Any, v: Any, attn_mask: Any = None, dropout_p: float = 0.0, is_causal: bool = False, scale: Any = None,
                enable_gqa: bool = False) -> Any:
            if not isinstance(q, FakeTensor) or q.dim() != 4 or enable_gqa:
                more = {"enable_gqa": True} if enable_gqa else {}
                return real(q, k, v, attn_mask, dropout_p, is_causal, scale=scale, **more)
            flash = q.dtype in (torch.float16, torch.bfloat16) and attn_mask is None and q.shape[-1] <= 256 and q.shape[-1] % 8 == 0
            if flash and torch.backends.cuda.flash_sdp_enabled():
                return torch.ops.aten._scaled_dot_product_flash_attention(q, k, v, dropout_p, is_causal, scale=scale)[0]
            if torch.backends.cuda.mem_efficient_sdp_enabled() and q.dtype != torch.float64:
                if attn_mask is not None:
                    if attn_mask.dtype == torch.bool:
                        attn_mask = torch.zeros_like(attn_mask, dtype=q.dtype).masked_fill_(~attn_mask, float("-inf"))
                    attn_mask = attn_mask.expand(*q.shape[:3], k.shape[2])
                need = torch.is_grad_enabled() and any(t.requires_grad for t in (q, k, v))
                return torch.ops.aten._scaled_dot_product_efficient_attention(q, k, v, attn_mask, need, dropout_p, is_causal, scale=scale)[0]
            return real(q, k, v, attn_mask, dropout_p, is_causal, scale=scale)
        return run

    _replace(torch.nn.functional, "dropout", dropout)
    _replace(torch.nn.functional, "scaled_dot_product_attention", attention)


class _Stream:
    """A stream or an event: fake tensors do no work, so that all work is done."""

    device, cuda_stream, stream_id, priority = torch.device("cuda", 0), 0, 0, 0

    def __init__(self, *_: Any, **__: Any):
        pass

    def __enter__(self) -> "_Stream":
        return self

    def __exit__(self, *_: Any) -> None:
        pass

    def query(self) -> bool:
        return True

    def is_capturing(self) -> bool:
        return False

    def elapsed_time(self, _: Any) -> float:
        return 0.0

    def record_event(self, event: Any = None) -> Any:
        return event or _Stream()

    def synchronize(self, *_: Any) -> None:
        pass

    wait = wait_event = wait_stream = record = synchronize


def _queries(trace: Trace, memory: int) -> None:
    """Answers the queries of torch.cuda for one A100. Memory is that of live tensors."""
    name = "NVIDIA A100-SXM4-80GB (simulated by Vramyard)"
    card = types.SimpleNamespace(name=name, major=8, minor=0, total_memory=memory, multi_processor_count=108, warp_size=32,
                                 max_threads_per_multi_processor=2048, is_integrated=0, is_multi_gpu_board=0, gcnArchName="")

    def stats(*_: Any) -> Dict[str, int]:
        return {f"{kind}_bytes.all.{which}": size for kind in ("allocated", "reserved", "active", "requested")
                for which, size in (("current", trace.bytes), ("peak", trace.peak))}

    def reset(*_: Any) -> None:
        trace.peak = trace.bytes

    answers: Dict[str, Callable[..., Any]] = {
        "get_device_properties": lambda *_: card, "get_device_name": lambda *_: name, "get_device_capability": lambda *_: (8, 0),
        "mem_get_info": lambda *_: (memory - trace.bytes, memory), "memory_stats": stats, "memory_summary": lambda *_, **__: str(stats()),
        "empty_cache": lambda: trace.line("trim"), "get_rng_state": lambda *_: torch.zeros(16, dtype=torch.uint8),
        "stream": lambda *_: _Stream(), "device": lambda *_: _Stream(), "get_arch_list": lambda: ["sm_80"], "initial_seed": lambda: 0,
    }
    answers.update({f: lambda *_: trace.bytes for f in ("memory_allocated", "memory_reserved", "memory_cached")})
    answers.update({f: lambda *_: trace.peak for f in ("max_memory_allocated", "max_memory_reserved", "max_memory_cached")})
    answers.update({f: reset for f in ("reset_peak_memory_stats", "reset_max_memory_allocated", "reset_max_memory_cached")})
    answers["is_current_stream_capturing"] = lambda: False
    answers.update({f: lambda *_, **__: True for f in ("is_available", "is_initialized", "is_bf16_supported")})
    answers.update({f: lambda *_: _Stream() for f in ("current_stream", "default_stream")})
    answers.update({f: lambda *_, **__: None for f in (
        "init", "_lazy_init", "_lazy_call", "set_device", "set_stream", "synchronize", "ipc_collect", "manual_seed", "manual_seed_all", "seed",
        "seed_all", "set_rng_state", "set_rng_state_all", "reset_accumulated_memory_stats", "set_per_process_memory_fraction")})
    answers.update({"device_count": lambda: 1, "current_device": lambda: 0, "Stream": _Stream, "Event": _Stream})
    for function, answer in answers.items():
        setattr(torch.cuda, function, answer)
        for module in (torch.cuda.memory, getattr(torch, "accelerator", None)):
            if hasattr(module, function):
                setattr(module, function, answer)
    if hasattr(torch, "accelerator"):
        torch.accelerator.current_accelerator = lambda *_, **__: torch.device("cuda")
        torch.accelerator.current_device_index = torch.cuda.current_device


def _stepped(trace: Trace, until: Optional[int]) -> Any:
    counts: Dict[int, int] = {}

    def hook(optimizer: Any, *_: Any) -> None:
        n = counts[id(optimizer)] = counts.get(id(optimizer), 0) + 1
        if n == max(counts.values()):
            trace.step()
        if until is not None and n >= until:
            raise SystemExit(0)
    return hook


@contextlib.contextmanager
def record(path: str, until: Optional[int] = None, memory: int = 80 << 30) -> Iterator[Gpu]:
    """Records the CUDA tensors of the with block. The functions of torch stay replaced for the rest of the process."""
    from torch.optim.optimizer import register_optimizer_step_post_hook

    trace = Trace(path)
    _fake_tensors()
    _conversions()
    _kernels()
    Autocast()
    _queries(trace, memory)
    handle = register_optimizer_step_post_hook(_stepped(trace, until))
    try:
        with Gpu(trace) as gpu:
            yield gpu
    finally:
        handle.remove()
        trace.file.close()


def _report(gpu: Gpu, path: str) -> None:
    """Prints what was recorded, what the trace lacks, and the command that answers from it."""
    trace = gpu.trace
    steps = f", {trace.steps} steps" if trace.steps else ""
    print(f"vramyard: {path}: {trace.count} allocations{steps}, {trace.peak / (1 << 20):.2f} MiB of tensors at the peak. The trace has tensors "
          "only: a GPU needs more for work areas of cuBLAS and cuDNN and for scratch memory inside operators.", file=sys.stderr)
    if gpu.reads:
        shown = ", ".join(f"{place} ({n} times)" for place, n in sorted(gpu.reads.items(), key=lambda r: -r[1])[:5])
        print(f"vramyard: values of CUDA tensors were read as zeros at {shown}{', ...' if len(gpu.reads) > 5 else ''}", file=sys.stderr)
    program = shutil.which("vramyard")
    if program is None:
        print(f"vramyard: run vramyard whatif {path}", file=sys.stderr)
        return
    sys.stdout.flush()
    subprocess.run([program, "whatif", path], check=False)


def main(argv: Sequence[str]) -> int:
    """Records a whole script."""
    parser = argparse.ArgumentParser(prog="python -m vramyard.meta", description="Record the GPU memory of a PyTorch script without CUDA.")
    parser.add_argument("--trace", metavar="FILE", help="write the trace to this file (default: the script's name with .trace)")
    parser.add_argument("--until-step", metavar="N", type=int, help="end the program after N steps of an optimizer")
    parser.add_argument("script", help="script, followed by its own arguments")
    parser.add_argument("arguments", nargs=argparse.REMAINDER, help=argparse.SUPPRESS)
    given = parser.parse_args(argv)
    if not os.path.isfile(given.script):
        print(f"vramyard: {given.script}: want the file of a script", file=sys.stderr)
        return 1
    path = given.trace or os.path.splitext(os.path.basename(given.script))[0] + ".trace"
    sys.argv = [given.script, *given.arguments]
    sys.path[0] = os.path.dirname(os.path.abspath(given.script))
    with record(path, given.until_step) as gpu:
        try:
            left = runpy.run_path(given.script, run_name="__main__")  # keeps the script's globals live until the trace ends
        except SystemExit as end:
            if end.code not in (None, 0):
                raise
            left = {}
        except MetaError as err:
            print(f"vramyard: {err}", file=sys.stderr)
            return 1
        peak = gpu.trace.peak
    gpu.trace.peak = peak
    _report(gpu, path)
    del left
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
