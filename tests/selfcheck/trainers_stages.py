"""Small trainers: stages that share an embedding, and what public trackers report to go wrong with the weights
that more than one stage has.

Each train(rank, fault, seed, n) is a user's program on n ranks; with n = 1 it is what one process does that has the
whole model and batch, without the collectives.
"""
import torch
import torch.distributed as dist
import torch.nn as nn
import torch.nn.functional as F

from trainers_kit import D, VOCAB, RMSNorm, ends, ids, my_groups, rand


# --- pipe: a GPT in two stages, the first stage's embedding is the last one's head ---------------------------------

class GptBlock(nn.Module):
    def __init__(self):
        super().__init__()
        self.ln, self.mix = nn.LayerNorm(D), nn.Linear(D, D)
        self.up, self.down = nn.Linear(D, 2 * D), nn.Linear(2 * D, D)

    def forward(self, x):
        h = self.ln(x)
        count = torch.arange(1, x.shape[1] + 1, dtype=x.dtype)[:, None]
        return x + torch.tanh(self.mix(h.cumsum(1) / count)) + self.down(F.gelu(self.up(h)))


class GptStage(nn.Module):
    def __init__(self, seed, layers, first, last):
        super().__init__()
        self.first, self.last = first, last
        torch.manual_seed(seed)
        self.word = nn.Embedding(VOCAB, D)
        self.blocks = nn.ModuleDict()
        for i in layers:
            torch.manual_seed(seed + 10 + i)
            self.blocks[str(i)] = GptBlock()
        if last:
            self.final = nn.LayerNorm(D)
        # What another stage counts is not counted again.
        self.word.weight.shared = last and not first

    def forward(self, x):
        x = self.word(x) if self.first else x
        for block in self.blocks.values():
            x = block(x)
        return F.linear(self.final(x), self.word.weight) if self.last else x


def gpipe(stage, rank, batches):
    """All forwards, then all backwards."""
    held = []
    for t, _ in batches:
        if rank == 0:
            out = stage(t)
            dist.send(out.detach(), 1)
            held.append(out)
        else:
            x = torch.empty(*t.shape, D)
            dist.recv(x, 0)
            held.append((x.requires_grad_(), stage(x)))
    for (_, y), got in zip(batches, held):
        if rank == 0:
            grad = torch.empty_like(got)
            dist.recv(grad, 1)
            got.backward(grad)
        else:
            x, logits = got
            (F.cross_entropy(logits.flatten(0, 1), y.flatten()) / len(batches)).backward()
            dist.send(x.grad, 0)


def clip_by_model_norm(params, limit, count_shared, n):
    total = sum(p.grad.square().sum() for p in params if count_shared or not getattr(p, "shared", False))
    if n > 1:
        dist.all_reduce(total)
    coef = (limit / (total.sqrt() + 1e-6)).clamp(max=1.0)
    for p in params:
        p.grad.mul_(coef)


def train_pipe(rank, fault, seed, n=2):
    stage = GptStage(seed + 20, [0, 1] if n == 1 else [rank], rank == 0, rank == n - 1)
    params = list(stage.parameters())
    opt = torch.optim.SGD(params, lr=0.5, momentum=0.9)
    for step in range(3):
        batches = [ids(seed * 53 + 3 * step + m, VOCAB, 2, 6) for m in range(2)]
        batches = [(t[:, :-1], t[:, 1:]) for t in batches]
        opt.zero_grad()
        if n == 1:
            for t, y in batches:
                (F.cross_entropy(stage(t).flatten(0, 1), y.flatten()) / 2).backward()
        else:
            gpipe(stage, rank, batches)
            if fault != "tiednosync":
                dist.all_reduce(stage.word.weight.grad)
        clip_by_model_norm(params, 0.4, fault == "tiednorm", n)
        opt.step()
    return ends(stage)


# --- pipezero: two stages of two replicas, with a sharded optimizer and the gradient of the head deferred ----------

class HeadLinear(torch.autograd.Function):
    """Logits whose weight gets its gradient later, out of the pipeline's way."""
    @staticmethod
    def forward(ctx, x, weight, later):
        ctx.save_for_backward(x, weight)
        ctx.later = later
        return x @ weight.t()

    @staticmethod
    def backward(ctx, grad):
        x, weight = ctx.saved_tensors
        ctx.later.append((grad, x))
        return grad @ weight, None, None


