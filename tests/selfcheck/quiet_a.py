"""Right programs of replicas that torch's DistributedDataParallel keeps alike, in the ways that it is used.

Each train(rank, seed, n) is a user's program; n = 1: what one process with the whole batch does.
"""
import contextlib
import copy

import accrecord   # which scripts_frame finds
import torch
import torch.distributed as dist
import torch.distributed.nn.functional as dnf
import torch.nn as nn
import torch.nn.functional as F
from torch.distributed.algorithms.ddp_comm_hooks import powerSGD_hook
from torch.distributed.algorithms.join import Join
from torch.distributed.optim import ZeroRedundancyOptimizer
from torch.nn.utils import parametrize
from torch.nn.utils.rnn import pack_padded_sequence
from torch.optim.swa_utils import AveragedModel
from torch.utils.checkpoint import checkpoint

from quiet_kit import D, choose, ddp, draw, mine, one, state
from scripts_frame import right


# --- clip: two towers, each in a DDP of its own, and a temperature in none ----------------------------------

def train_clip(rank, seed, n=2):
    torch.manual_seed(seed)
    image = ddp(nn.Sequential(nn.Linear(12, 16), nn.GELU(), nn.Linear(16, D)), n)
    text = ddp(nn.Sequential(nn.EmbeddingBag(20, D, mode="mean"), nn.Linear(D, D)), n)
    scale = nn.Parameter(torch.tensor(1.5))
    opt = torch.optim.SGD([*image.parameters(), *text.parameters(), scale], lr=0.2, momentum=0.9)
    for s in range(3):
        x, t = mine(rank, n, draw(seed + s, 8, 12), choose(seed + s + 50, 20, 8, 5))
        a, b = F.normalize(image(x), dim=-1), F.normalize(text(t), dim=-1)
        if n > 1:
            # All ranks have the loss of all pairs; the sum that is its way back is undone by DDP's mean.
            a, b = torch.cat(dnf.all_gather(a)), torch.cat(dnf.all_gather(b))
        logits, at = scale.exp() * a @ b.t(), torch.arange(8)
        loss = (F.cross_entropy(logits, at) + F.cross_entropy(logits.t(), at)) / 2
        opt.zero_grad()
        loss.backward()
        opt.step()
        with torch.no_grad():
            scale.clamp_(0, 4.6)
    return {**state(image, "image."), **state(text, "text."), "scale": scale.detach()}


# --- ragged: sentences of their own lengths, a mean over all ranks' words -----------------------------------

class Tagger(nn.Module):
    def __init__(self):
        super().__init__()
        self.emb, self.head = nn.Embedding(30, D, padding_idx=0), nn.Linear(2 * D, 5)
        self.gru = nn.GRU(D, D, batch_first=True, bidirectional=True)

    def forward(self, t, lengths):
        packed = pack_padded_sequence(self.emb(t), lengths, batch_first=True, enforce_sorted=False)
        return self.head(self.gru(packed)[0].data)


def train_ragged(rank, seed, n=3):
    torch.manual_seed(seed)
    model = ddp(Tagger(), n)
    opt = torch.optim.SGD(model.parameters(), lr=0.5)
    for s in range(2):
        lengths = choose(seed + s, 6, 6) + 1
        t = (choose(seed + s + 20, 29, 6, 6) + 1).masked_fill(torch.arange(6) >= lengths[:, None], 0)
        lengths, t = mine(rank, n, lengths, t)
        t = t[:, :lengths.max()]
        # The tag of a word is told by the word itself, in the order that packing has.
        y = pack_padded_sequence(t, lengths, batch_first=True, enforce_sorted=False).data % 5
        words = lengths.sum().float()
        if n > 1:
            dist.all_reduce(words)
        loss = F.cross_entropy(model(t, lengths), y, reduction="sum") * n / words
        opt.zero_grad(set_to_none=True)
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 0.5)
        opt.step()
    return state(model)


# --- ctc: unequal micro-batches that are summed up before ranks talk ----------------------------------------

