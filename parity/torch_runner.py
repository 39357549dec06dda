"""Runs a parity program under torch's profiler: the other half of `cresset parity program`.

    python parity/torch_runner.py PROGRAM.json --trace OUT.json[.gz]
    python parity/torch_runner.py PROGRAMS... --folder OUT [--compact RUNS]

needs torch 2.4 or newer and nothing else. The language is described in docs/parity-programs.md; what
is said there about names, values and seeds is done here in torch's own terms.
"""

import argparse
import collections
import functools
import gzip
import json
import operator
import os
import re
import sys
import tempfile
import threading

# What memory torch's library takes for convolutions depends on the processor's vectors, and the last digits of
# sums do too: with these a trace is the same on every machine. Both are read when torch is imported.
os.environ.setdefault("ONEDNN_MAX_CPU_ISA", "AVX2")
os.environ.setdefault("ATEN_CPU_CAPABILITY", "avx2")

import torch
from torch.profiler import ProfilerActivity, profile, record_function, schedule

DTYPES = {
    "f32": torch.float32, "f64": torch.float64, "f16": torch.float16, "bf16": torch.bfloat16,
    "i64": torch.int64, "i32": torch.int32, "i16": torch.int16, "i8": torch.int8, "u8": torch.uint8,
    "bool": torch.bool,
}
NAMES = {dtype: name for name, dtype in DTYPES.items()}
MEMORY_FORMATS = {
    "channels_last": torch.channels_last, "channels_last_3d": torch.channels_last_3d,
    "contiguous_format": torch.contiguous_format, "preserve_format": torch.preserve_format,
}
# Operators whose public function has another name, or shares it with another function.
FUNCTIONS = {
    "cross_entropy_loss": torch.nn.functional.cross_entropy,
    "nll_loss_nd": torch.nn.functional.nll_loss,
    "nll_loss2d": torch.nn.functional.nll_loss,
    "log_sigmoid": torch.nn.functional.logsigmoid,
    "im2col": torch.nn.functional.unfold,
    "col2im": torch.nn.functional.fold,
    "unfold": torch.Tensor.unfold,
    "index": operator.getitem,
    "__getitem__": operator.getitem,
    "_softmax": torch.softmax,
    "_log_softmax": torch.log_softmax,
    "linalg_vector_norm": torch.linalg.vector_norm,
    "linalg_multi_dot": torch.linalg.multi_dot,
}
# Properties, which cannot be called.
PROPERTIES = ("T", "mT", "H", "mH")
# What losses take after their input and target, in the operator's order.
LOSSES = {
    "mse_loss": ["reduction"], "l1_loss": ["reduction"], "smooth_l1_loss": ["reduction", "beta"],
    "huber_loss": ["reduction", "delta"], "kl_div": ["reduction"],
    "binary_cross_entropy": ["weight", "reduction"],
    "binary_cross_entropy_with_logits": ["weight", "pos_weight", "reduction"],
    "nll_loss": ["weight", "reduction", "ignore_index"],
    "cross_entropy": ["weight", "reduction", "ignore_index", "label_smoothing"],
}
REDUCTIONS = ("none", "mean", "sum")
# Norms with the switch for a library at the end, which the functions do not take.
NORMS = {("layer_norm", 6), ("group_norm", 6), ("batch_norm", 9), ("instance_norm", 9)}


def shares(seed, count):
    """Numbers from 0 to below 1 by SplitMix64, the upper 53 bits of each."""
    mask, state = (1 << 64) - 1, seed & ((1 << 64) - 1)
    for _ in range(count):
        state = (state + 0x9E3779B97F4A7C15) & mask
        z = state
        z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & mask
        z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & mask
        yield ((z ^ (z >> 31)) >> 11) / (1 << 53)


