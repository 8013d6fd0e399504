"""A small Llama on meshes of 2 to 4 gloo ranks, and alone, each recorded by accrecord. Needs torch.

Usage: meshes.py OUT [--list] [--level 1|2] [--seed N] [NAME...]      as layouts.py, whose benches, faults and score it has

Three blocks (RMSNorm written out, rotary positions, grouped queries, SwiGLU), AdamW, gradients clipped to a norm:

    one, one.bf16, one.micro        one process with the whole batch; fully_shard over one rank, in bf16; of three parts
    ddp3                            DistributedDataParallel over three ranks
    tpdp, tpfsdp                    two ranks of columns times two of the batch: gradients by hand, or fully_shard
    spdp                            sequence parallelism times two of the batch
    ppdp                            two stages (torch's GPipe), which are neighbours, times two of the batch
    pp3.micro                       three stages, each micro-batch handed on by send and recv
    hsdp                            fully_shard on a mesh of two axes, copies and parts
    fsdp.bf16                       fully_shard over two ranks, weights in bf16, reductions in f32
    acc.micro                       two ranks of the batch, each adds up three micro-batches before they are reduced

    lost     one weight's gradient (tp: one product's output) is not reduced; pp3: one micro-batch's gradients are lost
    nosync   no gradient is reduced
    sum      gradients are summed over the ranks of the batch, not averaged
    group    gradients are reduced over the wrong axis of the mesh
    clip     each rank clips to the norm of its own part
    stale    the last rank has one weight (or its part of it) 5 % off
    scale    the loss is halved
    data     all ranks have the first one's part of the batch
    pos      the second half of the sequence (sp) or batch counts positions one on"""
import os
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)

import torch  # noqa: E402
import torch.distributed as dist  # noqa: E402
import torch.nn.functional as F  # noqa: E402
from torch import nn  # noqa: E402
from torch.distributed.device_mesh import init_device_mesh  # noqa: E402

import layouts  # noqa: E402
from nets import accrecord  # noqa: E402

BATCH, TOKENS, VOCABULARY, WIDTH, HEADS, GROUPS, INNER, BLOCKS = 12, 6, 29, (24, 32, 48)[layouts.SEED % 3], 4, 2, 40, 3
FAULTS = {
    "ddp3": "lost nosync sum stale scale data", "tpdp": "lost nosync sum group stale data",
    "tpfsdp": "nosync sum clip stale scale", "spdp": "lost nosync group stale", "ppdp": "nosync group sum stale clip",
    "pp3.micro": "lost scale stale", "hsdp": "nosync sum stale data", "fsdp.bf16": "nosync sum stale scale",
    "acc.micro": "lost sum scale pos"}
RANKS = {"ddp3": 3, "tpdp": 4, "tpfsdp": 4, "spdp": 4, "ppdp": 4, "pp3.micro": 3, "hsdp": 4, "fsdp.bf16": 2,
         "acc.micro": 2}


class Norm(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(WIDTH))

    def forward(self, x):
        return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-6) * self.weight