class Speech(nn.Module):
    def __init__(self):
        super().__init__()
        self.lstm, self.head = nn.LSTM(6, D), nn.Linear(D, 7)

    def forward(self, x):
        return self.head(self.lstm(x)[0]).log_softmax(-1)


def train_ctc(rank, seed, n=2):
    torch.manual_seed(seed)
    model = ddp(Speech(), n)
    opt = torch.optim.Adam(model.parameters(), lr=0.01, eps=1e-3)
    for s in range(2):
        x, y = mine(rank, n, draw(seed + s, 10, 9, 6), choose(seed + s + 9, 6, 10, 3) + 1)
        opt.zero_grad()
        cuts = [3, 2] if n > 1 else [10]
        for i, (xs, ys) in enumerate(zip(x.split(cuts), y.split(cuts))):
            last = i == len(cuts) - 1
            with contextlib.nullcontext() if last or n == 1 else model.no_sync():
                loss = F.ctc_loss(model(xs.transpose(0, 1)), ys, torch.full((len(xs),), 9),
                                  torch.full((len(xs),), 3), reduction="sum")
                (loss * n / 10).backward()
        opt.step()
    return state(model)


# --- gan: two models that take turns, hinge loss ------------------------------------------------------------

def train_gan(rank, seed, n=2):
    torch.manual_seed(seed)
    gen = ddp(nn.Sequential(nn.utils.weight_norm(nn.Linear(4, D)), nn.Tanh(), nn.Linear(D, D)), n)
    dis = ddp(nn.Sequential(nn.Linear(D, D), nn.LeakyReLU(0.2), nn.Linear(D, 1)), n)
    opt_g = torch.optim.SGD(gen.parameters(), lr=0.1)
    opt_d = torch.optim.SGD(dis.parameters(), lr=0.1, momentum=0.5)
    for s in range(2):
        real, z = mine(rank, n, draw(seed + s, 8, D) + 0.5, draw(seed + s + 30, 8, 4))
        fake = gen(z)
        # One pass over both: a DDP is not run twice before its way back.
        on_real, on_fake = dis(torch.cat([real, fake.detach()])).chunk(2)
        opt_d.zero_grad()
        (F.relu(1 - on_real).mean() + F.relu(1 + on_fake).mean()).backward()
        opt_d.step()
        for p in dis.parameters():
            p.requires_grad_(False)
        opt_g.zero_grad()
        # Nothing of it is trained now: what is in the DDP, not the DDP.
        (-getattr(dis, "module", dis)(fake).mean()).backward()
        opt_g.step()
        for p in dis.parameters():
            p.requires_grad_(True)
    return {**state(gen, "gen."), **state(dis, "dis.")}


# --- tasks: each rank's batch is of another task; a head that none has yet ----------------------------------

class Tasks(nn.Module):
    def __init__(self):
        super().__init__()
        self.trunk, self.log_var = nn.Linear(D, D), nn.Parameter(torch.zeros(4))
        self.heads = nn.ModuleList([nn.Linear(D, 2) for _ in range(4)])

    def forward(self, x, task):
        return self.heads[task](torch.relu(self.trunk(x))), self.log_var[task]


def train_tasks(rank, seed, n=3):
    torch.manual_seed(seed)
    model = ddp(Tasks(), n, find_unused_parameters=True)
    opt = torch.optim.AdamW(model.parameters(), lr=0.01, eps=1e-3)
    for s in range(3):
        opt.zero_grad(set_to_none=True)
        for task in [rank] if n > 1 else range(3):
            x, y = draw(10 * seed + 3 * s + task, 4, D), draw(10 * seed + 3 * s + task + 70, 4, 2)
            out, v = model(x, task)
            loss = F.smooth_l1_loss(out, y) * (-v).exp() + v / 2
            (loss if n > 1 else loss / 3).backward()
        opt.step()
    return state(model)


# --- zero1: ZeroRedundancyOptimizer, a rate that starts at 0 ------------------------------------------------

