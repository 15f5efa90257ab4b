"""Uses vramyard.torch as a program does, with the stand-in torch of this directory and a simulated device."""

import os
import sys

import torch
from vramyard import torch as allocators

try:
    allocators.stats()
    sys.exit("stats without use")
except RuntimeError as e:
    assert "use() first" in str(e), e
for wrong, words in (
        (dict(strategy=7), "strategy: 7: want a string"),
        (dict(config=object()), "not JSON serializable"),
        (dict(library="/nowhere/libvramyard.so"), "/nowhere/libvramyard.so does not exist"),
        (dict(library=sys.executable + ".not"), "does not exist: want libvramyard.so"),
        (dict(library=torch.__file__), "invalid ELF header"),
        (dict(library=sys.argv[3]), "has no function vramyard_alloc: want libvramyard.so of this version")):
    try:
        allocators.use(**wrong)
        sys.exit(f"use({wrong})")
    except (RuntimeError, TypeError, OSError) as e:
        assert words in str(e), e
assert "VRAMYARD_STRATEGY" not in os.environ, "a failed call has changed the environment"
allocators._BUILT, path = allocators.pathlib.Path("/nowhere/libvramyard.so"), os.environ.pop("PATH")
try:
    allocators.use("caching")
    sys.exit("a library was built without go")
except RuntimeError as e:
    assert "and go, which builds it, is not installed" in str(e), e
os.environ["PATH"] = path
record = torch._Inner.set_record_stream_fn
del torch._Inner.set_record_stream_fn
try:
    allocators.use("caching", library=sys.argv[2])
    sys.exit("a PyTorch without record_stream")
except RuntimeError as e:
    assert "could be reused while another stream reads it" in str(e), e
torch._Inner.set_record_stream_fn = record
assert "VRAMYARD_STRATEGY" not in os.environ
allocator = allocators.use("caching", config={"rules": "2.6"}, trace=sys.argv[1], device="sim:1GiB", library=sys.argv[2])
assert os.environ["VRAMYARD_CONFIG"] == '{"rules": "2.6"}'
held = [allocator.alloc(n, 0, None) for n in (1000, 5 << 20, 0)]
assert held[0] and held[1] and held[2] is None
allocator.free(held[0], 1000, 0, None)
found = allocators.stats()
assert (found["strategy"], found["config"]["rules"]) == ("caching", "2.6"), found
assert found["devices"][0]["live_blocks"] == 1, found
torch.cuda.empty_cache()
allocators.dump_trace()
try:
    allocators.dump_trace("/nowhere/at/all")
    sys.exit("a trace nowhere")
except RuntimeError as e:
    assert "/nowhere/at/all" in str(e), e
try:
    allocators.use("tlsf")
    sys.exit("a second allocator")
except RuntimeError as e:
    assert "before the first tensor" in str(e), e
print("ok")
