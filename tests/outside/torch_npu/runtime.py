"""Streams, events, memory, random numbers and mixed precision through `torch.npu`, each as one check."""

import json

import torch

import device

CHECKS = []


def check(function):
    CHECKS.append(function)
    return function


def expect(condition, text):
    if not condition:
        raise AssertionError(text)


@check
def the_device_is_there():
    expect(torch.npu.is_available() and torch.npu.device_count() >= 1, "no device")
    properties = torch.npu.get_device_properties(0)
    expect(properties.total_memory > 0, f"{properties}")


@check
def streams_wait_for_each_other():
    x, side = torch.randn(256, 256), torch.npu.Stream()
    y = x.to(device.DEVICE)
    side.wait_stream(torch.npu.current_stream())
    with torch.npu.stream(side):
        z = y @ y
        for _ in range(20):
            z = z * 0.5 + y
    torch.npu.current_stream().wait_stream(side)
    expected = x @ x
    for _ in range(20):
        expected = expected * 0.5 + x
    torch.testing.assert_close(z.cpu(), expected, rtol=1e-4, atol=1e-4)


@check
def events_tell_order_and_time():
    start, end = (torch.npu.Event(enable_timing=True) for _ in range(2))
    x = torch.randn(256, 256, device=device.DEVICE)
    start.record()
    for _ in range(10):
        x = x @ x * 1e-3
    end.record()
    end.synchronize()
    expect(start.query() and end.query(), "a recorded and awaited event is not complete")
    expect(start.elapsed_time(end) > 0, "work takes time")


@check
def the_caching_allocator_counts():
    torch.npu.empty_cache()
    before = torch.npu.memory_allocated()
    x = torch.empty(1 << 20, device=device.DEVICE)
    # torch_npu adds 32 bytes, and rounds to 512.
    expect(torch.npu.memory_allocated() - before == (4 << 20) + 512, "allocated bytes")
    address = x.data_ptr()
    del x
    expect(torch.npu.memory_allocated() == before, "freed bytes")
    expect(torch.empty(1 << 20, device=device.DEVICE).data_ptr() == address, "a block is used again")
    reserved = torch.npu.memory_reserved()
    torch.npu.empty_cache()
    expect(torch.npu.memory_reserved() < reserved, "the cache is emptied")
    expect(torch.npu.max_memory_allocated() >= 4 << 20, "the peak is kept")


@check
def pinned_copies_need_not_wait():
    x = torch.randn(1 << 18).pin_memory()
    expect(x.is_pinned(), "memory is pinned")
    y = x.to(device.DEVICE, non_blocking=True)
    back = torch.empty_like(x).pin_memory()
    back.copy_(y * 2, non_blocking=True)
    torch.npu.synchronize()
    torch.testing.assert_close(back, x * 2)


@check
def out_of_memory_is_an_error_that_can_be_survived():
    total = torch.npu.mem_get_info()[1]
    try:
        torch.empty(2 * total, dtype=torch.uint8, device=device.DEVICE)
    except torch.OutOfMemoryError as error:
        expect("out of memory" in str(error), str(error))
    else:
        raise AssertionError("twice the memory of the device was allocated")
    expect((torch.ones(4, device=device.DEVICE) + 1).sum().item() == 8, "the device goes on")


@check
def random_numbers_repeat_and_have_their_distribution():
    torch.npu.manual_seed(3)
    state = torch.npu.get_rng_state()
    a = torch.randn(100_000, device=device.DEVICE)
    torch.npu.set_rng_state(state)
    b = torch.randn(100_000, device=device.DEVICE)
    expect(torch.equal(a.cpu(), b.cpu()), "the same state gives the same numbers")
    expect(abs(a.mean().item()) < 0.02 and abs(a.std().item() - 1) < 0.02, "a normal distribution")
    uniform = torch.rand(100_000, device=device.DEVICE).cpu()
    expect(uniform.min() >= 0 and uniform.max() < 1 and abs(uniform.mean() - 0.5) < 0.01, "a uniform one")
    order = torch.randperm(1000, device=device.DEVICE).cpu()
    expect(torch.equal(order.sort().values, torch.arange(1000)), "a permutation")
    kept = torch.nn.functional.dropout(torch.ones(100_000, device=device.DEVICE), 0.25).cpu()
    expect(abs((kept != 0).float().mean() - 0.75) < 0.01, "dropout keeps three of four")
    expect(torch.allclose(kept[kept != 0], torch.tensor(1 / 0.75)), "and makes up for the others")


@check
def autocast_computes_in_half_precision():
    layer, x = torch.nn.Linear(32, 16), torch.randn(8, 32)
    twin = torch.nn.Linear(32, 16).to(device.DEVICE)
    twin.load_state_dict(layer.state_dict())
    with torch.autocast("npu", dtype=torch.float16):
        y = twin(x.to(device.DEVICE))
    expect(y.dtype == torch.float16, f"{y.dtype}")
    torch.testing.assert_close(y.float().cpu(), layer(x), rtol=1e-2, atol=1e-2)
    scaler = torch.amp.GradScaler("npu")
    optimizer = torch.optim.SGD(twin.parameters(), lr=0.1)
    scaler.scale(y.float().square().mean()).backward()
    scaler.step(optimizer)
    scaler.update()
    expect(all(p.isfinite().all().item() for p in twin.parameters()), "parameters stay finite")


@check
def a_kernel_that_fails_is_told_when_the_host_waits():
    x = torch.randn(4, 4, device=device.DEVICE)
    device.configure("CRESSET_SIM_FAIL", "aclnnExp:1:507015")
    try:
        x.exp()
        torch.npu.synchronize()
    except RuntimeError as error:
        expect("507015" in str(error), str(error))
    else:
        raise AssertionError("the failure was lost")
    finally:
        device.configure("CRESSET_SIM_FAIL", "")


def main():
    torch.npu.set_compile_mode(jit_compile=False)
    for function in CHECKS:
        line = {"check": function.__name__, "ok": True}
        try:
            function()
        except Exception as error:
            line.update(ok=False, error=str(error)[:2000])
        print(json.dumps(line), flush=True)


if __name__ == "__main__":
    main()
