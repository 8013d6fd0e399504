"""Mixtures of experts: tokens that go to the ranks of their experts, of which there are two replicas, as torchtitan
has it; experts that all see the whole batch, as transformers has it; and tokens that are gathered, as Automodel has it.
"""
import torch
import torch.distributed as dist
import torch.nn as nn
import torch.nn.functional as F

from sixagain_kit import GatherTokens, ScatterTokens, SumBackward, SumForward, draw, group_of, state

D, EXPERTS, TOP = 10, 4, 2


class Expert(nn.Module):
    def __init__(self):
        super().__init__()
        self.w1, self.w2 = nn.Linear(D, 2 * D, bias=False), nn.Linear(2 * D, D, bias=False)

    def forward(self, x):
        return self.w2(F.silu(self.w1(x)))


def experts_of(first, count):
    """All are made, that each rank draws the same; a rank keeps its own, by the number they have among all."""
    made = [Expert() for _ in range(EXPERTS)]
    return nn.ModuleDict({str(e): made[e] for e in range(first, first + count)})


# --- titan: four ranks, two of which have all experts; what balances the router is a bias and a loss -----------

class Exchange(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, put, get, group):
        ctx.how = put, get, group
        out = x.new_empty(sum(get), *x.shape[1:])
        dist.all_to_all_single(out, x.contiguous(), get, put, group=group)
        return out

    @staticmethod
    def backward(ctx, g):
        put, get, group = ctx.how
        return Exchange.forward(ctx, g, get, put, group), None, None, None


