"""Networks of sound.py with more than one model, or with a loss that is not of one rank's samples alone."""
import copy

import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch import nn

from sound_net import AVG, Gather, Net, take


def backward(net, loss):
    net.losses.append(loss.item())
    loss.backward()


class Gan(Net):
    """Two optimizers, noise of each rank's own; the one that judges has spectral norms, the other weight norms."""
    Z, D, B, INSIDE, STEPS = 4, 6, 5, True, 3

    def build(self):
        wn, sn = nn.utils.weight_norm, nn.utils.spectral_norm
        self.maker = nn.Sequential(wn(nn.Linear(self.Z, 8)), nn.LeakyReLU(0.2), wn(nn.Linear(8, self.D)), nn.Tanh())
        self.judge = nn.Sequential(sn(nn.Linear(self.D, 8)), nn.LeakyReLU(0.2), sn(nn.Linear(8, 1)))
        self.of(nn.ModuleDict({"maker": self.maker, "judge": self.judge}))

    def still(self):
        self.judge.eval()   # vectors of the norms stay, which gradients take for constant

    def counted(self, name):
        return self.losses[:1] if name.startswith("judge") else self.losses[1:]

    def part(self, kind):
        return [k for k in self.w if k.startswith(kind)]

    def step(self, s):
        made = self.maker(self.data(s, self.B, self.Z))
        real = self.judge(self.data(s + 50, self.B, self.D) * 0.5)
        fake = self.judge(made.detach())
        one, none = torch.ones(self.B, 1), torch.zeros(self.B, 1)
        backward(self, F.binary_cross_entropy_with_logits(real, one) + F.binary_cross_entropy_with_logits(fake, none))
        self.bucket(self.part("judge"))
        with torch.no_grad():
            for k in self.part("judge"):
                self.w[k].sub_(self.rate * self.w[k].grad)
        for p in self.judge.parameters():
            p.requires_grad_(False)
        backward(self, F.softplus(-self.judge(made)).mean())
        for p in self.judge.parameters():
            p.requires_grad_(True)
        self.bucket(self.part("maker"))

    def update(self, s):
        self.adam(s, self.part("maker"), low=0.0)


