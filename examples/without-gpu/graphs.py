"""Captures a training step in a CUDA graph and replays it."""

import torch
import torch.nn as nn

torch.set_default_device("cuda")
model = nn.Sequential(*[nn.Sequential(nn.Linear(2048, 2048), nn.ReLU()) for _ in range(6)])
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3, capturable=True)
x, y = torch.zeros(1024, 2048), torch.zeros(1024, 2048)


def step():
    optimizer.zero_grad(set_to_none=True)
    (model(x) - y).square().mean().backward()
    optimizer.step()


side = torch.cuda.Stream()
side.wait_stream(torch.cuda.current_stream())
with torch.cuda.stream(side):
    for _ in range(3):
        step()
torch.cuda.current_stream().wait_stream(side)
graph = torch.cuda.CUDAGraph()
with torch.cuda.graph(graph):
    step()
for _ in range(5):
    x.copy_(torch.randn(1024, 2048))
    graph.replay()
