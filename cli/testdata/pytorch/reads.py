"""Reads values from the GPU. A comment says which lines read unknown ones, and how often."""

import torch

x = torch.randn(100, device="cuda")
total = torch.zeros((), device="cuda")
for _ in range(3):
    total += x.sum()
    x.mean().item()  # value x3
if (x > 0).any():  # value
    pass
total.tolist()  # value
x.clone().cpu().numpy()  # value
x[x > 0]  # index
torch.nonzero(x)  # nonzero
x.unique()  # _unique2


class Twice(torch.autograd.Function):
    @staticmethod
    def forward(ctx, a):
        return a * 2

    @staticmethod
    def backward(ctx, gradient):
        gradient.max().item()  # value
        return gradient * 2


Twice.apply(torch.ones(4, device="cuda", requires_grad=True)).sum().backward()

known = torch.tensor([1, 2, 3]).cuda()
known.clone().tolist(), (known + 1).cpu(), torch.full((2,), 5.0, device="cuda").tolist()
