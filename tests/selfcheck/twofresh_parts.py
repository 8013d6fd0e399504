"""Programs whose ranks are replicas, or have their own experts or stages: and what trackers report of replicas that
part, of routers, of gradients of experts and of embeddings that two stages share.

Each train(rank, fault, seed, n) is a user's program; with n = 1 it is what one process does that has the whole batch,
all experts and all stages.
"""
import contextlib
import copy

import torch
import torch.distributed as dist
import torch.nn as nn
import torch.nn.functional as F
from torch.nn.parallel import DistributedDataParallel

from tworanks_experts import AllToAll
from twofresh_split import D, VOCAB, draw, state, words


# --- trl: a reward model with DDP, gradients of micro-batches accumulated, and a rank that joins late ---------

class RewardModel(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed, self.norm = nn.Embedding(VOCAB, D), nn.LayerNorm(D)
        self.mlp = nn.Sequential(nn.Linear(D, 2 * D), nn.GELU(), nn.Linear(2 * D, D))
        self.score = nn.Linear(D, 1, bias=False)

    def forward(self, ids):
        x = self.embed(ids)
        return self.score(self.norm(x + self.mlp(x)).mean(1))[:, 0]


def train_trl(rank, fault, seed, n=2, accumulation=2):
    torch.manual_seed(seed)
    model = RewardModel()
    engine = DistributedDataParallel(model) if n > 1 else model
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.02, weight_decay=0.01)
    scheduler = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda s: (s + 1) / 4)
    for step in range(3):
        optimizer.zero_grad()
        for i in range(accumulation):
            at = 100 * seed + accumulation * step + i
            ids, labels = words(at, 8, 5).chunk(n)[rank], words(at + 50, 8, high=2).chunk(n)[rank].float()
            last = i % accumulation == 0 if fault == "accum" else (i + 1) % accumulation == 0
            with contextlib.nullcontext() if last or n == 1 else engine.no_sync():
                (F.binary_cross_entropy_with_logits(engine(ids), labels) / accumulation).backward()
        optimizer.step()
        cached = copy.deepcopy(optimizer.state_dict())
        scheduler.step()
        if step == 0 and rank == 1:
            # A replica that failed joins again, with what the others have.
            optimizer.load_state_dict(cached if fault == "stalelr" else copy.deepcopy(optimizer.state_dict()))
    return state(model)


# --- spikes: a student averages gradients by hand, and leaves out steps whose loss is a spike -----------------

