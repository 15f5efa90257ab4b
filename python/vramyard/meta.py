"""Record the GPU memory of a PyTorch program on a machine without CUDA, as a trace for `vramyard whatif`.

    python -m vramyard.meta train.py ARG...

CUDA tensors of the script are fake: they have a shape and no memory. Tensors on the CPU are real. The trace has tensors, workspaces of
cuBLAS, and the scratch memory that scratch.py knows. docs/without-gpu.md compares it with `vramyard run`. It needs PyTorch 2.4 or newer.
"""

from __future__ import annotations

import argparse
import contextlib
import functools
import json
import os
import runpy
import subprocess
import sys
import types
import weakref
from typing import Any, Callable, Dict, Iterator, List, Optional, Sequence, Tuple

import torch
import torch._dynamo  # before any function is replaced: it compares signatures
from torch._subclasses import fake_tensor
from torch._subclasses.fake_tensor import FakeTensor, FakeTensorMode
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_map

from vramyard import _program, scratch
from vramyard.reads import Program

_ROUND = 512  # PyTorch's allocator counts blocks of this size
_PROGRAM = Program(torch, __file__, scratch.__file__)
_RULES = ((2, 13), "2.13"), ((2, 12), "2.12"), ((2, 10), "2.11"), ((0, 0), "2.6")  # of the strategy caching, by the first release

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
        self.count = self.bytes = self.peak = self.steps = self.stream = 0
        self.line(f"# framework=PyTorch\n# torch={torch.__version__.split('+')[0]}\n# segment_order=falling")  # as on Linux
        conf = os.environ.get("PYTORCH_ALLOC_CONF") or os.environ.get("PYTORCH_CUDA_ALLOC_CONF") or ""
        rules = next(rules for first, rules in _RULES if scratch.RELEASE >= first)
        if "cudaMallocAsync" not in conf:
            self.line("# config=" + json.dumps({"conf": conf, "rules": rules}))
        self.line("# not_in_file=work areas of cuDNN, scratch memory of some operators, times")

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
        number = self.take(size, operator)
        self.live[key] = number, size, weakref.ref(storage, lambda _: self.free(key, number))

    def free(self, key: int, number: int) -> None:
        entry = self.live.get(key)
        if entry is not None and entry[0] == number:
            del self.live[key]
            self.give(number, entry[1])

    def take(self, size: int, operator: str) -> int:
        """Records an allocation on the current stream, and returns its number."""
        self.count += 1
        stream = f"stream={self.stream} " if self.stream else ""
        self.line(f"a {self.count} {size} {stream}tag={json.dumps(operator + ' ' + _place())}")
        self.bytes += -(-size // _ROUND) * _ROUND
        self.peak = max(self.peak, self.bytes)
        return self.count

    def give(self, number: int, size: int) -> None:
        self.bytes -= -(-size // _ROUND) * _ROUND
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
        self.scratch = scratch.Scratch(trace)
        with self.fake:
            self.references = _references(torch.empty(1, device="cuda"))
        self.reads: Dict[str, int] = {}  # by place: how often the program read a value of a fake tensor

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if any(t.__torch_dispatch__ != torch.Tensor.__torch_dispatch__ and not issubclass(t, FakeTensor) for t in types):
            return NotImplemented  # a subclass, such as DTensor, calls again with the tensors inside
        kwargs = dict(kwargs or {})
        if torch._C._get_dispatch_mode(torch._C._TorchDispatchModeKey.FAKE) is not None:
            return func(*args, **kwargs)  # DTensor computes shapes with fake tensors of its own
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
        if func is torch.ops.aten.add.Tensor and self.accumulates(args):
            return args[0].add_(args[1])
        name = func._schema.name.split("::")[-1]
        if name in ("_local_scalar_dense", "equal"):
            return self.read(fakes[0].dtype if name != "equal" else torch.bool)
        kwargs.pop("pin_memory", None) if fakes or kwargs.get("device") else None
        if func.namespace == "c10d":  # it writes into the tensors of the first argument
            out = func(*tree_map(lambda v: torch.empty(0) if isinstance(v, FakeTensor) else v, args), **kwargs)
            return (args[0], *out[1:]) if isinstance(out, tuple) else out
        real: Dict[int, torch.Tensor] = {}  # by id of its fake form: a tensor of the CPU
        fake_args, fake_kwargs = tree_map(lambda v: self.faked(v, real), (args, kwargs))
        copies = self.scratch.before(name, args) if fakes else []
        out = self.run(func, fake_args, fake_kwargs)
        for t in fakes:  # a resized storage
            self.record(t, name)
        out = tree_map(lambda v: self.result(v, real, name), out)
        if fakes:
            self.scratch.after(func, args, out, copies)
        return out

    def accumulates(self, args: Any) -> bool:
        """Reports whether autograd adds a gradient to one that nothing else uses, which it does in place except for fake tensors."""
        if not scratch.backward() or torch.is_grad_enabled() or len(args) != 2 or not all(isinstance(t, FakeTensor) for t in args):
            return False
        old, new = args
        # The references are those of the sum, of Python, of this call and of the question.
        return (old.shape == new.shape and old.dtype == new.dtype and old._use_count() == 4
                and _references(old) == self.references)

    def run(self, func: Any, args: Any, kwargs: Any) -> Any:
        try:
            with self.fake:
                if func in (torch.ops.aten._softmax.default, torch.ops.aten._log_softmax.default) and args[2]:
                    return torch.empty_like(args[0], dtype=torch.float32)  # its form for shapes refuses bfloat16
                if func is torch.ops.aten.mse_loss.default and (len(args) < 3 or args[2] != 0):
                    return torch.empty_like(args[0]).resize_(())  # the result keeps the memory of the squares
                if func is torch.ops.aten._cudnn_rnn_backward.default:
                    x, weights, hx, cx = args[0], args[1], args[4], args[5]
                    return torch.empty_like(x), torch.empty_like(hx), None if cx is None else torch.empty_like(cx), _flat(weights)
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
            if operator.startswith("_scaled_dot_product") and value.dim() == 0:
                return torch.zeros((), dtype=value.dtype)  # a seed, which is on the CPU
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


def _references(t: torch.Tensor) -> int:
    return int(torch._C._storage_Use_Count(t.untyped_storage()._cdata))


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
    with contextlib.suppress(ImportError):  # before 2.5, or without distributed training
        from torch.distributed.tensor import DTensor

        DTensor.device = property(lambda t: t._local_tensor.device)
        DTensor.is_cuda = property(lambda t: t._local_tensor.is_cuda)
        DTensor.is_meta = property(lambda t: t._local_tensor.is_meta)
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
        for name in ("rnn_relu", "rnn_tanh", "lstm", "gru"):
            _replace(torch._VF, name, self.lower)
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
            more = {k: self.cast(v, dtype) for k, v in more.items()}
            args = tuple(reversed([self.cast(v, dtype) for v in reversed(args)]))  # the compiled casts begin with the last
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
            with torch.autocast("cuda", enabled=False):
                logarithms = torch.nn.functional.log_softmax(t, 1)  # cross_entropy asks for the type of its input
            return torch.nn.functional.nll_loss(logarithms, target, weight, **more)
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

    def linear(real: Any) -> Any:
        def run(x: Any, weight: Any, bias: Any = None) -> Any:
            if bias is None or not isinstance(x, FakeTensor) or x.dim() == 2 or (x.dim() == 3 and x.is_contiguous()):
                return real(x, weight, bias)
            return torch.matmul(x, weight.t()).add_(bias)  # in place, except for subclasses of Tensor
        return run

    _replace(torch.nn.functional, "linear", linear)
    _replace(torch.nn.functional, "dropout", dropout)
    _replace(torch.nn.functional, "scaled_dot_product_attention", attention)


def _flat(weights: Sequence[Any]) -> List[Any]:
    """Returns tensors of the shapes of the weights in one new piece of memory."""
    flat = weights[0].new_empty(sum(w.numel() for w in weights))
    return [part.view(w.shape) for part, w in zip(flat.split([w.numel() for w in weights]), weights)]


def _recurrent() -> None:
    """Runs recurrent networks as one call of cuDNN, with weights in one piece of memory. Its work areas are not known."""
    def flatten(real: Any) -> Any:
        def run(module: Any) -> None:
            weights = module._flat_weights
            if not all(isinstance(w, FakeTensor) and w.is_cuda and w.dtype == weights[0].dtype for w in weights):
                real(module)
            elif len({w.untyped_storage()._cdata for w in weights}) == len(weights):
                with torch.no_grad():
                    for w, part in zip(weights, _flat(weights)):
                        w.data = part
        return run

    def network(mode: int) -> Callable[[Any], Any]:
        def make(real: Any) -> Any:
            def run(x: Any, *args: Any) -> Any:
                packed = isinstance(args[2], (list, tuple))
                if packed or not isinstance(x, FakeTensor) or not x.is_cuda or not torch.backends.cudnn.enabled:
                    return real(x, *args)
                hx, weights, _, layers, dropout, train, both, batch_first = args
                cx: Any
                hx, cx = hx if mode == 2 else (hx, None)
                shared = len({w.untyped_storage()._cdata for w in weights}) == 1
                with torch.no_grad():
                    total = sum(w.numel() for w in weights)
                    flat = weights[0].detach().as_strided((total,), (1,), 0) if shared else weights[0].new_empty(total)
                projection = hx.shape[2] if mode == 2 and cx.shape[2] != hx.shape[2] else 0
                out = torch._cudnn_rnn(x, weights, len(weights) // (layers * (2 if both else 1)), flat, hx, cx, mode,
                                       (cx if mode == 2 else hx).shape[2], projection, layers, batch_first, dropout, train, both, [], None)
                return out[:3] if mode == 2 else out[:2]
            return run
        return make

    _replace(torch.nn.RNNBase, "flatten_parameters", flatten)
    for mode, name in enumerate(("rnn_relu", "rnn_tanh", "lstm", "gru")):  # by cuDNN's number
        _replace(torch._VF, name, network(mode))


class _Event:
    """An event of a stream, or another handle of CUDA: fake tensors do no work, so that all work is done."""

    device, cuda_event = torch.device("cuda", 0), 0

    def __init__(self, *_: Any, **__: Any):
        pass

    def __enter__(self) -> "_Event":
        return self

    def __exit__(self, *_: Any) -> None:
        pass

    def query(self) -> bool:
        return True

    def elapsed_time(self, _: Any) -> float:
        return 0.0

    def synchronize(self, *_: Any) -> None:
        pass

    wait = record = synchronize


class _Stream(_Event):
    """A stream. Memory belongs to the stream on which it was allocated."""

    trace: Trace
    made, priority, device_index, device_type = 0, 0, 0, 1

    def __init__(self, *_: Any, number: Optional[int] = None, **__: Any):
        if number is None:
            number = _Stream.made % 32 + 1  # PyTorch has so many, beside the default stream
            _Stream.made += 1
        self.stream_id = self.cuda_stream = number
        self.before: List[int] = []

    def __eq__(self, other: Any) -> bool:
        return isinstance(other, _Stream) and self.stream_id == other.stream_id

    def __hash__(self) -> int:
        return self.stream_id

    def __enter__(self) -> "_Stream":
        self.before.append(self.trace.stream)
        self.trace.stream = self.stream_id
        return self

    def __exit__(self, *_: Any) -> None:
        self.trace.stream = self.before.pop()

    def is_capturing(self) -> bool:
        return _Graph.capturing

    def record_event(self, event: Any = None) -> Any:
        return event or _Event()

    wait_event = wait_stream = _Event.synchronize


class _Graph(_Event):
    """A CUDA graph: what is captured allocates in a pool of its own or of another graph."""

    trace: Trace
    pools: Dict[int, int] = {}  # graphs by number of their pool
    capturing = False
    number: Optional[int] = None

    def capture_begin(self, pool: Any = None, **_: Any) -> None:
        self.number = _pool()[1] if pool is None else pool[1]
        self.pools[self.number] = self.pools.get(self.number, 0) + 1
        self.trace.line(f"pool begin {self.number}")
        _Graph.capturing = True

    def capture_end(self) -> None:
        self.trace.line(f"pool end {self.number}")
        _Graph.capturing = False

    def pool(self) -> Tuple[int, int]:
        return 0, self.number or 0

    def reset(self) -> None:
        if self.number is not None:
            self.pools[self.number] -= 1
            if self.pools[self.number] == 0:
                self.trace.line(f"pool release {self.number}")
            self.number = None

    replay = instantiate = enable_debug_mode = debug_dump = _Event.synchronize
    __del__ = reset


def _pool() -> Tuple[int, int]:
    number = len(_Graph.pools) + 1
    _Graph.pools[number] = 0
    return 0, number


def _storages(trace: Trace) -> None:
    """Records storages that change their size outside operators, as sharded data parallelism does."""
    def resize(real: Any) -> Any:
        def run(storage: Any, size: int) -> Any:
            done = real(storage, size)
            if storage.device.type == "meta":
                trace.alloc(storage, "resize_")
            return done
        return run

    _replace(torch.UntypedStorage, "resize_", resize)


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
        "stream": lambda s: s or _Event(), "device": _Event, "device_of": _Event, "get_arch_list": lambda: ["sm_80"], "initial_seed": lambda: 0,
    }
    answers.update({f: lambda *_: trace.bytes for f in ("memory_allocated", "memory_reserved", "memory_cached")})
    answers.update({f: lambda *_: trace.peak for f in ("max_memory_allocated", "max_memory_reserved", "max_memory_cached")})
    answers.update({f: reset for f in ("reset_peak_memory_stats", "reset_max_memory_allocated", "reset_max_memory_cached")})
    answers.update({"is_current_stream_capturing": lambda: _Graph.capturing, "graph_pool_handle": _pool, "CUDAGraph": _Graph})
    answers.update({f: lambda *_, **__: True for f in ("is_available", "is_initialized", "is_bf16_supported")})
    answers.update({"default_stream": lambda *_: _Stream(number=0), "current_stream": lambda *_: _Stream(number=trace.stream)})
    answers["set_stream"] = lambda s: setattr(trace, "stream", s.stream_id)
    _Stream.trace = _Graph.trace = trace
    answers.update({f: lambda *_, **__: None for f in (
        "init", "_lazy_init", "_lazy_call", "set_device", "synchronize", "ipc_collect", "manual_seed", "manual_seed_all", "seed",
        "seed_all", "set_rng_state", "set_rng_state_all", "reset_accumulated_memory_stats", "set_per_process_memory_fraction")})
    answers.update({"device_count": lambda: 1, "current_device": lambda: 0, "Stream": _Stream, "Event": _Event})
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
    _storages(trace)
    _kernels()
    _recurrent()
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
    print(f"vramyard: {path}: {trace.count} allocations{steps}, {trace.peak / (1 << 20):.2f} MiB live at the peak. The trace lacks work areas of "
          "cuDNN and scratch memory of some operators.", file=sys.stderr)
    if gpu.reads:
        shown = ", ".join(f"{place} ({n} times)" for place, n in sorted(gpu.reads.items(), key=lambda r: -r[1])[:5])
        print(f"vramyard: values of CUDA tensors were read as zeros at {shown}{', ...' if len(gpu.reads) > 5 else ''}", file=sys.stderr)
    try:
        program = _program.find()
    except FileNotFoundError:
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
