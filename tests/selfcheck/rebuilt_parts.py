"""Trainers in the style of Megatron, Hugging Face, DeepSpeed, torchtitan, fairseq and of plain scripts, with what
the trackers of such libraries report: norms that are split by tokens, losses scaled for too few ranks, replicas that
drift, routers, tied embeddings and experts.

Each train(rank, fault, seed, n) is a user's program; with n = 1 it is what one process does that has the whole
batch and model.
"""
import contextlib
import math

import torch
import torch.distributed as dist
import torch.distributed.nn.functional as dist_fn
import torch.nn as nn
import torch.nn.functional as F
from torch._utils import _flatten_dense_tensors, _unflatten_dense_tensors
from torch.nn.parallel import DistributedDataParallel as DDP


def draw(seed, *shape):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


def choose(seed, n, *shape):
    return torch.randint(n, shape, generator=torch.Generator().manual_seed(seed))


def kept(model):
    """What a program is checked by."""
    return {name: t.data for name, t in model.state_dict(keep_vars=True).items() if t.is_floating_point()}


def my_group(rank, *rows):
    """The group of a rank; all ranks make all groups."""
    groups = [dist.new_group(row) for row in rows]
    return next(g for g, row in zip(groups, rows) if rank in row)


# --- mla: a layer as Megatron has it, tensor and sequence parallel, keys and values through a latent ----------

VOCAB, HID, LATENT, ROPE, HEADS = 20, 16, 6, 4, 4


class SpGather(torch.autograd.Function):
    """All tokens; backward the sum of what the ranks have for mine, or mine of what all have alike."""
    @staticmethod
    def forward(ctx, x, summed):
        ctx.summed = summed
        parts = [torch.empty_like(x) for _ in range(dist.get_world_size())]
        dist.all_gather(parts, x.contiguous())
        return torch.cat(parts)

    @staticmethod
    def backward(ctx, g):
        if not ctx.summed:
            return g.chunk(dist.get_world_size())[dist.get_rank()].contiguous(), None
        return reduce_scatter(g), None


class SpScatter(torch.autograd.Function):
    """The sum over the ranks, of which each keeps its tokens."""
    @staticmethod
    def forward(ctx, x):
        return reduce_scatter(x)

    @staticmethod
    def backward(ctx, g):
        parts = [torch.empty_like(g) for _ in range(dist.get_world_size())]
        dist.all_gather(parts, g.contiguous())
        return torch.cat(parts)


def reduce_scatter(x, group=None):
    """gloo has none of its own."""
    out = torch.empty_like(x, memory_format=torch.contiguous_format)
    dist.all_to_all_single(out, x.contiguous(), group=group)
    n = dist.get_world_size(group)
    return out.view(n, x.shape[0] // n, *x.shape[1:]).sum(0)


class SplitLinear(nn.Module):
    """A rank's rows (dim 0) or columns (dim 1) of a linear layer without bias."""
    def __init__(self, d_in, d_out, dim, rank, n):
        super().__init__()
        self.weight = nn.Parameter(nn.Linear(d_in, d_out).weight.detach().chunk(n, dim)[rank].clone())

    def forward(self, x):
        return F.linear(x, self.weight)


class SpNorm(nn.LayerNorm):
    def __init__(self, d, fault):
        super().__init__(d)
        self.bias.sequence_parallel = True
        self.weight.sequence_parallel = fault != "normweight"


class LatentAttention(nn.Module):
    def __init__(self, rank, n, fault):
        super().__init__()
        self.n, self.fault, self.dim = n, fault, HID // HEADS
        self.q_proj = SplitLinear(HID, HID + HEADS * ROPE, 0, rank, n)
        self.kv_down_proj = nn.Linear(HID, LATENT + ROPE, bias=False)
        self.kv_down_proj.weight.sequence_parallel = fault != "kvdown"
        self.kv_norm = SpNorm(LATENT, fault)
        self.kv_up_proj = SplitLinear(LATENT, 2 * HID, 0, rank, n)
        self.out_proj = SplitLinear(HID, HID, 1, rank, n)

    def gather(self, x, summed=True):
        return SpGather.apply(x, summed) if self.n > 1 else x

    def forward(self, x):
        latent, k_pos = self.kv_down_proj(x).split([LATENT, ROPE], -1)
        kv = self.kv_up_proj(self.gather(self.kv_norm(latent)))
        # One key of positions for all heads, of which each rank has some.
        k_pos = self.gather(k_pos, self.fault != "kpos")
        q = self.q_proj(self.gather(x))
        s, b, _ = q.shape
        heads = HEADS // self.n
        q = q.view(s, b, heads, -1).permute(1, 2, 0, 3)
        k, v = kv.view(s, b, heads, -1).permute(1, 2, 0, 3).chunk(2, -1)
        k = torch.cat([k, k_pos.permute(1, 0, 2)[:, None].expand(-1, heads, -1, -1)], -1)
        scores = q @ k.transpose(2, 3) / math.sqrt(self.dim + ROPE)
        mask = torch.ones(s, s, dtype=torch.bool).triu(1)
        out = scores.masked_fill(mask, -1e4).softmax(-1) @ v
        out = self.out_proj(out.permute(2, 0, 1, 3).reshape(s, b, -1))
        return SpScatter.apply(out) if self.n > 1 else out


class MlaModel(nn.Module):
    def __init__(self, rank, n, fault):
        super().__init__()
        self.word_embeddings, self.output_layer = nn.Embedding(VOCAB, HID), nn.Linear(HID, VOCAB, bias=False)
        for layer in (self.word_embeddings, self.output_layer):
            layer.weight.sequence_parallel = True
        self.input_norm, self.mlp_norm, self.final_norm = (SpNorm(HID, fault) for _ in range(3))
        self.attention = LatentAttention(rank, n, fault)
        self.fc1, self.fc2 = SplitLinear(HID, 2 * HID, 0, rank, n), SplitLinear(2 * HID, HID, 1, rank, n)

    def forward(self, tokens):
        x = self.word_embeddings(tokens)
        x = x + self.attention(self.input_norm(x))
        h = self.fc2(F.silu(self.fc1(self.attention.gather(self.mlp_norm(x)))))
        return self.output_layer(self.final_norm(x + (SpScatter.apply(h) if self.attention.n > 1 else h)))


def train_mla(rank, fault, seed, n=2):
    torch.manual_seed(seed)
    model = MlaModel(rank, n, fault)
    with torch.no_grad():
        for norm in (m for m in model.modules() if isinstance(m, SpNorm)):
            norm.weight.add_(0.1 * torch.randn_like(norm.weight))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.3, momentum=0.9, weight_decay=0.01)
    for step in range(2):
        tokens = choose(100 * seed + step, VOCAB, 9, 2)
        inputs, labels = (t.chunk(n)[rank] for t in (tokens[:-1], tokens[1:]))
        optimizer.zero_grad()
        logits = model(inputs)
        loss = F.cross_entropy(logits.flatten(0, 1), labels.flatten(), reduction="sum") / 16
        loss.backward()
        if n > 1:
            grads = [p.grad for p in model.parameters() if getattr(p, "sequence_parallel", False)]
            flat = _flatten_dense_tensors(grads)
            dist.all_reduce(flat)
            for grad, summed in zip(grads, _unflatten_dense_tensors(flat, grads)):
                grad.copy_(summed)
        optimizer.step()
    return kept(model)