def train_spikes(rank, fault, seed, n=2):
    torch.manual_seed(seed)
    model = nn.Sequential(nn.Linear(6, D), nn.ReLU(), nn.LayerNorm(D), nn.Linear(D, 1))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    for step in range(3):
        x, y = draw(100 * seed + step, 8, 6), draw(100 * seed + step + 50, 8, 1)
        if step == 1:
            # Two bad samples, both in the half of rank 1.
            y[5:7] = 30.0
        x, y = x.chunk(n)[rank], y.chunk(n)[rank]
        loss = F.mse_loss(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        spike = (loss.detach() > 20.0).float()
        if n > 1:
            for p in model.parameters():
                dist.all_reduce(p.grad)
                p.grad /= n
            if fault != "skiplocal":
                dist.all_reduce(spike, dist.ReduceOp.MAX)
        if not spike:
            optimizer.step()
    return state(model)


# --- moe: a recipe with expert parallelism; tokens go to the rank of their expert and back --------------------

class TopkRouter(nn.Module):
    """The expert of a token, with a bias per expert that evens their loads out in place of a loss."""
    def __init__(self, experts, fault):
        super().__init__()
        self.fault = fault
        self.weight = nn.Parameter(nn.init.normal_(torch.empty(experts, D), std=0.5))
        self.register_buffer("expert_bias", torch.zeros(experts))
        self.register_buffer("tokens_per_expert", torch.zeros(experts))

    def forward(self, x):
        scores = F.linear(x, self.weight).sigmoid()
        index = (scores + self.expert_bias).argmax(-1)
        self.tokens_per_expert += torch.bincount(index, minlength=len(self.expert_bias))
        return scores.gather(1, index[:, None]), index

    def update_bias(self, n):
        tokens = self.tokens_per_expert.clone()
        if n > 1 and self.fault != "gatebias":
            dist.all_reduce(tokens)
        self.expert_bias += 0.2 * torch.sign(tokens.mean() - tokens)
        self.tokens_per_expert.zero_()


class MoeLayer(nn.Module):
    def __init__(self, rank, n, fault, experts=4):
        super().__init__()
        self.n, self.experts, self.local = n, experts, experts // n
        self.router = TopkRouter(experts, fault)
        w1, w2 = (nn.init.normal_(torch.empty(experts, *s), std=0.3) for s in ((D, 2 * D), (2 * D, D)))
        self.w1, self.w2 = (nn.Parameter(w.chunk(n)[rank].clone()) for w in (w1, w2))
        self.w1.allreduce = self.w2.allreduce = fault == "expall"

    def compute(self, x, counts):
        parts = x.split(counts)
        return torch.cat([F.silu(p @ self.w1[i % self.local]) @ self.w2[i % self.local] for i, p in enumerate(parts)])

    def forward(self, x):
        prob, index = self.router(x)
        order = index.argsort(stable=True)
        counts = torch.bincount(index, minlength=self.experts)
        if self.n == 1:
            y = self.compute(x[order], counts.tolist())
        else:
            theirs = torch.empty_like(counts)
            dist.all_to_all_single(theirs, counts)
            sent, received = (c.view(self.n, -1).sum(1).tolist() for c in (counts, theirs))
            y = self.compute(AllToAll.apply(x[order], sent, received), theirs.tolist())
            y = AllToAll.apply(y, received, sent)
        return x + prob * y[order.argsort()]


class MoeModel(nn.Module):
    def __init__(self, rank, n, fault):
        super().__init__()
        self.embedding, self.moe = nn.Embedding(VOCAB, D), MoeLayer(rank, n, fault)
        self.final_layernorm, self.output_layer = nn.LayerNorm(D), nn.Linear(D, VOCAB)

    def forward(self, ids):
        return self.output_layer(self.final_layernorm(self.moe(self.embedding(ids))))


def finalize_model_grads(model, n, fault):
    """Means over all tokens: an expert has had those of all ranks."""
    for p in model.parameters():
        if getattr(p, "allreduce", True):
            dist.all_reduce(p.grad)
            p.grad /= n
        elif fault != "edpsize":
            p.grad /= n
    model.moe.router.update_bias(n)


def train_moe(rank, fault, seed, n=2):
    torch.manual_seed(seed)
    model = MoeModel(rank, n, fault)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.3, momentum=0.9)
    for step in range(3):
        ids = words(100 * seed + step, 2, 25).chunk(n)[rank]
        optimizer.zero_grad()
        loss = F.cross_entropy(model(ids[:, :-1].flatten()), ids[:, 1:].flatten())
        loss.backward()
        if n > 1:
            finalize_model_grads(model, n, fault)
        else:
            model.moe.router.update_bias(n)
        optimizer.step()
    return state(model)


# --- pipe: a student's two stages; the last one's head is the first one's embedding ---------------------------

class DeferredHead(torch.autograd.Function):
    """A head whose own gradient is computed when the pipeline is empty again."""
    @staticmethod
    def forward(ctx, h, weight, later):
        ctx.save_for_backward(h, weight)
        ctx.later = later
        return h @ weight.t()

    @staticmethod
    def backward(ctx, g):
        h, weight = ctx.saved_tensors
        ctx.later.append((g, h))
        return g @ weight, None, None


class Stage(nn.Module):
    def __init__(self, seed, first, last):
        super().__init__()
        torch.manual_seed(seed)
        self.emb = nn.Embedding(VOCAB, D)
        blocks = [nn.Sequential(nn.LayerNorm(D), nn.Linear(D, 2 * D), nn.GELU(), nn.Linear(2 * D, D)) for _ in "12"]
        self.first, self.last, self.later = first, last, []
        # Named by their place in the whole model.
        self.blocks = nn.ModuleDict({str(i): b for i, b in enumerate(blocks) if (first, last)[i]})
        if last:
            self.norm = nn.LayerNorm(D)

    def forward(self, x):
        if self.first:
            x = self.emb(x)
        for block in self.blocks.values():
            x = x + block(x)
        return DeferredHead.apply(self.norm(x), self.emb.weight, self.later) if self.last else x

    def finish(self):
        """The head's gradient, of all micro-batches."""
        for g, h in self.later:
            grad = g.flatten(0, 1).t() @ h.flatten(0, 1)
            self.emb.weight.grad = grad if self.emb.weight.grad is None else self.emb.weight.grad + grad
        self.later.clear()