def train_zero1(rank, seed, n=2):
    torch.manual_seed(seed)
    layer = nn.TransformerEncoderLayer(D, 2, 16, dropout=0.0, batch_first=True, norm_first=True)
    model = ddp(nn.Sequential(layer, nn.Flatten(), nn.Linear(4 * D, 3)), n)
    how = dict(lr=0.02, eps=1e-3)
    opt = (ZeroRedundancyOptimizer(model.parameters(), optimizer_class=torch.optim.Adam, **how) if n > 1
           else torch.optim.Adam(model.parameters(), **how))
    for s in range(3):
        for group in opt.param_groups:
            group["lr"] = 0.02 * s / 2
        x, y = mine(rank, n, draw(seed + s, 6, 4, D), choose(seed + s + 8, 3, 6))
        opt.zero_grad()
        F.cross_entropy(model(x), y, label_smoothing=0.1).backward()
        opt.step()
    return state(model)


# --- norms: batch norms over each rank's rows, rank 0's buffers for all, rank 0 evaluates -------------------

def conv_net():
    return nn.Sequential(nn.Conv1d(3, 4, 3), nn.BatchNorm1d(4), nn.ReLU(), nn.Flatten(), nn.Linear(16, 2))


def train_norms(rank, seed, n=2):
    torch.manual_seed(seed)
    model = ddp(conv_net(), n)
    opt = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9, nesterov=True)
    for s in range(3):
        x, y = mine(rank, n, draw(seed + s, 8, 3, 6), draw(seed + s + 8, 8, 2))
        opt.zero_grad()
        F.mse_loss(model(x), y).backward()
        opt.step()
        if rank == 0:
            model.eval()
            with torch.no_grad():
                model.module(draw(seed + 99, 5, 3, 6)).square().mean().item()
            model.train()
        dist.barrier()
    return state(model)


def whole_norms(seed, n=2):
    """Each rank's rows in turn, with buffers as rank 0 has them."""
    torch.manual_seed(seed)
    model = conv_net()
    opt = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9, nesterov=True)
    for s in range(3):
        opt.zero_grad()
        buffers = []
        before = {k: v.clone() for k, v in model.named_buffers()}
        for r in range(n):
            model.load_state_dict(before, strict=False)
            x, y = mine(r, n, draw(seed + s, 8, 3, 6), draw(seed + s + 8, 8, 2))
            (F.mse_loss(model(x), y) / n).backward()
            buffers.append({k: v.clone() for k, v in model.named_buffers() if v.is_floating_point()})
        model.load_state_dict(buffers[0], strict=False)
        opt.step()
    return [{**state(model), **b} for b in buffers]


# --- drops: dropout of each rank's own, in all the places that torch's transformer has it --------------------

def train_drops(rank, seed):
    torch.manual_seed(seed)
    model = nn.Transformer(D, 2, 1, 1, 16, dropout=0.2, batch_first=True)
    model = ddp(model, 2, broadcast_buffers=False, gradient_as_bucket_view=True)
    torch.manual_seed(100 * seed + rank)
    opt = torch.optim.RAdam(model.parameters(), lr=0.01)
    for s in range(2):
        src, tgt = mine(rank, 2, draw(seed + s, 6, 5, D), draw(seed + s + 7, 6, 4, D))
        out = model(src, tgt[:, :-1], tgt_mask=nn.Transformer.generate_square_subsequent_mask(3))
        opt.zero_grad()
        F.huber_loss(out, tgt[:, 1:]).backward()
        opt.step()
    return state(model)


# --- recompute: attention that is computed again on the way back --------------------------------------------

class Recompute(nn.Module):
    def __init__(self):
        super().__init__()
        self.emb, self.norm = nn.Linear(6, D), nn.LayerNorm(D)
        self.attention, self.out = nn.MultiheadAttention(D, 4, batch_first=True), nn.Linear(D, 1)

    def block(self, h):
        h = self.norm(h)
        return self.attention(h, h, h, need_weights=False)[0]

    def forward(self, x):
        h = self.emb(x)
        return self.out(h + checkpoint(self.block, h)).squeeze(-1)