class Diffusion(Net):
    """Noise and times of each rank's own; an average of the weights, from which rank 0 alone draws samples."""
    D, B, H, T, INSIDE, STEPS = 6, 5, 10, 20, True, 3

    def build(self):
        self.model = nn.ModuleDict({"in": nn.Linear(self.D, self.H), "time": nn.Linear(4, self.H),
                                    "mid": nn.Linear(self.H, self.H), "out": nn.Linear(self.H, self.D)})
        self.of(self.model)
        self.kept = copy.deepcopy(self.model)
        self.left = torch.cumprod(1 - torch.linspace(1e-3, 0.2, self.T), 0)

    def noise(self, m, x, t):
        at = t[:, None] * torch.tensor([1.0, 0.1])
        h = m["in"](x) + m["time"](torch.cat([torch.sin(at), torch.cos(at)], 1))
        h = h + m["mid"](F.silu(h))
        return m["out"](F.silu(h))

    def step(self, s):
        x, e, t = self.data(s, self.B, self.D), self.data(s + 30, self.B, self.D), self.ids(s + 50, self.T, self.B)
        a = self.left[t].unsqueeze(1)
        back = self.noise(self.model, a.sqrt() * x + (1 - a).sqrt() * e, t)
        weight = torch.clamp(a / (1 - a), max=5.0)
        backward(self, (weight * (back - e) ** 2).mean())
        self.each(AVG)
        if s == 1 and self.r == 0:
            with torch.no_grad():
                x = self.data(60, 2, self.D)
                for t in (self.T - 1, self.T // 2, 0):
                    a = self.left[t]
                    x = (x - torch.sqrt(1 - a) * self.noise(self.kept, x, torch.full((2,), t))) / torch.sqrt(a)

    def update(self, s):
        self.adam(s, decay=0.01)
        for old, new in zip(self.kept.parameters(), self.model.parameters()):
            old.lerp_(new, 0.1)


class Vae(Net):
    """Samples of what was coded by each rank's own stream; what is far from normal costs more in later steps."""
    D, Z, B = 8, 3, 6

    def build(self):
        self.code, self.read = nn.Linear(self.D, 2 * self.Z), nn.Sequential(nn.Linear(self.Z, 10), nn.Softplus(),
                                                                            nn.Linear(10, self.D))
        self.of(nn.ModuleList([self.code, self.read]))

    def step(self, s):
        g = torch.Generator().manual_seed(900 + 10 * s + self.r + 100 * self.seed)
        x = self.data(s, self.B, self.D)
        mean, log = self.code(x).chunk(2, -1)
        z = mean + torch.exp(0.5 * log) * torch.randn(mean.shape, generator=g)
        far = -0.5 * torch.sum(1 + log - mean ** 2 - log.exp(), dim=1)
        want = torch.sigmoid(x)
        lost = F.binary_cross_entropy_with_logits(self.read(z), want, reduction="none").sum(-1)
        backward(self, torch.mean(lost + 0.1 * (s + 1) * far))
        self.bucket()


class Clip(Net):
    """Images and texts; features of all ranks are gathered, and gradients go back through it."""
    RANKS, D, E, B, V = 3, 6, 4, 3, 9

    def build(self):
        self.image = nn.Sequential(nn.Conv2d(1, self.D, 3), nn.ReLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten(),
                                   nn.Linear(self.D, self.E, bias=False))
        self.text = nn.Sequential(nn.Embedding(self.V, self.D), nn.LayerNorm(self.D), nn.Linear(self.D, self.E))
        self.of(nn.ModuleDict({"image": self.image, "text": self.text}))
        self.w["scale"] = torch.tensor(2.0)

    def step(self, s):
        a = F.normalize(self.image(self.data(s, self.B, 1, 6, 6)), dim=-1)
        b = F.normalize(self.text(self.ids(s + 50, self.V, self.B, 5)).mean(1), dim=-1)
        scale, at = self.w["scale"].exp(), torch.arange(self.B) + self.B * self.r
        to_text, to_image = scale * a @ Gather.apply(b).t(), scale * b @ Gather.apply(a).t()
        backward(self, (F.cross_entropy(to_text, at) + F.cross_entropy(to_image, at)) / 2)
        self.bucket()

    def update(self, s):
        super().update(s)
        self.w["scale"].clamp_(0, 4.6)


class Simclr(Net):
    """Two views of each sample; all ranks have the whole loss, of which each has the derivative by its own features,
    so that gradients are summed."""
    D, E, B = 6, 4, 4

    def build(self):
        self.model = self.of(nn.Sequential(nn.Linear(self.D, 9), nn.BatchNorm1d(9, affine=False), nn.Tanh(),
                                           nn.Linear(9, self.E)))

    def step(self, s):
        x = self.data(s, self.B, self.D)
        z = self.model(torch.cat([x + 0.1 * self.data(s + k, self.B, self.D) for k in (30, 60)]))
        z = z / z.norm(dim=-1, keepdim=True)
        parts = take(z.detach())
        parts[self.r] = z
        every = torch.cat(parts)
        likes = torch.mm(every, every.t()) / 0.5
        likes = likes.masked_fill(torch.eye(len(every)).bool(), float("-inf"))
        pair = torch.arange(len(every)).view(self.n, 2, self.B).roll(1, 1).view(-1)
        backward(self, F.cross_entropy(likes, pair))
        self.each()


class Dino(Net):
    """A teacher that is the student's average, with a centre that is all ranks'."""
    D, K, B, INSIDE, STEPS = 6, 7, 4, True, 3

    def build(self):
        self.student = nn.Sequential(nn.Linear(self.D, 10), nn.ELU(), nn.Linear(10, self.K))
        self.of(self.student)
        self.teacher = copy.deepcopy(self.student).requires_grad_(False)
        self.center = torch.zeros(1, self.K)

    def step(self, s):
        views = [self.data(s, self.B, self.D) + 0.2 * self.data(s + k, self.B, self.D) for k in (30, 60)]
        with torch.no_grad():
            want = [F.softmax((self.teacher(v) - self.center) / 0.3, dim=-1) for v in views]
        got = [F.log_softmax(self.student(v) / 0.7, dim=-1) for v in views]
        loss = -(want[0] * got[1]).sum(-1).mean() - (want[1] * got[0]).sum(-1).mean()
        backward(self, loss / 2)
        self.bucket()

    def update(self, s):
        self.momentum()
        for old, new in zip(self.teacher.parameters(), self.student.parameters()):
            old.mul_(0.96).add_(new, alpha=0.04)
        seen = self.teacher(self.data(s, self.B, self.D)).sum(dim=0, keepdim=True)
        dist.all_reduce(seen)
        self.center = self.center * 0.9 + seen * (0.1 / (self.n * self.B))


class Distill(Net):
    """A teacher that stays as it is, and a student with fewer layers; what the teacher says is hidden for some."""
    V, D, T = 12, 8, 6

    def build(self):
        self.teacher = nn.Sequential(nn.Embedding(self.V, 2 * self.D), *(nn.Sequential(
            nn.LayerNorm(2 * self.D), nn.Linear(2 * self.D, 2 * self.D), nn.ReLU()) for _ in range(3)),
            nn.Linear(2 * self.D, self.V)).requires_grad_(False).eval()
        self.student = self.of(nn.Sequential(nn.Embedding(self.V, self.D), nn.LayerNorm(self.D),
                                             nn.Linear(self.D, self.V)))

    def step(self, s):
        ids, labels = self.ids(s, self.V, 2, self.T), self.ids(s + 50, self.V, 2, self.T)
        with torch.no_grad():
            said = self.teacher(ids)
        out = self.student(ids)
        warm = 2.0
        soft = F.kl_div(F.log_softmax(out / warm, -1), F.log_softmax(said / warm, -1), reduction="none",
                        log_target=True).sum(-1)
        keep = (torch.arange(self.T) < self.T - 2 + self.r).to(soft.dtype)
        hard = F.cross_entropy(out.transpose(1, 2), labels)
        backward(self, warm ** 2 * (soft * keep).sum() / (2 * keep.sum()) + 0.5 * hard)
        self.each(AVG)


class Lora(Net):
    """A base that stays as it is, with what is learned beside it, which is 0 at first; each rank drops its own."""
    D, R, B, STEPS = 8, 2, 5, 3

    def build(self):
        self.base = {k: self.new(self.D, self.D) for k in ("q", "v", "o")}
        self.norm = 1 + self.new(self.D)
        for k in ("q", "v"):
            self.w |= {f"a{k}": self.new(self.R, self.D), f"b{k}": torch.zeros(self.D, self.R)}

    def beside(self, k, x):
        low = F.linear(F.dropout(x, 0.1, True), self.w[f"a{k}"])
        return F.linear(x, self.base[k]) + 2.0 * F.linear(low, self.w[f"b{k}"])

    def step(self, s):
        torch.manual_seed(100 * self.seed + 10 * s + self.r)
        x = self.data(s, 2, self.B, self.D)
        a = F.layer_norm(x, (self.D,), self.norm)
        p = torch.softmax(torch.einsum("bid,bjd->bij", self.beside("q", a), a) / self.D ** 0.5, dim=-1)
        x = x + F.linear(torch.einsum("bij,bjd->bid", p, self.beside("v", a)), self.base["o"])
        backward(self, F.mse_loss(x, self.data(s + 50, 2, self.B, self.D)))
        self.bucket()

    def update(self, s):
        self.adam(s, decay=0.1)


class Policy(nn.Module):
    """What follows a text, from the mean of what was before."""

    def __init__(self, words, d, out):
        super().__init__()
        self.embed, self.mid, self.out = nn.Embedding(words, d), nn.Linear(d, d), nn.Linear(d, out)

    def forward(self, ids):
        x = torch.cumsum(self.embed(ids), 1) / torch.arange(1, ids.shape[1] + 1).view(1, -1, 1)
        return self.out(torch.tanh(self.mid(x)))


def chosen(logits, ids):
    return torch.gather(torch.log_softmax(logits, -1), 2, ids.unsqueeze(-1)).squeeze(-1)


class Ppo(Net):
    """An actor, a critic, what the actor was, and what gives rewards; advantages are made white over all ranks' words.
    Two epochs over what was drawn; texts are of other lengths on each rank."""
    V, D, B, P, T, INSIDE = 9, 8, 3, 2, 4, True

    def build(self):
        self.actor, self.critic = Policy(self.V, self.D, self.V), Policy(self.V, self.D, 1)
        self.of(nn.ModuleDict({"actor": self.actor, "critic": self.critic}))
        self.ref, self.old = (copy.deepcopy(self.actor).requires_grad_(False) for _ in range(2))
        self.judge = Policy(self.V, self.D, 1).requires_grad_(False)
        self.before = copy.deepcopy(self.critic).requires_grad_(False)

    def counted(self, name):
        return self.losses[-1:]

    @torch.no_grad()
    def drawn(self, s):
        g = torch.Generator().manual_seed(500 + 100 * self.seed + 10 * s + self.r)
        ids = self.ids(s, self.V, self.B, self.P)
        for _ in range(self.T - self.r):
            p = torch.softmax(self.old(ids)[:, -1], -1)
            ids = torch.cat([ids, torch.multinomial(p, 1, generator=g)], 1)
        return ids

    @torch.no_grad()
    def advantages(self, ids, live):
        old = chosen(self.old(ids[:, :-1]), ids[:, 1:])[:, self.P - 1:]
        ref = chosen(self.ref(ids[:, :-1]), ids[:, 1:])[:, self.P - 1:]
        value = self.before(ids[:, :-1]).squeeze(-1)[:, self.P - 1:] * live
        reward = -0.1 * (old - ref) * live
        last = live.sum(-1).long() - 1
        reward[torch.arange(self.B), last] += self.judge(ids)[:, -1, 0]
        out, run = [], torch.zeros(self.B)
        for t in reversed(range(live.shape[1])):
            after = value[:, t + 1] if t + 1 < live.shape[1] else torch.zeros(self.B)
            run = reward[:, t] + 0.99 * after - value[:, t] + 0.95 * run
            out.insert(0, run)
        gain = torch.stack(out, 1)
        sums = torch.stack([(gain * live).sum(), (gain * gain * live).sum(), live.sum()])
        dist.all_reduce(sums)
        mean = sums[0] / sums[2]
        white = (gain - mean) * torch.rsqrt(sums[1] / sums[2] - mean * mean + 1e-8)
        return old, value, white, gain + value

    def step(self, s):
        ids = self.drawn(s)
        size = ids.shape[1] - self.P
        live = (torch.arange(size) < torch.tensor([[size], [size - 1], [size]])).to(self.judge.mid.weight.dtype)
        old, value, white, want = self.advantages(ids, live)
        for epoch in range(2):
            logits = self.actor(ids[:, :-1])[:, self.P - 1:]
            now, log = chosen(logits, ids[:, self.P:]), torch.log_softmax(logits, -1)
            ratio = torch.exp(now - old)
            gain = torch.minimum(ratio * white, torch.clamp(ratio, 0.8, 1.2) * white)
            v = self.critic(ids[:, :-1]).squeeze(-1)[:, self.P - 1:]
            off = torch.maximum((v - want) ** 2, (value + (v - value).clamp(-0.2, 0.2) - want) ** 2)
            spread = -(log.exp() * log).sum(-1)
            each = -gain + 0.5 * off - 0.01 * spread
            for w in self.w.values():
                w.grad = None
            backward(self, (each * live).sum() / live.sum())
            self.bucket([k for k in self.w if k.startswith("critic")])
            self.bucket([k for k in self.w if k.startswith("actor")])
            if epoch == 0:
                with torch.no_grad():
                    self.adam(s)

    def update(self, s):
        self.adam(s)
        self.old.load_state_dict(self.actor.state_dict())
        self.before.load_state_dict(self.critic.state_dict())


class Grpo(Net):
    """Groups of answers to each rank's prompts, of other lengths; each word of all ranks counts as much. All answers of
    one group have the same reward, so that it teaches nothing."""
    RANKS, V, D, G, T, SHARE = 3, 8, 6, 4, 5, 1

    def build(self):
        self.actor = self.of(Policy(self.V, self.D, self.V))
        self.ref, self.old = (copy.deepcopy(self.actor).requires_grad_(False) for _ in range(2))

    def step(self, s):
        ids = self.ids(s, self.V, 2 * self.G, self.T + 1)
        ends = 2 + self.ids(s + 50, self.T - 1, 2 * self.G)
        live = torch.arange(self.T)[None] < ends[:, None]
        reward = ((ids[:, 1:] < 3) & live).float().sum(-1).view(2, self.G).to(self.actor.mid.weight.dtype)
        if self.r == 1:
            reward[0] = 1.0
        gain = (reward - reward.mean(1, keepdim=True)) / (reward.std(1, keepdim=True) + 1e-4)
        count = live.sum()
        dist.all_reduce(count)
        now = chosen(self.actor(ids[:, :-1]), ids[:, 1:])
        with torch.no_grad():
            ref = chosen(self.ref(ids[:, :-1]), ids[:, 1:])
            old = chosen(self.old(ids[:, :-1]), ids[:, 1:])
        ratio = torch.exp(now - old)   # 1, with a gradient
        far = torch.exp(ref - now) - (ref - now) - 1
        each = -ratio * gain.view(-1, 1) + 0.04 * far
        backward(self, each.masked_fill(~live, 0.0).sum() / count)
        self.each()

    def update(self, s):
        super().update(s)
        self.old.load_state_dict(self.actor.state_dict())


class Dpo(Net):
    """Pairs of answers, of which one is better, with what the policy was; how often it is right is averaged."""
    V, D, B, T = 9, 6, 3, 6

    def build(self):
        self.policy = self.of(Policy(self.V, self.D, self.V))
        self.ref = copy.deepcopy(self.policy).requires_grad_(False)
        for p in self.ref.parameters():
            p += 0.05 * self.new(*p.shape)

    def step(self, s):
        both = torch.cat([self.ids(s, self.V, self.B, self.T), self.ids(s + 30, self.V, self.B, self.T)])
        live = torch.arange(self.T - 1) < 2 + self.ids(s + 60, self.T - 2, 2 * self.B, 1)
        with torch.no_grad():
            was = (chosen(self.ref(both[:, :-1]), both[:, 1:]) * live).sum(-1)
        now = (chosen(self.policy(both[:, :-1]), both[:, 1:]) * live).sum(-1)
        good, bad = (now - was).chunk(2)
        backward(self, -F.logsigmoid(0.5 * (good - bad)).mean())
        self.bucket()
        right = (good > bad).float().mean()
        dist.all_reduce(right, op=AVG)


class Packed(Net):
    """Texts of other lengths in one row on each rank, which do not see each other; what is not a text is not counted,
    and the loss is divided by the words of all ranks."""
    D, H, T, V, SHARE = 8, 2, 10, 13, 1
    ENDS = ((0, 3, 7, 10), (0, 6, 8))

    def build(self):
        self.w = {"embed": self.new(self.V, self.D), "head": self.new(self.V, self.D), "n": torch.ones(self.D)}
        for i in range(2):
            self.w |= {f"n{i}": 1 + self.new(self.D), f"m{i}": 1 + self.new(self.D), f"o{i}": self.new(self.D, self.D),
                       f"q{i}": self.new(3 * self.D, self.D), f"g{i}": self.new(12, self.D),
                       f"u{i}": self.new(12, self.D), f"d{i}": self.new(self.D, 12)}

    def norm(self, x, k):
        return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-6) * self.w[k]

    def turned(self, x, cos, sin):
        a, b = x.chunk(2, -1)
        return x * cos + torch.cat((-b, a), -1) * sin

    def step(self, s):
        ends = self.ENDS[(self.r + s) % 2]
        text = torch.full((self.T,), -1)
        place = torch.arange(self.T)
        for i, (a, b) in enumerate(zip(ends, ends[1:])):
            text[a:b] = i
            place[a:b] -= a
        text[ends[-1]:] = torch.arange(self.T - ends[-1]) + 90   # what is left sees itself alone
        hidden = (text[:, None] != text[None, :]) | torch.ones(self.T, self.T).triu(1).bool()
        mask = torch.zeros(self.T, self.T).masked_fill(hidden, float("-inf"))
        ids, labels = self.ids(s, self.V, self.T), self.ids(s + 50, self.V, self.T)
        labels[ends[-1]:] = -100
        at = place[:, None] * torch.tensor([1.0, 0.1]).repeat(2)
        cos, sin = torch.cos(at), torch.sin(at)
        x = F.embedding(ids, self.w["embed"])
        for i in range(2):
            q, k, v = F.linear(self.norm(x, f"n{i}"), self.w[f"q{i}"]).view(self.T, 3, self.H, -1).permute(1, 2, 0, 3)
            p = torch.baddbmm(mask.expand(self.H, -1, -1), self.turned(q, cos, sin),
                              self.turned(k, cos, sin).transpose(1, 2), alpha=0.5)
            y = torch.bmm(p.softmax(-1), v).permute(1, 0, 2).reshape(self.T, -1)
            x = x + F.linear(y, self.w[f"o{i}"])
            a = self.norm(x, f"m{i}")
            x = x + F.linear(F.silu(F.linear(a, self.w[f"g{i}"])) * F.linear(a, self.w[f"u{i}"]), self.w[f"d{i}"])
        count = torch.tensor(ends[-1])
        dist.all_reduce(count)
        out = F.linear(self.norm(x, "n"), self.w["head"])
        backward(self, F.cross_entropy(out, labels, ignore_index=-100, reduction="sum") / count)
        self.bucket(op=dist.ReduceOp.SUM)


NETS = {"gan": Gan, "diffusion": Diffusion, "vae": Vae, "clip": Clip, "simclr": Simclr, "dino": Dino,
        "distill": Distill, "lora": Lora, "ppo": Ppo, "grpo": Grpo, "dpo": Dpo, "packed": Packed}
