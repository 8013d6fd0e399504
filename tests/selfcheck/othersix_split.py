"""Programs that split layers or sequences: multi-query attention in the manner of Megatron, a shared expert under
sequence parallelism, attention over a sequence on several ranks; and what is reported to go wrong in such.

Each train(rank, fault, seed, n): with n = 1 what one process does that has the whole model and batch.
"""
import torch
import torch.distributed as dist
import torch.distributed.nn.functional as dnn
import torch.nn as nn
import torch.nn.functional as F

from othersix_kit import CopyToGroup, GatherLast, GatherTokens, SumOverGroup, coalesced, groups, randint, randn, weights

D, HEADS, HEAD, VOCAB = 16, 4, 4, 20


# --- mqa: keys and values of one head that all ranks have, queries and hidden units split ------------------------

class MultiQueryAttention(nn.Module):
    def __init__(self, rank, n):
        super().__init__()
        q, out = nn.Linear(D, D), nn.Linear(D, D, bias=False)
        self.n, self.kv = n, nn.Linear(D, 2 * HEAD)
        self.q = nn.Parameter(q.weight.detach().chunk(n)[rank].clone())
        self.out = nn.Parameter(out.weight.detach().chunk(n, 1)[rank].clone())
        # Which gradients are of the own heads only.
        for p in self.kv.parameters():
            p.partial = True

    def forward(self, x):
        b, s, _ = x.shape
        q = F.linear(x, self.q).view(b, s, HEADS // self.n, HEAD).transpose(1, 2)
        k, v = self.kv(x).unsqueeze(1).chunk(2, -1)
        mask = torch.ones(s, s, dtype=torch.bool).triu(1)
        a = (q @ k.transpose(2, 3) / HEAD ** 0.5).masked_fill(mask, -1e9).softmax(-1)
        return F.linear((a @ v).transpose(1, 2).reshape(b, s, -1), self.out)


class GatedMlp(nn.Module):
    def __init__(self, rank, n):
        super().__init__()
        gate, up, down = nn.Linear(D, 2 * D), nn.Linear(D, 2 * D), nn.Linear(2 * D, D)
        # Fused, with a rank's part of either.
        self.gate_up = nn.Parameter(torch.cat([m.weight.detach().chunk(n)[rank] for m in (gate, up)]))
        self.down = nn.Parameter(down.weight.detach().chunk(n, 1)[rank].clone())

    def forward(self, x):
        gate, up = F.linear(x, self.gate_up).chunk(2, -1)
        return F.linear(F.silu(gate) * up, self.down)


class MqaLm(nn.Module):
    def __init__(self, rank, n, fault):
        super().__init__()
        self.rank, self.n, self.fault = rank, n, fault
        self.wte, self.wpe = nn.Embedding(VOCAB, D), nn.Embedding(8, D)
        self.ln1, self.ln2, self.ln_f = nn.LayerNorm(D), nn.LayerNorm(D), nn.LayerNorm(D)
        self.attn, self.mlp = MultiQueryAttention(rank, n), GatedMlp(rank, n)
        self.head = nn.Parameter(nn.Linear(D, VOCAB).weight.detach().chunk(n)[rank].clone())

    def enter(self, x):
        return CopyToGroup.apply(x, None) if self.n > 1 else x

    def leave(self, x):
        return SumOverGroup.apply(x, None) if self.n > 1 else x

    def forward(self, t):
        x = self.wte(t) + self.wpe.weight[:t.shape[1]]
        x = x + self.leave(self.attn(self.enter(self.ln1(x))))
        x = x + self.leave(self.mlp(self.enter(self.ln2(x))))
        h = self.ln_f(x)
        if self.fault == "headcopy":
            h = self.enter(h).transpose(0, 1).contiguous()
        else:
            h = self.enter(h.transpose(0, 1).contiguous())
        logits = F.linear(h, self.head)
        return (GatherLast.apply(logits, self.rank, self.n) if self.n > 1 else logits).transpose(0, 1)


def train_mqa(rank, fault, seed, n=2):
    torch.manual_seed(seed)
    model = MqaLm(rank, n, fault)
    opt = torch.optim.AdamW(model.parameters(), lr=0.01, betas=(0.9, 0.95), eps=1e-5, weight_decay=0.1)
    sched = torch.optim.lr_scheduler.LambdaLR(opt, lambda s: 1 / (s + 1))
    for s in range(2):
        t = randint(1000 * seed + s, VOCAB, 3, 7)
        opt.zero_grad()
        loss = F.cross_entropy(model(t[:, :-1]).flatten(0, 1), t[:, 1:].flatten())
        loss.backward()
        if n > 1:
            coalesced([p.grad for name, p in model.named_parameters()
                       if getattr(p, "partial", False) and (fault != "kvbias" or name.endswith("weight"))])
        opt.step()
        sched.step()
    got = weights(model)
    got["gate"], got["up"] = got.pop("mlp.gate_up").chunk(2)
    return got


# --- spmoe: each rank has half the tokens between the experts, and half the hidden units within -------------------

class SharedExpertMoe(nn.Module):
    E = 4

    def __init__(self, rank, n, fault):
        super().__init__()
        self.rank, self.n, self.fault = rank, n, fault
        self.norm, self.router = nn.LayerNorm(D), nn.Linear(D, self.E, bias=False)
        self.shared_expert_gate = nn.Linear(D, 1, bias=False)
        w1, w2 = torch.randn(self.E, 2 * D, D) * 0.2, torch.randn(self.E, D, 2 * D) * 0.2
        s1, s2 = torch.randn(2 * D, D) * 0.2, torch.randn(D, 2 * D) * 0.2
        self.w1, self.w2 = (nn.Parameter(w.chunk(n, d)[rank].clone()) for w, d in ((w1, 1), (w2, 2)))
        self.s1, self.s2 = (nn.Parameter(w.chunk(n, d)[rank].clone()) for w, d in ((s1, 0), (s2, 1)))

    def gather(self, x):
        return torch.cat(dnn.all_gather(x)) if self.n > 1 else x

    def scatter(self, x):
        return dnn.all_reduce(x).chunk(self.n)[self.rank] if self.n > 1 else x

    def balance(self, probs, chosen, valid):
        """Of the valid tokens of all ranks, the loss that a rank adds for its own."""
        mine = valid.sum()
        counts = torch.zeros(self.E).index_add(0, chosen, valid)
        mean = (probs * (valid / mine)[:, None]).sum(0)
        total = mine if self.fault == "countall" else mine.clone()
        if self.n > 1:
            dist.all_reduce(total)
            dist.all_reduce(counts)
        return self.E * (counts / total * mean).sum() * mine / total

    def forward(self, x, valid):
        h = self.norm(x)
        probs = self.router(h).softmax(-1)
        top, chosen = probs.max(-1)
        every, weight = self.gather(h), self.gather(F.one_hot(chosen, self.E) * top[:, None])
        hidden = F.gelu(torch.einsum("td,ehd->teh", every, self.w1)) * weight[..., None]
        routed = self.scatter(torch.einsum("teh,edh->td", hidden, self.w2))
        shared = self.scatter(F.linear(F.gelu(F.linear(every, self.s1)), self.s2))
        shared = shared * torch.sigmoid(self.shared_expert_gate(h))
        return x + routed + shared, self.balance(probs, chosen, valid)


def train_spmoe(rank, fault, seed, n=2):
    torch.manual_seed(seed)
    model, head = SharedExpertMoe(rank, n, fault), nn.Linear(D, 5)
    opt = torch.optim.SGD([*model.parameters(), *head.parameters()], lr=0.2, momentum=0.9, nesterov=True)
    for s in range(3):
        x, y = randn(1000 * seed + s, 12, D), randint(1000 * seed + s + 500, 5, 12)
        valid = torch.tensor([1.0] * 9 + [0.0] * 3)
        x, y, valid = (t.chunk(n)[rank] for t in (x, y, valid))
        opt.zero_grad()
        out, aux = model(x, valid)
        loss = (F.cross_entropy(head(out), y, reduction="none") * valid).sum() / 9 + 0.2 * aux
        loss.backward()
        for name, p in [*model.named_parameters(), *head.named_parameters()]:
            if n > 1 and not name.startswith(("w1", "w2", "s1", "s2")):
                if fault == "sharedgate" and name.startswith("shared_expert_gate"):
                    continue
                dist.all_reduce(p.grad)
                if fault == "normavg" and name.startswith("norm"):
                    p.grad /= n
        opt.step()
    return weights(model, head)


# --- cpdp: two batches of two halves of the sequences, with a mask of the words that count ------------------------

class CausalBlock(nn.Module):
    def __init__(self, cp, part):
        super().__init__()
        self.cp, self.part = cp, part
        self.norm, self.qkv, self.proj = nn.LayerNorm(D), nn.Linear(D, 3 * D, bias=False), nn.Linear(D, D)

    def forward(self, x):
        q, k, v = self.qkv(self.norm(x)).chunk(3, -1)
        if self.cp is not None:
            k, v = GatherTokens.apply(torch.cat([k, v], -1), self.cp).chunk(2, -1)
        i = torch.arange(q.shape[1]) + self.part * q.shape[1]
        later = torch.arange(k.shape[1])[None] > i[:, None]
        a = (q @ k.transpose(1, 2) / D ** 0.5).masked_fill(later, -1e9).softmax(-1)
        return x + self.proj(a @ v)


def train_cpdp(rank, fault, seed, n=4):
    cp = dp = None
    if n > 1:
        cp, dp = groups(rank, [0, 1], [2, 3]), groups(rank, [0, 2], [1, 3])
    torch.manual_seed(seed)
    model = nn.ModuleDict({"emb": nn.Embedding(VOCAB, D), "a": CausalBlock(cp, rank % 2),
                           "b": CausalBlock(cp, rank % 2), "head": nn.Linear(D, VOCAB)})
    opt = torch.optim.SGD(model.parameters(), lr=0.5, momentum=0.9, weight_decay=0.01)
    for s in range(2):
        t = randint(1000 * seed + s, VOCAB, 4, 9)
        # A prompt does not count: the first half has fewer words that do than the second.
        mask = (torch.arange(8)[None] >= torch.tensor([3, 2, 5, 1])[:, None]).float()
        ids, labels = t[:, :-1], t[:, 1:]
        if n > 1:
            ids, labels, mask = (u.chunk(2)[rank // 2].chunk(2, 1)[rank % 2] for u in (ids, labels, mask))
        tokens = mask.sum()
        if n > 1 and fault != "localmean":
            dist.all_reduce(tokens, group=dp if fault == "cptokens" else None)
        opt.zero_grad()
        logits = model["head"](model["b"](model["a"](model["emb"](ids))))
        nll = F.cross_entropy(logits.flatten(0, 1), labels.flatten(), reduction="none")
        loss = (nll * mask.flatten()).sum() / tokens
        if fault != "localmean":
            loss = loss * (n // 2 if fault == "cpscale" else n)
        loss.backward()
        if n > 1:
            coalesced([p.grad for p in model.parameters()], div=n)
        opt.step()
    return weights(model)


PROGRAMS = {"mqa": (2, train_mqa), "spmoe": (2, train_spmoe), "cpdp": (4, train_cpdp)}
WHOLE = {n: lambda seed, f=f: f(0, None, seed, 1) for n, (_, f) in PROGRAMS.items()}

FAULTS = {
    # Biases are missing in the list of what is reduced: https://github.com/bigcode-project/Megatron-LM/issues/11
    "kvbias": ("mqa", r"linear\.1\.backward|\.kv\.|all_reduce\.5\.|adamw", "01"),
    # The sum is of a copy of a gradient that is not contiguous: https://github.com/NovaSky-AI/SkyRL/pull/1886
    "headcopy": ("mqa", r"(layer_norm\.2|transpose\.4|contiguous\.0|linear\.5)\.backward|ln_f|all_reduce\.2\.|adamw",
                 "01"),
    # The gate of a shared expert sees a part of the tokens:
    # https://github.com/alibaba/Pai-Megatron-Patch/issues/397
    "sharedgate": ("spmoe", r"linear\.3\.backward|shared_expert_gate|sgd", "01"),
    # An average over parts of the sequence: https://github.com/EleutherAI/gpt-neox/pull/1259
    "normavg": ("spmoe", r"div|layer_norm\.0\.backward|\.norm\.|all_reduce|sgd", "01"),
    # The sum in place overwrites the own count: https://github.com/NVIDIA/Megatron-LM/issues/7452
    "countall": ("spmoe", r"all_reduce\.2\.|mul|div|linear\.0\.backward|\.router\.|softmax\.0\.backward", "01"),
    # Words of which are counted those of the own part of the sequences:
    # https://github.com/verl-project/verl/issues/5983
    "cptokens": ("cpdp", r"all_reduce\.0\.|div|mul|sum|cross_entropy", "0123"),
    # The data parallel size for that of all ranks: https://github.com/ByteDance-Seed/VeOmni/pull/338
    "cpscale": ("cpdp", r"mul|div|all_reduce|cross_entropy|sum", "0123"),
    # A mean of the own words, averaged: https://github.com/PrimeIntellect-ai/prime-rl/pull/1960
    "localmean": ("cpdp", r"div|sum|all_reduce|cross_entropy|mul", "0123"),
}