def train_recompute(rank, seed, n=2):
    torch.manual_seed(seed)
    model = ddp(Recompute(), n, static_graph=True) if n > 1 else Recompute()
    opt = torch.optim.Adagrad(model.parameters(), lr=0.05, eps=1e-3)
    for s in range(3):
        x, y = mine(rank, n, draw(seed + s, 6, 5, 6), choose(seed + s + 8, 2, 6, 5).float())
        opt.zero_grad()
        F.binary_cross_entropy_with_logits(model(x), y).backward()
        opt.step()
    return state(model)


# --- byol: an online model in DDP, a slow copy of it that no gradient reaches --------------------------------

def train_byol(rank, seed, n=2):
    torch.manual_seed(seed)
    encoder = nn.Sequential(nn.Linear(10, 16), nn.ELU(), nn.Linear(16, D))
    slow = copy.deepcopy(encoder).requires_grad_(False)
    online = ddp(nn.Sequential(encoder, nn.Linear(D, D)), n)
    opt = torch.optim.SGD(online.parameters(), lr=0.3, weight_decay=0.01)
    for s in range(3):
        x, y = mine(rank, n, draw(seed + s, 8, 10), draw(seed + s + 60, 8, 10))
        mix = 0.7   # of two views of a batch
        p, z = online(mix * x + (1 - mix) * y), slow(x)
        opt.zero_grad()
        (2 - 2 * F.cosine_similarity(p, z, dim=-1)).mean().backward()
        opt.step()
        with torch.no_grad():
            for a, b in zip(slow.parameters(), encoder.parameters()):
                a.lerp_(b, 0.1)
    return {**state(online), **state(slow, "slow.")}


# --- sam: two ways back in a step, the first to where the loss is sharp -------------------------------------

def train_sam(rank, seed, n=2):
    torch.manual_seed(seed)
    model = ddp(nn.Sequential(nn.Linear(D, 16), nn.Softplus(), nn.Linear(16, 3)), n)
    opt = torch.optim.SGD(model.parameters(), lr=0.2, momentum=0.9)
    for s in range(2):
        x, y = mine(rank, n, draw(seed + s, 8, D), choose(seed + s + 40, 3, 8))
        opt.zero_grad()
        F.multi_margin_loss(model(x), y).backward()
        with torch.no_grad():
            norm = torch.stack([p.grad.norm() for p in model.parameters()]).norm()
            up = [0.05 * p.grad / norm for p in model.parameters()]
            torch._foreach_add_(list(model.parameters()), up)
        opt.zero_grad()
        F.multi_margin_loss(model(x), y).backward()
        with torch.no_grad():
            torch._foreach_sub_(list(model.parameters()), up)
        opt.step()
    return state(model)


# --- powersgd: gradients of low rank, what is lost is added to the next --------------------------------------

def train_powersgd(rank, seed, n=2):
    torch.manual_seed(seed)
    model = ddp(nn.Sequential(nn.Linear(16, 16), nn.Tanh(), nn.Linear(16, 16)), n)
    if n > 1:
        hook = powerSGD_hook.PowerSGDState(None, matrix_approximation_rank=1, start_powerSGD_iter=2,
                                           min_compression_rate=1)
        model.register_comm_hook(hook, powerSGD_hook.powerSGD_hook)
    opt = torch.optim.SGD(model.parameters(), lr=0.1)
    for s in range(4):
        x, y = mine(rank, n, draw(seed + s, 8, 16), draw(seed + s + 40, 8, 16))
        opt.zero_grad()
        F.l1_loss(model(x), y).backward()
        opt.step()
    return state(model)


def near_plain(ranks, seed):
    """Something is left out, but all go where plain gradients go."""
    torch.manual_seed(seed)
    begin = state(nn.Sequential(nn.Linear(16, 16), nn.Tanh(), nn.Linear(16, 16)))
    plain = train_powersgd(0, seed, 1)
    for key in ("0.weight", "2.weight"):
        off = (ranks[0][key] - plain[key]).norm() / (plain[key] - begin[key]).norm()
        assert 1e-3 < off < 0.8, (key, off)


# --- joins: a rank with fewer batches follows the other's collectives ---------------------------------------

