"""Context parallel programs: each rank has a part of every sequence; and how trackers report that their losses are
scaled wrongly, or that the gradients of experts do not go over all ranks that have them.

Each train(rank, fault, seed, n) is a user's program; with n = 1 it is what one process does that has the whole
sequence, without the collectives.
"""
import torch
import torch.distributed as dist
import torch.nn as nn
import torch.nn.functional as F
from torch.nn.parallel import DistributedDataParallel

from twofresh_split import BATCH, D, SEQ, VOCAB, attend, draw, gathered, heads_of, mapping, mine, state, total, words

sum_over_ranks = mapping(total, total)
gather_keys = mapping(lambda x: gathered(x, 1), lambda g: mine(total(g), 1))


# --- sft: a recipe with context parallelism; DDP averages over its ranks, prompts have no loss ---------------

class CausalLm(nn.Module):
    def __init__(self, n):
        super().__init__()
        self.n = n
        self.embed_tokens, self.lm_head = nn.Embedding(VOCAB, D), nn.Linear(D, VOCAB, bias=False)
        self.input_layernorm, self.norm = nn.LayerNorm(D), nn.LayerNorm(D)
        self.q_proj, self.k_proj, self.v_proj, self.o_proj = (nn.Linear(D, D, bias=False) for _ in range(4))
        self.mlp = nn.Sequential(nn.LayerNorm(D), nn.Linear(D, 2 * D), nn.SiLU(), nn.Linear(2 * D, D))

    def forward(self, ids, first):
        x = self.embed_tokens(ids)
        h = self.input_layernorm(x)
        q, k, v = self.q_proj(h), self.k_proj(h), self.v_proj(h)
        if self.n > 1:
            k, v = gather_keys(k), gather_keys(v)
        x = x + self.o_proj(attend(heads_of(q), heads_of(k), heads_of(v), first))
        return self.lm_head(self.norm(x + self.mlp(x)))


def train_sft(rank, fault, seed, n=2):
    torch.manual_seed(seed)
    model = CausalLm(n)
    engine = DistributedDataParallel(model) if n > 1 else model
    optimizer = torch.optim.SGD(model.parameters(), lr=0.3)
    for step in range(3):
        ids = words(100 * seed + step, BATCH, SEQ + 1)
        labels = ids[:, 1:].clone()
        labels[:, :3] = -100
        input_ids, labels = ids[:, :-1].chunk(n, 1)[rank], labels.chunk(n, 1)[rank]
        num_tokens = (labels != -100).sum()
        if n > 1 and fault != "localtok":
            dist.all_reduce(num_tokens)
        # DDP divides by all its ranks, those of a sequence too.
        scale = 1 if fault == "dpscale" else n
        logits = engine(input_ids, rank * SEQ // n)
        loss = F.cross_entropy(logits.flatten(0, 1), labels.flatten(), ignore_index=-100, reduction="sum")
        loss = loss / num_tokens * scale
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return state(model)


# --- longdoc: a student's linear attention over long documents, gradients summed by hand ---------------------

class Reader(nn.Module):
    """Both experts are on both ranks; a rank sees its half of each document."""
    def __init__(self, n):
        super().__init__()
        self.n = n
        self.inp, self.head, self.norm = nn.Linear(6, D), nn.Linear(D, 1), nn.LayerNorm(D)
        self.q, self.k, self.v = (nn.Linear(D, D) for _ in range(3))
        self.gate = nn.Linear(D, 2)
        self.experts = nn.ModuleList(nn.Sequential(nn.Linear(D, D), nn.Tanh(), nn.Linear(D, D)) for _ in range(2))

    def forward(self, x):
        x = self.inp(x)
        memory = self.k(x).softmax(-1).transpose(1, 2) @ self.v(x) / SEQ
        if self.n > 1:
            memory = sum_over_ranks(memory)
        x = self.norm(x + self.q(x) @ memory)
        weight = self.gate(x).softmax(-1)
        return self.head(x + sum(weight[..., i:i + 1] * e(x) for i, e in enumerate(self.experts)))


def train_longdoc(rank, fault, seed, n=2):
    torch.manual_seed(seed)
    model = Reader(n)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    if n > 1:
        alone = [dist.new_group([r]) for r in range(n)][rank]
        expert_group = alone if fault == "edpgroup" else dist.group.WORLD
    for step in range(3):
        x, y = draw(100 * seed + step, BATCH, SEQ, 6), draw(100 * seed + step + 50, BATCH, SEQ, 1)
        x, y = x.chunk(n, 1)[rank], y.chunk(n, 1)[rank]
        optimizer.zero_grad()
        loss = (model(x) - y).square().sum() / (BATCH * SEQ)
        if fault == "cptwice":
            loss = loss * n
        loss.backward()
        for name, p in model.named_parameters():
            if n > 1:
                dist.all_reduce(p.grad, group=expert_group if "experts" in name else None)
        optimizer.step()
    return state(model)


PROGRAMS = {"sft": (2, train_sft), "longdoc": (2, train_longdoc)}
WHOLE = {n: lambda seed, f=f: f(0, None, seed, 1) for n, (_, f) in PROGRAMS.items()}

FAULTS = {
    # Tokens with a loss are counted on the rank's own part: https://github.com/verl-project/verl/issues/5983
    "localtok": ("sft", r"\.(ne|sum)\.\d\.|div\.1\.|\.mul\.0\.|cross_entropy\.0\.backward|all_reduce\.([2-9]|1[0-8])\.|"
                 r"sgd\.", "01"),
    # The loss is not scaled up by the ranks of a sequence, over which DDP averages too:
    # https://github.com/ByteDance-Seed/VeOmni/pull/338
    "dpscale": ("sft", r"div\.1\.|\.mul\.0\.|cross_entropy\.0\.backward|all_reduce\.([2-9]|1[0-8])\.|sgd\.", "01"),
    # The loss is scaled up where the gradients are summed: https://github.com/NVIDIA/Megatron-LM/issues/906
    "cptwice": ("longdoc", r"\.mul\.2\.|div\.1\.|sum\.0\.|all_reduce\.([2-9]|1\d|2[0-3])\.|sgd\.", "01"),
    # Gradients of experts that both ranks have are reduced in a group of one:
    # https://github.com/facebookresearch/fairseq/issues/4220
    "edpgroup": ("longdoc", r"all_reduce\.(1[6-9]|2[0-3])\.|linear\.[5-8]\.backward|experts\.|sgd\.|"
                 r"linear\.5\.forward", "01"),
}
