"""Profiles small programs with torch and writes what its tables and its trace say of each.

Run with torch 2.15: python record.py FOLDER. Each program gives NAME.json.gz, the trace, and
NAME.tables.json, a list of options and the text that torch made of the same session.
"""

import gzip
import json
import pathlib
import re
import sys
import tempfile

import torch
from torch.profiler import ProfilerActivity, profile, record_function, schedule
from torch._C._profiler import _ExperimentalConfig

FOLDER = pathlib.Path(sys.argv[1])
CPU = [ProfilerActivity.CPU]


def save(name, prof, cases):
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder) / "trace.json"
        prof.export_chrome_trace(str(path))
        text = re.sub(r'"(host_name|traceName)": ".*"', r'"\1": ""', path.read_text())
        # Where the interpreter lies is nobody's business.
        text = re.sub(r'"(/|<frozen )[^"]*/([^/"]*)"', r'"\2"', text)
        with gzip.GzipFile(FOLDER / f"{name}.json.gz", "wb", 9, mtime=0) as file:
            file.write(text.encode())
    tables = []
    for grouping, options in cases:
        averages = prof.key_averages(**grouping)
        tables.append({"grouping": grouping, "options": options, "text": averages.table(**options)})
    (FOLDER / f"{name}.tables.json").write_text(json.dumps(tables, indent=1) + "\n")


PLAIN = [({}, {"row_limit": -1}), ({}, {"sort_by": "self_cpu_time_total", "row_limit": 5}), ({}, {"top_level_events_only": True})]
SHAPES = PLAIN + [({"group_by_input_shape": True}, {"row_limit": -1})]


def train(steps, prof=None):
    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Linear(8, 16), torch.nn.ReLU(), torch.nn.Linear(16, 4))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    for _ in range(steps):
        with record_function("batch"):
            x, y = torch.randn(6, 8), torch.randint(4, (6,))
        optimizer.zero_grad()
        torch.nn.functional.cross_entropy(model(x), y).backward()
        optimizer.step()
        if prof:
            prof.step()


def lists():
    parts = [torch.ones(2, 3), torch.ones(4, 3)]
    with record_function("outer"), record_function("inner"):
        torch.cat(parts).sum()
        torch.stack([parts[0], parts[0]])
    torch.ones(3).clone().contiguous()
    torch.einsum("ij,kj->ik", parts[0], parts[1])


with profile(activities=CPU, record_shapes=True) as prof:
    train(2)
save("train", prof, SHAPES)

def ready(prof):
    save("steps", prof, SHAPES + [({}, {"sort_by": "cpu_memory_usage", "row_limit": 8})])


window = schedule(wait=0, warmup=1, active=2, repeat=1)
with profile(activities=CPU, schedule=window, on_trace_ready=ready, record_shapes=True, profile_memory=True) as prof:
    train(4, prof)

with profile(activities=CPU, record_shapes=True, profile_memory=True) as prof:
    lists()
save("lists", prof, SHAPES)

with profile(activities=CPU, with_stack=True) as prof:
    lists()
save("frames", prof, [({}, {"row_limit": -1})])