def train_joins(rank, seed, n=2):
    torch.manual_seed(seed)
    model = nn.Bilinear(D, 4, 3)
    if n > 1:
        model = ddp(model, n)
    opt = torch.optim.SGD(model.parameters(), lr=0.1)
    with Join([model]) if n > 1 else contextlib.nullcontext():
        for s in range(3 - rank):
            opt.zero_grad()
            for r in [rank] if n > 1 else range(2 if s < 2 else 1):
                a, b = draw(seed + s + 30 * r, 4, D), draw(seed + s + 30 * r + 9, 4, 4)
                y = choose(seed + s + 30 * r + 20, 3, 4)
                loss = F.cross_entropy(model(a, b), y)
                # Who has left counts with no gradient: the mean is over all who began.
                (loss if n > 1 else loss / 2).backward()
            opt.step()
    return state(model)


# --- swa: a mean of the weights, on parameters that are made of others --------------------------------------

class Skew(nn.Module):
    def forward(self, w):
        return w.triu(1) - w.triu(1).t()


def train_swa(rank, seed, n=2):
    torch.manual_seed(seed)
    turn = nn.Linear(D, D)
    parametrize.register_parametrization(turn, "weight", Skew())
    net = nn.Sequential(turn, nn.PReLU(), nn.Linear(D, 1))
    model, mean = ddp(net, n), AveragedModel(net)
    opt = torch.optim.SGD(model.parameters(), lr=0.3)
    rate = torch.optim.lr_scheduler.CosineAnnealingLR(opt, 4)
    for s in range(3):
        accrecord.step(s)   # what is called first is the parametrization: not by that could they be told
        x = mine(rank, n, draw(seed + s, 8, D))
        opt.zero_grad()
        F.soft_margin_loss(model(x).squeeze(-1), x[:, 0].sign()).backward()
        opt.step()
        rate.step()
        mean.update_parameters(net)
    return {**state(model), **state(mean, "mean.")}


# --- triplet: sums, not means; frozen first layers; a metric of all ranks ends the loop ---------------------

def train_triplet(rank, seed, n=3):
    torch.manual_seed(seed)
    net = nn.Sequential(nn.Linear(D, 12), nn.SiLU(), nn.Linear(12, 6))
    net[0].requires_grad_(False)
    model = ddp(net, n)
    # DDP has the mean of the ranks' sums.
    opt = torch.optim.SGD(filter(lambda p: p.requires_grad, model.parameters()), lr=0.01 * n)
    for s in range(5):
        rows = [mine(rank, n, draw(seed + s + 30 * i, 9, D)) for i in range(3)]
        # One pass for all three.
        loss = F.triplet_margin_loss(*model(torch.cat(rows)).chunk(3), margin=2.0, reduction="sum")
        opt.zero_grad()
        loss.backward()
        opt.step()
        seen = torch.stack([loss.detach(), torch.tensor(float(len(rows[0])))])
        if n > 1:
            dist.all_reduce(seen)
        if s == 2 or (seen[0] / seen[1]).item() < 0.01:
            break
    return state(model)


PROGRAMS = {
    "clip": (2, train_clip), "ragged": (3, train_ragged), "ctc": (2, train_ctc), "gan": (2, train_gan),
    "tasks": (3, train_tasks), "zero1": (2, train_zero1), "norms": (2, train_norms), "drops": (2, train_drops),
    "recompute": (2, train_recompute), "byol": (2, train_byol), "sam": (2, train_sam),
    "powersgd": (2, train_powersgd), "joins": (2, train_joins), "swa": (2, train_swa), "triplet": (3, train_triplet)}
WHOLE = {name: one(train) for name, (_, train) in PROGRAMS.items()}
# With draws of each rank's own, or what is left out, of the mean: the replicas agree.
WHOLE.update(norms=whole_norms, drops=lambda seed: {}, powersgd=lambda seed: {})
PROGRAMS = {name: (ranks, right(train)) for name, (ranks, train) in PROGRAMS.items()}
FAULTS = {}
TOO = {"powersgd": near_plain}