class Titan(nn.Module):
    def __init__(self, ep_rank=0, ep=None):
        super().__init__()
        self.ep, self.fault = ep, None
        self.router, self.shared = nn.Linear(D, EXPERTS, bias=False), Expert()
        count = EXPERTS // (2 if ep is not None else 1)
        self.experts = experts_of(ep_rank * count, count)
        with torch.no_grad():
            # The last one is for one of two kinds of text.
            self.router.weight[-1, 0] = 3.0
        self.register_buffer("expert_bias", torch.zeros(EXPERTS))
        self.register_buffer("tokens_per_expert", torch.zeros(EXPERTS))

    def compute(self, x, expert):
        """What the experts of this rank make of tokens that are theirs."""
        out = torch.zeros_like(x)
        for e, net in self.experts.items():
            at = (expert == int(e)).nonzero().flatten()
            if len(at):
                out = out.index_add(0, at, net(x[at]))
        return out

    def dispatch(self, x, expert):
        per_rank = (expert // len(self.experts)).bincount(minlength=2)
        theirs = torch.empty_like(per_rank)
        dist.all_to_all_single(theirs, per_rank, group=self.ep)
        put, get = per_rank.tolist(), theirs.tolist()
        number = torch.empty(sum(get), dtype=torch.long)
        dist.all_to_all_single(number, expert, get, put, group=self.ep)
        return Exchange.apply(self.compute(Exchange.apply(x, put, get, self.ep), number), get, put, self.ep)

    def forward(self, x):
        scores = torch.sigmoid(self.router(x))
        chosen = (scores.detach() + self.expert_bias).topk(TOP, -1).indices
        weights = scores.gather(-1, chosen)
        counts = chosen.flatten().bincount(minlength=EXPERTS).float()
        self.tokens_per_expert += counts
        expert, order = chosen.flatten().sort(stable=True)
        token = order // TOP
        run = self.compute if self.ep is None else self.dispatch
        routed = run(x[token], expert) * weights.flatten()[order, None]
        return self.shared(x) + torch.zeros_like(x).index_add(0, token, routed), self.balance(scores, counts)

    def balance(self, scores, counts):
        """Of how all tokens are spread, and what this rank's scores are on average."""
        tokens = torch.tensor(float(len(scores)))
        if self.ep is not None:
            dist.all_reduce(counts)
            if self.fault == "globaltokens":
                dist.all_reduce(tokens)
        share = counts / counts.sum()
        return EXPERTS * (share * scores.sum(0) / tokens).sum()

    @torch.no_grad()
    def update_expert_bias(self):
        counts = self.tokens_per_expert
        if self.ep is not None:
            if self.fault == "lostcounts":
                counts = counts.clone()
            dist.all_reduce(counts)
        counts = self.tokens_per_expert
        self.expert_bias += 0.1 * (counts.mean() - counts).sign()
        self.tokens_per_expert.zero_()


def reduce_titan(model, ep, edp, fault):
    """Dense weights have a gradient of this rank's tokens; experts, of those of the ranks they serve."""
    for name, p in model.named_parameters():
        if not name.startswith("experts"):
            dist.all_reduce(p.grad)
            p.grad /= dist.get_world_size()
        elif fault != "notreduced":
            g = torch.zeros_like(p) if p.grad is None else p.grad
            dist.all_reduce(g, group=ep if fault == "mesh" else edp)
            if p.grad is not None or fault != "notokens":
                p.grad = g / (2 if fault == "replicas" else dist.get_world_size())
        elif p.grad is not None:
            p.grad /= dist.get_world_size()


def documents(seed, step, rank):
    s = 1000 * seed + 100 * step + 10 * rank
    x = draw(s, 8, D)
    x[:, 0] = 2.0 if rank < 2 else -2.0
    return x, draw(s + 1, 8, D)


def train_titan(rank, fault, seed):
    ep, edp = group_of(rank, [[0, 1], [2, 3]]), group_of(rank, [[0, 2], [1, 3]])
    torch.manual_seed(seed)
    model = Titan(rank % 2, ep)
    model.fault = fault
    opt = torch.optim.SGD(model.parameters(), lr=0.5, momentum=0.9, weight_decay=0.05)
    for s in range(3):
        x, target = documents(seed, s, rank)
        opt.zero_grad(set_to_none=True)
        y, aux = model(x)
        (F.mse_loss(x + y, target) + 0.1 * aux).backward()
        reduce_titan(model, ep, edp, fault)
        model.update_expert_bias()
        opt.step()
    return state(model, expert_bias=model.expert_bias)


def whole_titan(seed):
    torch.manual_seed(seed)
    model = Titan()
    opt = torch.optim.SGD(model.parameters(), lr=0.5, momentum=0.9, weight_decay=0.05)
    for s in range(3):
        x, target = map(torch.cat, zip(*(documents(seed, s, r) for r in range(4))))
        opt.zero_grad(set_to_none=True)
        y, aux = model(x)
        (F.mse_loss(x + y, target) + 0.1 * aux).backward()
        model.update_expert_bias()
        opt.step()
    return state(model, expert_bias=model.expert_bias)


# --- mixtral: both ranks have the batch and the router; each adds up its own experts -----------------------------

class Mixtral(nn.Module):
    def __init__(self, rank, n, fault):
        super().__init__()
        self.n, self.fault, self.norm = n, fault, nn.LayerNorm(D)
        self.gate, self.experts = nn.Linear(D, EXPERTS), experts_of(rank * EXPERTS // n, EXPERTS // n)
        self.head = nn.Linear(D, 3)

    def forward(self, x):
        h = self.norm(x)
        top, chosen = self.gate(h).softmax(-1).topk(TOP, -1)
        # Slots of other ranks' experts stay zero here.
        scores = torch.zeros(len(x), EXPERTS).scatter(-1, chosen, top / top.sum(-1, keepdim=True))
        if self.n > 1:
            h = SumBackward.apply(h, None)
            if self.fault != "scores":
                scores = SumBackward.apply(scores, None)
        y = sum(net(h) * scores[:, int(e), None] for e, net in self.experts.items())
        return self.head(x + (SumForward.apply(y, None) if self.n > 1 else y))


def train_mixtral(rank, fault, seed, n=2):
    torch.manual_seed(seed)
    model = Mixtral(rank, n, fault)
    opt = torch.optim.AdamW(model.parameters(), lr=0.02)
    sched = torch.optim.lr_scheduler.CosineAnnealingLR(opt, 4)
    for s in range(2):
        x = draw(100 * seed + s, 7, D)
        opt.zero_grad()
        F.huber_loss(model(x), x[:, :3].cos()).backward()
        opt.step()
        sched.step()
    return state(model)


# --- gathered: each rank has its own tokens, and gathers all for its experts -------------------------------------

class Gathered(nn.Module):
    def __init__(self, rank, n, fault):
        super().__init__()
        self.n, self.fault = n, fault
        self.proj, self.gate = nn.Linear(D, D), nn.Linear(D, EXPERTS, bias=False)
        self.experts = experts_of(rank * EXPERTS // n, EXPERTS // n)

    def gather_probs(self, probs):
        if self.fault == "plaingather":
            out = [torch.empty_like(probs) for _ in range(self.n)]
            dist.all_gather(out, probs)
            return torch.cat(out)
        return GatherTokens.apply(probs)

    def forward(self, x):
        h = self.proj(x).tanh()
        logits = self.gate(h)
        probs = logits.softmax(-1)
        z_loss = logits.logsumexp(-1).square().mean()
        whole, p = h, probs
        if self.n > 1:
            whole, p = GatherTokens.apply(h), self.gather_probs(probs)
        # A token goes to what is more than an even share.
        p = p * (p > 1 / EXPERTS)
        y = sum(net(whole) * p[:, int(e), None] for e, net in self.experts.items())
        return h + (ScatterTokens.apply(y) if self.n > 1 else y), z_loss


def train_gathered(rank, fault, seed, n=2):
    torch.manual_seed(seed)
    model = Gathered(rank, n, fault)
    opt = torch.optim.SGD(model.parameters(), lr=0.4)
    for s in range(2):
        opt.zero_grad()
        for m in range(2):
            x = draw(100 * seed + 10 * s + m, 8, D)
            y, z_loss = model(x.chunk(n)[rank])
            ((F.l1_loss(y, x.flip(-1).chunk(n)[rank]) + 0.01 * z_loss) / 2).backward()
        for name, p in model.named_parameters():
            if not name.startswith("experts") and n > 1:
                dist.all_reduce(p.grad)
            if not name.startswith("experts") or fault != "epsize":
                p.grad.div_(n)
        opt.step()
    return state(model)


PROGRAMS = {"titan": (4, train_titan), "mixtral": (2, train_mixtral), "gathered": (2, train_gathered)}
WHOLE = {"titan": whole_titan, "mixtral": lambda seed: train_mixtral(0, None, seed, 1),
         "gathered": lambda seed: train_gathered(0, None, seed, 1)}

FAULTS = {
    # A copy of the counts is summed, and the rank's own are used:
    # https://github.com/NVIDIA/TransformerEngine/pull/3471
    "lostcounts": ("titan", r"all_reduce\.8|Tensor\.(clone|mean|sub|sign|topk|mul\.4|add_\.1|add\.0)\.", "0123"),
    # The rank's scores divided by all tokens: https://github.com/NVIDIA/Megatron-LM/issues/3672
    "globaltokens": ("titan", r"all_reduce\.1\.|Tensor\.(div\.1|sum\.[12]|mul\.[123])\.", "0123"),
    # Each rank's scores have the gradient of its experts: https://github.com/huggingface/transformers/pull/48205
    "scores": ("mixtral", r"(scatter|div|sum|topk|softmax|linear)\.0\.backward|(mul|__getitem__)\.[01]\.backward|"
               r"gate", "01"),
    # What is gathered has no gradient: https://github.com/NVIDIA-NeMo/Automodel/pull/2995
    "plaingather": ("gathered", r"all_gather\.[14]\.|softmax\.[01]\.|cat\.[14]\.|linear\.[17]\.backward|gate", "01"),
    # Divided by the replicas of an expert, not the ranks: https://github.com/deepspeedai/DeepSpeed/pull/6546
    "replicas": ("titan", r"all_reduce\.[4-7]\.|Tensor\.div\.[2-5]\.", "0123"),
    # Replicas of experts keep their own gradients: https://github.com/facebookresearch/fairseq/issues/4220
    "notreduced": ("titan", r"experts|linear\.[1-4]\.backward|Tensor\.div_\.[3-6]\.|sgd", "0123"),
    # Summed over ranks that have other experts: https://github.com/NVIDIA/Megatron-LM/pull/5916
    "mesh": ("titan", r"all_reduce\.[4-7]\.|Tensor\.div\.[2-5]\.|experts|sgd", "0123"),
    # An expert that got no token here leaves out the step: https://github.com/NVIDIA-NeMo/Automodel/pull/2995
    "notokens": ("titan", r"all_reduce\.[67]\.|Tensor\.div\.[45]\.|experts\.3|sgd", "3"),
    # Experts serve all ranks and are not divided by them: https://github.com/pytorch/pytorch/issues/160285
    "epsize": ("gathered", r"experts|linear\.([2-5]|8|9|10|11)\.backward|Tensor\.div_\.|sgd", "01"),
}
