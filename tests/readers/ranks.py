"""Whether HTA takes the traces of several ranks for one job, and sees communication beside computation.

    cresset train mlp --device npu --nproc 2 --bucket 16 --epochs 1 --profile DIRECTORY
    python tests/readers/ranks.py DIRECTORY

needs `pip install HolisticTraceAnalysis`. What HTA finds is compared with the kernels of each rank's own trace.
"""

import json
import logging
import os
import sys
import warnings
from pathlib import Path

warnings.filterwarnings("ignore")
logging.disable(logging.CRITICAL)
# Otherwise HTA rounds to whole microseconds, which small kernels are shorter than.
os.environ.setdefault("HTA_DISABLE_NS_ROUNDING", "1")


def spans(events):
    """When at least one of the events was going on, as spans that do not touch."""
    joined = []
    for event in sorted(events, key=lambda event: event["ts"]):
        start, end = event["ts"], event["ts"] + event["dur"]
        if joined and start <= joined[-1][1]:
            joined[-1][1] = max(joined[-1][1], end)
        else:
            joined.append([start, end])
    return joined


def common(ours, theirs):
    """How long both were going on."""
    return sum(max(0.0, min(a[1], b[1]) - max(a[0], b[0])) for a in ours for b in theirs)


def overlap(path):
    """Which part of communication, in percent, ran while something was computed."""
    events = json.loads(path.read_text())["traceEvents"]
    kernels = [event for event in events if event.get("cat") == "kernel"]
    talking = spans([event for event in kernels if event["name"].startswith("hcom_")])
    working = spans([event for event in kernels if not event["name"].startswith("hcom_")])
    return 100 * common(talking, working) / sum(end - start for start, end in talking)


def main():
    from hta.trace_analysis import TraceAnalysis

    directory = Path(sys.argv[1])
    files = sorted(directory.glob("*.rank*.cuda.pt.trace.json"))
    ranks = {json.loads(file.read_text())["distributedInfo"]["rank"]: str(file) for file in files}
    analysis = TraceAnalysis(trace_files=ranks, trace_dir=str(directory))
    breakdown = analysis.get_temporal_breakdown(visualize=False)
    overlaps = analysis.get_comm_comp_overlap(visualize=False)
    print(breakdown.to_string(), overlaps.to_string(), sep="\n")
    right = list(breakdown["rank"]) == sorted(ranks) and list(overlaps["rank"]) == sorted(ranks)
    print("ok  " if right else "FAIL", "ranks:", sorted(ranks))
    for rank, theirs in zip(overlaps["rank"], overlaps["comp_comm_overlap_pctg"]):
        own = Path(ranks[rank].replace(".cuda.pt.", ".pt."))
        ours = overlap(own)
        same = abs(theirs - ours) < 0.1 and theirs > 0
        right &= same
        print(f"{'ok  ' if same else 'FAIL'} rank {rank}: {theirs:.2f} % of communication overlaps, ours {ours:.2f} %")
    sys.exit(0 if right else 1)


main()
