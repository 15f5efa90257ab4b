"""Reduces gradients on a second stream while the first computes the next ones."""

import torch

torch.set_default_device("cuda")
side, main = torch.cuda.Stream(), torch.cuda.current_stream()
sizes = [(4 + 3 * i % 7) << 20 for i in range(24)]
for step in range(4):
    total = torch.zeros(())
    for n in sizes:
        gradient = torch.ones(n) * step
        side.wait_stream(main)
        with torch.cuda.stream(side):
            part = gradient.half()
            total += part.sum()
        gradient.record_stream(side)
        del gradient, part
    main.wait_stream(side)
    torch.cuda.synchronize()
