"""Prints tables with torch, for rows made by hand, and keeps rows and text in cases.json."""

import json
import pathlib

from torch._C._autograd import DeviceType
from torch.autograd.profiler_util import EventList, FunctionEventAvg

FIGURES = ("cpu_time_total", "self_cpu_time_total", "device_time_total", "self_device_time_total")


def row(given):
    """Times are given in nanoseconds; torch counts in microseconds."""
    made = FunctionEventAvg()
    made.key = given["key"]
    made.count = given.get("count", 1)
    made.node_id = given.get("node_id", -1)
    made.is_async = given.get("is_async", False)
    made.use_device = given.get("use_device")
    for figure in FIGURES:
        setattr(made, figure, given.get(figure, 0) / 1000)
    for figure in ("cpu_memory_usage", "self_cpu_memory_usage", "device_memory_usage", "self_device_memory_usage", "flops"):
        setattr(made, figure, given.get(figure, 0))
    made.input_shapes = json.loads(given["input_shapes"]) if "input_shapes" in given else ""
    made.overload_name = given.get("overload_name", "")
    made.stack = given.get("stack", [])
    made.cpu_parent = given.get("cpu_parent")
    made.device_type = DeviceType.PrivateUse1 if given.get("on_device") else DeviceType.CPU
    made.is_user_annotation = given.get("is_user_annotation", False)
    return made


def case(name, rows, options=None, **flags):
    events = EventList([row(given) for given in rows], **flags)
    options = options or {}
    return {"name": name, "rows": rows, "flags": flags, "options": options, "text": events.table(**options)}


def host(key, own, total, count=1, **more):
    return dict(key=key, self_cpu_time_total=own, cpu_time_total=total, count=count, **more)


PLAIN = [
    host("aten::linear", 12_345, 1_234_567, 3),
    host("aten::addmm", 1_000_999, 1_222_222, 3, cpu_parent="aten::linear"),
    host("aten::copy_", 221_223, 221_223, 7, cpu_parent="aten::addmm"),
    host("ProfilerStep*", 2_500_000_000, 2_501_234_567, 2, is_user_annotation=True),
    host("a name that is longer than all columns together would ever be wide", 1, 1),
    host("ünïcödé 🎉", 999, 999_999, 1000),
]
MEMORY = [
    host("aten::empty", 5_000, 5_000, 4, cpu_memory_usage=4096, self_cpu_memory_usage=1000),
    host("aten::zeros", 1_000, 6_000, 1, cpu_memory_usage=-1536, self_cpu_memory_usage=0),
    host("[memory]", 0, 0, 9, cpu_memory_usage=-(3 << 30), self_cpu_memory_usage=5 << 20),
]
DEVICE = [
    host("aten::mm", 30_000, 40_000, 2, use_device="npu", device_time_total=150_000, self_device_time_total=0,
         device_memory_usage=1 << 20, self_device_memory_usage=1 << 20),
    host("aclnnMatmul", 10_000, 10_000, 2, use_device="npu", device_time_total=0),
    dict(key="MatMulV2", count=2, use_device="npu", on_device=True, device_time_total=150_000, self_device_time_total=150_000),
    dict(key="Memcpy HtoD (Pageable -> Device)", count=1, use_device="npu", on_device=True, device_time_total=2_000_000,
         self_device_time_total=2_000_000),
    dict(key="step", count=1, use_device="npu", on_device=True, is_user_annotation=True, device_time_total=9_000_000,
         self_device_time_total=9_000_000),
]
SHAPES = [
    host("aten::mm", 10_000, 10_000, 1, input_shapes="[[2, 2], [2, 2]]", flops=16),
    host("aten::mm", 20_000, 20_000, 1, input_shapes="[[1024, 1024], [1024, 1024]]", flops=2_147_483_648),
    host("aten::cat", 5_000, 5_000, 1, input_shapes="[[[2, 2], [2, 2]], []]"),
    host("aten::t", 500, 500, 1, input_shapes="[]"),
]
STACKS = [
    host("aten::add", 1_000, 1_000, 1, stack=["src/main.rs:10:train::step", "src/main.rs:3:train::main"]),
    host("aten::add", 2_000, 2_000, 1, stack=["/home/somebody/with/a/long/path/to/a/project/src/layers/attention/heads.rs:1234:project::heads"]),
    host("aten::mul", 3_000, 3_000, 1),
]
OVERLOADS = [
    host("aten::add", 1_000, 1_000, 1, overload_name="Tensor"),
    host("aten::add", 1_000, 1_000, 1, overload_name="an overload whose name is quite as long as names can be, and then some"),
    host("aten::relu", 1_000, 1_000, 1),
]
NODES = [host("aten::add", 1_000, 1_000, 1, node_id=3), host("rpc", 0, 7_000, 1, node_id=0, is_async=True)]
EMPTY = [host("aten::add", 0, 0, 2)]

