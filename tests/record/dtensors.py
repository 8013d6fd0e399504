"""Two ranks with a linear layer of DTensors, a norm whose gradient is a part of a sum, functional collectives, and isend
and irecv, recorded into OUT; and the same without. Needs torch 2.5 with gloo; with an older one it prints "old".

Usage: dtensors.py OUT"""
import os
import subprocess
import sys
import warnings

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)


def rank(out, number):
    import torch
    import torch.distributed as dist
    import torch.distributed._functional_collectives as functional
    from torch import nn
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.tensor.parallel import ColwiseParallel, RowwiseParallel, SequenceParallel, parallelize_module
    from torch.distributed.tensor import Replicate, Shard
    from nets import accrecord
    dist.init_process_group("gloo", init_method=f"file://{out}.meet", rank=number, world_size=2)
    mesh = init_device_mesh("cpu", (2,))

    def train():
        torch.manual_seed(1)
        net = nn.Sequential(nn.LayerNorm(4), nn.Linear(4, 6), nn.GELU(), nn.Linear(6, 4))
        parallelize_module(net, mesh, {"0": SequenceParallel(), "1": ColwiseParallel(input_layouts=Shard(1)),
                                       "3": RowwiseParallel(output_layouts=Replicate())})
        net(torch.randn(2, 6, 4).chunk(2, 1)[number]).square().mean().backward()
        got = [p.grad.full_tensor().clone() for p in net.parameters()]
        torch.optim.SGD(net.parameters(), lr=0.5).step()
        got += [p.full_tensor().detach().clone() for p in net.parameters()]
        x = torch.arange(4.) + number
        for y in (functional.all_reduce(x, "sum", mesh), functional.all_gather_tensor(x, 0, mesh),
                  functional.reduce_scatter_tensor(x, "sum", 0, mesh)):
            got.append(y * 2)
        y = torch.zeros(4)
        ops = [dist.P2POp(dist.isend, x, 1 - number), dist.P2POp(dist.irecv, y, 1 - number)]
        for work in dist.batch_isend_irecv(ops):
            work.wait()
        return got + [y * 2]
    want = train()
    with warnings.catch_warnings(record=True) as said, accrecord.record(output_dir=out):
        warnings.simplefilter("always")
        got = train()
    assert all(map(torch.equal, want, got)), (want, got)
    said = [str(w.message) for w in said if "accrecord" in str(w.message)]
    assert not said, said
    dist.barrier()


def main(out):
    import torch
    if tuple(map(int, torch.__version__.split(".")[:2])) < (2, 5):
        print("old")
        return
    env = dict(os.environ, MASTER_ADDR="127.0.0.1", GLOO_SOCKET_IFNAME="lo")
    running = [subprocess.Popen([sys.executable, os.path.abspath(__file__), out, str(r)], env=env) for r in range(2)]
    if any([p.wait() for p in running]):
        sys.exit("a rank failed")


if len(sys.argv) > 2:
    rank(sys.argv[1], int(sys.argv[2]))
else:
    main(sys.argv[1])
