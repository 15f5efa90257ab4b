"""Has the three convolutions of a training step, with the work areas of the table beside."""

import torch

x = torch.ones(4, 3, 64, 64, device="cuda", requires_grad=True)
w = torch.ones(16, 3, 3, 3, device="cuda", requires_grad=True)
torch.nn.functional.conv2d(x, w, stride=2, padding=1).sum().backward()
