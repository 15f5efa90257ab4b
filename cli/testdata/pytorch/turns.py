"""Has two optimizers that step in turn, and prints how many of their parameters have a state."""

import torch

layers = [torch.nn.Linear(64, 64).cuda() for _ in range(2)]
optimizers = [torch.optim.AdamW(layer.parameters()) for layer in layers]
try:
    for _ in range(4):
        for layer, optimizer in zip(layers, optimizers):
            layer(torch.ones(4, 64, device="cuda")).sum().backward()
            optimizer.step()
finally:
    print("states:", *(len(o.state) for o in optimizers))