def turn(x, cos, sin):
    a, b = x.chunk(2, -1)
    return x * cos + torch.cat((-b, a), -1) * sin


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        size = WIDTH // HEADS
        self.norm1, self.norm2 = Norm(), Norm()
        self.q, self.o = nn.Linear(WIDTH, WIDTH, bias=False), nn.Linear(WIDTH, WIDTH, bias=False)
        self.k, self.v = (nn.Linear(WIDTH, GROUPS * size, bias=False) for _ in range(2))
        self.gate, self.up = (nn.Linear(WIDTH, INNER, bias=False) for _ in range(2))
        self.down = nn.Linear(INNER, WIDTH, bias=False)

    def forward(self, x, cos, sin):
        h = self.norm1(x)
        q, k, v = (f(h).unflatten(-1, (-1, WIDTH // HEADS)).transpose(1, 2) for f in (self.q, self.k, self.v))
        q, k = turn(q, cos, sin), turn(k, cos, sin)
        a = F.scaled_dot_product_attention(q, k, v, is_causal=True, enable_gqa=True)
        x = x + self.o(a.transpose(1, 2).flatten(2))
        h = self.norm2(x)
        return x + self.down(F.silu(self.gate(h)) * self.up(h))


class Net(nn.Module):
    """The blocks that this process has, with the ends if they are its own."""
    def __init__(self, stage=0, stages=1, late=False):
        super().__init__()
        torch.manual_seed(31 + 100 * layouts.SEED)
        first, last, self.late = stage == 0, stage == stages - 1, late
        embed, blocks = nn.Embedding(VOCABULARY, WIDTH), [Block() for _ in range(BLOCKS)]
        norm, head = Norm(), nn.Linear(WIDTH, VOCABULARY, bias=False)
        cuts = [i * BLOCKS // stages for i in range(stages + 1)]
        self.embed = embed if first else None
        self.blocks = nn.ModuleDict({str(i): blocks[i] for i in range(cuts[stage], cuts[stage + 1])})
        self.norm, self.head = (norm, head) if last else (None, None)

    def forward(self, x):
        at = torch.arange(TOKENS) + (1.0 if self.late else 0.0)
        size = WIDTH // HEADS
        angle = torch.outer(at, 100.0 ** (-torch.arange(0, size, 2) / size)).repeat(1, 2)
        if self.embed is not None:
            x = self.embed(x)
        cos, sin = angle.cos().to(x.dtype), angle.sin().to(x.dtype)
        for b in self.blocks.values():
            x = b(x, cos, sin)
        return self.head(self.norm(x)) if self.head is not None else x


def split(net, mesh, sequence, lost):
    from torch.distributed.tensor import Replicate, Shard
    from torch.distributed.tensor.parallel import ColwiseParallel, RowwiseParallel, SequenceParallel, parallelize_module

    class Lost(RowwiseParallel):
        @staticmethod
        def _prepare_output_fn(output_layouts, use_local, module, outputs, mesh):
            out = outputs.to_local()
            whole = output_layouts[0].is_replicate()
            return out if whole else out.chunk(mesh.size(), 1)[mesh.get_local_rank()].contiguous()

    part = Shard(1) if sequence else Replicate()
    for i, b in net.blocks.items():
        plan = {n: ColwiseParallel() for n in ("q", "k", "v", "gate", "up")}
        plan.update(o=RowwiseParallel(output_layouts=part),
                    down=(Lost if lost and i == "1" else RowwiseParallel)(output_layouts=part))
        if sequence:
            plan.update(norm1=SequenceParallel(), norm2=SequenceParallel())
            plan.update({n: ColwiseParallel(input_layouts=Shard(1)) for n in ("q", "k", "v", "gate", "up")})
        parallelize_module(b, mesh, plan)
    if sequence:
        parallelize_module(net, mesh, {
            "embed": RowwiseParallel(input_layouts=Replicate(), output_layouts=Shard(1)), "norm": SequenceParallel(),
            "head": ColwiseParallel(input_layouts=Shard(1), output_layouts=Replicate())})


class Run:
    def __init__(self, rank, layout, fault):
        self.rank, self.fault, self.ranks = rank, fault, ranks_of(layout)
        self.kind, _, self.end = layout.partition(".")
        self.batch, part, stage, stages = self.ranks, rank, 0, 1
        axes = {"tpdp": ("dp", "tp"), "tpfsdp": ("dp", "tp"), "spdp": ("dp", "tp"), "ppdp": ("dp", "pp"),
                "hsdp": ("dp", "fs")}
        if self.kind in axes:
            self.mesh = init_device_mesh("cpu", (2, 2), mesh_dim_names=axes[self.kind])
            self.wrong = self.mesh[axes[self.kind][1]].get_group()
        if self.kind in ("tpdp", "tpfsdp", "spdp", "ppdp"):
            self.batch, part = 2, rank // 2
            self.data = self.mesh["dp"].get_group()
        else:
            self.data = None
        if self.kind == "ppdp":
            stage, stages = rank % 2, 2
        elif self.kind == "pp3":
            self.batch, part, stage, stages = 1, 0, rank, 3
        self.net = Net(stage, stages, fault == "pos" and rank == self.ranks - 1)
        self.model = self.wrapped()
        if fault == "stale" and rank == self.ranks - 1:
            w = dict(self.net.named_parameters())[f"blocks.{'2' if stages > 1 else '1'}.up.weight"]
            with torch.no_grad():
                (w.to_local() if hasattr(w, "to_local") else w).mul_(1.05)
        self.optimizer = torch.optim.AdamW(self.net.parameters(), lr=1e-3, weight_decay=0.1)
        torch.manual_seed(77 + 100 * layouts.SEED)
        rows = torch.randint(VOCABULARY, (BATCH, TOKENS + 1))
        part, step = 0 if fault == "data" else part, BATCH // self.batch
        if self.kind == "acc":   # a part of each micro-batch
            rows = rows.view(3, 2, 2, -1).transpose(0, 1).flatten(0, 2)
        rows = rows[part * step:(part + 1) * step]
        self.tokens, self.labels = rows[:, :-1].contiguous(), rows[:, 1:].contiguous()

    def shard(self, **how):
        from torch.distributed.fsdp import fully_shard
        modules = (*self.net.blocks.values(), self.net)
        for m in modules:
            fully_shard(m, **how)
        if self.fault == "sum":
            for m in modules:
                m.set_force_sum_reduction_for_comms(True)
                m.set_gradient_divide_factor(1.0)
        if self.fault == "nosync":
            self.net.set_requires_gradient_sync(False)

    def wrapped(self):
        if self.kind == "ddp3":
            if self.fault == "lost":
                ignore = nn.parallel.DistributedDataParallel._set_params_and_buffers_to_ignore_for_model
                ignore(self.net, ["norm.weight"])
            model = nn.parallel.DistributedDataParallel(self.net)
            if self.fault == "nosync":
                model.require_backward_grad_sync = False
            if self.fault == "sum":
                model.register_comm_hook(None, layouts.summed)
            return model
        if self.kind in ("tpdp", "tpfsdp", "spdp"):
            split(self.net, self.mesh["tp"], self.kind == "spdp", self.fault == "lost")
        if self.kind == "tpfsdp":
            self.shard(mesh=self.mesh["dp"])
        if self.kind == "hsdp":
            self.shard(mesh=self.mesh)
        if self.end == "bf16":
            from torch.distributed.fsdp import MixedPrecisionPolicy
            policy = MixedPrecisionPolicy(param_dtype=torch.bfloat16, reduce_dtype=torch.float32)
            self.shard(mesh=init_device_mesh("cpu", (self.ranks,)), mp_policy=policy)
        return self.net

    def loss(self, logits, labels):
        loss = F.cross_entropy(logits.float().flatten(0, 1), labels.flatten())
        return loss * 0.5 if self.fault == "scale" else loss

    def reduce(self):
        if self.kind not in ("tpdp", "spdp", "ppdp", "acc") or self.fault == "nosync":
            return
        group = self.wrong if self.fault == "group" else self.data
        for key, p in self.net.named_parameters():
            if self.kind == "acc" and self.fault == "lost" and key == "norm.weight":
                continue
            grad = p.grad.to_local() if hasattr(p.grad, "to_local") else p.grad
            dist.all_reduce(grad, group=group)
            if self.fault != "sum":
                grad.div_(2)

    def clip(self):
        """torch's own, which does not take DTensors of several meshes: there, and of stages, by hand."""
        parameters = [p for p in self.net.parameters() if p.grad is not None]
        by_hand = self.kind in ("tpdp", "tpfsdp", "spdp", "ppdp", "pp3")
        if not by_hand and self.fault != "clip":
            torch.nn.utils.clip_grad_norm_(parameters, 0.5)
            return
        grads = [p.grad.to_local() if hasattr(p.grad, "to_local") else p.grad for p in parameters]
        if self.fault == "clip" or self.kind in ("ppdp", "pp3"):
            total = torch.stack([torch.linalg.vector_norm(g) for g in grads]).pow(2).sum()
            if self.fault != "clip":
                dist.all_reduce(total, group=self.wrong if self.kind == "ppdp" else None)
        else:
            each = [torch.linalg.vector_norm(p.grad) for p in parameters]
            total = torch.stack([n.full_tensor() if hasattr(n, "full_tensor") else n for n in each]).pow(2).sum()
        scale = (0.5 / (total.sqrt() + 1e-6)).clamp(max=1.0)
        for g in grads:
            g.mul_(scale)

    def step(self):
        if self.kind == "pp3":
            self.hand_on(3)
        elif self.kind == "ppdp":
            self.pipe()
        else:
            micro = 3 if self.end == "micro" else 1
            for x, y in zip(self.tokens.chunk(micro), self.labels.chunk(micro)):
                loss = self.loss(self.model(x), y)
                (loss / micro if micro > 1 else loss).backward()
        self.reduce()
        self.clip()
        self.optimizer.step()

    def hand_on(self, micro):
        kept = []
        for x, y in zip(self.tokens.chunk(micro), self.labels.chunk(micro)):
            if self.rank:
                x = torch.empty(x.shape[0], TOKENS, WIDTH)
                dist.recv(x, self.rank - 1)
                x.requires_grad_()
            h = self.net(x)
            if self.rank < 2:
                dist.send(h.detach(), self.rank + 1)
            kept.append((x, h if self.rank < 2 else self.loss(h, y) / micro))
        for i, (x, h) in enumerate(kept):
            if self.fault == "lost" and i == 2 and self.rank == 1:
                self.optimizer.zero_grad()
            if self.rank < 2:
                grad = torch.empty_like(h)
                dist.recv(grad, self.rank + 1)
                h.backward(grad)
            else:
                h.backward()
            if self.rank:
                dist.send(x.grad, self.rank - 1)

    def pipe(self):
        from torch.distributed.pipelining import PipelineStage, ScheduleGPipe
        stage = PipelineStage(self.net, self.rank % 2, 2, torch.device("cpu"), group=self.wrong)
        schedule = ScheduleGPipe(stage, n_microbatches=2, loss_fn=self.loss)
        schedule.step(self.tokens) if self.rank % 2 == 0 else schedule.step(target=self.labels)


def ranks_of(layout):
    return RANKS.get(layout, 1)


def run(rank, out, name, level, store):
    torch.set_num_threads(1)
    layout, _, fault = name.partition("-")
    ranks = ranks_of(layout)
    if ranks > 1 or layout.endswith("bf16"):
        dist.init_process_group("gloo", init_method=f"file://{store}", rank=rank, world_size=ranks)
    one = Run(rank, layout, fault)
    accrecord.start_record(output_dir=os.path.join(out, name if level == 2 else f"{name}.1"), record_level=level)
    one.step()
    accrecord.record_switch(False)
    if ranks > 1:
        dist.barrier()


if __name__ == "__main__":
    layouts.FAULTS, layouts.ranks_of, layouts.run = FAULTS, ranks_of, run
    layouts.main()