class ZeroStage(nn.Module):
    """The embedding is the first weight of the first stage, and the last one of the last."""
    def __init__(self, seed, layers, first, last):
        super().__init__()
        self.first, self.last, self.later = first, last, []
        if first:
            self.wte = nn.Embedding.from_pretrained(rand(seed, VOCAB, D) * 0.5, freeze=False)
        for i in layers:
            torch.manual_seed(seed + i)
            setattr(self, f"layer{i}", nn.Sequential(RMSNorm(), nn.Linear(D, D), nn.GELU(), nn.Linear(D, D)))
        self.layers = layers
        if last:
            self.norm = RMSNorm()
            if not first:
                self.wte = nn.Embedding.from_pretrained(rand(seed, VOCAB, D) * 0.5, freeze=False)

    def forward(self, x):
        x = self.wte(x) if self.first else x
        for i in self.layers:
            x = x + getattr(self, f"layer{i}")(x)
        return HeadLinear.apply(self.norm(x), self.wte.weight, self.later) if self.last else x

    @torch.no_grad()
    def finish_wgrad(self):
        for grad, x in self.later:
            self.wte.weight.grad += grad.flatten(0, 1).t() @ x.flatten(0, 1)
        self.later.clear()


class ShardedAdam:
    """Weights and gradients are views of two buffers, of which each replica steps its half."""
    def __init__(self, params, group, lr):
        self.group, self.dp = group, dist.get_world_size(group) if group is not None else 1
        size = -sum(p.numel() for p in params) % self.dp + sum(p.numel() for p in params)
        self.data, self.grad, at = torch.zeros(size), torch.zeros(size), 0
        for p in params:
            view = self.data[at:at + p.numel()].view_as(p)
            view.copy_(p.data)
            p.data, p.grad = view, self.grad[at:at + p.numel()].view_as(p)
            at += p.numel()
        rank, part = dist.get_rank(group) if group is not None else 0, size // self.dp
        self.shards = [self.data[i * part:(i + 1) * part] for i in range(self.dp)]
        self.own = nn.Parameter(self.shards[rank].clone())
        self.own.grad = self.grad[rank * part:(rank + 1) * part]
        self.adam = torch.optim.Adam([self.own], lr=lr, betas=(0.9, 0.95), eps=1e-5)

    def reduce_scatter(self):
        """Of the buffer only the own half becomes the mean."""
        got = torch.empty_like(self.grad)
        dist.all_to_all_single(got, self.grad, group=self.group)
        self.own.grad.copy_(got.view(self.dp, -1).sum(0) / self.dp)

    def step(self):
        self.adam.step()
        if self.dp > 1:
            dist.all_gather(self.shards, self.own.data, group=self.group)
        else:
            self.data.copy_(self.own.data)


def train_pipezero(rank, fault, seed, n=4):
    pp, dp_rank = rank // 2, rank % 2
    dp = pair = None
    if n > 1:
        dp, pair = my_groups(rank)
    stage = ZeroStage(seed + 40, [0, 1] if n == 1 else [pp], pp == 0, n == 1 or pp == 1)
    opt = ShardedAdam(list(stage.parameters()), dp, 0.02)
    for step in range(2):
        opt.grad.zero_()
        t = ids(seed * 17 + step, VOCAB, 4, 6)
        for t in (t if n == 1 else t.chunk(2)[dp_rank]).chunk(2):
            if pp == 0:
                x = stage(t[:, :-1])
            else:
                x = torch.empty(len(t), 5, D)
                dist.recv(x, dp_rank)
                x.requires_grad_()
            if n > 1 and pp == 0:
                dist.send(x.detach(), 2 + dp_rank)
                grad = torch.empty_like(x)
                dist.recv(grad, 2 + dp_rank)
                x.backward(grad)
            else:
                logits = x if n == 1 else stage(x)
                (F.cross_entropy(logits.flatten(0, 1), t[:, 1:].flatten()) / 2).backward()
                if n > 1:
                    dist.send(x.grad, dp_rank)
        if fault != "latewgrad":
            stage.finish_wgrad()
        if n > 1:
            if fault == "shardorder":
                opt.reduce_scatter()
            dist.all_reduce(stage.wte.weight.grad, group=pair)
            if fault != "shardorder":
                opt.reduce_scatter()
        if fault == "latewgrad":
            stage.finish_wgrad()
        opt.step()
    return {k: p.data for k, p in stage.named_parameters()}


