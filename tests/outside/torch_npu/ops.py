"""Every operator of torch's own test inputs on the simulated device, held against torch on the CPU.

A worker runs operators one after the other and writes a line of JSON for each case. One that fails in the
middle of a stream leaves a device that refuses all further work, as hardware does, so the parent starts the
next worker where the last one ended.
"""

import argparse
import json
import subprocess
import sys
import traceback
from pathlib import Path

SKIPPED = {
    # Their results are random, uninitialised, or no numbers; `runtime.py` has random numbers.
    "bernoulli", "cauchy", "empty", "empty_like", "empty_permuted", "empty_strided", "exponential",
    "geometric", "log_normal", "multinomial", "new_empty", "new_empty_strided", "normal",
    "nn.functional.alpha_dropout", "nn.functional.dropout", "nn.functional.dropout2d",
    "nn.functional.dropout3d", "nn.functional.feature_alpha_dropout", "nn.functional.rrelu",
    "nn.functional.fractional_max_pool2d", "nn.functional.fractional_max_pool3d",
    "rand_like", "randint", "randint_like", "randn", "randn_like", "resize_", "resize_as_", "uniform",
    "bool", "byte", "char", "item", "equal", "to_sparse", "allclose",
}

DTYPES = ["float32", "float16", "bfloat16", "float64", "int64", "int32", "int16", "int8", "uint8", "bool"]

# What torch_npu does otherwise than torch, with whatever device: no fault of the operator below it.
CLIENT = {
    "native_batch_norm": "gives statistics where torch gives none",
    "_native_batch_norm_legit": "gives statistics where torch gives none",
    "nn.functional.adaptive_max_pool1d": "refuses sizes that do not divide each other",
    "nn.functional.adaptive_max_pool2d": "refuses sizes that do not divide each other",
    "nn.functional.binary_cross_entropy_with_logits": "gives no gradient for targets",
    "nn.functional.max_pool1d": "gives indices in 32 bits",
    "nn.functional.max_pool2d": "gives indices in 32 bits",
    "nn.functional.max_pool3d": "gives indices in 32 bits",
    "double": "makes single precision of double",
    "float_power": "makes single precision of double",
    "native_dropout_backward": "takes a mask of bits, not of truth values",
    "tensor_split": "is torch's own, and wants indices on the host",
    "to": "knows no memory formats",
}

# Relative and absolute, against torch on the CPU in the same type, which rounds in another order.
TOLERANCE = {
    "float64": (1e-7, 1e-7),
    "float32": (2e-5, 2e-5),
    "complex64": (2e-5, 2e-5),
    "float16": (4e-3, 4e-3),
    "bfloat16": (3e-2, 3e-2),
}


def cases(op, dtype, torch):
    """Sample inputs as they are, and those of floats as views that are not contiguous."""
    is_float = dtype.is_floating_point
    differentiable = is_float and op.supports_autograd and dtype in op.supported_backward_dtypes("cpu")
    samples = list(op.sample_inputs("cpu", dtype, requires_grad=differentiable))[: ARGUMENTS.samples]
    for at, sample in enumerate(samples):
        yield f"{at}", sample, differentiable
        if at < ARGUMENTS.strided:
            yield f"{at} strided", sample.noncontiguous(), differentiable


def flat(value, torch):
    """The tensors in a result, in order."""
    if isinstance(value, torch.Tensor):
        return [value]
    if isinstance(value, dict):
        return [t for item in value.values() for t in flat(item, torch)]
    if isinstance(value, (list, tuple)):
        return [t for item in value for t in flat(item, torch)]
    return []


def compare(ours, theirs, torch, what):
    if len(ours) != len(theirs):
        raise AssertionError(f"{what}: {len(ours)} tensors, expected {len(theirs)}")
    for at, (a, b) in enumerate(zip(ours, theirs)):
        if a is None or b is None:
            if (a is None) != (b is None):
                raise AssertionError(f"{what} {at}: one is missing")
            continue
        rtol, atol = TOLERANCE.get(str(b.dtype).removeprefix("torch."), (0, 0))
        torch.testing.assert_close(
            a.detach().cpu(), b.detach(), rtol=rtol, atol=atol, equal_nan=True, check_stride=False,
            msg=lambda text: f"{what} {at}: {text}",
        )


def run_case(op, sample, differentiable, torch, device):
    """Runs one sample on both; raises if they differ. Gives the operators that ran."""
    given = (sample.input, *sample.args)
    moved = device.to_device(given)
    kwargs = device.to_device(sample.kwargs)
    expected = op(*given, **sample.kwargs)
    expected = sample.output_process_fn_grad(expected)
    device.count_calls()
    try:
        result = sample.output_process_fn_grad(op(*moved, **kwargs))
        theirs, ours = flat(expected, torch), flat(result, torch)
        compare(ours, theirs, torch, "result")
        if differentiable:
            backward(given, sample.kwargs, moved, kwargs, theirs, ours, torch)
        torch.npu.synchronize()
    finally:
        called = device.operators_called()
    return called


