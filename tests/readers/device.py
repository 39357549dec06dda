"""Whether HTA's analyses of a device run on our traces, and find the times that we print.

    cresset train cnn --device npu --epochs 1 --profile DIRECTORY
    python tests/readers/device.py DIRECTORY

needs `pip install HolisticTraceAnalysis`. Sums are compared with "Self NPU time total" of the table and with
the events of the trace that has the device's own names, in microseconds.
"""

import json
import logging
import os
import shutil
import sys
import tempfile
import warnings
from pathlib import Path

warnings.filterwarnings("ignore")
logging.disable(logging.CRITICAL)
# Otherwise HTA rounds to whole microseconds, which small kernels are shorter than.
os.environ.setdefault("HTA_DISABLE_NS_ROUNDING", "1")

UNITS = {"us": 1, "ms": 1e3, "s": 1e6}
DEVICE = ("kernel", "gpu_memcpy", "gpu_memset")


def printed_total(table):
    """The device's time as our table prints it, and how far printing may have rounded it."""
    line = next(line for line in table.read_text().splitlines() if line.startswith("Self NPU time total:"))
    text = line.split()[-1]
    unit = next(unit for unit in ("us", "ms", "s") if text.endswith(unit))
    return float(text.removesuffix(unit)) * UNITS[unit], UNITS[unit] / 1e3


def merged(events):
    """How long at least one of the events was going on."""
    total, end = 0.0, float("-inf")
    for event in sorted(events, key=lambda event: event["ts"]):
        start, until = max(event["ts"], end), event["ts"] + event["dur"]
        total += max(0.0, until - start)
        end = max(end, until)
    return total


class Check:
    failed = False

    def equal(self, what, theirs, ours, slack):
        right = abs(theirs - ours) <= slack
        self.failed |= not right
        print(f"{'ok  ' if right else 'FAIL'} {what}: {theirs:.3f}, ours {ours:.3f}")

    def holds(self, what, right):
        self.failed |= not right
        print(f"{'ok  ' if right else 'FAIL'} {what}")


def main():
    directory = Path(sys.argv[1])
    spelled = next(directory.glob("*.cuda.pt.trace.json"))
    own = directory / spelled.name.replace(".cuda.", ".")
    table = directory / spelled.name.replace(".cuda.pt.trace.json", ".table.txt")
    events = [e for e in json.loads(own.read_text())["traceEvents"] if e.get("cat") in DEVICE]
    kernels = [event for event in events if event["cat"] == "kernel"]
    copies = [event for event in events if event["cat"] != "kernel"]
    spent = sum(event["dur"] for event in events)
    # A nanosecond per event, for rounding.
    slack = 1e-3 * (len(events) + 1)
    check = Check()
    total, rounding = printed_total(table)
    check.equal("our table and our trace", total, spent, rounding + slack)

    from hta.trace_analysis import TraceAnalysis

    with tempfile.TemporaryDirectory() as folder:
        shutil.copy(spelled, Path(folder) / "rank0.json")
        analyse(TraceAnalysis(trace_dir=folder, include_last_profiler_step=True), check, kernels, copies, slack)
    sys.exit(check.failed)


def analyse(hta, check, kernels, copies, slack):
    spent = sum(event["dur"] for event in kernels + copies)
    row = hta.get_temporal_breakdown(visualize=False).iloc[0]
    check.equal("temporal breakdown: busy", row["compute_time(us)"] + row["non_compute_time(us)"], merged(kernels + copies), slack)
    parts = row["idle_time(us)"] + row["compute_time(us)"] + row["non_compute_time(us)"]
    check.equal("temporal breakdown: all parts", parts, row["kernel_time(us)"], slack)

    types, each = hta.get_gpu_kernel_breakdown(visualize=False, num_kernels=1000)
    # HTA cuts each work to whole microseconds here, and nowhere else.
    cut = sum(int(event["dur"]) for event in kernels + copies)
    check.equal("kernel breakdown: by type", types["sum"].sum(), cut, 0)
    check.equal("kernel breakdown: by name", each["sum (us)"].sum(), spent, slack)

    idle = hta.get_idle_time_breakdown(ranks=[0], visualize=False)[0]
    streams = {(event["pid"], event["tid"]) for event in kernels + copies}
    between = 0.0
    for stream in streams:
        works = sorted((e for e in kernels + copies if (e["pid"], e["tid"]) == stream), key=lambda e: e["ts"])
        between += sum(max(0.0, b["ts"] - a["ts"] - a["dur"]) for a, b in zip(works, works[1:]))
    check.equal("idle time: between works of a stream", idle["idle_time"].sum(), between, slack)

    launched = hta.get_cuda_kernel_launch_stats(ranks=[0], visualize=False)[0]
    check.equal("launch stats: works", len(launched), len(kernels) + len(copies), 0)
    check.equal("launch stats: device time", launched["gpu_duration"].sum(), spent, slack)
    check.holds("launch stats: nothing begins before it is launched", (launched["launch_delay"] >= -1e-3).all())

    waiting = hta.get_queue_length_time_series(ranks=[0])[0]
    check.holds("queue length: never negative, and empty at the end", (waiting["queue_length"] >= 0).all() and waiting["queue_length"].iloc[-1] == 0)

    bandwidth = hta.get_memory_bw_summary(ranks=[0])
    check.holds(f"memory bandwidth: {len(bandwidth)} kinds of {len(copies)} copies", len(bandwidth) > 0 or not copies)

    graph, complete = hta.critical_path_analysis(rank=0, annotation="ProfilerStep", instance_id=1)
    check.holds(f"critical path: {len(graph.critical_path_nodes)} nodes", complete and len(graph.critical_path_nodes) > 0)


if __name__ == "__main__":
    main()
