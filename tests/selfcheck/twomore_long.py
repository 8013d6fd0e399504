"""Two ranks that share what a model goes through: a sequence over two ranks as DeepSpeed-Ulysses has it, and a GPT-2
of two stages, each on its card, whose head is its embedding.

Each train(rank, fault, seed, n) is a user's program; with n = 1 it is what one process does that has all of it.
"""
import torch
import torch.distributed as dist
import torch.nn as nn
import torch.nn.functional as F

from twomore_split import D, HEAD, SEQ, VOCAB, attend, state, tokens

# --- ulysses: each rank has its tokens; in attention all tokens of its heads ---------------------------------

class SeqAllToAll(torch.autograd.Function):
    """Parts of one dimension go to their ranks; what comes is put together along another."""
    @staticmethod
    def forward(ctx, x, scatter, gather):
        ctx.dims = gather, scatter
        parts = torch.stack(x.chunk(dist.get_world_size(), scatter))
        out = torch.empty_like(parts)
        dist.all_to_all_single(out, parts)
        return torch.cat(out.unbind(), gather)

    @staticmethod
    def backward(ctx, g):
        return SeqAllToAll.apply(g, *ctx.dims), None, None


class Long(nn.Module):
    def __init__(self, n):
        super().__init__()
        self.n, self.embed, self.position = n, nn.Embedding(VOCAB, D), nn.Embedding(SEQ, D)
        self.ln_1, self.ln_2, self.ln_f = nn.LayerNorm(D), nn.LayerNorm(D), nn.LayerNorm(D)
        self.qkv, self.proj = nn.Linear(D, 3 * D), nn.Linear(D, D)
        self.mlp, self.head = nn.Sequential(nn.Linear(D, 32), nn.GELU(), nn.Linear(32, D)), nn.Linear(D, VOCAB)

    def exchange(self, x, scatter, gather):
        return SeqAllToAll.apply(x, scatter, gather) if self.n > 1 else x

    def forward(self, ids, positions):
        b, s = ids.shape
        x = self.embed(ids) + self.position(positions)
        q, k, v = (self.exchange(t.view(b, s, -1, HEAD).transpose(1, 2), 1, 2)
                   for t in self.qkv(self.ln_1(x)).chunk(3, -1))
        x = x + self.proj(self.exchange(attend(q, k, v), 2, 1).transpose(1, 2).reshape(b, s, D))
        return self.head(self.ln_f(x + self.mlp(self.ln_2(x))))


def train_ulysses(rank, fault, seed, n=2):
    torch.manual_seed(seed)
    model = Long(n)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.3, momentum=0.9)
    dp_size, sp_size = 1, n
    for step in range(2):
        ids = tokens(1000 * seed + step, 3, SEQ + 1)
        labels = ids[:, 1:].clone()
        labels[:, :3] = -100                                           # the prompt, of which rank 0 has most
        num_items = (labels != -100).sum()
        if n > 1 and fault == "itemstwice":
            dist.all_reduce(num_items)
        ids, labels, positions = (t.chunk(n, -1)[rank] for t in (ids[:, :-1], labels, torch.arange(SEQ)))
        optimizer.zero_grad()
        loss = F.cross_entropy(model(ids, positions).flatten(0, 1), labels.flatten())
        if fault != "meanofmeans":
            loss = loss * (labels != -100).sum() * sp_size / num_items
        loss.backward()
        for p in model.parameters() if n > 1 else []:
            dist.all_reduce(p.grad)
            p.grad /= dp_size if fault == "timescp" else dp_size * sp_size
        optimizer.step()
    return state(model)


# --- stages: GPT-2 on two cards, the second of which has the embedding again as its head ---------------------

class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.ln_1, self.ln_2 = nn.LayerNorm(D), nn.LayerNorm(D)
        # A bias of all keys would change nothing but for rounding, which AdamW would make steps of.
        self.c_attn, self.c_proj = nn.Linear(D, 3 * D, bias=False), nn.Linear(D, D)
        self.c_fc, self.mlp_proj = nn.Linear(D, 32), nn.Linear(32, D)

    def forward(self, x):
        b, s, _ = x.shape
        q, k, v = (t.view(b, s, -1, HEAD).transpose(1, 2) for t in self.c_attn(self.ln_1(x)).chunk(3, -1))
        x = x + self.c_proj(attend(q, k, v).transpose(1, 2).reshape(b, s, D))
        return x + self.mlp_proj(F.gelu(self.c_fc(self.ln_2(x))))