CASES = [
    case("plain", PLAIN),
    case("nothing", []),
    case("no time at all", EMPTY),
    *(case(f"sorted by {key}", PLAIN, dict(sort_by=key))
      for key in ("cpu_time", "cpu_time_total", "self_cpu_time_total", "count", "key", "cuda_time", "flops", "node_id")),
    *(case(f"at most {limit} rows", PLAIN, dict(row_limit=limit)) for limit in (0, 2, -1)),
    *(case(f"names of {width}", PLAIN, dict(max_name_column_width=width)) for width in (10, 30, 200, None)),
    *(case(f"times in {unit}", PLAIN, dict(time_unit=unit)) for unit in ("us", "ms", "s", "ns")),
    case("a header", PLAIN, dict(header="what it is")),
    case("top level", PLAIN, dict(top_level_events_only=True)),
    case("top level with a header", PLAIN, dict(top_level_events_only=True, header="what it is", row_limit=3)),
    case("memory", MEMORY, profile_memory=True),
    case("memory that was not asked for", MEMORY),
    case("memory by size", MEMORY, dict(sort_by="self_cpu_memory_usage"), profile_memory=True),
    case("a device", DEVICE, use_device="npu"),
    case("a device with memory", DEVICE, dict(sort_by="self_privateuse1_time_total"), use_device="npu", profile_memory=True),
    case("a device in milliseconds", DEVICE, dict(time_unit="ms"), use_device="npu"),
    case("shapes", SHAPES),
    case("narrow shapes", SHAPES, dict(max_shapes_column_width=12)),
    case("shapes of any width", SHAPES, dict(max_shapes_column_width=None)),
    case("shapes and flops", SHAPES, with_flops=True),
    case("thousands of flops", [host("aten::mm", 1, 1, flops=48_000), host("aten::bmm", 1, 1, flops=4_800_000)], with_flops=True),
    case("flops that are none", PLAIN, with_flops=True),
    case("very many flops", [host("aten::mm", 1, 1, flops=3 * 10**18), host("aten::bmm", 1, 1, flops=10**15)], with_flops=True),
    case("stacks", STACKS),
    case("narrow stacks", STACKS, dict(max_src_column_width=20)),
    case("stacks of any width", STACKS, dict(max_src_column_width=None)),
    case("stacks by time", STACKS, dict(sort_by="cpu_time_total", row_limit=2)),
    case("overloads", OVERLOADS),
    case("narrow overloads", OVERLOADS, dict(max_name_column_width=14)),
    case("nodes", NODES),
    case("everything but flops", [dict(r, stack=STACKS[0]["stack"], input_shapes="[[2]]", overload_name="out", node_id=1) for r in DEVICE],
         use_device="npu", profile_memory=True),
]

if __name__ == "__main__":
    path = pathlib.Path(__file__).with_name("cases.json")
    path.write_text(json.dumps(CASES, indent=1, ensure_ascii=False) + "\n")
