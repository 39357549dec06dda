"""Three small models of torch: their states as files, and what they answer.

Run with torch alone, `python make.py`, in this folder. The states are written as `save_file` of the
safetensors package would write them; what goes in and comes out stands in a file of its own.
"""

import json
import struct

import torch
from torch import nn

NAMES = {torch.float32: "F32", torch.float64: "F64", torch.int64: "I64", torch.bool: "BOOL"}


def write(path, tensors):
    header, parts, end = {"__metadata__": {"format": "pt"}}, [], 0
    for name, tensor in tensors.items():
        part = tensor.detach().contiguous().numpy().tobytes()
        place = [end, end + len(part)]
        header[name] = {"dtype": NAMES[tensor.dtype], "shape": list(tensor.shape), "data_offsets": place}
        parts.append(part)
        end += len(part)
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    with open(path, "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text + b"".join(parts))


class Cnn(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1 = nn.Conv2d(3, 8, 3, padding=1)
        self.norm = nn.BatchNorm2d(8)
        self.conv2 = nn.Conv2d(8, 12, 3, stride=2, groups=4, bias=False)
        self.out = nn.Linear(12, 5)

    def forward(self, x):
        x = torch.relu(self.norm(self.conv1(x)))
        return self.out(torch.relu(self.conv2(x)).mean((2, 3)))


class Tagger(nn.Module):
    def __init__(self):
        super().__init__()
        self.words = nn.Embedding(20, 6)
        self.lstm = nn.LSTM(6, 8, num_layers=2, bidirectional=True, batch_first=True, proj_size=4)
        self.tags = nn.Linear(8, 5)

    def forward(self, x):
        return self.tags(self.lstm(self.words(x))[0])


class Translator(nn.Module):
    def __init__(self):
        super().__init__()
        self.words = nn.Embedding(20, 16)
        self.transformer = nn.Transformer(16, 4, 2, 2, 24, activation="gelu", batch_first=True, norm_first=True)
        self.out = nn.Linear(16, 20)

    def forward(self, src, tgt):
        mask = nn.Transformer.generate_square_subsequent_mask(tgt.shape[1])
        return self.out(self.transformer(self.words(src), self.words(tgt), tgt_mask=mask))


def make(name, model, *inputs):
    model.eval()
    state = model.state_dict()
    write(f"{name}.safetensors", state)
    ends = {f"input{i}": tensor for i, tensor in enumerate(inputs)}
    with torch.no_grad():
        ends["output"] = model(*inputs)
    write(f"{name}.ends.safetensors", ends)


torch.manual_seed(7)
cnn = Cnn()
cnn(torch.randn(16, 3, 9, 9) * 2 + 1)  # gives the norm means of its own
make("cnn", cnn, torch.randn(4, 3, 9, 9))
make("tagger", Tagger(), torch.randint(0, 20, (3, 7)))
make("translator", Translator(), torch.randint(0, 20, (2, 6)), torch.randint(0, 20, (2, 5)))