class FirstStage(nn.Module):
    def __init__(self):
        super().__init__()
        self.wte, self.wpe, self.h = nn.Embedding(VOCAB, D), nn.Embedding(SEQ, D), Block()

    def forward(self, ids):
        return self.h(self.wte(ids) + self.wpe(torch.arange(SEQ)))


class LastStage(nn.Module):
    def __init__(self):
        super().__init__()
        self.h, self.ln_f, self.lm_head = Block(), nn.LayerNorm(D), nn.Linear(D, VOCAB, bias=False)

    def forward(self, x, labels):
        return F.cross_entropy(self.lm_head(self.ln_f(self.h(x))).flatten(0, 1), labels.flatten())


MICRO = 2


def build(stage, seed):
    torch.manual_seed(seed + stage)
    return (FirstStage, LastStage)[stage]()


def batches(seed, step):
    return [(ids[:, :-1], ids[:, 1:]) for ids in tokens(1000 * seed + step, 2 * MICRO, SEQ + 1).chunk(MICRO)]


def train_stages(rank, fault, seed):
    model = build(rank, seed)
    tied = model.wte.weight if rank == 0 else model.lm_head.weight
    if fault != "tiedinit":
        dist.broadcast(tied.data, 0)
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.01)
    for step in range(2):
        optimizer.zero_grad()
        sent = []
        for ids, labels in batches(seed, step):
            if rank == 0:
                sent.append(model(ids))
                dist.send(sent[-1].detach(), 1)
            else:
                x = torch.empty(len(ids), SEQ, D)
                dist.recv(x, 0)
                sent.append((x.requires_grad_(), labels))
        for micro in range(MICRO):
            if rank == 0:
                g = torch.empty_like(sent[micro])
                dist.recv(g, 1)
                sent[micro].backward(g)
            else:
                x, labels = sent[micro]
                (model(x, labels) / MICRO).backward()
                dist.send(x.grad, 0)
            if fault != "untied" and micro == (0 if fault == "tiedearly" else MICRO - 1):
                dist.all_reduce(tied.grad)
        optimizer.step()
    return {f"{rank}.{k}": v for k, v in state(model).items()}


def whole_stages(seed):
    first, last = build(0, seed), build(1, seed)
    last.lm_head.weight = first.wte.weight
    model = nn.ModuleList([first, last])
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.01)
    for step in range(2):
        optimizer.zero_grad()
        for ids, labels in batches(seed, step):
            (last(first(ids), labels) / MICRO).backward()
        optimizer.step()
    return state(model)


PROGRAMS = {"ulysses": (2, train_ulysses), "stages": (2, train_stages)}
WHOLE = {"ulysses": lambda seed: train_ulysses(0, None, seed, 1), "stages": whole_stages}

FAULTS = {
    # The mean of the ranks' means, though they have different numbers of labels:
    # https://github.com/huggingface/transformers/pull/41832
    "meanofmeans": ("ulysses", r"cross_entropy|all_reduce|div_\.|sgd", "01"),
    # The loss times the ranks of the sequence, and gradients divided by those of the data only:
    # https://github.com/NVIDIA/Megatron-LM/issues/906
    "timescp": ("ulysses", r"cross_entropy|Tensor\.(mul\.[01]|div\.1)\.|all_reduce|div_\.|sgd", "01"),
    # Labels counted on all ranks, though each counts those of the whole sequence:
    # https://github.com/huggingface/transformers/issues/39648
    "itemstwice": ("ulysses", r"sum\.0\.|cross_entropy|Tensor\.(mul\.[01]|div\.1)\.|all_reduce|div_\.|sgd", "01"),
    # The stages' gradients of the tied weight stay their own: https://github.com/uw-syfi/piper/issues/13
    "untied": ("stages", r"embedding\.[02]\.|\.wte\.|linear\.[49]\.|\.lm_head\.|adamw", "01"),
    # Initialized again after the copies had been made one:
    # https://github.com/PaddlePaddle/PaddleNLP/pull/7775
    "tiedinit": ("stages", r"embedding\.[02]\.forward|\.wte\.|linear\.[49]\.forward|\.lm_head\.|adamw", "01"),
    # Summed while they are not yet whole: https://github.com/NVIDIA/Megatron-LM/issues/844
    "tiedearly": ("stages", r"all_reduce|embedding\.[02]\.|\.wte\.|linear\.[49]\.|\.lm_head\.|adamw", "01"),
}