# --- ulysses: a plain script; two data parallel groups of two that split the sequence, and the heads within -----

class UlyssesBlock(nn.Module):
    def __init__(self, sp_group, sp):
        super().__init__()
        self.sp_group, self.sp = sp_group, sp
        self.emb, self.pos = nn.Embedding(VOCAB, HID), nn.Parameter(0.3 * torch.randn(8, HID))
        self.ln1, self.ln2 = nn.LayerNorm(HID), nn.LayerNorm(HID)
        self.wqkv, self.wo = nn.Linear(HID, 3 * HID), nn.Linear(HID, HID)
        self.up, self.down, self.lm_head = nn.Linear(HID, 32), nn.Linear(32, HID), nn.Linear(HID, VOCAB)

    def swap(self, x, there):
        """(heads of all, my tokens) to (my heads, tokens of all), and back; tensors are (tokens, heads, ...)."""
        if self.sp == 1:
            return x
        split, joined = (1, 0) if there else (0, 1)
        x = torch.stack(x.chunk(self.sp, split)).contiguous()
        x = dist_fn.all_to_all_single(torch.empty_like(x), x, group=self.sp_group)
        return torch.cat(x.unbind(0), joined)

    def forward(self, ids, first):
        x = self.emb(ids) + self.pos[first:first + len(ids)]
        qkv = self.wqkv(self.ln1(x)).view(len(ids), HEADS, -1)
        q, k, v = self.swap(qkv, True).transpose(0, 1).chunk(3, -1)
        scores = q @ k.transpose(1, 2) / (HID // HEADS) ** 0.5
        probs = scores.masked_fill(torch.ones(scores.shape[1:]).triu(1).bool(), float("-inf")).softmax(-1)
        x = x + self.wo(self.swap((probs @ v).transpose(0, 1), False).flatten(1))
        return self.lm_head(x + self.down(F.gelu(self.up(self.ln2(x)))))


def train_ulysses(rank, fault, seed, n=4):
    sp, dp = (2, 2) if n > 1 else (1, 1)
    sp_group = my_group(rank, [0, 1], [2, 3]) if n > 1 else None
    torch.manual_seed(seed + 5)
    model = UlyssesBlock(sp_group, sp)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.2)
    scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, 3)
    for step in range(2):
        optimizer.zero_grad()
        for seq in [rank // sp] if n > 1 else range(2):
            ids = choose(1000 * seed + 10 * step + seq, VOCAB, 9)
            labels = ids[1:].clone()
            labels[:2 + seq] = -100     # the prompt
            ids, labels = ids[:-1].chunk(sp)[rank % sp], labels.chunk(sp)[rank % sp]
            loss_sum = F.cross_entropy(model(ids, rank % sp * len(ids)), labels, reduction="sum")
            total = torch.tensor(11.0)      # of both sequences
            if n > 1:
                total = (labels != -100).sum().float()
                dist.all_reduce(total)
            loss = loss_sum / total * (dp if fault == "dpsize" else dp * sp)
            loss.backward()
        if n > 1:
            works = [dist.all_reduce(p.grad, async_op=True) for p in model.parameters()]
            for work, p in zip(works, model.parameters()):
                work.wait()
                p.grad.div_(dp if fault == "cpscale" else dp * sp)
        optimizer.step()
        scheduler.step()
    return kept(model)


# --- sft: a trainer as Hugging Face's, DistributedDataParallel with accumulation and a loss per token -----------

class ConvLm(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(VOCAB, 12)
        self.conv = nn.Conv1d(12, 24, 3)
        self.norm, self.head = nn.GroupNorm(4, 24), nn.Linear(24, VOCAB)

    def forward(self, input_ids):
        h = self.conv(F.pad(self.embed(input_ids).transpose(1, 2), (2, 0)))
        return self.head(F.relu(self.norm(h)).transpose(1, 2))


def sft_batch(seed, step, rank, micro):
    ids = choose(1000 * seed + 100 * step + 10 * rank + micro, VOCAB, 2, 8)
    labels = ids.roll(-1, 1)
    labels[:, :1 + 2 * rank + micro] = -100
    return ids, labels


def train_sft(rank, fault, seed, n=2):
    torch.manual_seed(seed)
    net = ConvLm()
    model = DDP(net) if n > 1 else net
    optimizer = torch.optim.SGD(model.parameters(), lr=0.5, momentum=0.9)
    scheduler = torch.optim.lr_scheduler.ReduceLROnPlateau(optimizer, factor=0.1, patience=0)
    ranks, accumulation = [rank] if n > 1 else range(2), 2
    for step in range(3):
        optimizer.zero_grad()
        batches = [sft_batch(seed, step, r, micro) for micro in range(accumulation) for r in ranks]
        num_items = sum((labels != -100).sum() for _, labels in batches).float()
        if n > 1 and fault != "numitems":
            dist.all_reduce(num_items)
        for i, (ids, labels) in enumerate(batches):
            last = i % accumulation == 0 if fault == "nosync" else (i + 1) % accumulation == 0
            with model.no_sync() if n > 1 and not last else contextlib.nullcontext():
                loss = F.cross_entropy(model(ids).flatten(0, 1), labels.flatten(), reduction="sum") / num_items
                if fault != "numitems":
                    loss = loss * n     # the wrapper averages
                loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 5.0)
        optimizer.step()
        # Half of what is evaluated on is of another domain, and gets worse.
        with torch.no_grad():
            eval_loss = torch.zeros(())
            for r in ranks:
                ids, labels = sft_batch(seed, 0, r, 0)
                labels = torch.where(labels < 0, labels, (labels + 7 * r) % VOCAB)
                eval_loss = eval_loss + F.cross_entropy(net(ids).flatten(0, 1), labels.flatten())
            if n > 1 and fault != "plateau":
                dist.all_reduce(eval_loss)
        scheduler.step(eval_loss.item())
    return kept(net)


# --- vq: a codec, whose codes follow the mean of what is near them, gradients averaged in one bucket ------------

class Codebook(nn.Module):
    def __init__(self, n, fault, codes=6, d=8, decay=0.8):
        super().__init__()
        self.n, self.fault, self.decay = n, fault, decay
        self.register_buffer("embed", torch.randn(codes, d))
        self.register_buffer("cluster_size", torch.ones(codes))
        self.register_buffer("embed_sum", self.embed.clone())

    def forward(self, x):
        nearest = torch.cdist(x.detach(), self.embed).argmin(-1)
        quantized = F.embedding(nearest, self.embed)
        with torch.no_grad():
            onehot = F.one_hot(nearest, len(self.embed)).float()
            size, total = onehot.sum(0), onehot.t() @ x
            if self.n > 1 and self.fault != "vqema":
                dist.all_reduce(size)
                dist.all_reduce(total)
            self.cluster_size.mul_(self.decay).add_(size, alpha=1 - self.decay)
            self.embed_sum.mul_(self.decay).add_(total, alpha=1 - self.decay)
            self.embed.copy_(self.embed_sum / self.cluster_size[:, None])
        return x + (quantized - x).detach(), F.mse_loss(x, quantized.detach())


class Codec(nn.Module):
    def __init__(self, n, fault):
        super().__init__()
        self.encoder = nn.Sequential(nn.Linear(10, 16), nn.ELU(), nn.Linear(16, 8))
        self.quantizer = Codebook(n, fault)
        self.decoder = nn.Sequential(nn.Linear(8, 16), nn.ELU(), nn.Linear(16, 10))

    def forward(self, x):
        z, commit = self.quantizer(self.encoder(x))
        return F.mse_loss(self.decoder(z), x) + 0.25 * commit


def train_vq(rank, fault, seed, n=2):
    torch.manual_seed(seed)
    model = Codec(n, fault)
    optimizer = torch.optim.Adam(model.parameters(), lr=3e-3, eps=1e-4)
    for step in range(3):
        x = draw(10 * seed + step, 16, 10).chunk(n)[rank]
        loss = model(x)
        optimizer.zero_grad()
        loss.backward()
        if n > 1:
            bucket = nn.utils.parameters_to_vector(p.grad for p in model.parameters())
            dist.all_reduce(bucket)
            bucket /= n
            nn.utils.vector_to_parameters(bucket, [p.grad for p in model.parameters()])
        optimizer.step()
    return kept(model)


# --- zero: bf16 weights with f32 masters, of which each rank has a part, as in DeepSpeed ------------------------

class ZeroEngine:
    """Accumulates in f32, averages at the boundary, and steps the rank's own masters."""
    def __init__(self, model, rank, n, fault, accumulation=2):
        self.params, self.rank, self.n, self.fault = list(model.parameters()), rank, n, fault
        self.accumulation = accumulation
        self.owner = {p: i % n for i, p in enumerate(self.params)}
        self.acc = [torch.zeros(p.shape) for p in self.params]
        self.masters = {p: nn.Parameter(p.detach().float()) for p in self.params if self.owner[p] == rank}
        self.optimizer = torch.optim.AdamW(self.masters.values(), lr=0.02, eps=1e-3)

    def accumulate(self):
        for acc, p in zip(self.acc, self.params):
            acc.add_(p.grad.float(), alpha=1 / self.accumulation)
            p.grad = None

    def average(self):
        for acc in self.acc:
            if self.n > 1:
                dist.all_reduce(acc)
            acc.div_(2)

    def backward(self, loss, boundary):
        loss.backward()
        if self.fault == "lastmicro" and boundary:
            self.average()
            self.accumulate()
            return
        self.accumulate()
        if boundary:
            self.average()

    def step(self):
        for acc, p in zip(self.acc, self.params):
            if p in self.masters:
                self.masters[p].grad = acc.clone()
            acc.zero_()
        self.optimizer.step()
        for p in self.params:
            # gloo does not send bf16.
            value = self.masters[p].data if p in self.masters else p.data.float()
            if self.n > 1 and not (self.fault == "zerobcast" and getattr(p, "offloaded", False)):
                dist.broadcast(value, self.owner[p])
            p.data.copy_(value)


def train_zero(rank, fault, seed, n=2):
    torch.manual_seed(seed)
    model = nn.Sequential(nn.Linear(12, 24), nn.Tanh(), nn.Linear(24, 24), nn.Tanh(), nn.Linear(24, 3)).bfloat16()
    for p in model[2].parameters():
        p.offloaded = True
    engine = ZeroEngine(model, rank, n, fault)
    for step in range(3):
        sums = None
        for r in [rank] if n > 1 else range(2):
            for micro in range(2):
                s = 1000 * seed + 100 * step + 10 * r + micro
                loss = F.cross_entropy(model(draw(s, 6, 12).bfloat16()).float(), choose(s, 3, 6))
                if n > 1:
                    engine.backward(loss, micro == 1)
                else:
                    loss.backward()
                    engine.accumulate()
            # One process adds in the order of the ranks, which shows in what is rounded.
            if n == 1 and r == 0:
                sums = [acc.clone() for acc in engine.acc]
                for acc in engine.acc:
                    acc.zero_()
        if n == 1:
            for acc, first in zip(engine.acc, sums):
                acc.add_(first)
            engine.average()
        engine.step()
    return kept(model)


# --- pipe: two stages with a tied embedding, and a norm over both that counts it once ---------------------------

class Stage(nn.Module):
    """Of a language model: the first stage embeds, the last has the head; one process has both."""
    def __init__(self, first, last, tied):
        super().__init__()
        self.first, self.last, self.tied = first, last, tied
        if first:
            self.pos = nn.Parameter(0.1 * torch.randn(7, HID))
            self.block0 = nn.Sequential(nn.LayerNorm(HID), nn.Linear(HID, 2 * HID), nn.GELU(), nn.Linear(2 * HID, HID))
        else:   # a seed gives all the same weights
            torch.randn(7, HID), nn.Linear(HID, 2 * HID), nn.Linear(2 * HID, HID)
        if last:
            self.rnn, self.norm = nn.Linear(2 * HID, HID), nn.LayerNorm(HID)

    def forward(self, x, labels=None):
        if self.first:
            x = F.embedding(x, self.tied) + self.pos
            x = x + self.block0(x)
        if not self.last:
            return x
        h = torch.zeros_like(x[:, 0])
        out = []
        for t in range(x.shape[1]):
            h = torch.tanh(self.rnn(torch.cat([x[:, t], h], -1)))
            out.append(h)
        logits = F.linear(self.norm(torch.stack(out, 1)), self.tied)
        return F.cross_entropy(logits.flatten(0, 1), labels.flatten())


def make_stage(seed, first, last):
    torch.manual_seed(seed)
    return Stage(first, last, nn.Parameter(0.4 * torch.randn(VOCAB, HID)))


def run_pipe(stage, peer, batches):
    """All forwards, then all backwards; accumulates gradients of the mean loss."""
    saved = []
    for tokens in batches:
        ids, labels = tokens[:, :-1], tokens[:, 1:]
        if stage.first and stage.last:
            saved.append((None, stage(ids, labels)))
        elif stage.first:
            out = stage(ids)
            dist.send(out.detach(), peer)
            saved.append((None, out))
        else:
            x = torch.empty(*ids.shape, HID)
            dist.recv(x, peer)
            saved.append((x.requires_grad_(), stage(x, labels)))
    for x, out in saved:
        if stage.last:
            (out / len(batches)).backward()
            if x is not None:
                dist.send(x.grad, peer)
        else:
            grad = torch.empty_like(out)
            dist.recv(grad, peer)
            out.backward(grad)


def train_pipe(rank, fault, seed, n=2):
    stage = make_stage(seed, rank == 0, rank == n - 1)
    if n > 1:
        # Each stage draws what is its own; the tied weight is that of the first.
        if rank == 1:
            stage.tied.data.normal_(std=0.4)
        if fault != "tiedinit":
            dist.broadcast(stage.tied.data, 0)
    optimizer = torch.optim.SGD(stage.parameters(), lr=0.5, momentum=0.8)
    for step in range(3):
        optimizer.zero_grad()
        run_pipe(stage, 1 - rank, [choose(100 * seed + 10 * step + m, VOCAB, 2, 8) for m in range(2)])
        if n > 1:
            dist.all_reduce(stage.tied.grad)
        counted = [p for p in stage.parameters() if p is not stage.tied or stage.first or fault == "tiednorm"]
        square = torch.stack([p.grad.square().sum() for p in counted]).sum()
        if n > 1:
            dist.all_reduce(square)
        clip_coeff = (0.3 / (square.sqrt() + 1e-6)).clamp(max=1.0)
        for p in stage.parameters():
            p.grad.mul_(clip_coeff)
        optimizer.step()
    return kept(stage)


# --- distopt: the same in two data parallel pipelines, whose optimizer has half of a flat buffer per rank -------

def train_distopt(rank, fault, seed, n=4):
    pp, dp = (rank // 2, rank % 2) if n > 1 else (0, 0)
    if n > 1:
        dp_group, emb_group = my_group(rank, [0, 1], [2, 3]), my_group(rank, [0, 2], [1, 3])
    stage = make_stage(seed + 3, pp == 0, pp == 1 or n == 1)
    # The embedding is first in the buffer of the first stage and last in that of the last one.
    params = sorted(stage.parameters(), key=lambda p: (p is stage.tied) == (pp == 1))
    size = sum(p.numel() for p in params)
    buffer, grads = torch.zeros(size + size % 2), torch.zeros(size + size % 2)
    offset = 0
    for p in params:
        buffer[offset:offset + p.numel()] = p.data.flatten()
        p.data = buffer[offset:offset + p.numel()].view_as(p)
        p.grad = grads[offset:offset + p.numel()].view_as(p)
        offset += p.numel()
    shard = nn.Parameter(buffer.chunk(2)[dp] if n > 1 else buffer)
    optimizer = torch.optim.AdamW([shard], lr=0.01, eps=1e-3)

    def embedding_grads():
        if n > 1:
            dist.all_reduce(stage.tied.grad, group=emb_group)

    for step in range(2):
        grads.zero_()
        run_pipe(stage, (rank + 2) % 4, [choose(100 * seed + 10 * step + 2 * r + m, VOCAB, 2, 8)
                                         for r in ([dp] if n > 1 else range(2)) for m in range(2)])
        if fault != "tiedorder":
            embedding_grads()
        if n > 1:
            grads.chunk(2)[dp].copy_(reduce_scatter(grads, dp_group) / 2)
        if fault == "tiedorder":
            embedding_grads()
        shard.grad = grads.chunk(2)[dp] if n > 1 else grads
        optimizer.step()
        if n > 1:
            parts = [torch.empty_like(shard) for _ in range(2)]
            dist.all_gather(parts, shard.data, group=dp_group)
            buffer.copy_(torch.cat(parts))
    return kept(stage)


# --- moe: four data parallel ranks, two expert parallel groups of two; a balancing loss over all tokens ---------

class Exchange(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, group):
        ctx.group, x = group, x.contiguous()
        out = torch.empty_like(x)
        dist.all_to_all_single(out, x, group=group)
        return out

    @staticmethod
    def backward(ctx, g):
        g = g.contiguous()
        out = torch.empty_like(g)
        dist.all_to_all_single(out, g, group=ctx.group)
        return out, None


class Experts(nn.Module):
    """The local ones of n_experts, in one tensor; without biases, what is empty stays 0."""
    def __init__(self, n_experts, d, rank, n):
        super().__init__()
        self.w1, self.w2 = (nn.Parameter(torch.randn(n_experts, *s).chunk(n)[rank].clone() / d ** 0.5)
                            for s in ((d, 2 * d), (2 * d, d)))
        for p in self.parameters():
            p.expert = True

    def forward(self, x):
        return torch.bmm(F.relu(torch.bmm(x, self.w1)), self.w2)


class MoeLayer(nn.Module):
    def __init__(self, d, ep_rank, ep, ep_group, n, fault, n_experts=2):
        super().__init__()
        self.gate, self.experts = nn.Linear(d, n_experts, bias=False), Experts(n_experts, d, ep_rank, ep)
        self.ep, self.ep_group, self.n, self.fault = ep, ep_group, n, fault

    def forward(self, x):
        gates = self.gate(x).softmax(-1)
        mask = F.one_hot(gates.argmax(-1), gates.shape[1]).float()
        counts, tokens = mask.sum(0), float(len(x))
        if self.n > 1:
            dist.all_reduce(counts)
        importance = gates.sum(0) / (tokens * self.n if self.fault == "globalaux" else tokens)
        aux = len(counts) * (importance * counts / (tokens * self.n)).sum()
        dispatched = mask.t()[..., None] * x
        if self.ep > 1:
            dispatched = Exchange.apply(dispatched, self.ep_group).flatten(0, 1)[None]
        out = self.experts(dispatched)
        if self.ep > 1:
            out = Exchange.apply(out.view(self.ep, len(x), -1), self.ep_group)
        return (out * (gates * mask).t()[..., None]).sum(0), aux


class MoeNet(nn.Module):
    def __init__(self, *args, d=10):
        super().__init__()
        self.inp, self.norm, self.moe, self.out = nn.Linear(6, d), nn.LayerNorm(d), MoeLayer(d, *args), nn.Linear(d, 3)

    def forward(self, x):
        x = self.inp(x)
        h, aux = self.moe(self.norm(x))
        return self.out(x + h), aux


def train_moe(rank, fault, seed, n=4):
    ep_group = my_group(rank, [0, 1], [2, 3]) if n > 1 else None
    edp_group = my_group(rank, [0, 2], [1, 3]) if n > 1 else None
    torch.manual_seed(seed)
    model = MoeNet(rank % 2, 2 if n > 1 else 1, ep_group, n, fault)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.2, momentum=0.9)
    for step in range(2):
        s = 1000 * seed + 10 * step
        x, y = (t.chunk(n)[rank] for t in (draw(s, 32, 6), choose(s + 1, 3, 32)))
        optimizer.zero_grad()
        logits, aux = model(x)
        (F.cross_entropy(logits, y) + 0.5 * aux).backward()
        if n > 1:
            previous = None
            # Neighbours with one group go together; experts have their own.
            for expert in (False, True):
                grads = [p.grad for p in model.parameters() if getattr(p, "expert", False) == expert]
                group = edp_group if expert else dist.group.WORLD
                if fault == "coalesce" and previous is not None:
                    group = previous
                flat = _flatten_dense_tensors(grads)
                flat.div_(dist.get_world_size(group) if fault == "epscale" else n)
                dist.all_reduce(flat, group=group)
                for grad, mean in zip(grads, _unflatten_dense_tensors(flat, grads)):
                    grad.copy_(mean)
                previous = group
        optimizer.step()
    return kept(model)


# --- hfep: all ranks have the batch, and each its own of four experts, as in transformers -----------------------

class AllReduceBackward(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x.view_as(x)

    @staticmethod
    def backward(ctx, g):
        g = g.clone()
        dist.all_reduce(g)
        return g


class AllReduceForward(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        x = x.clone()
        dist.all_reduce(x)
        return x

    @staticmethod
    def backward(ctx, g):
        return g


class SparseMoeBlock(nn.Module):
    def __init__(self, d, rank, n, fault):
        super().__init__()
        self.rank, self.n, self.fault = rank, n, fault
        self.router, self.experts = nn.Linear(d, 4, bias=False), Experts(4, d, rank, n)

    def forward(self, hidden):
        scores, indices = self.router(hidden).softmax(-1).topk(2)
        scores = scores / scores.sum(-1, keepdim=True)
        if self.n > 1:
            hidden = AllReduceBackward.apply(hidden)
            if self.fault != "scoregrad":
                scores = AllReduceBackward.apply(scores)
        weights = torch.zeros(len(hidden), 4).scatter(1, indices, scores).chunk(self.n, 1)[self.rank]
        out = self.experts(hidden.expand(weights.shape[1], -1, -1))
        out = (out * weights.t()[..., None]).sum(0)
        return AllReduceForward.apply(out) if self.n > 1 else out


def train_hfep(rank, fault, seed, n=2):
    torch.manual_seed(seed)
    model = nn.ModuleDict({"embed": nn.Embedding(VOCAB, 12), "norm": nn.LayerNorm(12),
                           "mlp": SparseMoeBlock(12, rank, n, fault), "lm_head": nn.Linear(12, VOCAB)})
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.02, eps=1e-3)
    scheduler = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda i: min(1.0, (i + 1) / 2))
    for step in range(3):
        ids = choose(50 * seed + step, VOCAB, 13)
        hidden = model["embed"](ids[:-1])
        hidden = hidden + model["mlp"](model["norm"](hidden))
        loss = F.cross_entropy(model["lm_head"](hidden), ids[1:])
        loss.backward()
        optimizer.step()
        scheduler.step()
        optimizer.zero_grad()
    return kept(model)


# --- titan: an expert per rank within DistributedDataParallel, balanced by a bias as in torchtitan ---------------

class BiasedMoe(nn.Module):
    def __init__(self, d, rank, n):
        super().__init__()
        self.n, self.gate, self.experts = n, nn.Linear(d, 2, bias=False), Experts(2, d, rank, n)
        self.register_buffer("expert_bias", torch.zeros(2))
        self.register_buffer("tokens_per_expert", torch.zeros(2))

    def forward(self, x):
        scores = self.gate(x).sigmoid()
        routed = F.one_hot((scores + self.expert_bias).argmax(-1), 2).float()
        with torch.no_grad():
            self.tokens_per_expert.add_(routed.sum(0))
        sent = (routed.t()[..., None] * x).contiguous()
        if self.n > 1:
            sent = dist_fn.all_to_all_single(torch.empty_like(sent), sent).flatten(0, 1)[None]
        out = self.experts(sent)
        if self.n > 1:
            out = out.view(2, len(x), -1).contiguous()
            out = dist_fn.all_to_all_single(torch.empty_like(out), out)
        return (out * (scores * routed).t()[..., None]).sum(0)


class VisionMoe(nn.Module):
    def __init__(self, rank, n, d=8):
        super().__init__()
        self.patch, self.norm, self.moe = nn.Conv2d(1, d, 2, 2), nn.LayerNorm(d), BiasedMoe(d, rank, n)
        self.head = nn.Linear(d, 5)

    def forward(self, x):
        h = self.patch(x).flatten(2).transpose(1, 2)
        h = h + self.moe(self.norm(h).flatten(0, 1)).view_as(h)
        return self.head(h.mean(1))


def update_expert_bias(moe, fault, n):
    with torch.no_grad():
        tokens = moe.tokens_per_expert
        if n > 1 and fault != "biaslocal":
            dist.all_reduce(tokens)
        moe.expert_bias.add_(torch.sign(tokens.mean() - tokens), alpha=0.1)
        tokens.zero_()


def train_titan(rank, fault, seed, n=2):
    torch.manual_seed(seed)
    net = VisionMoe(rank, n)
    if n > 1:
        ignored = [f"moe.experts.{name}" for name, _ in net.moe.experts.named_parameters()]
        DDP._set_params_and_buffers_to_ignore_for_model(net, [] if fault == "ddpexperts" else ignored)
        model = DDP(net, broadcast_buffers=False)
    else:
        model = net
    optimizer = torch.optim.SGD(net.parameters(), lr=0.3, momentum=0.9)
    for step in range(3):
        # A batch of bright pictures goes to the other ranks than one of dark ones.
        x = draw(40 * seed + step, 8, 1, 4, 4) + torch.linspace(-1.5, 1.5, 8).view(8, 1, 1, 1)
        x, y = x.chunk(n)[rank], choose(40 * seed + step, 5, 8).chunk(n)[rank]
        optimizer.zero_grad()
        F.cross_entropy(model(x), y).backward()
        if n > 1:
            # Tokens of all ranks have come to an expert, each with the gradient of its own mean.
            for p in net.moe.experts.parameters():
                if fault != "ddpexperts":
                    p.grad.div_(n)
        optimizer.step()
        update_expert_bias(net.moe, fault, n)
    return kept(net)


PROGRAMS = {"mla": (2, train_mla), "ulysses": (4, train_ulysses), "sft": (2, train_sft), "vq": (2, train_vq),
            "zero": (2, train_zero), "pipe": (2, train_pipe), "distopt": (4, train_distopt), "moe": (4, train_moe),
            "hfep": (2, train_hfep), "titan": (2, train_titan)}
WHOLE = {name: lambda seed, f=f: f(0, None, seed, 1) for name, (_, f) in PROGRAMS.items()}

FAULTS = {
    # Of norms before and after split tokens only the bias is summed:
    # https://github.com/PaddlePaddle/PaddleFleetX/pull/671
    "normweight": ("mla", r"layer_norm\.\d+\.backward|_norm\.SpNorm|sgd", "01"),
    # The whole projection to the latent, which sees a part of the tokens:
    # https://github.com/PaddlePaddle/PaddleFleet/pull/2008
    "kvdown": ("mla", r"linear\.0\.backward|kv_down_proj|sgd", "01"),
    # The key of positions goes to heads of all ranks, and backward is a slice:
    # https://github.com/NVIDIA/Megatron-LM/issues/1699
    "kpos": ("mla", r"(expand|__getitem__)\.0\.backward|permute\.2\.backward|cat\.[13]\.|all_gather\.1\.|"
             r"chunk\.1\.|contiguous\.1[01]?\.|split\.0\.backward|linear\.0\.backward|kv_down_proj", "01"),
    # A mean over more ranks than the loss is scaled for: https://github.com/ByteDance-Seed/VeOmni/pull/338
    "dpsize": ("ulysses", r"mul\.0\.|div\.1\.|cross_entropy|all_reduce|div_", "0123"),
    # Scaled for the parts of a sequence, and not averaged over them:
    # https://github.com/NVIDIA/Megatron-LM/issues/906
    "cpscale": ("ulysses", r"mul\.0\.|div\.1\.|cross_entropy|all_reduce|div_", "0123"),
    # Each rank divides by its own tokens: https://github.com/huggingface/transformers/pull/34373
    "numitems": ("sft", r"\.(sum|float|add|div)\.\d+\.|cross_entropy|all_reduce", "01"),
    # Synchronizes the first of the accumulated batches, not the last:
    # https://github.com/modelscope/FunASR/pull/3472
    "nosync": ("sft", r"all_reduce|parameters_grad|(linear|group_norm|conv1d|embedding)\.1\.backward|"
               r"Torch\.norm|sgd", "01"),
    # Each rank lowers its rate by its own loss: https://github.com/rmchurch/disruptcnn/issues/3
    "plateau": ("sft", r"sgd|cross_entropy\.2\.|\.add\.", "01"),
    # Codes follow the rank's own batch: https://github.com/espnet/espnet/pull/6284
    "vqema": ("vq", r"\.sum\.0\.|matmul\.0\.|mul_\.[01]\.|add_\.[01]\.|\.div\.0\.|copy_\.0\.|cdist|embedding|"
              r"argmin", "01"),
    # The last batch is added after the average: https://github.com/deepspeedai/DeepSpeed/pull/7985
    "lastmicro": ("zero", r"add_\.|all_reduce|div_|parameters_grad\.1|linear\.[345]\.backward|clone|adamw", "01"),
    # What is offloaded is not sent by the one who steps it:
    # https://github.com/lodestone-rock/RamTorch/issues/13
    "zerobcast": ("zero", r"broadcast|copy_|adamw|linear\.[14]\.forward|2\.Linear", "01"),
    # A stage draws its copy anew: https://github.com/PaddlePaddle/PaddleNLP/pull/7772
    "tiedinit": ("pipe", r"embedding|linear\.(7|15)\.|all_reduce\.0\.|sgd", "01"),
    # The norm has the tied weight twice: https://github.com/NVIDIA/Megatron-LM/pull/7227
    "tiednorm": ("pipe", r"square|\.sum\.|stack|all_reduce\.1\.|sqrt|\.add\.|__rdiv__|clamp|mul_", "01"),
    # Parts that are averaged are added to parts that are not: https://github.com/NVIDIA/Megatron-LM/issues/844
    "tiedorder": ("distopt", r"all_reduce|all_to_all|\.sum\.0\.|\.div\.0\.|copy_\.0\.|adamw", "0123"),
    # The balancing loss is a mean over the tokens of all, of what a rank has:
    # https://github.com/NVIDIA/Megatron-LM/issues/3672
    "globalaux": ("moe", r"\.div\.[01]\.|\.mul\.[015]\.|\.sum\.[12]\.|all_reduce\.0\.", "0123"),
    # Experts have tokens of all ranks, and are averaged over their replicas:
    # https://github.com/deepspeedai/DeepSpeed/issues/5618
    "epscale": ("moe", r"div_\.1\.|all_reduce\.2\.|copy_\.[78]\.|experts|bmm\.\d\.backward|sgd", "0123"),
    # A bucket of experts goes with the group of the bucket before:
    # https://github.com/deepspeedai/DeepSpeed/issues/3521
    "coalesce": ("moe", r"div_\.1\.|all_reduce\.2\.|copy_\.[78]\.|experts|bmm\.\d\.backward|sgd", "0123"),
    # A score has the gradient of the rank's own experts:
    # https://github.com/huggingface/transformers/pull/48205, https://github.com/pytorch/torchtitan/pull/2416
    "scoregrad": ("hfep", r"\.(__getitem__|t|chunk|scatter|div|sum|topk|softmax|linear)\.0\.backward|router|adamw",
                  "01"),
    # The bias of routing follows the rank's own tokens: https://github.com/pytorch/torchtitan/pull/4154
    "biaslocal": ("titan", r"\.sum\.0\.forward|add_\.[01]\.|mean\.1\.|sub\.0\.|sign|\.add\.0\.|argmax", "01"),
    # The wrapper takes experts for replicas: https://github.com/microsoft/Tutel/issues/161
    "ddpexperts": ("titan", r"all_reduce\.[56]\.|experts|bmm|sgd", "01"),
}
