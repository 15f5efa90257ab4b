"""Trains a ResNet-50 on images of 224 x 224."""

import torch
import torch.nn as nn
import torch.nn.functional as F


def conv(n, m, size, stride=1):
    return nn.Sequential(nn.Conv2d(n, m, size, stride, size // 2, bias=False), nn.BatchNorm2d(m))


class Bottleneck(nn.Module):
    def __init__(self, n, width, stride):
        super().__init__()
        self.a, self.b, self.c = conv(n, width, 1), conv(width, width, 3, stride), conv(width, 4 * width, 1)
        self.short = conv(n, 4 * width, 1, stride) if stride > 1 or n != 4 * width else nn.Identity()

    def forward(self, x):
        h = F.relu(self.b(F.relu(self.a(x), inplace=True)), inplace=True)
        return F.relu(self.c(h) + self.short(x), inplace=True)


torch.set_default_device("cuda")
parts, n = [conv(3, 64, 7, 2), nn.ReLU(inplace=True), nn.MaxPool2d(3, 2, 1)], 64
for width, count, stride in ((64, 3, 1), (128, 4, 2), (256, 6, 2), (512, 3, 2)):
    for i in range(count):
        parts.append(Bottleneck(n, width, stride if i == 0 else 1))
        n = 4 * width
model = nn.Sequential(*parts, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(n, 1000))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
for step in range(3):
    x, y = torch.randn(32, 3, 224, 224), torch.randint(0, 1000, (32,))
    F.cross_entropy(model(x), y).backward()
    optimizer.step()
    optimizer.zero_grad()
