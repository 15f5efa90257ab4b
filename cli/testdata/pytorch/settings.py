"""Changes the settings of the allocator as vLLM does while it loads weights, and says what the allocator reserved."""

import warnings

import torch

MIB = 1 << 20
memory = torch.cuda.memory
warnings.simplefilter("ignore", FutureWarning)  # of releases that have another name for the call
memory._set_allocator_settings("max_split_size_mb:512")  # before the GPU is used: the settings of the start


def block(mib):
    return torch.empty(mib * MIB, dtype=torch.uint8, device="cuda")


a = block(100)
del a
memory._set_allocator_settings("max_split_size_mb:21")
b = block(12)  # may not split the free block of 100 MiB
torch.cuda.reset_accumulated_memory_stats()
memory._set_allocator_settings("")
c = block(12)  # splits it
try:
    memory._set_allocator_settings("max_split_size_mb:1")
except Exception as e:  # an error of C++ that ends in ValueError or RuntimeError
    print("refused:", str(e).splitlines()[0])
d = block(150)
memory._set_allocator_settings("expandable_segments:True")
memory._set_allocator_settings("max_split_size_mb:64")
e = block(30)
print("reserved:", memory.memory_reserved() // MIB)
