"""Trains a language model of two LSTM layers."""

import torch
import torch.nn as nn
import torch.nn.functional as F

WORDS, WIDTH = 33278, 1024
words, head = nn.Embedding(WORDS, WIDTH), nn.Linear(WIDTH, WORDS)
lstm = nn.LSTM(WIDTH, WIDTH, num_layers=2, dropout=0.2)
model = nn.ModuleList((words, lstm, head)).cuda()
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
state = None
for step in range(3):
    x = torch.randint(0, WORDS, (71, 32), device="cuda")
    y, state = lstm(words(x[:-1]), state)
    state = tuple(s.detach() for s in state)
    F.cross_entropy(head(y).flatten(0, 1), x[1:].flatten()).backward()
    nn.utils.clip_grad_norm_(model.parameters(), 0.25)
    optimizer.step()
    optimizer.zero_grad()
