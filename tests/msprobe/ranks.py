#!/usr/bin/env python3
"""Records runs of two ranks with msprobe's own recorder: ranks.py FOLDER [CASE...]

As make.py, of which it takes what is done to a device: DistributedDataParallel, a pipeline that sends by
batch_isend_irecv or by send and recv, tensor parallelism, a sequence that is gathered, experts that exchange tokens by
all_to_all_single; two processes over gloo, two steps. score.py runs accdiff on all of them.
"""

import json
import os
import shutil
import socket
import sys

import torch
import torch.distributed as dist
import torch.nn as nn
import torch.nn.functional as F

import make as one


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.n, self.b, self.c = nn.Linear(8, 16), nn.LayerNorm(16), nn.Linear(16, 16), nn.Linear(16, 4)

    def first(self, x):
        return F.gelu(self.n(self.a(x)))

    def second(self, x):
        return self.c(torch.tanh(self.b(x)))

    def forward(self, x):
        return self.second(self.first(x))


def exchange(out, rank):
    """What the other rank has, by two requests that are waited for at the end."""
    got = torch.empty_like(out)
    for r in dist.batch_isend_irecv([dist.P2POp(dist.isend, out, 1 - rank), dist.P2POp(dist.irecv, got, 1 - rank)]):
        r.wait()
    return got


def ddp(m, x, y, rank):
    F.cross_entropy(m(x), y).backward()
    for p in m.parameters():
        dist.all_reduce(p.grad)
        p.grad /= 2


def pipeline(m, x, y, rank, by_request=True):
    if rank == 0:
        h = m.first(x)
        if by_request:
            back = exchange(h.detach(), rank)
        else:
            dist.send(h.detach(), 1)
            back = torch.zeros_like(h)
            dist.recv(back, 1)
        h.backward(back)
        return
    h = torch.zeros(x.shape[0], 16)
    if by_request:
        got = torch.zeros_like(h)
        grad = torch.zeros_like(h)
        (r,) = dist.batch_isend_irecv([dist.P2POp(dist.irecv, got, 0)])
        r.wait()
    else:
        got = h
        dist.recv(got, 0)
    got = got.requires_grad_()
    F.cross_entropy(m.second(got), y).backward()
    grad = got.grad
    if by_request:
        (r,) = dist.batch_isend_irecv([dist.P2POp(dist.isend, grad, 0)])
        r.wait()
    else:
        dist.send(grad, 0)


def pipeline_first(m, x, y, rank):
    """Rank 0's side of requests that are not mirrored."""
    if rank == 1:
        return pipeline(m, x, y, rank)
    h = m.first(x)
    (r,) = dist.batch_isend_irecv([dist.P2POp(dist.isend, h.detach(), 1)])
    r.wait()
    back = torch.empty_like(h)
    (r,) = dist.batch_isend_irecv([dist.P2POp(dist.irecv, back, 1)])
    r.wait()
    h.backward(back)
    return None


def sequence(m, x, y, rank):
    parts = [torch.empty(x.shape[0], 16) for _ in range(2)]
    h = m.first(x)
    dist.all_gather(parts, h.detach())
    parts[rank] = h
    F.cross_entropy(m.second(torch.cat(parts).mean(0, keepdim=True).expand(x.shape[0], 16)), y).backward()


def experts(m, x, y, rank):
    h = m.first(x)
    got = torch.empty_like(h)
    dist.all_to_all_single(got, h.detach().contiguous())
    out = torch.tanh(m.b(got))
    back = torch.empty_like(out)
    dist.all_to_all_single(back, out.detach().contiguous())
    F.cross_entropy(m.c(h + back), y).backward()


PROGRAMS = {"ddp": ddp, "requests": pipeline_first, "sends": lambda *a: pipeline(*a, by_request=False),
            "sequence": sequence, "experts": experts}


def record(folder, port, rank, name, how, task, level):
    dist.init_process_group("gloo", init_method=f"tcp://127.0.0.1:{port}", rank=rank, world_size=2)
    for f in how.get("f64", []):
        one.in_f64(f)
    if "kernel" in how and rank == how.get("rank", 0):
        one.twisted(*how["kernel"])
    from msprobe.pytorch import PrecisionDebugger

    config = os.path.join(folder, f"config{rank}.json")
    with open(config, "w") as f:
        json.dump({"task": task, "dump_path": folder, "rank": [], "step": [], "level": level,
                   "statistics": {"scope": [], "list": [], "data_mode": ["all"]},
                   "tensor": {"scope": [], "list": [], "data_mode": ["all"]}}, f)
    torch.manual_seed(3)
    m = Net()
    o = torch.optim.AdamW(m.parameters(), lr=1e-3, foreach=False)
    d = PrecisionDebugger(config_path=config)
    for step in range(2):
        g = torch.Generator().manual_seed(10 * step + rank)
        x, y = torch.randn(4, 8, generator=g), torch.randint(0, 4, (4,), generator=g)
        d.start(m)
        PROGRAMS[name](m, x, y, rank)
        if "grad" in how and rank == 1:
            with torch.no_grad():
                m.a.weight.grad.mul_(1.1) if m.a.weight.grad is not None else m.c.weight.grad.mul_(1.1)
        o.step()
        o.zero_grad()
        d.stop()
        d.step()
    dist.barrier()
    dist.destroy_process_group()
    os.remove(config)


def side(folder, name, how, task, level):
    os.makedirs(folder)
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        port = s.getsockname()[1]
    pid = os.fork()
    if pid == 0:
        os._exit(0 if one.child(record, folder, port, 1, name, how, task, level) else 1)
    ok = one.child(record, folder, port, 0, name, how, task, level)
    return os.waitpid(pid, 0)[1] == 0 and ok


def cases():
    out = {}
    for n in PROGRAMS:
        out[f"{n}.again"] = (n, {}, None)
        out[f"{n}.f64"] = (n, {"f64": ["linear"]}, None)
        out[f"{n}.gelu"] = (n, {"f64": ["linear"], "kernel": (F, "gelu", one.scaled(1.02), 0)}, ["Functional.gelu.0.forward"])
    return out


def main(folder, wanted):
    import msprobe.pytorch  # noqa: F401  (imported once, before the processes part)
    every = cases()
    for case in wanted or sorted(every, key=lambda x: every[x][2] is not None):
        name, how, truth = every[case]
        for task, level in (("tensor", "mix"), ("statistics", "L1")):
            place = os.path.join(folder, f"{case}.{task}")
            if os.path.exists(os.path.join(place, "truth.json")):
                continue
            shutil.rmtree(place, ignore_errors=True)
            ok = all([side(os.path.join(place, s), name, h, task, level) for s, h in (("device", how), ("bench", {}))])
            if not ok:
                print(f"{case}.{task}: failed", flush=True)
                continue
            with open(os.path.join(place, "truth.json"), "w") as f:
                json.dump({"clean": truth is None, "named": truth}, f)
            print(place, flush=True)


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2:])
