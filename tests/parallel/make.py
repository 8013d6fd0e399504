#!/usr/bin/env python3
"""Dumps of one training step of one transformer under parallel layouts, as msprobe writes them.

Usage: make.py OUT LAYOUT... [--task tensor|statistics] [--layers N]     needs python3-torch (gloo)

OUT/LAYOUT/step0/rankN. A layout is one, tpN, dpN, ppN, cpN, fsdpN, spN (tensor parallel, with the
norms' tokens split, too), mcN and smcN (tpN and spN by the kernels that join a product with its
communication), moe (experts instead of every second layer's fc1 and fc2) or epN (these, an equal
part of them and of the batch on each rank), and may end in a fault after a dash: tp2-lost (an all_reduce that does not happen), dp4-noavg (gradients summed, not averaged),
dp2-noreduce (not even summed), X-scale (one product of rank N-1 is 3 % off). ep2-token (a token is
sent to another expert), cpN-order (the keys' parts are gathered in another order, in one layer),
cpN-mask (rank N-1 masks as rank 0 does, in one layer), tp4-group (an all_reduce among two ranks
each), X-stale (rank N-1 has one weight, or part of it, 5 % off; of pp: its inputs are those of other samples). "-noise" adds a device's rounding, and NaN in buffers that are not yet filled. Real processes, real
collectives; what gloo of torch 1.13 lacks is made of all_gather.
"""
import argparse
import os
import sys
import tempfile

import torch
import torch.distributed as dist
import torch.multiprocessing as mp
import torch.nn.functional as F

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "data"))
import recorder  # noqa: E402
from recorder import Recorder  # noqa: E402
from writers import Msprobe  # noqa: E402

LAYERS, DIM, HEADS, VOCAB, BATCH, SEQ, EXPERTS = 4, 16, 4, 32, 8, 8, 4
recorder.MODEL = os.path.abspath(__file__)
recorder.OPS["Tensor"] = (torch.Tensor, "__add__ __mul__ __truediv__ view transpose reshape "
                          "masked_fill chunk div_ contiguous")
recorder.OPS["Torch"] = (torch, "matmul cat empty max argsort index_select")
recorder.OPS["Distributed"] = (
    dist, "all_reduce all_gather_into_tensor reduce_scatter_tensor all_to_all_single send recv")


class Kernels:
    """Of torch_npu: a product and its communication in one call, along the first axis."""

    @staticmethod
    def npu_mm_all_reduce_base(x, w, hcom, **kwargs):
        return MmReduce.apply(x, w)

    @staticmethod
    def npu_mm_reduce_scatter_base(x, w, hcom, world_size, **kwargs):
        return MmScatter.apply(x, w)

    @staticmethod
    def npu_all_gather_base_mm(x, w, hcom, world_size, **kwargs):
        return GatherMm.apply(x, w)


recorder.OPS["NPU"] = (
    Kernels, "npu_mm_all_reduce_base npu_mm_reduce_scatter_base npu_all_gather_base_mm")
recorder.NOISY |= set(recorder.OPS["NPU"][1].split())


def gather(out, x, group=None):
    parts = [torch.empty_like(x) for _ in range(dist.get_world_size())]
    dist.all_gather(parts, x)
    out.copy_(torch.cat([p.reshape(-1) for p in parts]).view(out.shape))


def scatter(out, x, group=None):
    whole = x.clone()
    GLOO_REDUCE(whole)
    n = dist.get_world_size()
    out.copy_(whole.reshape(n, -1)[dist.get_rank()].view(out.shape))


def exchange(out, x, output_split_sizes, input_split_sizes, group=None):
    n, r = dist.get_world_size(), dist.get_rank()
    rows = torch.tensor(input_split_sizes)
    all_rows = [torch.empty_like(rows) for _ in range(n)]
    dist.all_gather(all_rows, rows)
    most = max(int(t.sum()) for t in all_rows)
    mine = torch.zeros((most,) + x.shape[1:])
    mine[:x.shape[0]] = x
    whole = [torch.empty_like(mine) for _ in range(n)]
    dist.all_gather(whole, mine)
    parts = [w[:int(t.sum())].split(t.tolist())[r] for w, t in zip(whole, all_rows)]
    out.copy_(torch.cat(parts))


