"""A small transformer under layouts over 2 to 4 gloo ranks, and alone, each recorded by accrecord. Needs torch.

Usage: layouts.py OUT [--list] [--level 1|2] [--seed N] [NAME...]
                                            a name is LAYOUT or LAYOUT-FAULT; none: all of them. A seed draws other weights,
                                            tokens and dropout, and a width

    one, one.tokens, one.micro              the bench of a layout: one process with the whole batch; of ddp.drop itself,
                                            since no other process draws the same random numbers
    ddp, ddp4, ddp.tokens, ddp.drop         DistributedDataParallel
    fsdp, fsdp4, fsdp.tokens                fully_shard
    hand, hand4, hand.tokens                each gradient summed over the ranks and divided
    tp, tp4, sp                             DTensors: column- and row-wise, also with split sequences
    tpdp                                    two ranks of columns times two of the batch
    pp, pp.micro, pipe                      two stages by send and recv; of two micro-batches; torch's own GPipe
    cp                                      each rank has a part of the sequence, and gathers keys and values

    lost     one weight's gradient (tp, sp: one product's output) is not reduced over the ranks; pp: not one micro-batch's
    unseen   as lost, and the recording ends before the optimizer's step
    nosync   no gradient is reduced
    twice    one is reduced twice
    sum      gradients are summed, not averaged
    mean     they are averaged, too, where the sum is right
    own      each rank divides its loss by its own tokens, which are not as many
    stale    the last rank has one weight (or its part of it) 5 % off
    group    the reduction goes over two of the four ranks
    scale    the loss is halved
    same     all ranks draw the same dropout
    data     all ranks have the first one's part of the batch
    pos      each rank counts positions from 0"""
import atexit
import os
import shutil
import sys
import tempfile
import traceback

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)

import torch  # noqa: E402
import torch.distributed as dist  # noqa: E402
import torch.distributed.fsdp  # noqa: E402, here: each rank is forked, and would import it again
import torch.distributed.nn.functional  # noqa: E402
import torch.distributed.pipelining  # noqa: E402
import torch.distributed.tensor.parallel  # noqa: E402
import torch._dynamo  # noqa: E402
import torch.nn.functional as F  # noqa: E402
from torch import nn  # noqa: E402
from torch.distributed.device_mesh import init_device_mesh  # noqa: E402

from nets import accrecord  # noqa: E402

SEED = int(sys.argv[sys.argv.index("--seed") + 1]) if "--seed" in sys.argv else 0
BATCH, TOKENS, VOCABULARY, WIDTH, HEADS = 4, 8, 24, (16, 32, 48)[SEED % 3], 4
FAULTS = {
    "ddp": "lost nosync twice sum stale scale data", "ddp4": "lost sum group stale data",
    "ddp.tokens": "own sum stale", "ddp.drop": "same sum", "fsdp": "nosync sum stale scale data", "fsdp4": "sum stale",
    "fsdp.tokens": "own stale", "hand": "lost unseen nosync twice sum stale scale data", "hand4": "lost group twice sum",
    "hand.tokens": "lost own sum", "tp": "lost twice stale scale", "tp4": "lost group stale", "sp": "lost twice stale scale",
    "tpdp": "nosync lost stale data", "pp": "stale scale", "pp.micro": "lost sum stale", "pipe": "stale scale",
    "cp": "lost nosync mean pos stale scale"}
RANKS = {"ddp4": 4, "fsdp4": 4, "hand4": 4, "tp4": 4, "tpdp": 4}


def bench(layout):
    end = layout.rpartition(".")[2]
    return layout if end == "drop" else f"one.{end}" if end in ("tokens", "micro", "bf16") else "one"


def names():
    for layout, faults in FAULTS.items():
        yield layout
        yield from (f"{layout}-{fault}" for fault in faults.split())


class Gather(torch.autograd.Function):
    """Of a sequence the parts of all ranks. torch's own all_gather permutes gradients (findings/torch-gloo-order.sh)."""
    @staticmethod
    def forward(ctx, a):
        parts = [torch.empty_like(a) for _ in range(dist.get_world_size())]
        dist.all_gather(parts, a.contiguous())
        return torch.cat(parts, 1)

    @staticmethod
    def backward(ctx, grad):
        grad = grad.contiguous()
        dist.all_reduce(grad)
        return grad.chunk(dist.get_world_size(), 1)[dist.get_rank()]


