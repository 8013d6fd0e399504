"""Trainers on two ranks that have copies of weights: DistributedDataParallel resumed from a checkpoint, an optimizer
whose states are split, in a researcher's script of his own, and a pipeline of two stages with a tied embedding, in
the style of Megatron-LM; and replicas that drift by a step of the optimizer, and copies whose gradients are not
summed.

Each train(rank, fault, seed, n) is a user's program; with n = 1 it is what one process does that has the whole
model and batch, without the collectives.
"""
import torch
import torch.distributed as dist
import torch.nn as nn
import torch.nn.functional as F
from torch.nn.parallel import DistributedDataParallel

from tworanks_sequence import TOKENS, VOCAB, attend, state, tokens

D, CLASSES, IGNORED = 12, 5, -100


def batch(seed, rows, rank, n):
    """The rank's rows of a batch, and their classes."""
    g = torch.Generator().manual_seed(seed)
    x, y = torch.randn(rows, D, generator=g), torch.randint(CLASSES, (rows,), generator=g)
    return x.chunk(n)[rank], y.chunk(n)[rank]


# --- ddp: resumed from a checkpoint; a step is skipped if any rank's part of a batch has no labels ----------

class Classifier(nn.Module):
    def __init__(self):
        super().__init__()
        self.inputs, self.norm = nn.Linear(D, 2 * D), nn.LayerNorm(2 * D)
        self.hidden, self.head = nn.Linear(2 * D, 2 * D), nn.Linear(2 * D, CLASSES)

    def forward(self, x):
        x = self.norm(torch.relu(self.inputs(x)))
        return self.head(x + torch.tanh(self.hidden(x)))


def checkpoint(model, seed):
    """What an earlier run left of the optimizer after 20 steps."""
    g = torch.Generator().manual_seed(seed)
    return {i: {"step": torch.tensor(20.0), "exp_avg": 0.02 * torch.randn(p.shape, generator=g),
                "exp_avg_sq": 0.001 * torch.rand(p.shape, generator=g) + 1e-4}
            for i, p in enumerate(model.parameters())}


