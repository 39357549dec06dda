"""Four models trained on the simulated device and on the CPU, from the same weights: their losses must agree."""

import json
import sys

import torch
from torch import nn
from torch.nn import functional

import device

STEPS = 8


class LeNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.features = nn.Sequential(
            nn.Conv2d(1, 6, 5, padding=2), nn.BatchNorm2d(6), nn.ReLU(), nn.MaxPool2d(2),
            nn.Conv2d(6, 16, 5), nn.ReLU(), nn.AvgPool2d(2),
        )
        self.classifier = nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 10))

    def forward(self, x):
        return self.classifier(self.features(x).flatten(1))


class Recurrent(nn.Module):
    def __init__(self):
        super().__init__()
        self.embedding = nn.Embedding(30, 16)
        # More layers at once take torch_npu's older way, operators by name, which the device refuses.
        self.lstm = nn.LSTM(16, 24, batch_first=True)
        self.out = nn.Linear(24, 30)

    def forward(self, x):
        hidden, _ = self.lstm(self.embedding(x))
        return self.out(hidden).flatten(0, 1)


class Transformer(nn.Module):
    def __init__(self):
        super().__init__()
        self.embedding = nn.Embedding(30, 32)
        self.positions = nn.Parameter(torch.randn(12, 32) * 0.02)
        layer = nn.TransformerEncoderLayer(32, 4, 64, dropout=0.0, activation="gelu", batch_first=True, norm_first=True)
        self.encoder = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)
        self.norm = nn.LayerNorm(32)
        self.out = nn.Linear(32, 30)

    def forward(self, x):
        size = x.shape[1]
        mask = torch.triu(torch.full((size, size), float("-inf"), device=x.device), diagonal=1)
        hidden = self.encoder(self.embedding(x) + self.positions[:size], mask=mask)
        return self.out(self.norm(hidden)).flatten(0, 1)


def mlp():
    model = nn.Sequential(nn.Linear(20, 32), nn.Tanh(), nn.Linear(32, 16), nn.GELU(), nn.Linear(16, 4))
    x, y = torch.randn(32, 20), torch.randn(32, 4)
    return model, lambda p: torch.optim.SGD(p, lr=0.1, momentum=0.9), x, y, functional.mse_loss


def lenet():
    x, y = torch.randn(16, 1, 16, 16), torch.randint(0, 10, (16,))
    return LeNet(), lambda p: torch.optim.Adam(p, lr=1e-3), x, y, functional.cross_entropy


def lstm():
    x = torch.randint(0, 30, (8, 10))
    return Recurrent(), lambda p: torch.optim.AdamW(p, lr=3e-3), x, x.roll(-1, 1).flatten(), functional.cross_entropy


def transformer():
    x = torch.randint(0, 30, (8, 12))
    return Transformer(), lambda p: torch.optim.AdamW(p, lr=1e-3), x, x.roll(-1, 1).flatten(), functional.cross_entropy


def train(model, optimizer, x, y, loss_function):
    losses = []
    for _ in range(STEPS):
        optimizer.zero_grad()
        loss = loss_function(model(x), y)
        loss.backward()
        optimizer.step()
        losses.append(loss)
    return [loss.item() for loss in losses]


def compare(build):
    """Losses of both, and the greatest relative difference."""
    torch.manual_seed(0)
    model, optimizer, x, y, loss_function = build()
    twin = type(model)() if type(model) is not nn.Sequential else build()[0]
    twin.load_state_dict(model.state_dict())
    twin = twin.to(device.DEVICE)
    expected = train(model, optimizer(model.parameters()), x, y, loss_function)
    device.count_calls()
    got = train(twin, optimizer(twin.parameters()), x.to(device.DEVICE), y.to(device.DEVICE), loss_function)
    worst = max(abs(a - b) / abs(b) for a, b in zip(got, expected))
    return {"cpu": expected, "npu": got, "worst": worst, "called": device.operators_called()}


def main():
    torch.npu.set_compile_mode(jit_compile=False)
    torch.npu.conv.allow_hf32 = False
    names = sys.argv[1:] or ["mlp", "lenet", "lstm", "transformer"]
    for name in names:
        try:
            result = compare(globals()[name])
            ok = result["worst"] < 1e-4 and result["npu"][-1] < result["npu"][0]
        except Exception as error:
            result, ok = {"error": str(error)[:3000]}, False
        print(json.dumps({"model": name, "ok": ok, **result}), flush=True)


if __name__ == "__main__":
    main()