# --- encdec: a T5 with the encoder on one rank and the decoder on the other; both embed ----------------------------

class Embed(nn.Module):
    def __init__(self):
        super().__init__()
        self.word, self.pos = nn.Parameter(torch.randn(VOCAB, D) * 0.5), nn.Parameter(torch.randn(6, D) * 0.3)

    def forward(self, t):
        return F.embedding(t, self.word) + self.pos[:t.shape[1]]


class Encoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm, self.mix, self.ff = nn.LayerNorm(D), nn.Linear(D, D), nn.Linear(D, D)

    def forward(self, x):
        h = self.norm(x)
        return x + self.ff(F.relu(h + self.mix(h.mean(1, keepdim=True))))


class Decoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.q, self.kv = nn.Linear(D, D, bias=False), nn.Linear(D, 2 * D, bias=False)
        self.o, self.norm, self.head = nn.Linear(D, D), nn.LayerNorm(D), nn.Linear(D, VOCAB)

    def forward(self, x, memory):
        k, v = self.kv(memory).chunk(2, -1)
        x = x + self.o((self.q(x) @ k.transpose(1, 2) / 4).softmax(-1) @ v)
        return self.head(self.norm(x))


class T5Part(nn.Module):
    """Seeds are those of the stage; what is tied comes from the first stage that has it."""
    tied = ("word", "pos")

    def __init__(self, seed, stage, n, fault):
        super().__init__()
        torch.manual_seed(seed + stage)
        self.embed = Embed()
        if stage == 0:
            torch.manual_seed(seed + 100)
            self.encoder = Encoder()
        if stage == n - 1:
            torch.manual_seed(seed + 200)
            self.decoder = Decoder()
        if n > 1 and fault != "tiedinit":
            for name in self.tied:
                dist.broadcast(getattr(self.embed, name).data, 0)

    def forward(self, t, memory=None):
        return self.encoder(self.embed(t)) if memory is None else self.decoder(self.embed(t), memory)

    def reduce_tied_grads(self, names):
        works = [dist.all_reduce(getattr(self.embed, name).grad, async_op=True) for name in names]
        for work in works:
            work.wait()


def train_encdec(rank, fault, seed, n=2):
    part = T5Part(seed + 60, rank, n, fault)
    opt = torch.optim.AdamW(part.parameters(), lr=0.01, eps=1e-5)
    sched = torch.optim.lr_scheduler.LambdaLR(opt, lambda s: min(1.0, (s + 1) / 2))
    for step in range(3):
        opt.zero_grad()
        for acc in range(2):
            src, tgt = ids(seed * 41 + 2 * step + acc, VOCAB, 2, 6), ids(seed * 43 + 2 * step + acc, VOCAB, 2, 5)
            if rank == 0:
                memory = part(src)
            else:
                memory = torch.empty(2, 6, D)
                dist.recv(memory, 0)
                memory.requires_grad_()
            if n > 1 and rank == 0:
                dist.send(memory.detach(), 1)
                grad = torch.empty_like(memory)
                dist.recv(grad, 1)
                memory.backward(grad)
                continue
            logits = part(tgt[:, :-1], memory)
            (F.cross_entropy(logits.flatten(0, 1), tgt[:, 1:].flatten()) / 2).backward()
            if n > 1:
                dist.send(memory.grad, 0)
        if n > 1:
            part.reduce_tied_grads(part.tied[:1] if fault == "tiedattr" else part.tied)
        opt.step()
        sched.step()
    return ends(part)


# --- mtp: the last stage predicts two tokens, for which it has a replica of the first one's embedding --------------

