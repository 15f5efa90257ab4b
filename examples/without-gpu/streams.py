"""Computes on one stream while batches of differing lengths are copied on another."""

import torch
import torch.nn as nn

torch.set_default_device("cuda")
model = nn.Sequential(*[nn.Sequential(nn.Linear(1024, 1024), nn.GELU()) for _ in range(8)])
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
copies, main = torch.cuda.Stream(), torch.cuda.current_stream()
host = [torch.zeros(4096 + 512 * (i * 5 % 8), 1024, device="cpu", pin_memory=True) for i in range(16)]


def fetch(batch):
    with torch.cuda.stream(copies):
        return batch.cuda(non_blocking=True) * 2


ready = fetch(host[0])
for following in host[1:] + [None]:
    main.wait_stream(copies)
    x = ready
    x.record_stream(main)
    if following is not None:
        ready = fetch(following)
    model(x).square().mean().backward()
    del x
    optimizer.step()
    optimizer.zero_grad()