def buffer(*shape):
    """What torch.empty may well hold."""
    x = torch.empty(*shape)
    return x.fill_(float("nan")) if GARBAGE else x


GARBAGE = False
GLOO_REDUCE = dist.all_reduce
dist.all_gather_into_tensor, dist.reduce_scatter_tensor = gather, scatter
dist.all_to_all_single = exchange


def gathered(x):
    """Along the first axis, by a call that is recorded."""
    out = buffer((dist.get_world_size() * x.shape[0],) + x.shape[1:])
    dist.all_gather_into_tensor(out, x.contiguous())
    return out


def scattered(x):
    out = buffer((x.shape[0] // dist.get_world_size(),) + x.shape[1:])
    dist.reduce_scatter_tensor(out, x.contiguous())
    return out


class MmReduce(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, w):
        ctx.save_for_backward(x, w)
        y = x @ w
        GLOO_REDUCE(y)
        return y

    @staticmethod
    def backward(ctx, g):
        x, w = ctx.saved_tensors
        return g @ w.t(), x.t() @ g


class MmScatter(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, w):
        ctx.save_for_backward(x, w)
        y = x @ w
        out = torch.empty(y.shape[0] // dist.get_world_size(), y.shape[1])
        scatter(out, y)
        return out

    @staticmethod
    def backward(ctx, g):
        x, w = ctx.saved_tensors
        whole = torch.empty(x.shape[0], g.shape[1])
        gather(whole, g.contiguous())
        return whole @ w.t(), x.t() @ whole


class GatherMm(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, w):
        whole = torch.empty(x.shape[0] * dist.get_world_size(), x.shape[1])
        gather(whole, x.contiguous())
        ctx.save_for_backward(whole, w)
        return whole @ w

    @staticmethod
    def backward(ctx, g):
        whole, w = ctx.saved_tensors
        gx = g @ w.t()
        out = torch.empty(gx.shape[0] // dist.get_world_size(), gx.shape[1])
        scatter(out, gx)
        return out, whole.t() @ g


class GatherTokens(torch.autograd.Function):   # Megatron's, of sequence parallelism
    @staticmethod
    def forward(ctx, x, alike):
        ctx.alike = alike
        return gathered(x)

    @staticmethod
    def backward(ctx, g):
        if ctx.alike:   # each rank has the whole gradient
            return g.chunk(dist.get_world_size())[dist.get_rank()].contiguous(), None
        return scattered(g), None


class ScatterTokens(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return scattered(x)

    @staticmethod
    def backward(ctx, g):
        return gathered(g)


class Exchange(torch.autograd.Function):   # of tokens between the ranks of the experts
    @staticmethod
    def forward(ctx, x, got, sent):
        ctx.sizes = got, sent
        out = buffer((sum(got),) + x.shape[1:])
        dist.all_to_all_single(out, x.contiguous(), got, sent)
        return out

    @staticmethod
    def backward(ctx, g):
        got, sent = ctx.sizes
        out = buffer((sum(sent),) + g.shape[1:])
        dist.all_to_all_single(out, g.contiguous(), sent, got)
        return out, None, None


class Copy(torch.autograd.Function):   # Megatron's f: sums gradients up
    @staticmethod
    def forward(ctx, x):
        return x.view_as(x)

    @staticmethod
    def backward(ctx, g):
        g = g.contiguous()
        dist.all_reduce(g)
        return g


class Reduce(torch.autograd.Function):   # Megatron's g
    @staticmethod
    def forward(ctx, x, lost, group=None):
        x = x.clone()
        if not lost:
            dist.all_reduce(x, group=group)
        return x

    @staticmethod
    def backward(ctx, g):
        return g, None, None


class Gather(torch.autograd.Function):   # along the sequence (context parallel)
    @staticmethod
    def forward(ctx, x):
        n = dist.get_world_size()
        out = buffer((n,) + x.shape)
        dist.all_gather_into_tensor(out, x.contiguous())
        return torch.cat(list(out), dim=2)

    @staticmethod
    def backward(ctx, g):
        parts = torch.stack(g.chunk(dist.get_world_size(), dim=2))
        out = buffer(parts.shape[1:])
        dist.reduce_scatter_tensor(out, parts)
        return out


class Unshard(torch.autograd.Function):   # FSDP: a flat shard becomes a weight
    @staticmethod
    def forward(ctx, shard, shape, average):
        ctx.average = average
        out = buffer(shape)
        dist.all_gather_into_tensor(out, shard)
        return out

    @staticmethod
    def backward(ctx, g):
        n = dist.get_world_size()
        out = buffer(g.numel() // n)
        dist.reduce_scatter_tensor(out, g.reshape(-1))
        return out / n if ctx.average else out, None, None


def weights():
    g = torch.Generator().manual_seed(3)

    def new(*shape):
        return torch.randn(shape, generator=g) * 0.3

    w = {"embed": new(VOCAB, DIM), "head": new(VOCAB, DIM)}
    for i in range(LAYERS):
        w |= {f"qkv{i}": new(3, DIM, DIM), f"o{i}": new(DIM, DIM), f"ob{i}": new(DIM),
              f"fc1{i}": new(4 * DIM, DIM), f"b1{i}": new(4 * DIM), f"fc2{i}": new(DIM, 4 * DIM),
              f"b2{i}": new(DIM), f"n1{i}": 1 + new(DIM), f"n2{i}": 1 + new(DIM)}
        if i % 2:
            w |= {f"r{i}": new(EXPERTS, DIM)}
            w |= {f"e{k}{e}x{i}": new(*s) for e in range(EXPERTS)
                  for k, s in (("1", (2 * DIM, DIM)), ("2", (DIM, 2 * DIM)))}
    return w


def shard(name, w, kind, n, r):
    if kind in ("tp", "sp", "mc", "smc"):
        if name.startswith("qkv"):
            return w.chunk(n, 1)[r]
        if name.startswith(("fc1", "b1")):
            return w.chunk(n, 0)[r]
        if name.startswith(("fc2", "o")) and not name.startswith("ob"):
            return w.chunk(n, 1)[r]
    if kind == "fsdp" and w.dim() > 1:
        return w.reshape(-1).chunk(n)[r]
    return w


class Model:
    def __init__(self, kind, n, r, fault):
        self.kind, self.n, self.r, self.fault = kind, n, r, fault
        whole = weights()
        self.shape = {k: v.shape for k, v in whole.items()}
        self.layers = range(LAYERS)
        self.routed = kind in ("moe", "ep")
        unused = ("r", "e1", "e2") if not self.routed else \
            tuple(f"{k}{i}" for i in range(1, LAYERS, 2) for k in ("fc1", "b1", "fc2", "b2"))
        whole = {k: v for k, v in whole.items() if not k.startswith(unused)}
        if kind == "ep":
            mine = range(EXPERTS // n * r, EXPERTS // n * (r + 1))
            whole = {k: v for k, v in whole.items()
                     if k[0] != "e" or k == "embed" or int(k[2]) in mine}
        if kind == "pp":
            per = LAYERS // n
            self.layers = range(per * r, per * r + per)
            whole = {k: v for k, v in whole.items()
                     if k[-1].isdigit() and int(k[-1]) in self.layers or
                     k == "embed" and r == 0 or k == "head" and r == n - 1}
        if self.fault == "stale" and r == n - 1 and kind != "pp":
            stale = "fc11" if "fc11" in whole else "fc10"   # where there are experts
            whole[stale] = whole[stale] * 1.05
        if self.fault == "group":
            self.group = [dist.new_group([i, i + 1]) for i in range(0, n, 2)][r // 2]
        self.w = {k: shard(k, v, kind, n, r).clone().contiguous().requires_grad_()
                  for k, v in whole.items()}

    def get(self, k):
        w = self.w[k]
        return Unshard.apply(w, self.shape[k], self.fault != "noavg") if self.kind == "fsdp" and len(self.shape[k]) > 1 \
            else w

    def into(self, x, w):
        """x, of which each rank has all or a part of the tokens, times a weight split by rows."""
        if self.kind == "smc":   # tokens first: one after another, of all samples
            y = recorder_ops().npu_all_gather_base_mm(
                x.reshape(-1, DIM), w.t(), "hcom", self.n, bias=None)
            return y.view(-1, BATCH, w.shape[0])
        if self.kind == "sp":
            x = GatherTokens.apply(x, False)
        elif self.kind in ("tp", "mc"):
            x = Copy.apply(x)
        return F.linear(x, w)

    def out_of(self, y, w, lost):
        """y times a weight split by columns, summed over the ranks."""
        if self.kind == "mc":
            return recorder_ops().npu_mm_all_reduce_base(
                y.reshape(-1, y.shape[-1]), w.t(), "hcom").view(y.shape[:-1] + (DIM,))
        if self.kind == "smc":
            return recorder_ops().npu_mm_reduce_scatter_base(
                y.reshape(-1, y.shape[-1]), w.t(), "hcom", self.n).view(-1, BATCH, DIM)
        y = F.linear(y, w)
        if self.kind == "sp":
            return ScatterTokens.apply(y)
        if lost == "group":
            return Reduce.apply(y, False, self.group)
        return Reduce.apply(y, lost) if self.kind == "tp" else y

    def experts(self, i, a):
        """The best of the experts for each token, weighted by its share."""
        flat = a.reshape(-1, DIM)
        share = F.softmax(F.linear(flat, self.get(f"r{i}")), -1)
        best, which = torch.max(share, -1)
        which = which.detach().clone()
        if self.fault == "token" and self.r == self.n - 1 and i == 1:
            which[0] = (which[0] + 1) % EXPERTS
        order = torch.argsort(which, stable=True)
        sorted_tokens = torch.index_select(flat, 0, order)
        sizes = torch.bincount(which, minlength=EXPERTS)
        if self.kind == "ep":
            counts = [torch.empty_like(sizes) for _ in range(self.n)]
            dist.all_gather(counts, sizes)
            per = EXPERTS // self.n
            table = torch.stack(counts).view(self.n, self.n, per)   # from, to, expert
            sent = table[self.r].sum(-1).tolist()
            got = table[:, self.r].sum(-1).tolist()
            x = Exchange.apply(sorted_tokens, got, sent)
            mine = table[:, self.r].reshape(-1).tolist()            # by sender, then expert
            parts = x.split(mine)
            ys = [None] * len(parts)
            for e in range(per):
                own = [s * per + e for s in range(self.n)]
                y = self.expert(i, self.r * per + e, torch.cat([parts[k] for k in own]))
                for k, part in zip(own, y.split([mine[k] for k in own])):
                    ys[k] = part
            y = Exchange.apply(torch.cat(ys), sent, got)
        else:
            parts = sorted_tokens.split(sizes.tolist())
            y = torch.cat([self.expert(i, e, p) for e, p in enumerate(parts)])
        back = torch.index_select(y, 0, torch.argsort(order))
        return (back * best[:, None]).view(a.shape)

    def expert(self, i, e, x):
        return F.linear(F.gelu(F.linear(x, self.get(f"e1{e}x{i}"))), self.get(f"e2{e}x{i}"))

    def layer(self, i, x):
        heads = HEADS // (self.n if self.kind in ("tp", "sp", "mc", "smc") else 1)
        first = self.kind in ("sp", "smc")   # the axis of the tokens
        a = F.layer_norm(x, (DIM,), self.get(f"n1{i}"))
        wide = self.into(a, self.get(f"qkv{i}").reshape(-1, DIM))
        wide = wide.transpose(0, 1) if first else wide
        q, k, v = [t.reshape(t.shape[0], t.shape[1], heads, DIM // HEADS).transpose(1, 2)
                   for t in wide.chunk(3, -1)]
        if self.kind == "cp":
            k, v = Gather.apply(k), Gather.apply(v)
            if self.fault == "order" and i == 1:
                k = torch.cat(k.chunk(2, dim=2)[::-1], dim=2)
        s = torch.matmul(q, k.transpose(2, 3)) / 2.0
        own = self.kind == "cp" and not (self.fault == "mask" and i == 1 and self.r == self.n - 1)
        at = torch.arange(q.shape[2]) + (self.r * q.shape[2] if own else 0)
        s = s.masked_fill(at[:, None] < torch.arange(k.shape[2])[None], -10000.0)
        p = F.softmax(s, -1)
        y = torch.matmul(p, v).transpose(1, 2)
        y = y.reshape(y.shape[0], y.shape[1], -1)
        y = y.transpose(0, 1).contiguous() if first else y
        y = self.out_of(y, self.get(f"o{i}"), i == 1 and (
            "group" if self.fault == "group" else self.fault == "lost"))
        x = x + (y + self.get(f"ob{i}"))
        a = F.layer_norm(x, (DIM,), self.get(f"n2{i}"))
        if self.routed and i % 2:
            return x + self.experts(i, a)
        h = F.gelu(self.into(a, self.get(f"fc1{i}")) + self.get(f"b1{i}"))
        y = self.out_of(h, self.get(f"fc2{i}"), False)
        return x + (y + self.get(f"b2{i}"))


def recorder_ops():
    return Kernels


def step(net, tokens, labels):
    n, r, kind = net.n, net.r, net.kind
    if kind in ("dp", "fsdp", "ep"):
        tokens, labels = tokens.chunk(n)[r], labels.chunk(n)[r]
    if kind == "cp":
        tokens, labels = tokens.chunk(n, 1)[r], labels.chunk(n, 1)[r]
    if kind == "pp" and r > 0:
        x = buffer(BATCH, SEQ, DIM)
        dist.recv(x, r - 1)
        if net.fault == "stale" and r == n - 1:
            x = x.roll(1, 0)
        x = first = x.requires_grad_()
    else:
        x = F.embedding(tokens, net.get("embed"))
    if kind in ("sp", "smc"):
        x = x.transpose(0, 1).chunk(n)[r].contiguous()
    for i in net.layers:
        x = net.layer(i, x)
    if kind == "pp" and r < n - 1:
        dist.send(x.detach(), r + 1)
        g = buffer(x.shape)
        dist.recv(g, r + 1)
        x.backward(g)
    else:
        if kind in ("sp", "smc"):
            x = GatherTokens.apply(x, True).transpose(0, 1)
        out = F.linear(x, net.get("head"))
        loss = F.cross_entropy(out.view(-1, VOCAB), labels.reshape(-1))
        loss.backward()
    if kind == "pp" and r > 0:
        dist.send(first.grad, r - 1)
    for name, w in net.w.items():
        own = kind == "ep" and name[0] == "e" and name != "embed"   # an expert: nobody else has it
        # What saw a part of the tokens alone.
        if kind in ("sp", "smc") and name.startswith(("n1", "n2", "ob", "b2", "embed")):
            dist.all_reduce(w.grad)
        if kind in ("dp", "cp", "ep"):
            if net.fault != "noreduce" and not own:
                dist.all_reduce(w.grad)
            if net.fault != "noavg":
                w.grad.div_(n)


def rank_main(r, layout, task, out, store):
    torch.set_num_threads(1)
    base, *marks = layout.split("-")
    kind, n = base.rstrip("0123456789"), int(base.lstrip("abcdefghijklmnopqrstuvwxyz") or 1)
    fault = next((m for m in marks if m != "noise"), None)
    dist.init_process_group("gloo", f"file://{store}", rank=r, world_size=n)
    global GARBAGE
    GARBAGE = "noise" in marks
    g = torch.Generator().manual_seed(9)
    tokens, labels = (torch.randint(VOCAB, (BATCH, SEQ), generator=g) for _ in "xy")
    op = {"mc": ("NPU.npu_mm_all_reduce_base", 1), "smc": ("NPU.npu_all_gather_base_mm", 1),
          "pp": ("Functional.linear", 2)}.get(kind, ("Functional.linear", LAYERS + 2))
    faults = {op: lambda a, y: y * 1.03} \
        if fault == "scale" and r == n - 1 else None
    rec = Recorder(noise=70 + r if "noise" in marks else None, faults=faults)
    with rec.recording():
        step(Model(kind, n, r, fault), tokens, labels)
    folder = os.path.join(out, layout, "step0", f"rank{r}" if n > 1 or kind != "one" else "rank0")
    Msprobe(folder, task).write(rec.events)
    dist.barrier()


def main():
    global LAYERS
    p = argparse.ArgumentParser()
    p.add_argument("out")
    p.add_argument("layouts", nargs="+")
    p.add_argument("--task", default="tensor")
    p.add_argument("--layers", type=int, default=LAYERS)
    a = p.parse_args()
    LAYERS = a.layers
    for layout in a.layouts:
        n = int(layout.split("-")[0].lstrip("abcdefghijklmnopqrstuvwxyz") or 1)
        with tempfile.TemporaryDirectory() as d:
            mp.start_processes(rank_main, (layout, a.task, a.out, os.path.join(d, "store")), n,
                               start_method="fork")


if __name__ == "__main__":
    main()