class Layer(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm, self.w13, self.w2 = RMSNorm(), nn.Linear(D, 4 * D, bias=False), nn.Linear(2 * D, D, bias=False)
        self.shift = nn.Parameter(torch.full((D,), 0.5))

    def forward(self, x):
        h = self.norm(x)
        a, b = self.w13(h + self.shift * F.pad(h, (0, 0, 1, 0))[:, :-1]).chunk(2, -1)
        return x + self.w2(F.silu(a) * b)


class MtpStage(nn.Module):
    def __init__(self, seed, first, last):
        super().__init__()
        self.first, self.last = first, last
        torch.manual_seed(seed)
        full = nn.Embedding(VOCAB, D), Layer(), Layer(), Layer(), nn.Linear(2 * D, D), nn.Linear(D, VOCAB)
        self.tok_embeddings = full[0]
        if first:
            self.layer0 = full[1]
        if last:
            self.layer1, self.mtp_layer, self.mtp_proj, self.output = full[2:]
            self.norm, self.mtp_norm = RMSNorm(), RMSNorm()

    def forward(self, t, h=None):
        if self.first:
            h = self.layer0(self.tok_embeddings(t[:, :-2]))
        if not self.last:
            return h
        h = self.layer1(h)
        main = F.cross_entropy(self.output(self.norm(h)).flatten(0, 1), t[:, 1:-1].flatten())
        e = self.tok_embeddings(t[:, 1:-1])
        h = self.mtp_layer(self.mtp_proj(torch.cat([self.mtp_norm(h), e], -1)))
        return main + 0.3 * F.cross_entropy(self.output(self.norm(h)).flatten(0, 1), t[:, 2:].flatten())


def train_mtp(rank, fault, seed, n=2):
    stage = MtpStage(seed + 80, rank == 0, rank == n - 1)
    opt = torch.optim.AdamW(stage.parameters(), lr=0.015, betas=(0.9, 0.95), eps=1e-5)
    for step in range(2):
        opt.zero_grad()
        for t in ids(seed * 23 + step, VOCAB, 6, 7).chunk(3):
            if n == 1:
                (stage(t) / 3).backward()
            elif rank == 0:
                h = stage(t)
                dist.send(h.detach(), 1)
                grad = torch.empty_like(h)
                dist.recv(grad, 1)
                torch.autograd.backward(h, grad)
            else:
                h = torch.empty(2, 5, D)
                dist.recv(h, 0)
                (stage(t, h.requires_grad_()) / 3).backward()
                dist.send(h.grad, 0)
        if n > 1 and fault != "mtpembed":
            dist.all_reduce(stage.tok_embeddings.weight.grad)
        opt.step()
    return ends(stage)


PROGRAMS = {"pipe": (2, train_pipe), "pipezero": (4, train_pipezero), "encdec": (2, train_encdec),
            "mtp": (2, train_mtp)}
WHOLE = {name: lambda seed, f=f: f(0, None, seed, 1) for name, (_, f) in PROGRAMS.items()}

FAULTS = {
    # Nothing sums the two gradients: https://github.com/uw-syfi/piper/issues/13
    "tiednosync": ("pipe", r"embedding\.\d\.backward|linear\.[37]\.backward|\.word\.|sgd", "01"),
    # The norm of the model has it twice: https://github.com/NVIDIA/Megatron-LM/pull/7227
    "tiednorm": ("pipe", r"square|Tensor\.sum\.|add\.([4-9]|1\d)\.forward|all_reduce\.1\.|sqrt|__rdiv__|clamp|mul_",
                 "01"),
    # Replicas' gradients are scattered before the stages' are summed:
    # https://github.com/NVIDIA/Megatron-LM/issues/844
    "shardorder": ("pipezero", r"all_reduce\.0\.|all_to_all_single\.0\.|\.wte\.|adam\.", "0123"),
    # The deferred gradient of the head comes after the sums: https://github.com/NVIDIA/Megatron-LM/issues/1012
    "latewgrad": ("pipezero", r"matmul\.[45]\.|add_\.|all_reduce\.0\.|all_to_all_single\.0\.|"
                  r"embedding\.\d\.backward|\.wte\.|adam\.", "0123"),
    # Of a module with two tied weights one is summed: https://github.com/deepspeedai/DeepSpeed/pull/2035
    "tiedattr": ("encdec", r"__getitem__\.\d\.backward|add\.[023]\.backward|\.embed\.|adamw", "01"),
    # Each stage draws its own: https://github.com/uw-syfi/piper/pull/25
    "tiedinit": ("encdec", r"embedding\.\d\.forward|__getitem__\.[0-4]\.forward|add\.[023]\.forward|"
                 r"Tensor\.mul\.\d\.forward|broadcast|\.embed\.|adamw", "01"),
    # The replica of an embedding in the stage that predicts a second token:
    # https://github.com/pytorch/torchtitan/issues/933
    "mtpembed": ("mtp", r"embedding\.\d\.backward|\.tok_embeddings\.|adamw", "01"),
}
