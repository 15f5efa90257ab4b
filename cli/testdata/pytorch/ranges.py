"""Reserves more memory where addresses rise: a request then takes the other one of two equal holes. A convolution follows."""

import torch

M = 1 << 20


def take(n):
    return torch.empty(n * M, dtype=torch.uint8, device="cuda")


a, b, c, d = (take(8) for _ in range(4))
del b, d
e = take(9)
del a
f = take(18)
torch.nn.functional.conv2d(torch.ones(1, 1, 8, 8, device="cuda"), torch.ones(1, 1, 3, 3, device="cuda"))