def backward(given, given_kwargs, moved, kwargs, theirs, ours, torch):
    leaves = [t for t in flat([given, given_kwargs], torch) if t.requires_grad]
    twins = [t for t in flat([moved, kwargs], torch) if t.requires_grad]
    pairs = [(a, b) for a, b in zip(theirs, ours) if a.requires_grad]
    if not leaves or not pairs:
        return
    torch.manual_seed(1)
    grads = [torch.randn_like(a) for a, _ in pairs]
    wanted = torch.autograd.grad([a for a, _ in pairs], leaves, grads, allow_unused=True)
    got = torch.autograd.grad(
        [b for _, b in pairs], twins, [g.to(b.device) for g, (_, b) in zip(grads, pairs)], allow_unused=True
    )
    compare(got, wanted, torch, "gradient")


def work(names):
    import torch

    import device

    from torch.testing._internal.common_methods_invocations import op_db

    torch.npu.conv.allow_hf32 = False
    torch.npu.matmul.allow_hf32 = False
    torch.npu.set_compile_mode(jit_compile=False)
    for op in op_db:
        name = f"{op.name}.{op.variant_test_name}" if op.variant_test_name else op.name
        if name not in names:
            continue
        print(json.dumps({"start": name}), flush=True)
        for dtype_name in ARGUMENTS.dtypes:
            dtype = getattr(torch, dtype_name)
            if dtype not in op.supported_dtypes("cpu"):
                continue
            try:
                listed = list(cases(op, dtype, torch))
            except Exception:
                continue
            for label, sample, differentiable in listed:
                torch.manual_seed(0)
                line = {"op": name, "dtype": dtype_name, "case": label}
                try:
                    expected_error = None
                    op(sample.input, *sample.args, **sample.kwargs)
                except Exception as error:
                    expected_error = error
                if expected_error is not None:
                    continue
                try:
                    line["called"] = run_case(op, sample, differentiable, torch, device)
                    line["ok"] = True
                except Exception as error:
                    line["ok"] = False
                    line["called"] = device.operators_called()
                    line["error"] = str(error)[:2000]
                    if ARGUMENTS.trace:
                        line["trace"] = traceback.format_exc()[-3000:]
                print(json.dumps(line), flush=True)
                if not line["ok"] and is_dead(torch):
                    print(json.dumps({"dead": name, "dtype": dtype_name, "case": label}), flush=True)
                    return
        print(json.dumps({"end": name}), flush=True)


def is_dead(torch):
    """Whether the device refuses all work since a failure."""
    try:
        torch.npu.synchronize()
        # The client's queue may have ended without a word.
        return not torch.equal((torch.ones(2, device="npu") + 1).cpu(), torch.full((2,), 2.0))
    except Exception:
        return True


def supervise(names, path):
    """Runs workers until every operator was tried; lines go to `path`."""
    rest = list(names)
    with path.open("w") as out:
        while rest:
            command = [sys.executable, __file__, "--work", ",".join(rest), *sys.argv[1:]]
            worker = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
            current, ended = None, set()
            for line in worker.stdout:
                try:
                    fact = json.loads(line)
                except json.JSONDecodeError:
                    continue
                current = fact.get("start", current)
                if "end" in fact:
                    ended.add(fact["end"])
                    current = None
                out.write(line)
                out.flush()
            stderr = worker.stderr.read()
            code = worker.wait()
            if current is not None and code != 0:
                line = {"op": current, "dtype": "?", "case": "?", "ok": False, "called": {}}
                out.write(json.dumps({**line, "error": f"the worker ended with {code}: {stderr[-1500:]}"}) + "\n")
            before = len(rest)
            rest = [name for name in rest if name not in ended and name != current]
            if len(rest) == before:
                break


def main():
    global ARGUMENTS
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, default=Path("ops.jsonl"))
    parser.add_argument("--op", action="append", help="only operators with such a name")
    parser.add_argument("--dtypes", nargs="*", default=DTYPES)
    parser.add_argument("--samples", type=int, default=12, help="inputs per operator and type")
    parser.add_argument("--strided", type=int, default=4, help="inputs that are also tried as strided views")
    parser.add_argument("--trace", action="store_true", help="keep Python's tracebacks of failures")
    parser.add_argument("--work", help=argparse.SUPPRESS)
    ARGUMENTS = parser.parse_args()
    if ARGUMENTS.work:
        return work(set(ARGUMENTS.work.split(",")))
    from torch.testing._internal.common_methods_invocations import op_db

    names = []
    for op in op_db:
        name = f"{op.name}.{op.variant_test_name}" if op.variant_test_name else op.name
        wanted = not ARGUMENTS.op or any(part in (op.name, name) for part in ARGUMENTS.op)
        if wanted and op.name not in SKIPPED:
            names.append(name)
    supervise(names, ARGUMENTS.out)


if __name__ == "__main__":
    main()