def seeded(shape, dtype, seed, low, high):
    count = 1
    for size in shape:
        count *= size
    elements = [low + share * (high - low) for share in shares(seed, count)]
    if not dtype.is_floating_point:
        elements = [float(element // 1) for element in elements]
    return torch.tensor(elements, dtype=torch.float64).reshape(shape).to(dtype)


def start(spec):
    dtype = DTYPES[spec.get("dtype", "f32")]
    if "values" in spec:
        tensor = torch.tensor(floats(spec["values"]), dtype=torch.float64)
        tensor = tensor.reshape(spec.get("shape", tensor.shape)).to(dtype)
    else:
        low, high = (-1.0, 1.0) if dtype.is_floating_point else (0.0, 2.0)
        low, high = spec.get("from", low), spec.get("to", high)
        tensor = seeded(spec["shape"], dtype, spec.get("seed", 0), low, high)
    return tensor.requires_grad_(spec.get("requires_grad", False))


def floats(values):
    return [floats(value) for value in values] if isinstance(values, list) else float(values)


def function(name):
    """The public function of an operator; a method where there is none, else the operator itself."""
    plain = name.removeprefix("aten::")
    for plain in (plain, plain.rpartition(".")[0]):
        if plain in FUNCTIONS:
            return FUNCTIONS[plain]
        if plain in PROPERTIES:
            return operator.attrgetter(plain)
        for module in (torch.nn.functional, torch, torch.Tensor, torch.ops.aten) if plain else ():
            found = functools.reduce(lambda at, part: getattr(at, part, None), plain.split("."), module)
            if callable(found):
                return found
    raise SystemExit(f"torch has no function for {name!r}")


def arguments(called, args, kwargs):
    """The arguments of an operator as its public function takes them."""
    name = getattr(called, "__name__", "")
    if name in LOSSES:
        kwargs = {**kwargs, **dict(zip(LOSSES[name], args[2:]))}
        args = args[:2] + args[2 + len(LOSSES[name]):]
    if isinstance(kwargs.get("reduction"), int):
        kwargs = {**kwargs, "reduction": REDUCTIONS[kwargs["reduction"]]}
    if (name, len(args)) in NORMS:
        args = args[:-1]
        if name in ("batch_norm", "instance_norm"):
            args[1:5] = args[3:5] + args[1:3]
    if name in ("embedding", "embedding_bag") and args[0].is_floating_point():
        args[:2] = args[1::-1]
    if called is operator.getitem and isinstance(args[1], list):
        args[1] = tuple(args[1])
    if name in ("softmax", "log_softmax") and len(args) == 3:
        args = args[:2]
    return args, kwargs


def listed(names):
    return [names] if isinstance(names, str) else names


class Machine:
    """The tensors a thread knows, and what all threads share."""

    def __init__(self, tensors, modules, optimizers, profiler=None):
        self.tensors, self.modules, self.optimizers, self.profiler = tensors, modules, optimizers, profiler

    def fork(self, **tensors):
        return Machine({**self.tensors, **tensors}, self.modules, self.optimizers)

    def alone(self, tensors):
        """With these tensors and no others."""
        return Machine(dict(tensors), self.modules, self.optimizers)

    def value(self, value):
        if isinstance(value, str):
            return self.tensors[value]
        if isinstance(value, list):
            return [self.value(one) for one in value]
        if not isinstance(value, dict):
            return value
        (kind, inner), = value.items()
        if kind in "bis":
            return inner
        if kind == "l":
            return [self.value(one) for one in inner]
        if kind == "u":
            return tuple(self.value(one) for one in inner)
        return {
            "f": float, "dtype": DTYPES.get, "device": torch.device, "memory_format": MEMORY_FORMATS.get,
            "slice": lambda parts: slice(*parts), "ellipsis": lambda _: ...,
        }[kind](inner)

    def passed(self, statement):
        args = [self.value(one) for one in statement.get("args", [])]
        return args, {name: self.value(one) for name, one in statement.get("kwargs", {}).items()}

    def give(self, to, given):
        if isinstance(to, list):
            self.tensors.update(zip(to, given))
        elif to is not None:
            while isinstance(given, (tuple, list)):
                given = given[0]
            self.tensors[to] = given

    def list(self, names):
        return [self.tensors[name] for name in listed(names)]

    def block(self, statements):
        for statement in statements:
            self.statement(statement)

    def statement(self, one):
        kind = next(kind for kind in KINDS if kind in one)
        getattr(self, "do_" + kind)(one[kind], one)

    def do_call(self, name, one):
        called = function(name)
        args, kwargs = arguments(called, *self.passed(one))
        self.give(one.get("to"), called(*args, **kwargs))

    def do_module(self, name, one):
        args, kwargs = self.passed(one)
        self.give(one.get("to"), self.modules[name](*args, **kwargs))

    def do_backward(self, names, one):
        gradients = self.list(one["gradients"]) if "gradients" in one else None
        create = one.get("create_graph", False)
        retain = one.get("retain_graph", False) or create
        torch.autograd.backward(self.list(names), gradients, retain_graph=retain, create_graph=create)

    def do_gradient(self, name, one):
        create = one.get("create_graph", False)
        retain = one.get("retain_graph", False) or create
        roots, inputs = self.list(name), self.list(one["wrt"])
        gradients = self.list(one["gradients"]) if "gradients" in one else None
        given = torch.autograd.grad(
            roots, inputs, gradients, retain_graph=retain, create_graph=create, allow_unused=True,
        )
        self.give(one.get("to"), given)

    def do_grad_of(self, name, one):
        self.tensors[one["to"]] = self.tensors[name].grad

    def do_clear_grad(self, names, _):
        for tensor in self.list(names):
            tensor.grad = None

    def do_requires_grad(self, names, _):
        for tensor in self.list(names):
            tensor.requires_grad_()

    def do_drop(self, names, _):
        for name in listed(names):
            self.tensors.pop(name)

    def do_scope(self, name, one):
        with record_function(name):
            self.block(one["do"])

    def do_no_grad(self, block, _):
        with torch.no_grad():
            self.block(block)

    def do_inference(self, block, _):
        with torch.inference_mode():
            self.block(block)

    def do_fails(self, block, _):
        try:
            self.fork().block(block)
        except (RuntimeError, IndexError, ValueError, TypeError):
            return
        raise SystemExit("a statement was to fail, and did not")

    def do_repeat(self, rounds, one):
        for _ in range(rounds):
            self.block(one["do"])

    def do_train(self, name, _):
        self.modules[name].train()

    def do_eval(self, name, _):
        self.modules[name].eval()

    def do_profiler_step(self, _, __):
        self.profiler.step()

    def do_step(self, name, _):
        self.optimizers[name].step()

    def do_zero_grad(self, name, one):
        self.optimizers[name].zero_grad(set_to_none=one.get("set_to_none", True))

    def do_hook(self, name, one):
        def hook(gradient):
            machine = self.fork(**{one["as"]: gradient})
            machine.block(one["do"])
            return machine.tensors[one["gives"]] if "gives" in one else None

        self.tensors[name].register_hook(hook)

    def do_checkpoint(self, names, one):
        names = listed(names)

        def again(*inputs):
            machine = self.fork(**dict(zip(names, inputs)))
            machine.block(one["do"])
            return machine.tensors[one["gives"]]

        self.tensors[one["to"]] = torch.utils.checkpoint.checkpoint(again, *self.list(names), use_reentrant=False, preserve_rng_state=False)

    def do_function(self, names, one):
        back = one["backward"]
        names, gives, saves, gradients = map(listed, (names, one["gives"], one.get("saves", []), back["gradients"]))

        class Custom(torch.autograd.Function):
            @staticmethod
            def forward(ctx, *inputs):
                machine = self.alone(zip(names, inputs))
                machine.block(one["do"])
                ctx.save_for_backward(*machine.list(saves))
                outputs = tuple(machine.list(gives))
                return outputs if len(outputs) > 1 else outputs[0]

            @staticmethod
            def backward(ctx, *incoming):
                machine = self.alone([*zip(saves, ctx.saved_tensors), *zip(gradients, incoming)])
                machine.block(back["do"])
                return tuple(name and machine.tensors[name] for name in back["gives"])

        self.give(one.get("to"), Custom.apply(*self.list(names)))

    def do_autocast(self, dtype, one):
        with torch.autocast("cpu", DTYPES[dtype], one.get("enabled", True)):
            self.block(one["do"])

    def do_threads(self, blocks, _):
        machines = [self.fork() for _ in blocks]
        threads = [threading.Thread(target=m.block, args=(b,)) for m, b in zip(machines, blocks)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()


# In this order: a hook has a `do` too, and what tells is its own member.
KINDS = [
    "function", "autocast", "call", "module", "backward", "gradient", "grad_of", "clear_grad", "requires_grad", "drop", "scope",
    "no_grad", "inference", "fails", "repeat", "train", "eval", "profiler_step", "step", "zero_grad", "hook",
    "checkpoint", "threads",
]


def module(spec, machine):
    args, kwargs = machine.passed(spec)
    made = getattr(torch.nn, spec["type"])(*args, **kwargs)
    reach = spec.get("reach", 0.5)
    with torch.no_grad():
        for number, parameter in enumerate(made.parameters()):
            parameter.copy_(seeded(parameter.shape, parameter.dtype, spec.get("seed", 0) + number, -reach, reach))
    return made.train(spec.get("training", True))


def optimizer(spec, machine):
    parameters = []
    for name in spec["parameters"]:
        parameters += machine.modules[name].parameters() if name in machine.modules else [machine.tensors[name]]
    _, kwargs = machine.passed(spec)
    form = spec.get("implementation", "fused")
    kwargs["foreach" if form == "foreach" else "fused"] = form in ("foreach", "fused")
    if form == "single":
        kwargs = {**kwargs, "foreach": False}
        kwargs.pop("fused")
    return getattr(torch.optim, spec["type"])(parameters, **kwargs)


def result(machine, name):
    tensor = machine.tensors.get(name.removesuffix(".grad"))
    if name.endswith(".grad") and tensor is not None:
        tensor = tensor.grad
    if tensor is None:
        return None
    values = [v if v == v and abs(v) != float("inf") else str(v) for v in tensor.detach().double().flatten().tolist()]
    return {"shape": list(tensor.shape), "dtype": NAMES[tensor.dtype], "values": values}


def has_threads(statements):
    inner = [block for one in statements for block in one.values() if isinstance(block, list)]
    return any("threads" in one for one in statements) or any(
        has_threads([one for one in block if isinstance(one, dict)]) for block in inner
    )


def flags(setting, all_threads):
    known = {"record_shapes", "profile_memory", "with_stack", "with_flops", "with_modules", "acc_events"}
    chosen = {name: value for name, value in setting.items() if name in known}
    # Only where it is needed: torch records no memory then.
    experimental = torch._C._profiler._ExperimentalConfig(
        capture_overload_names=setting.get("capture_overload_names", False), profile_all_threads=all_threads,
    )
    cycle = setting.get("schedule")
    return dict(
        chosen,
        activities=[ProfilerActivity.CPU],
        schedule=schedule(**{"wait": 0, "warmup": 0, **cycle}) if cycle else None,
        experimental_config=experimental,
    )


def run(program):
    """Runs a program. Gives the trace of its last window, with results and table among the metadata."""
    machine = Machine({name: start(spec) for name, spec in program.get("tensors", {}).items()}, {}, {})
    for name, spec in program.get("modules", {}).items():
        machine.modules[name] = module(spec, machine)
    for name, spec in program.get("optimizers", {}).items():
        machine.optimizers[name] = optimizer(spec, machine)
    machine.block(program.get("before", []))
    profiler = profile(**flags(program.get("profiler", {}), has_threads(program["body"])))
    machine.profiler = profiler
    profiler.start()
    try:
        machine.block(program["body"])
    finally:
        profiler.stop()
    results = {name: result(machine, name) for name in program.get("results", [])}
    with tempfile.TemporaryDirectory() as directory:
        plain = os.path.join(directory, "trace.json")
        profiler.export_chrome_trace(plain)
        with open(plain) as file:
            trace = json.load(file)
    trace["results"] = results
    trace["table"] = profiler.key_averages().table(sort_by=None, row_limit=-1)
    return trace


HEADS = ("record_shapes", "profile_memory", "with_flops", "results", "table")
ARGUMENTS = (
    "Sequence number", "Fwd thread id", "Input Dims", "Input type", "Concrete Inputs", "Bytes", "Device Type",
)
CATEGORIES = ("cpu_op", "user_annotation", "cpu_instant_event", "fwdbwd")


def compact(trace):
    """What is compared, and nothing else: of times there is only the order left."""
    events = [event for event in trace["traceEvents"] if event.get("cat") in CATEGORIES]
    nanos = lambda micros: round(micros * 1000)
    ends = [(nanos(event["ts"]), nanos(event["ts"]) + nanos(event.get("dur", 0))) for event in events]
    places = ranks(time for pair in ends for time in pair)
    numbers = ranks(event["args"]["Sequence number"] for event in events if "Sequence number" in event.get("args", {}))
    threads, kept = {}, []
    for event, (start, end) in zip(events, ends):
        short = {name: event[name] for name in ("ph", "cat", "name", "id", "s", "bp") if name in event}
        short.update(pid=1, tid=threads.setdefault(event["tid"], len(threads) + 1), ts=places[start])
        if "dur" in event:
            short["dur"] = places[end] - places[start]
        args = {name: event["args"][name] for name in ARGUMENTS if name in event.get("args", {})}
        if "Sequence number" in args:
            args["Sequence number"] = numbers[args["Sequence number"]]
        kept.append({**short, "args": args} if args else short)
    heads = {name: trace[name] for name in HEADS if name in trace}
    return {"torch": torch.__version__.split("+")[0], **heads, "table": timeless(trace["table"]), "traceEvents": kept}


def ranks(numbers):
    return {number: rank for rank, number in enumerate(sorted(set(numbers)))}


def timeless(table):
    """A table with a mark in the place of each time and each share of time, as wide as they were."""
    table = re.sub(r"(time total: ).*", r"\1*", table)
    return re.sub(r" *\b\d+\.\d+(?:us|ms|s|%)(?= |$)", lambda found: "*".rjust(len(found[0])), table, flags=re.M)


def text(trace):
    """A trace with one line for each event."""
    heads = {name: value for name, value in trace.items() if name != "traceEvents"}
    line = functools.partial(json.dumps, separators=(",", ":"))
    return line(heads)[:-1] + ',"traceEvents":[\n' + ",\n".join(map(line, trace["traceEvents"])) + "\n]}\n"


def write(program, path, compact_runs):
    with open(program) as file:
        program = json.load(file)
    if compact_runs:
        # Clocks are coarse at the ends of calls, and threads race: what comes most often is kept.
        runs = collections.Counter(text(compact(run(program))) for _ in range(compact_runs))
        content = runs.most_common(1)[0][0]
    else:
        content = text(run(program))
    with open(path, "wb") as file:
        # Without a time, so that the same trace is the same file.
        file.write(gzip.compress(content.encode(), mtime=0) if path.endswith(".gz") else content.encode())
    print(path, file=sys.stderr)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("programs", nargs="+")
    where = parser.add_mutually_exclusive_group(required=True)
    where.add_argument("--trace", help="where to write the trace of one program")
    where.add_argument("--folder", help="where to write PROGRAM.json.gz for each program")
    parser.add_argument(
        "--compact", type=int, default=0, metavar="RUNS",
        help="keep only what is compared, and no times, of the run that came most often among so many",
    )
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    if arguments.trace:
        (program,) = arguments.programs
        return write(program, arguments.trace, arguments.compact)
    os.makedirs(arguments.folder, exist_ok=True)
    for program in arguments.programs:
        write(program, os.path.join(arguments.folder, os.path.basename(program) + ".gz"), arguments.compact)


if __name__ == "__main__":
    main()