def micro_batch(stage, ids, target, shape, micro):
    """Forward and backward of a micro-batch in a stage."""
    if stage.first:
        x = ids
    else:
        x = torch.empty(shape)
        dist.recv(x, 0)
        x.requires_grad_()
    out = stage(x)
    if stage.last:
        (F.cross_entropy(out.flatten(0, 1), target.flatten()) / micro).backward()
        if not stage.first:
            dist.send(x.grad, 0)
    else:
        dist.send(out.detach(), 1)
        g = torch.empty_like(out)
        dist.recv(g, 1)
        out.backward(g)


def train_pipe(rank, fault, seed, n=2, micro=2):
    stage = Stage(seed, rank == 0, rank == n - 1)
    optimizer = torch.optim.SGD(stage.parameters(), lr=0.3, momentum=0.9)
    for step in range(3):
        optimizer.zero_grad(set_to_none=True)
        for ids in words(100 * seed + step, 4, 7).chunk(micro):
            micro_batch(stage, ids[:, :-1], ids[:, 1:], (len(ids), 6, D), micro)
        if fault != "tiedlate":
            stage.finish()
        if n > 1 and fault != "tied":
            if stage.emb.weight.grad is None:
                stage.emb.weight.grad = torch.zeros_like(stage.emb.weight)
            dist.all_reduce(stage.emb.weight.grad)
        if fault == "tiedlate":
            stage.finish()
        optimizer.step()
    return state(stage)


PROGRAMS = {"trl": (2, train_trl), "spikes": (2, train_spikes), "moe": (2, train_moe), "pipe": (2, train_pipe)}
WHOLE = {n: lambda seed, f=f: f(0, None, seed, 1) for n, (_, f) in PROGRAMS.items()}

FAULTS = {
    # Communication is left out at the step of the optimizer in place of the first micro-batches:
    # https://github.com/modelscope/FunASR/pull/3472
    "accum": ("trl", r"all_reduce|(linear\.[345]|layer_norm\.1|embedding\.1)\.backward|Module\.|adamw\.|"
              r"embedding\.0\.forward", "01"),
    # A replica that joins restores a learning rate of before: https://github.com/pytorch/torchtitan/pull/4598
    "stalelr": ("trl", r"adamw\.|embedding\.0\.forward", "01"),
    # A rank leaves out a step by itself: https://github.com/Project-MONAI/monai-physio/pull/137 and, that ranks are to
    # decide it together, https://github.com/ecmwf/WeatherGenerator/issues/2724
    "skiplocal": ("spikes", r"sgd\.|(gt|float)\.\d\.|linear\.[02]\.forward", "01"),
    # The bias that chooses experts is of the rank's own tokens: https://github.com/pytorch/torchtitan/pull/1114
    "gatebias": ("moe", r"bincount\.0\.|add_\.|clone|(mean|sub|sign)\.0\.|\.mul\.1\.|add\.0\.forward", "01"),
    # Experts are averaged with the other ones of the other rank: https://github.com/microsoft/Tutel/issues/204
    "expall": ("moe", r"all_reduce\.[12]\.|div_\.[12]\.|moe\.MoeLayer|sgd\.", "01"),
    # Gradients of experts are divided by the ranks that have the expert, not by those whose tokens it had:
    # https://github.com/deepspeedai/DeepSpeed/pull/6546
    "edpsize": ("moe", r"(matmul\.\d|__getitem__\.[2-9])\.backward|moe\.MoeLayer|sgd\.", "01"),
    # Two copies of the embedding, each with its own gradient: https://github.com/uw-syfi/piper/issues/13
    "tied": ("pipe", r"embedding\.[01]\.(backward|forward)|\.emb\.|matmul\.[045]\.|add\.2\.|sgd\.|"
             r"Tensor\.t\.0\.", "01"),
    # The head's gradient is computed after the sum: https://github.com/NVIDIA/Megatron-LM/issues/1012
    "tiedlate": ("pipe", r"all_reduce|embedding\.[01]\.(backward|forward)|\.emb\.|matmul\.[045]\.|add\.[23]\.|sgd\.|"
                 r"Tensor\.t\.0\.", "01"),
}
