"""Trains the model of `cresset train gpt` with torch: the same text, sizes, optimizer and schedule, other chances.

    python tests/outside/torch/gpt.py [SEED ...]

prints the held-out loss of each run, beside which that of `cresset train gpt --seed SEED` is to lie within one percent.
"""

import gzip
import math
import sys
from pathlib import Path

import torch
from torch import nn
from torch.nn import functional as F

CONTEXT, LAYERS, FEATURES, HEADS, DROPOUT = 64, 3, 96, 4, 0.1
EPOCHS, BATCH, LR = 2, 16, 2e-3


def text():
    path = Path(__file__).parents[3] / "data" / "moby-dick.txt.gz"
    return gzip.decompress(path.read_bytes()).decode("utf8")


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.attention_norm, self.linear_norm = nn.LayerNorm(FEATURES), nn.LayerNorm(FEATURES)
        self.query_key_value, self.projection = nn.Linear(FEATURES, 3 * FEATURES), nn.Linear(FEATURES, FEATURES)
        self.up, self.down = nn.Linear(FEATURES, 4 * FEATURES), nn.Linear(4 * FEATURES, FEATURES)
        self.dropout = nn.Dropout(DROPOUT)

    def forward(self, x):
        samples, length, features = x.shape
        parts = self.query_key_value(self.attention_norm(x)).split(features, -1)
        query, key, value = (part.view(samples, length, HEADS, features // HEADS).transpose(1, 2) for part in parts)
        mixed = F.scaled_dot_product_attention(query, key, value, is_causal=True)
        x = x + self.dropout(self.projection(mixed.transpose(1, 2).reshape(x.shape)))
        return x + self.dropout(self.down(F.gelu(self.up(self.linear_norm(x)), approximate="tanh")))


class Gpt(nn.Module):
    def __init__(self, vocabulary):
        super().__init__()
        self.tokens, self.positions = nn.Embedding(vocabulary, FEATURES), nn.Embedding(CONTEXT, FEATURES)
        self.blocks = nn.ModuleList(Block() for _ in range(LAYERS))
        self.norm, self.head = nn.LayerNorm(FEATURES), nn.Linear(FEATURES, vocabulary)

    def forward(self, characters):
        x = self.tokens(characters) + self.positions(torch.arange(characters.shape[-1]))
        for block in self.blocks:
            x = block(x)
        return self.head(self.norm(x))


def windows(numbers):
    count = (len(numbers) - CONTEXT - 1) // CONTEXT + 1
    rows = lambda ahead: torch.stack([numbers[i * CONTEXT + ahead :][:CONTEXT] for i in range(count)])
    return rows(0), rows(1)


def loss(model, features, classes):
    return F.cross_entropy(model(features).flatten(0, 1), classes.flatten())


def run(seed):
    torch.manual_seed(seed)
    written = text()
    known = {character: number for number, character in enumerate(sorted(set(written)))}
    numbers = torch.tensor([known[character] for character in written])
    split = len(numbers) // 10 * 9
    training, held_out = windows(numbers[:split]), windows(numbers[split:])
    model = Gpt(len(known))
    optimizer = torch.optim.AdamW(model.parameters(), lr=LR, fused=True)
    steps = EPOCHS * math.ceil(len(training[0]) / BATCH)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, steps)
    for _ in range(EPOCHS):
        for chosen in torch.randperm(len(training[0])).split(BATCH):
            optimizer.zero_grad()
            loss(model, training[0][chosen], training[1][chosen]).backward()
            optimizer.step()
            schedule.step()
    model.eval()
    with torch.no_grad():
        sums = [loss(model, x, y).item() * len(x) for x, y in zip(held_out[0].split(256), held_out[1].split(256))]
    held = sum(sums) / len(held_out[0])
    print(f"seed {seed}: {steps} steps, held-out loss {held:.4f}, perplexity {math.exp(held):.3f}", flush=True)


for seed in map(int, sys.argv[1:] or ["0"]):
    run(seed)
