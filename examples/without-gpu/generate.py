"""Generates 256 words with a decoder of 12 layers whose keys and values grow by torch.cat."""

import torch
import torch.nn as nn
import torch.nn.functional as F

WORDS, WIDTH, HEADS, LAYERS, BATCH, PROMPT, NEW = 32000, 1024, 16, 12, 8, 512, 256
torch.set_default_device("cuda")
torch.set_default_dtype(torch.bfloat16)
words, head = nn.Embedding(WORDS, WIDTH), nn.Linear(WIDTH, WORDS, bias=False)
qkvs = [nn.Linear(WIDTH, 3 * WIDTH) for _ in range(LAYERS)]
outs = [nn.Linear(WIDTH, WIDTH) for _ in range(LAYERS)]
mlps = [nn.Sequential(nn.Linear(WIDTH, 4 * WIDTH), nn.GELU(), nn.Linear(4 * WIDTH, WIDTH)) for _ in range(LAYERS)]
cache = [None] * LAYERS

with torch.no_grad():
    x = torch.randint(0, WORDS, (BATCH, PROMPT))
    for _ in range(NEW):
        h = words(x)
        for i in range(LAYERS):
            q, k, v = qkvs[i](h).view(BATCH, h.shape[1], 3, HEADS, -1).permute(2, 0, 3, 1, 4)
            if cache[i] is not None:
                k, v = (torch.cat(pair, 2) for pair in zip(cache[i], (k, v)))
            cache[i] = k, v
            a = F.scaled_dot_product_attention(q, k, v, is_causal=q.shape[2] > 1)
            h = h + outs[i](a.transpose(1, 2).flatten(2))
            h = h + mlps[i](h)
        x = head(h[:, -1:]).argmax(-1)