def train_ddp(rank, fault, seed, n=2):
    torch.manual_seed(seed)
    model = Classifier()
    opt = torch.optim.AdamW(model.parameters(), lr=0.01)
    saved = checkpoint(model, seed)
    if rank == 0 or fault != "resume":
        opt.load_state_dict({"state": saved, "param_groups": opt.state_dict()["param_groups"]})
    net = DistributedDataParallel(model) if n > 1 else model
    for s in range(3):
        x, y = batch(100 * seed + s, 8, rank, n)
        if s == 1:                          # the second half of the batch has no labels
            y = torch.where(torch.arange(8).chunk(n)[rank] < 4, y, IGNORED)
        opt.zero_grad()
        F.cross_entropy(net(x), y, ignore_index=IGNORED, reduction="sum").div(len(y)).backward()
        valid = torch.stack([(part != IGNORED).any() for part in y.chunk(2 // n)]).all().float()
        if n > 1 and fault != "skip":
            dist.all_reduce(valid, dist.ReduceOp.MIN)
        if valid:
            opt.step()
    return state(model)


# --- zero: each rank steps a half of the weights, and sends them to the other --------------------------------

class Offloaded(nn.Linear):
    """A linear whose weights live in host memory."""
    def __init__(self, *size):
        super().__init__(*size)
        for p in self.parameters():
            p.is_offloaded = True


def broadcast_params(params, fault):
    for i, p in enumerate(params):
        if fault == "zerobroadcast" and getattr(p, "is_offloaded", False):
            continue
        dist.broadcast(p.data, i % 2)


def train_zero(rank, fault, seed, n=2):
    torch.manual_seed(seed)
    model = nn.Sequential(nn.Linear(D, 2 * D), nn.GELU(), Offloaded(2 * D, 2 * D), nn.LayerNorm(2 * D), nn.GELU(),
                          nn.Linear(2 * D, CLASSES))
    params = list(model.parameters())
    opt = torch.optim.Adam([p for i, p in enumerate(params) if i % n == rank], lr=0.01)
    for s in range(3):
        x, y = batch(100 * seed + s, 8, rank, n)
        model.zero_grad()
        F.cross_entropy(model(x), y).backward()
        if n > 1:
            for p in params:
                dist.all_reduce(p.grad)
                p.grad /= n
        opt.step()
        if n > 1:
            broadcast_params(params, fault)
    return state(model)


# --- pipe: two stages; the last one has a copy of the word embedding as its head -----------------------------

class Layer(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(D), nn.LayerNorm(D)
        self.qkv, self.out = nn.Linear(D, 3 * D, bias=False), nn.Linear(D, D)
        self.up, self.down = nn.Linear(D, 2 * D), nn.Linear(2 * D, D)

    def forward(self, x):
        x = x + self.out(attend(*self.qkv(self.norm1(x)).chunk(3, -1)))
        return x + self.down(F.gelu(self.up(self.norm2(x))))


class Stage(nn.Module):
    """The layers from first on, of two."""
    def __init__(self, first, last):
        super().__init__()
        self.first, self.last = first, last
        self.word_embeddings = nn.Embedding(VOCAB, D)
        layers = [Layer(), Layer()]         # each stage draws both, so that its own are those of the whole model
        self.layers = nn.ModuleDict({str(i): layers[i] for i in range(first, last + 1)})
        if last == 1:
            self.final_norm = nn.LayerNorm(D)

    def forward(self, x):
        x = self.word_embeddings(x) if self.first == 0 else x
        for layer in self.layers.values():
            x = layer(x)
        return F.linear(self.final_norm(x), self.word_embeddings.weight) if self.last == 1 else x


def forward_backward(model, t, rank, n, count):
    """A microbatch through the stages and back."""
    shape = (t.shape[0], TOKENS, D)
    x = t[:, :-1]
    if rank > 0:
        x = torch.empty(shape)
        dist.recv(x, 0)
        x.requires_grad_()
    y = model(x)
    if n > 1 and rank == 0:
        dist.send(y.detach().contiguous(), 1)
        grad = torch.empty(shape)
        dist.recv(grad, 1)
        y.backward(grad)
    else:
        (F.cross_entropy(y.flatten(0, 1), t[:, 1:].flatten()) / count).backward()
        if rank > 0:
            dist.send(x.grad, 0)


def allreduce_embedding_grad(word, fault):
    """The sum of what both stages have, in a buffer of its own in which a wider type could accumulate."""
    main_grad = torch.zeros_like(word)
    if fault != "tiedbuffer":
        main_grad += word.grad
    dist.all_reduce(main_grad)
    if fault == "tiedbuffer":
        main_grad += word.grad
    word.grad = main_grad


def train_pipe(rank, fault, seed, n=2):
    torch.manual_seed(seed)
    model = Stage(rank, rank if n > 1 else 1)
    word = model.word_embeddings.weight
    if n > 1:
        if rank > 0:
            nn.init.zeros_(word)
        dist.all_reduce(word.data)          # the copy begins as the first stage's
    opt = torch.optim.Adam(model.parameters(), lr=0.01)
    for s in range(3):
        opt.zero_grad()
        batches = tokens(100 * seed + s, 4).chunk(2)
        for i, t in enumerate(batches):
            forward_backward(model, t, rank, n, len(batches))
            last = i == (0 if fault == "tiedearly" else len(batches) - 1)
            if n > 1 and last and fault != "tied":
                allreduce_embedding_grad(word, fault)
        opt.step()
    return state(model)


PROGRAMS = {"ddp": (2, train_ddp), "zero": (2, train_zero), "pipe": (2, train_pipe)}
WHOLE = {n: lambda seed, f=f: f(0, None, seed, 1) for n, (_, f) in PROGRAMS.items()}

FAULTS = {
    # Of replicas that part no recording of theirs says which one is right: both ranks.
    # Replicas that drift: only rank 0 loads the optimizer's state, of which DDP sends nothing:
    # https://github.com/vllm-project/speculators/pull/926
    "resume": ("ddp", r"adamw|linear\.0\.forward|Tensor\.to\.", "01"),
    # Each rank decides by its own part of the batch whether to skip a step:
    # https://github.com/NVIDIA-NeMo/Automodel/pull/2468
    "skip": ("ddp", r"adamw|linear\.[03]\.forward|\.(ne|any|all|stack|float)\.\d+\.forward|all_reduce\.8\.", "01"),
    # Weights of some layers stay a step behind where they are not stepped:
    # https://github.com/lodestone-rock/RamTorch/issues/13
    "zerobroadcast": ("zero", r"adam|broadcast|linear\.1\.forward", "01"),
    # A tied embedding: no reduction: https://github.com/uw-syfi/piper/issues/13
    "tied": ("pipe", r"embedding|linear\.[49]\.|adam", "01"),
    # Reduced before the last of its gradients is there: https://github.com/NVIDIA/Megatron-LM/issues/1012
    "tiedearly": ("pipe", r"embedding|linear\.[49]\.|adam|all_reduce|add_", "01"),
    # What is reduced is not the buffer that has the gradient: https://github.com/NVIDIA-NeMo/Speech/pull/6958
    "tiedbuffer": ("pipe", r"embedding|linear\.[49]\.|adam|all_reduce|add_", "01"),
}
