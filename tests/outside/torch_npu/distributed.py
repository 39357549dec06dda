"""Two processes that train together through `torch.distributed` and HCCL, against one that has the whole batch."""

import json
import os
import socket
import sys

import torch
import torch.distributed as dist
import torch.multiprocessing as multiprocessing
from torch import nn

RANKS = 2


def collectives(rank, device):
    """Every collective that torch offers, against what it must give."""
    x = torch.arange(6, dtype=torch.float32, device=device) + 10 * rank
    total = x.clone()
    dist.all_reduce(total)
    expected = torch.arange(6.0) * 2 + 10
    torch.testing.assert_close(total.cpu(), expected)
    parts = [torch.empty_like(x) for _ in range(RANKS)]
    dist.all_gather(parts, x)
    torch.testing.assert_close(torch.stack(parts).cpu(), torch.arange(6.0) + torch.tensor([[0.0], [10.0]]))
    own = torch.empty(3, device=device)
    dist.reduce_scatter_tensor(own, x)
    torch.testing.assert_close(own.cpu(), expected[3 * rank : 3 * rank + 3])
    y = x.clone()
    dist.broadcast(y, src=1)
    torch.testing.assert_close(y.cpu(), torch.arange(6.0) + 10)
    if rank == 0:
        dist.send(x, dst=1)
    else:
        z = torch.empty_like(x)
        dist.recv(z, src=0)
        torch.testing.assert_close(z.cpu(), torch.arange(6.0))
    dist.barrier()


def model():
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(12, 16), nn.Tanh(), nn.Linear(16, 3))


def batch():
    torch.manual_seed(1)
    return torch.randn(16, 12), torch.randn(16, 3)


def train(net, x, y):
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    for _ in range(4):
        optimizer.zero_grad()
        nn.functional.mse_loss(net(x), y).backward()
        optimizer.step()


def data_parallel(rank, device):
    """The parameters after a few steps equal those of one process with the whole batch."""
    from torch.nn.parallel import DistributedDataParallel

    x, y = batch()
    alone = model()
    train(alone, x, y)
    half = slice(8 * rank, 8 * rank + 8)
    net = DistributedDataParallel(model().to(device), device_ids=[device.index])
    train(net, x[half].to(device), y[half].to(device))
    for a, b in zip(net.module.parameters(), alone.parameters()):
        torch.testing.assert_close(a.cpu(), b, rtol=1e-6, atol=1e-6)


def work(rank, port):
    import torch_npu  # noqa: F401  registers the device and the backend

    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port))
    device = torch.device("npu", rank)
    torch.npu.set_device(device)
    torch.npu.set_compile_mode(jit_compile=False)
    dist.init_process_group("hccl", rank=rank, world_size=RANKS)
    for function in (collectives, data_parallel):
        line = {"check": function.__name__, "rank": rank, "ok": True}
        try:
            function(rank, device)
        except Exception as error:
            line.update(ok=False, error=str(error)[:2000])
        print(json.dumps(line), flush=True)
    dist.destroy_process_group()


def main():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    try:
        multiprocessing.spawn(work, args=(port,), nprocs=RANKS)
    except Exception as error:
        print(json.dumps({"check": "processes end well", "ok": False, "error": str(error)[-2000:]}), flush=True)
        sys.exit(1)


if __name__ == "__main__":
    main()
