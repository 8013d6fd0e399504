"""Replicas of one model, as those write them who use Hugging Face's trainer or Lightning: DDP with accumulation
over tokens, and a wrapper of one's own that broadcasts buffers.
"""
import contextlib
import copy

import torch
import torch.distributed as dist
import torch.nn as nn
import torch.nn.functional as F
from torch._utils import _flatten_dense_tensors, _unflatten_dense_tensors
from torch.nn.parallel import DistributedDataParallel as DDP

from sixagain_kit import choose, draw, state

D, VOCAB, IGNORE = 16, 20, -100


# --- sft: a language model whose prompts carry no loss; the mean is over the tokens of all ranks and micro-batches

class CausalLM(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed, self.pos = nn.Embedding(VOCAB, D), nn.Parameter(0.1 * torch.randn(7, D))
        self.attn = nn.MultiheadAttention(D, 4, bias=False, batch_first=True)
        self.ln1, self.ln2, self.ln_f = nn.LayerNorm(D), nn.LayerNorm(D), nn.LayerNorm(D)
        self.mlp = nn.Sequential(nn.Linear(D, 2 * D), nn.GELU(), nn.Linear(2 * D, D))
        self.lm_head = nn.Linear(D, VOCAB, bias=False)
        self.lm_head.weight = self.embed.weight

    def forward(self, ids):
        x = self.embed(ids) + self.pos
        mask = torch.ones(7, 7).triu(1).bool()
        h = self.ln1(x)
        x = x + self.attn(h, h, h, attn_mask=mask, need_weights=False)[0]
        return self.lm_head(self.ln_f(x + self.mlp(self.ln2(x))))


def chats(seed, step, micro, rank):
    """Two conversations; how much of them is prompt differs by rank and micro-batch."""
    ids = choose(1000 * seed + 100 * step + 10 * micro + rank, VOCAB, 2, 8)
    labels = ids[:, 1:].clone()
    labels[:, :1 + 3 * rank + micro] = IGNORE
    return ids[:, :-1], labels


def token_loss(logits, labels):
    return F.cross_entropy(logits.flatten(0, 1), labels.flatten(), ignore_index=IGNORE, reduction="sum")


def trainer_parts(model):
    opt = torch.optim.AdamW(model.parameters(), lr=0.02, weight_decay=0.05)
    return opt, torch.optim.lr_scheduler.LambdaLR(opt, lambda step: min(1.0, (step + 1) / 3))


def train_sft(rank, fault, seed):
    torch.manual_seed(seed)
    model = CausalLM()
    ddp = DDP(model)
    opt, sched = trainer_parts(model)
    steps = 2
    for s in range(2):
        batches = [chats(seed, s, m, rank) for m in range(steps)]
        num_items = sum((labels != IGNORE).sum() for _, labels in batches).float()
        factor = 1
        if fault != "localitems":
            # DDP divides by the number of ranks, which the count of all tokens has done already.
            dist.all_reduce(num_items)
            factor = dist.get_world_size()
        for m, (ids, labels) in enumerate(batches):
            wait = m % steps != 0 if fault == "syncfirst" else (m + 1) % steps != 0
            with ddp.no_sync() if wait else contextlib.nullcontext():
                (token_loss(ddp(ids), labels) / num_items * factor).backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        opt.step()
        sched.step()
        opt.zero_grad(set_to_none=s < 1)
    return state(model, grads=False)


def whole_sft(seed):
    torch.manual_seed(seed)
    model = CausalLM()
    opt, sched = trainer_parts(model)
    for s in range(2):
        opt.zero_grad()
        batches = [chats(seed, s, m, r) for m in range(2) for r in range(2)]
        num_items = sum((labels != IGNORE).sum() for _, labels in batches)
        (sum(token_loss(model(ids), labels) for ids, labels in batches) / num_items).backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        opt.step()
        sched.step()
    return state(model, grads=False)


# --- dino: a student, a teacher that follows it, and a centre that is a buffer which rank 0 gives to all -----

class Dino(nn.Module):
    def __init__(self, fault=None):
        super().__init__()
        self.fault = fault
        self.student = nn.Sequential(nn.Linear(D, 3 * D), nn.Tanh(), nn.Linear(3 * D, 8))
        self.teacher = copy.deepcopy(self.student).requires_grad_(False)
        self.register_buffer("center", torch.zeros(8))

    def forward(self, a, b, first=None):
        """The loss of two views; first: how many of them are those of rank 0."""
        with torch.no_grad():
            t = self.teacher(a)
            target = ((t - self.center) / 0.2).softmax(-1)
            mean = t[:first].mean(0)
            if self.fault == "reassign":
                self.center = self.center * 0.5 + mean * 0.5
            else:
                self.center.mul_(0.5).add_(mean * 0.5)
        return -(target * self.student(b).log_softmax(-1)).sum(-1).mean()

    @torch.no_grad()
    def follow(self, momentum=0.9):
        for t, p in zip(self.teacher.parameters(), self.student.parameters()):
            t.mul_(momentum).add_(p, alpha=1 - momentum)


class Replica:
    """A wrapper as of the days before DDP: buffers from rank 0, gradients flattened and averaged."""
    def __init__(self, module):
        self.module, self.buffers = module, list(module.buffers())
        for p in module.parameters():
            dist.broadcast(p.data, 0)

    def __call__(self, *args):
        for b in self.buffers:
            dist.broadcast(b, 0)
        return self.module(*args)

    def average(self):
        grads = [p.grad for p in self.module.parameters() if p.grad is not None]
        flat = _flatten_dense_tensors(grads)
        dist.all_reduce(flat)
        flat /= dist.get_world_size()
        for g, f in zip(grads, _unflatten_dense_tensors(flat, grads)):
            g.copy_(f)


def views(seed, step, rank):
    s = 1000 * seed + 100 * step + 10 * rank
    x = draw(s, 4, D) + 2 * rank
    return x + 0.1 * draw(s + 1, 4, D), x + 0.1 * draw(s + 2, 4, D)


def train_dino(rank, fault, seed):
    torch.manual_seed(seed)
    model = Dino(fault)
    net, opt = Replica(model), torch.optim.RMSprop(model.student.parameters(), lr=0.01)
    for s in range(3):
        opt.zero_grad()
        net(*views(seed, s, rank)).backward()
        net.average()
        opt.step()
        model.follow()
    return state(model)


def whole_dino(seed):
    torch.manual_seed(seed)
    model = Dino()
    opt = torch.optim.RMSprop(model.student.parameters(), lr=0.01)
    for s in range(3):
        opt.zero_grad()
        model(*map(torch.cat, zip(*(views(seed, s, r) for r in range(2)))), 4).backward()
        opt.step()
        model.follow()
    return state(model)


# --- finetune: a backbone that is frozen at first, as Lightning's callback has it ------------------------------

class Classifier(nn.Module):
    def __init__(self):
        super().__init__()
        self.backbone = nn.Sequential(nn.Conv1d(2, 6, 3, padding=1), nn.LeakyReLU(), nn.Conv1d(6, 6, 3), nn.ELU())
        self.head = nn.Linear(6, 3)
        self.backbone.requires_grad_(False)

    def forward(self, x):
        return self.head(self.backbone(x).amax(-1))


def fit(model, wrap, batch, rewrap):
    """Three steps; with the second one the backbone joins, with a tenth of the learning rate."""
    net = wrap(model)
    opt = torch.optim.Adam(model.head.parameters(), lr=0.03)
    for s in range(3):
        if s == 1:
            model.backbone.requires_grad_(True)
            opt.add_param_group({"params": list(model.backbone.parameters()), "lr": 0.01})
            if rewrap:
                net = wrap(model)
        x, y = batch(s)
        opt.zero_grad()
        F.cross_entropy(net(x), y, label_smoothing=0.1).backward()
        nn.utils.clip_grad_value_(model.parameters(), 0.2)
        opt.step()
    return state(model)


def signals(seed, step):
    return draw(100 * seed + step, 8, 2, 7), choose(100 * seed + step + 50, 3, 8)


def train_finetune(rank, fault, seed):
    torch.manual_seed(seed)
    return fit(Classifier(), DDP, lambda s: [t.chunk(2)[rank] for t in signals(seed, s)], fault != "unfrozen")


def whole_finetune(seed):
    torch.manual_seed(seed)
    return fit(Classifier(), lambda model: model, lambda s: signals(seed, s), False)


PROGRAMS = {"sft": (2, train_sft), "dino": (2, train_dino), "finetune": (2, train_finetune)}
WHOLE = {"sft": whole_sft, "dino": whole_dino, "finetune": whole_finetune}

FAULTS = {
    # The mean is over the rank's own tokens: https://github.com/huggingface/transformers/issues/34242
    "localitems": ("sft", r"Tensor\.(sum|float|div|mul)\.\d|cross_entropy|all_reduce", "01"),
    # The first micro-batch is reduced and the last is not: https://github.com/modelscope/FunASR/pull/3472
    "syncfirst": ("sft", r"all_reduce|adamw|Torch\.norm|mul_\.|backward|parameters_grad", "01"),
    # A buffer that is another tensor than the one that is broadcast: https://github.com/pytorch/pytorch/issues/63916
    "reassign": ("dino", r"broadcast|Tensor\.(sub|mul|add|div)\.\d|Tensor\.softmax", "01"),
    # DDP knows what required a gradient when it was made:
    # https://github.com/Lightning-AI/pytorch-lightning/issues/20340
    "unfrozen": ("finetune", r"all_reduce|conv1d\.0\.backward|conv1d\.1\.backward|backbone|adam|clamp", "01"),
}
