"""Records what torch's profiler says about a small training program; run with torch 2.15.

    python record.py DIRECTORY
"""

import json
import sys
from pathlib import Path

import torch
from torch.profiler import ExecutionTraceObserver, ProfilerActivity, profile, record_function

torch.manual_seed(0)
torch.set_num_threads(1)
model = torch.nn.Sequential(torch.nn.Linear(6, 4), torch.nn.ReLU(), torch.nn.Linear(4, 3))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9, foreach=False)
x, y = torch.ones(2, 6), torch.tensor([0, 2])


def step(number):
    with record_function(f"step {number}"):
        optimizer.zero_grad()
        loss = torch.nn.functional.cross_entropy(model(x), y)
        loss.backward()
        optimizer.step()


def memory():
    """Two steps: action, bytes and category of each change, in the order of time."""
    flags = dict(record_shapes=True, profile_memory=True, with_stack=True)
    with profile(activities=[ProfilerActivity.CPU], **flags) as profiler:
        step(0)
        step(1)
    memory = profiler._memory_profile()
    changes = []
    for _, action, (key, version), size in memory.timeline:
        category = memory._categories.get(key, version)
        changes.append([action.name, size, category.name if category else "unknown"])
    return changes


def execution(path):
    """A later step, as torch writes it."""
    observer = ExecutionTraceObserver()
    observer.register_callback(str(path))
    observer.start()
    step(2)
    observer.stop()
    observer.unregister_callback()
    trace = json.loads(path.read_text())
    for node in trace["nodes"]:
        # Schemas and the process are of no interest here.
        node["attrs"] = {one["name"]: one["value"] for one in node["attrs"]}
    return trace["nodes"]


directory = Path(sys.argv[1])
lines = ",\n".join(json.dumps(change) for change in memory())
(directory / "memory_timeline.json").write_text(f"[{lines}]\n")
file = directory / "execution_trace.json"
lines = ",\n".join(json.dumps(node) for node in execution(file))
file.write_text(f"[{lines}]\n")
