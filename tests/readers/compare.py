"""Whether HTA and TensorBoard's plugin read the numbers out of our traces that our own table shows.

    cargo run --release --example reader_traces DIRECTORY
    python tests/readers/compare.py DIRECTORY

needs `pip install HolisticTraceAnalysis torch-tb-profiler`. For each trace that lies beside its
averages, every operator's calls, total and self time are compared, in microseconds. Both readers
may round each event to a nanosecond, so sums may differ by one per call.
"""

import json
import logging
import os
import sys
import tempfile
import warnings
from collections import defaultdict
from pathlib import Path

warnings.filterwarnings("ignore")
logging.disable(logging.CRITICAL)
# Otherwise HTA rounds to whole microseconds, which small operators are shorter than.
os.environ.setdefault("HTA_DISABLE_NS_ROUNDING", "1")

# Beyond this, HTA's call stacks take minutes; counts and totals are still compared.
MANY = 100_000


def ours(path):
    """Our operators by name; scopes, and memory that no operator took, are no rows of the readers."""
    rows = json.loads(path.read_text())
    return {row["name"]: row for row in rows if not row["annotation"] and row["name"] != "[memory]"}


def hta(path):
    """Calls, total and self time by operator, as HTA sees them."""
    from hta.common.trace import Trace, parse_trace_file
    from hta.common.trace_call_graph import CallGraph

    _, frame, symbols = parse_trace_file(str(path))
    frame = frame[frame["cat"].map(lambda i: symbols.sym_table[i]) == "cpu_op"]
    names = frame["name"].map(lambda i: symbols.sym_table[i])
    rows = defaultdict(lambda: {"calls": 0, "total": 0.0})
    for name, duration in zip(names, frame["dur"]):
        rows[name]["calls"] += 1
        rows[name]["total"] += float(duration)
    if len(frame) > MANY:
        return rows
    trace = Trace(trace_files={0: str(path)})
    trace.parse_traces()
    trace.decode_symbol_ids(use_shorten_name=False)
    graph = CallGraph(trace, ranks=[0])
    events = trace.get_trace(0)
    children = defaultdict(float)
    merged = set()
    by_index = dict(zip(frame.index, names))
    for stack in graph.call_stacks:
        for index, node in stack.nodes.items():
            if index >= 0:
                children[index] = sum(float(events.loc[child, "dur"]) for child in node.children)
                # An operator that only calls its namesake is one call, as in torch's tables and the plugin's.
                name = by_index.get(index)
                if len(node.children) == 1 and name is not None and by_index.get(node.children[0]) == name:
                    merged.add(node.children[0])
    for index in merged:
        rows[by_index[index]]["calls"] -= 1
        rows[by_index[index]]["total"] -= float(events.loc[index, "dur"])
    for name, own, index in zip(names, frame["dur"], frame.index):
        rows[name]["self"] = rows[name].get("self", 0.0) + float(own) - children[index]
    return rows


def tensorboard(path):
    """The same from the operator view of TensorBoard's plugin."""
    from torch_tb_profiler.profiler.data import RunProfileData
    from torch_tb_profiler.profiler.run_generator import RunGenerator

    data = RunProfileData.parse("worker", "1", str(path), tempfile.mkdtemp())
    profile = RunGenerator("worker", "1", data).generate_run_profile()
    rows = profile.operation_table_by_name["data"]
    return {
        row["name"]: {
            "calls": row["calls"],
            "total": float(row["host_total_duration"]),
            "self": float(row["host_self_duration"]),
        }
        for row in rows
    }


def differences(expected, read, slack):
    """What a reader has otherwise: lines of text."""
    for name in sorted(expected.keys() | read.keys()):
        if name not in read or name not in expected:
            yield f"{name}: only {'ours' if name in expected else 'theirs'}"
            continue
        for column, value in read[name].items():
            own = expected[name][column]
            if abs(own - value) > (0 if column == "calls" else slack(expected[name]["calls"])):
                yield f"{name}: {column} {value}, ours {own}"


def main():
    directory = Path(sys.argv[1])
    failed = False
    for path in sorted(directory.glob("*.averages.json")):
        name = path.name.removesuffix(".averages.json")
        trace = directory / f"{name}.pt.trace.json"
        expected = ours(path)
        # A nanosecond per call, as said above; the plugin shows whole microseconds.
        for reader, slack in ((hta, lambda calls: 1e-3 * calls), (tensorboard, lambda calls: 1 + 1e-3 * calls)):
            lines = list(differences(expected, reader(trace), slack))
            print(f"{name}: {reader.__name__}: {len(expected)} operators, {len(lines)} differences")
            for line in lines[:5]:
                print(f"    {line}")
            failed |= bool(lines)
    sys.exit(failed)


if __name__ == "__main__":
    main()