class Block(nn.Module):
    def __init__(self, drop, gather):
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)
        self.q, self.k, self.v, self.o = (nn.Linear(WIDTH, WIDTH) for _ in range(4))
        self.up, self.down = nn.Linear(WIDTH, 4 * WIDTH), nn.Linear(4 * WIDTH, WIDTH)
        self.drop, self.gather = drop, gather

    def forward(self, x, mask):
        h = self.norm1(x)
        q, k, v = self.q(h), self.gather(self.k(h)), self.gather(self.v(h))
        q, k, v = (a.view(a.shape[0], a.shape[1], -1, WIDTH // HEADS).transpose(1, 2) for a in (q, k, v))
        p = torch.softmax((q @ k.transpose(-1, -2)) / 2.0 + mask, -1)
        a = (p @ v).transpose(1, 2)
        x = x + self.o(a.reshape(a.shape[0], a.shape[1], -1))
        h = self.down(F.gelu(self.up(self.norm2(x))))
        return x + (F.dropout(h, 0.25) if self.drop else h)


class Net(nn.Module):
    """The stages that this process has; first: of its part of the sequence, the first token's position."""
    def __init__(self, drop=False, gather=lambda a: a, first=0, at=None, stages=(0, 1)):
        super().__init__()
        torch.manual_seed(4 + 100 * SEED)
        self.embed, self.pos = nn.Embedding(VOCABULARY, WIDTH), nn.Embedding(TOKENS, WIDTH)
        blocks = [Block(drop, gather) for _ in range(2)]
        self.norm, self.head = nn.LayerNorm(WIDTH), nn.Linear(WIDTH, VOCABULARY)
        self.blocks = nn.ModuleDict({str(i): b for i, b in enumerate(blocks) if i in stages})
        self.stages, self.first, self.at = stages, first, first if at is None else at
        if 0 not in stages:
            del self.embed, self.pos
        if 1 not in stages:
            del self.norm, self.head

    def forward(self, x):
        length = x.shape[1]
        if 0 in self.stages:
            x = self.embed(x) + self.pos(torch.arange(self.at, self.at + length)[None])
        mask = torch.full((TOKENS, TOKENS), -1e4).triu(1)[self.first:self.first + length]
        for b in self.blocks.values():
            x = b(x, mask)
        return self.head(self.norm(x)) if 1 in self.stages else x


def data(layout):
    torch.manual_seed(7 + 100 * SEED)
    tokens = torch.randint(VOCABULARY, (BATCH, TOKENS + 1))
    tokens, labels = tokens[:, :-1], tokens[:, 1:].clone()
    if layout.endswith(".tokens"):
        labels[0, :5] = -100    # the ranks have 11 and 16
    return tokens, labels


def loss_of(logits, labels, tokens, own, ranks):
    """The mean over tokens; `tokens`: of all ranks, whose gradients are averaged."""
    logits, labels = logits.reshape(-1, VOCABULARY), labels.reshape(-1)
    if not tokens:
        return F.cross_entropy(logits, labels)
    count = (labels != -100).sum()
    if ranks > 1 and not own:
        dist.all_reduce(count)
        count = count / ranks
    return F.cross_entropy(logits, labels, reduction="sum") / count


def summed(hook_state, bucket):
    """DistributedDataParallel's hook of communication, without its division."""
    return dist.all_reduce(bucket.buffer(), async_op=True).get_future().then(lambda f: f.value()[0])


def sharded(net, mesh, how, fault, pair):
    """Tensor parallelism by DTensors; sp: what lies between the products is split by tokens."""
    from torch.distributed.tensor import Replicate, Shard
    from torch.distributed.tensor.parallel import (ColwiseParallel, PrepareModuleInput, RowwiseParallel, SequenceParallel,
                                                   parallelize_module)

    class Odd(RowwiseParallel):
        @staticmethod
        def _prepare_output_fn(output_layouts, use_local, module, outputs, mesh):
            if fault == "lost" and output_layouts[0].is_replicate():
                return outputs.to_local()
            if fault == "lost":
                return outputs.to_local().chunk(mesh.size(), 1)[mesh.get_local_rank()].contiguous()
            if fault == "group":
                out = outputs.to_local()
                return torch.distributed.nn.functional.all_reduce(out, group=pair)
            whole = RowwiseParallel._prepare_output_fn(output_layouts, use_local, module, outputs, mesh)
            return torch.distributed.nn.functional.all_reduce(whole) if fault == "twice" else whole

    split = Shard(1) if how == "sp" else Replicate()
    for i in net.blocks:
        row = Odd if i == "1" and fault in ("lost", "twice", "group") else RowwiseParallel
        plan = {f"{name}": ColwiseParallel() for name in ("q", "k", "v", "up")}
        plan.update(o=RowwiseParallel(output_layouts=split), down=row(output_layouts=split))
        if how == "sp":
            plan.update(norm1=SequenceParallel(), norm2=SequenceParallel())
            plan.update({name: ColwiseParallel(input_layouts=Shard(1)) for name in ("q", "k", "v", "up")})
        parallelize_module(net.blocks[i], mesh, plan)
    if how == "sp":
        parallelize_module(net, mesh, {
            "embed": RowwiseParallel(input_layouts=Replicate(), output_layouts=Shard(1)),
            "pos": RowwiseParallel(input_layouts=Replicate(), output_layouts=Shard(1)),
            "norm": SequenceParallel(), "head": ColwiseParallel(input_layouts=Shard(1), output_layouts=Replicate())})
    return net


def spoil(net):
    weight = dict(net.named_parameters())
    w = next(weight[k] for k in ("blocks.0.up.weight", "blocks.1.up.weight") if k in weight)
    with torch.no_grad():
        (w.to_local() if hasattr(w, "to_local") else w).mul_(1.05)


class Run:
    """One rank of one recording."""
    def __init__(self, rank, layout, fault, pair):
        self.rank, self.layout, self.fault, self.pair = rank, layout, fault, pair
        self.ranks = ranks_of(layout)
        self.kind = layout.partition(".")[0].rstrip("4")
        self.split = 1 if self.kind in ("one", "tp", "sp", "pp", "pipe", "cp") else 2 if self.kind == "tpdp" else self.ranks
        net = self.net()
        self.bare, self.model = net, self.wrapped(net)   # which sends the first rank's weights to all, or parts of them
        if fault == "stale" and rank == self.ranks - 1:
            spoil(net)
        self.optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
        self.tokens, self.labels = data(layout)
        part = rank // 2 if self.kind == "tpdp" else rank
        step = BATCH // self.split
        part = 0 if self.split == 1 or fault == "data" else part
        self.tokens, self.labels = (a[part * step:(part + 1) * step].contiguous() for a in (self.tokens, self.labels))

    def net(self):
        if self.kind in ("pp", "pipe"):
            return Net(stages=(self.rank,))
        if self.kind != "cp":
            return Net(self.layout.endswith(".drop"))
        first = self.rank * TOKENS // self.ranks
        return Net(gather=Gather.apply, first=first, at=0 if self.fault == "pos" else first)

    def wrapped(self, net):
        if self.kind == "ddp":
            if self.fault == "lost":
                nn.parallel.DistributedDataParallel._set_params_and_buffers_to_ignore_for_model(net, ["norm.weight"])
            model = nn.parallel.DistributedDataParallel(net, process_group=self.pair if self.fault == "group" else None)
            if self.fault == "sum":
                model.register_comm_hook(None, summed)
            return model
        if self.kind == "fsdp":
            from torch.distributed.fsdp import fully_shard
            mesh = init_device_mesh("cpu", (self.ranks,))
            for b in net.blocks.values():
                fully_shard(b, mesh=mesh)
            fully_shard(net, mesh=mesh)
            if self.fault == "sum":
                for m in (*net.blocks.values(), net):
                    m.set_force_sum_reduction_for_comms(True)   # gloo has no other way to scale
                    m.set_gradient_divide_factor(1.0)
            if self.fault == "nosync":
                net.set_requires_gradient_sync(False)
        if self.kind in ("tp", "sp"):
            sharded(net, init_device_mesh("cpu", (self.ranks,)), self.kind, self.fault, self.pair)
        if self.kind == "tpdp":
            self.mesh = init_device_mesh("cpu", (2, 2), mesh_dim_names=("dp", "tp"))
            sharded(net, self.mesh["tp"], "tp", self.fault, None)
        return net

    def reduce(self):
        """The gradients of what no library averages."""
        hand = self.kind in ("hand", "cp") or self.kind == "tpdp"
        group = self.mesh["dp"].get_group() if self.kind == "tpdp" else self.pair if self.fault == "group" else None
        for key, p in self.bare.named_parameters():
            lost = self.fault == "nosync" or self.fault in ("lost", "unseen") and key == "norm.weight" and self.kind != "tpdp"
            if not hand or lost:
                continue
            grad = p.grad.to_local() if hasattr(p.grad, "to_local") else p.grad
            dist.all_reduce(grad, group=group)
            if self.fault == "twice" and key == "norm.weight":
                dist.all_reduce(grad, group=group)
            if self.kind != "cp" and self.fault != "sum" or self.fault == "mean":
                grad.div_(2 if self.kind == "tpdp" else self.ranks)
        if self.kind == "ddp" and self.fault == "twice":
            dist.all_reduce(self.bare.norm.weight.grad)

    def loss(self, logits, labels):
        loss = loss_of(logits, labels, self.layout.endswith(".tokens"), self.fault == "own", self.ranks)
        if self.kind == "cp":
            loss = loss / self.ranks
        return loss * 0.5 if self.fault == "scale" else loss

    def step(self):
        if self.kind == "pp":
            self.stages(2 if self.layout.endswith(".micro") else 1)
        elif self.kind == "pipe":
            self.pipe()
        else:
            micro = 2 if self.layout == "one.micro" else 1
            if self.kind == "ddp" and self.fault == "nosync":
                self.model.require_backward_grad_sync = False
            for x, y in zip(self.tokens.chunk(micro), self.labels[:, self.bare.first:][:, :self.length()].chunk(micro)):
                x = x[:, self.bare.first:][:, :self.length()]
                loss = self.loss(self.model(x), y)
                (loss / micro if micro > 1 else loss).backward()
        self.reduce()
        if self.fault == "unseen":
            accrecord.record_switch(False)
        self.optimizer.step()

    def length(self):
        return TOKENS // self.ranks if self.kind == "cp" else TOKENS

    def stages(self, micro):
        for i, (x, y) in enumerate(zip(self.tokens.chunk(micro), self.labels.chunk(micro))):
            if self.fault == "lost" and i == 1:
                self.optimizer.zero_grad()
            if self.rank == 0:
                h = self.model(x)
                dist.send(h.detach(), 1)
                grad = torch.empty_like(h)
                dist.recv(grad, 1)
                h.backward(grad)
            else:
                h = torch.empty(x.shape[0], TOKENS, WIDTH)
                dist.recv(h, 0)
                h.requires_grad_()
                loss = self.loss(self.model(h), y)
                (loss / micro if micro > 1 and self.fault != "sum" else loss).backward()
                dist.send(h.grad, 0)

    def pipe(self):
        from torch.distributed.pipelining import PipelineStage, ScheduleGPipe
        stage = PipelineStage(self.model, self.rank, 2, torch.device("cpu"))
        schedule = ScheduleGPipe(stage, n_microbatches=2, loss_fn=self.loss)
        schedule.step(self.tokens) if self.rank == 0 else schedule.step(target=self.labels)


def ranks_of(layout):
    return 1 if layout.startswith("one") else RANKS.get(layout, 2)


def run(rank, out, name, level, store):
    torch.set_num_threads(1)
    layout, _, fault = name.partition("-")
    ranks, pair = ranks_of(layout), None
    if ranks > 1:
        dist.init_process_group("gloo", init_method=f"file://{store}", rank=rank, world_size=ranks)
    if ranks == 4 and fault == "group":
        pair = [dist.new_group([0, 1]), dist.new_group([2, 3])][rank // 2]
    one = Run(rank, layout, fault, pair)
    torch.manual_seed(11 + 100 * SEED + (0 if fault == "same" else rank))
    accrecord.start_record(output_dir=os.path.join(out, name if level == 2 else f"{name}.1"), record_level=level)
    one.step()
    accrecord.record_switch(False)
    if ranks > 1:
        dist.barrier()   # gloo: nobody leaves while others wait


def record(out, name, level):
    """Each rank in a process of its own, that is forked here: its stacks are the program's alone."""
    folder = os.path.join(out, name if level == 2 else f"{name}.1")
    if os.path.exists(folder):
        print(f"{folder} is there already", file=sys.stderr)
        return False
    ranks, pids = ranks_of(name.partition("-")[0]), []
    with tempfile.TemporaryDirectory() as d:
        for rank in range(ranks):
            pids.append(os.fork())
            if pids[-1] == 0:
                status = 1
                try:
                    run(rank, out, name, level, os.path.join(d, "store"))
                    atexit._run_exitfuncs()   # which end the recording
                    status = 0
                except Exception:
                    traceback.print_exc()
                finally:
                    sys.stderr.flush()
                    os._exit(status)
        if any([os.waitpid(pid, 0)[1] for pid in pids]):
            shutil.rmtree(folder, ignore_errors=True)
            print(f"{folder}: a rank failed: not recorded", file=sys.stderr)
            return False
    return True


def main():
    words = sys.argv[1:]
    levels = (1, 2)
    if "--level" in words:
        at = words.index("--level")
        levels = (int(words[at + 1]),)
        del words[at:at + 2]
    if "--seed" in words:
        at = words.index("--seed")
        del words[at:at + 2]
    if "--list" in words:
        print(*names(), sep="\n")
        return
    out = words[0]
    wanted = words[1:] or [*names(), *sorted({bench(k) for k in FAULTS} - set(FAULTS))]
    sys.exit(not all([record(out, name, level) for name in wanted for level in levels]))   # some faults stop their program


if __name__ == "__main__":
    main()
