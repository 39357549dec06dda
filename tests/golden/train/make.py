"""Records how torch trains four small models for 100 steps, in the format that `cresset parity train` reads."""

import json
import sys

import torch
import torch.nn.functional as F
from safetensors.torch import save_file
from torch import nn

STEPS, BATCHES = 100, 5
LOSS = f"cross_entropy(mean); step s uses batch s % {BATCHES}; zero_grad, backward, step"


class Recurrent(nn.Module):
    def __init__(self):
        super().__init__()
        self.lstm = nn.LSTM(4, 10, batch_first=True)
        self.fc = nn.Linear(10, 6)

    def forward(self, x):
        _, (hidden, _) = self.lstm(x)
        return self.fc(hidden[-1])


class Block(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.ln1, self.ln2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv, self.proj = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.fc1, self.fc2 = nn.Linear(width, 2 * width), nn.Linear(2 * width, width)
        self.heads = heads

    def forward(self, x):
        batch, length, width = x.shape
        parts = self.qkv(self.ln1(x)).split(width, dim=-1)
        q, k, v = (part.view(batch, length, self.heads, -1).transpose(1, 2) for part in parts)
        mixed = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.proj(mixed.transpose(1, 2).reshape(batch, length, width))
        return x + self.fc2(F.gelu(self.fc1(self.ln2(x))))


class Transformer(nn.Module):
    def __init__(self):
        super().__init__()
        self.tok, self.pos = nn.Embedding(17, 16), nn.Embedding(10, 16)
        self.lnf, self.head = nn.LayerNorm(16), nn.Linear(16, 17, bias=False)
        self.blocks = nn.ModuleList([Block(16, 4) for _ in range(3)])

    def forward(self, x):
        x = self.tok(x) + self.pos(torch.arange(x.shape[1]))
        for block in self.blocks:
            x = block(x)
        return self.head(self.lnf(x))


def named(**layers):
    model = nn.Sequential()
    for name, layer in layers.items():
        model.add_module(name, layer)
    return model


MODELS = {
    "MLP": (
        "fc1 Linear(12,24) -> Tanh -> fc2 Linear(24,8)",
        lambda: named(fc1=nn.Linear(12, 24), _1=nn.Tanh(), fc2=nn.Linear(24, 8)),
        "SGD(lr=0.05,momentum=0.9,weight_decay=1e-4)",
        lambda p: torch.optim.SGD(p, lr=0.05, momentum=0.9, weight_decay=1e-4),
        lambda: (torch.randn(8, 12), torch.randint(8, (8,))),
    ),
    "CNN": (
        "conv1 Conv2d(1,4,3,stride=2,pad=1) -> bn BatchNorm2d(4) (train mode) -> ReLU -> "
        "conv2 Conv2d(4,6,3) -> ReLU -> AdaptiveAvgPool2d(1) -> fc Linear(6,5)",
        lambda: named(
            conv1=nn.Conv2d(1, 4, 3, stride=2, padding=1), bn=nn.BatchNorm2d(4), _2=nn.ReLU(),
            conv2=nn.Conv2d(4, 6, 3), _4=nn.ReLU(), _5=nn.AdaptiveAvgPool2d(1), _6=nn.Flatten(),
            fc=nn.Linear(6, 5),
        ),
        "Adam(lr=3e-3)",
        lambda p: torch.optim.Adam(p, lr=3e-3),
        lambda: (torch.randn(6, 1, 12, 12), torch.randint(5, (6,))),
    ),
    "RNN": (
        "lstm LSTM(4,10,batch_first) last hidden -> fc Linear(10,6)",
        Recurrent,
        "SGD(lr=0.05,momentum=0.9,weight_decay=1e-4)",
        lambda p: torch.optim.SGD(p, lr=0.05, momentum=0.9, weight_decay=1e-4),
        lambda: (torch.randn(6, 7, 4), torch.randint(6, (6,))),
    ),
    "GPT": (
        "3-layer causal char transformer: tok Embedding(17,16) + pos Embedding(10,16); per block "
        "x += proj(sdpa(qkv(ln1(x)), 4 heads, causal)); x += fc2(gelu(fc1(ln2(x)))); lnf; "
        "head Linear(16,17,no bias)",
        Transformer,
        "AdamW(lr=3e-3)",
        lambda p: torch.optim.AdamW(p, lr=3e-3),
        lambda: (torch.randint(17, (3, 10)), torch.randint(17, (30,))),
    ),
}


def train(make, optimizer, state, batches, dtype):
    model = make().to(dtype)
    model.load_state_dict({name: value.to(dtype) if value.is_floating_point() else value for name, value in state.items()})
    optimizer = optimizer(model.parameters())
    losses, first = [], {}
    for step in range(STEPS):
        x, y = batches[step % BATCHES]
        optimizer.zero_grad()
        scores = model(x.to(dtype) if x.is_floating_point() else x)
        loss = F.cross_entropy(scores.flatten(0, -2), y)
        loss.backward()
        if step == 0:
            first = {name: value.grad.clone() for name, value in model.named_parameters()}
        optimizer.step()
        losses.append(loss.item())
    return losses, first, {name: value.clone() for name, value in model.state_dict().items()}


def record(name, folder):
    words, make, optimizer_words, optimizer, batch = MODELS[name]
    torch.manual_seed(7)
    state = {key: value.clone() for key, value in make().state_dict().items()}
    batches = [batch() for _ in range(BATCHES)]
    tensors = {}

    def keep(tensor):
        tensors[f"t{len(tensors)}"] = tensor.detach().clone().contiguous()
        return f"t{len(tensors) - 1}"

    losses, first, end = train(make, optimizer, state, batches, torch.float32)
    exact, _, exact_end = train(make, optimizer, state, batches, torch.float64)
    idle = lambda key: name == "CNN" and key == "conv1.bias"
    case = {
        "id": f"{name}.100.f32", "dtype": "f32", "model": words, "optimizer": optimizer_words, "steps": STEPS,
        "loss": LOSS, "init": {key: keep(value) for key, value in state.items()},
        "x": [keep(x) for x, _ in batches], "y": [keep(y) for _, y in batches],
        "grads_step0": {key: keep(value) for key, value in first.items()}, "losses": losses,
        "final": {key: keep(value) for key, value in end.items()},
        "noise": {
            "loss": max(abs(a - b) for a, b in zip(losses, exact)),
            "params": max((end[key] - exact_end[key]).abs().max().item() for key in end if not idle(key)),
        },
    }
    tolerances = {"f32": [1.3e-6, 1e-5], "f64": [1e-7, 1e-7], "i64": [0, 0]}
    whole = {"format": "golden-v1", "torch": torch.__version__, "suite": "train", "tol": tolerances, "cases": [case]}
    with open(f"{folder}/{name}.json", "w") as file:
        json.dump(whole, file)
    save_file(tensors, f"{folder}/{name}.safetensors")
    print(name, losses[0], losses[-1], case["noise"])


for model in MODELS:
    record(model, sys.argv[1] if len(sys.argv) > 1 else ".")
