"""Has sitecustomize.py note changes of settings of a program without PyTorch, and prints the histories with them."""

import time
import types

import sitecustomize

history, granted, conf = [], [0], [""]
now = [1000]
time.time_ns = lambda: now[0] * 1000


def add(action):
    now[0] += 1
    history.append({"action": action, "time_us": now[0]})
    granted[0] += action == "alloc"


def change(settings):
    if settings == "wrong":
        raise RuntimeError(settings)
    conf[0] = settings


def snapshot():
    return {"device_traces": [[dict(e) for e in history], []], "allocator_settings": {"PYTORCH_CUDA_ALLOC_CONF": conf[0]}}


torch = types.SimpleNamespace(
    _C=types.SimpleNamespace(
        _accelerator_setAllocatorSettings=change, _cuda_resetAccumulatedMemoryStats=lambda _: granted.__setitem__(0, 0)
    ),
    cuda=types.SimpleNamespace(
        memory=types.SimpleNamespace(_snapshot=snapshot),
        memory_stats=lambda i: {} if i else {"allocation.all.allocated": granted[0]},
        device_count=lambda: 2,
    ),
)


def show(title):
    s = snapshot()
    settings.complete(s)
    for device, entries in enumerate(s["device_traces"]):
        print(title, device, *(f"{e['action']}@{e['time_us']}{':' + e['settings'] if 'settings' in e else ''}" for e in entries))
    print(s["allocator_settings"])


settings = sitecustomize._Settings(torch)
call = torch._C._accelerator_setAllocatorSettings
show("none:")
try:
    call("wrong")
except RuntimeError:
    show("refused:")
call("start")
add("segment_alloc")
add("alloc")
add("free_requested")
add("free_completed")
call("a")
call("b")
add("free_requested")
add("segment_alloc")
add("alloc")
torch._C._cuda_resetAccumulatedMemoryStats(0)
call("c")
add("alloc")
show("all:")
del history[:5]
show("wrapped:")
