"""Networks on graphs, tables, returns, and those that make things."""
import math

import torch
import torch.nn.functional as F
from torch import nn

from zoo import Net


class Gcn(Net):
    """Graph convolution: messages are added up at nodes, degrees normalise them."""

    def __init__(self, r):
        super().__init__()
        self.nodes, self.edges = r.choice([30, 50]), r.choice([90, 160])
        self.d, h, self.classes = r.choice([10, 16]), r.choice([16, 24]), 4
        sizes = [self.d] + [h] * r.choice([2, 3, 4])
        self.mix = nn.ModuleList(nn.Linear(a, b) for a, b in zip(sizes, sizes[1:]))
        self.own = nn.ModuleList(nn.Linear(a, b, bias=False) for a, b in zip(sizes, sizes[1:]))
        self.norms = nn.ModuleList(nn.LayerNorm(h) for _ in sizes[1:])
        self.head = nn.Linear(h, self.classes)
        self.act = r.choice([nn.ReLU(), nn.Tanh(), nn.ELU()])

    def batch(self, r):
        ends = torch.randint(self.nodes, (2, self.edges))
        return (torch.randn(self.nodes, self.d), ends[0], ends[1],
                torch.randint(self.classes, (self.nodes,)))

    def forward(self, x, src, dst, y):
        degree = torch.bincount(dst, minlength=self.nodes).to(x.dtype)
        scale = torch.rsqrt(degree + 1)
        w = (scale.index_select(0, src) * scale.index_select(0, dst)).unsqueeze(1)
        for mix, own, norm in zip(self.mix, self.own, self.norms):
            m = mix(x).index_select(0, src) * w
            z = torch.zeros(self.nodes, m.shape[1], dtype=m.dtype).index_add(0, dst, m)
            x = self.act(norm(z + own(x)))
        return F.cross_entropy(self.head(x), y)


class Ppo(Net):
    """A step of proximal policy optimisation: discrete actions, value and entropy terms."""

    def __init__(self, r):
        super().__init__()
        self.n, self.d, self.actions = r.choice([48, 96]), r.choice([10, 20]), r.choice([4, 6])
        h = r.choice([24, 40, 64])
        act = r.choice([nn.Tanh, nn.ReLU, nn.SiLU])
        layers, c = [], self.d
        for _ in range(r.choice([2, 3])):
            layers += [nn.Linear(c, h), act()]
            c = h
        self.body = nn.Sequential(*layers)
        self.policy, self.value = nn.Linear(h, self.actions), nn.Linear(h, 1)
        self.eps, self.beta, self.huber = 0.2, r.choice([0.01, 0.001]), r.random() < 0.5

    def batch(self, r):
        return (torch.randn(self.n, self.d), torch.randint(self.actions, (self.n, 1)),
                -torch.rand(self.n) - 0.8, torch.randn(self.n), torch.randn(self.n))

    def forward(self, x, action, old, adv, ret):
        x = self.body(x)
        lp = F.log_softmax(self.policy(x), dim=-1)
        v = self.value(x).squeeze(-1)
        adv = (adv - adv.mean()) / (adv.std() + 1e-8)
        ratio = torch.exp(lp.gather(1, action).squeeze(1) - old)
        gain = torch.min(ratio * adv, torch.clamp(ratio, 1 - self.eps, 1 + self.eps) * adv)
        entropy = -(lp.exp() * lp).sum(-1)
        miss = F.huber_loss(v, ret) if self.huber else F.mse_loss(v, ret)
        return 0.5 * miss - gain.mean() - self.beta * entropy.mean()


def mlp(sizes, act):
    layers = []
    for a, b in zip(sizes, sizes[1:]):
        layers += [nn.Linear(a, b), act()]
    return nn.Sequential(*layers[:-1])


class Gat(Net):
    """Graph attention: a softmax over the edges of each node, by segments."""

    def __init__(self, r):
        super().__init__()
        self.nodes, self.edges, self.graphs = r.choice([24, 40]), r.choice([80, 130]), 4
        self.d, h = r.choice([8, 12]), r.choice([12, 20])
        self.heads = r.choice([1, 2])
        sizes = [self.d] + [h] * r.choice([2, 3])
        self.mix = nn.ModuleList(nn.Linear(a, b * self.heads, bias=False)
                                 for a, b in zip(sizes, sizes[1:]))
        self.say = nn.ParameterList(nn.Parameter(0.4 * torch.randn(2, self.heads, h))
                                    for _ in sizes[1:])
        self.head = mlp([h, h, 3], nn.ReLU)

    def batch(self, r):
        ends = torch.randint(self.nodes, (2, self.edges))
        return (torch.randn(self.nodes, self.d), ends[0], ends[1],
                torch.randint(self.graphs, (self.nodes,)), torch.rand(self.graphs, 3).round())

    def forward(self, x, src, dst, graph, y):
        for mix, say in zip(self.mix, self.say):
            m = mix(x).view(self.nodes, self.heads, -1)
            e = (m * say[0]).sum(-1).index_select(0, src) + \
                (m * say[1]).sum(-1).index_select(0, dst)
            e = F.leaky_relu(e, 0.2)
            e = torch.exp(e - e.max(0, keepdim=True)[0])
            at = dst.unsqueeze(1).expand(e.shape)
            z = torch.zeros(self.nodes, self.heads, dtype=e.dtype).scatter_add(0, at, e)
            a = e / (z.index_select(0, dst) + 1e-6)
            out = m.index_select(0, src) * a.unsqueeze(-1)
            m = torch.zeros_like(m, dtype=out.dtype).index_add(0, dst, out)
            x = F.elu(m.mean(1))
        n = torch.bincount(graph, minlength=self.graphs).clamp(min=1).to(x.dtype)
        x = torch.zeros(self.graphs, x.shape[1], dtype=x.dtype).index_add(0, graph, x)
        return F.binary_cross_entropy_with_logits(self.head(x / n.unsqueeze(1)), y)


class Dlrm(Net):
    """Sparse features as bags, dense ones, and products of all pairs."""

    def __init__(self, r):
        super().__init__()
        self.n, self.dense, self.bags, self.per = r.choice([16, 32]), 9, r.choice([3, 5]), 3
        d = r.choice([8, 12])
        self.sizes = [r.choice([20, 50, 120]) for _ in range(self.bags)]
        self.tables = nn.ModuleList(nn.EmbeddingBag(k, d, mode=r.choice(["sum", "mean"]))
                                    for k in self.sizes)
        self.low = mlp([self.dense, 24, d], nn.ReLU)
        k = self.bags + 1
        self.pairs = torch.tensor([i * k + j for i in range(k) for j in range(i)])
        self.top = mlp([d + len(self.pairs), 24, 12, 1], r.choice([nn.ReLU, nn.Sigmoid]))
        self.heavy = r.random() < 0.5

    def batch(self, r):
        return (torch.randn(self.n, self.dense), torch.rand(self.n).round(),
                *[torch.randint(k, (self.n, self.per)) for k in self.sizes])

    def forward(self, x, y, *keys):
        x = F.relu(self.low(x))
        v = torch.stack([x] + [t(k) for t, k in zip(self.tables, keys)], 1)
        z = torch.bmm(v, v.transpose(1, 2)).flatten(1).index_select(1, self.pairs)
        p = self.top(torch.cat([x, z.to(x.dtype)], 1)).squeeze(1)
        weight = torch.full((1,), 3.0, dtype=y.dtype) if self.heavy else None
        return F.binary_cross_entropy_with_logits(p, y, pos_weight=weight)


class WideDeep(Net):
    """A factorisation machine, a linear model and a deep one, added up."""

    def __init__(self, r):
        super().__init__()
        self.n, self.fields, self.size = r.choice([16, 24]), r.choice([4, 6]), 90
        d, h = r.choice([6, 8]), r.choice([16, 24])
        self.wide, self.deep = nn.Embedding(self.size, 1), nn.Embedding(self.size, d)
        act = r.choice([nn.ReLU, nn.PReLU, nn.SELU])
        layers, c = [], self.fields * d
        for _ in range(r.choice([2, 3])):
            layers += [nn.Linear(c, h), nn.BatchNorm1d(h), act(), nn.Dropout(r.choice([0, 0.3]))]
            c = h
        self.body, self.head = nn.Sequential(*layers), nn.Linear(h, 1)
        self.bias = nn.Parameter(torch.zeros(1))

    def batch(self, r):
        return torch.randint(self.size, (self.n, self.fields)), torch.rand(self.n).round()

    def forward(self, keys, y):
        v = self.deep(keys)
        total = v.sum(1)
        pairs = 0.5 * (total.pow(2) - v.pow(2).sum(1)).sum(1)
        z = self.wide(keys).sum(1).squeeze(1) + pairs + self.bias
        z = z + self.head(self.body(v.flatten(1))).squeeze(1)
        p = torch.sigmoid(z)
        return F.binary_cross_entropy(p.float().clamp(1e-4, 1 - 1e-4), y.float())


class Vae(Net):
    """Convolutions to a mean and a variance, and back."""

    def __init__(self, r):
        super().__init__()
        c, self.n, self.z = r.choice([6, 8]), r.choice([3, 4]), r.choice([4, 8])
        act = r.choice([nn.ReLU, lambda: nn.LeakyReLU(0.2), nn.ELU, nn.Softplus])
        self.down = nn.Sequential(nn.Conv2d(1, c, 4, 2, 1), act(),
                                  nn.Conv2d(c, 2 * c, 4, 2, 1), nn.BatchNorm2d(2 * c), act())
        self.mean, self.var = nn.Linear(2 * c * 16, self.z), nn.Linear(2 * c * 16, self.z)
        self.back, self.c = nn.Linear(self.z, 2 * c * 16), 2 * c
        self.up = nn.Sequential(nn.ConvTranspose2d(2 * c, c, 4, 2, 1),
                                r.choice([nn.BatchNorm2d(c), nn.InstanceNorm2d(c, affine=True)]),
                                act(), nn.ConvTranspose2d(c, 1, 4, 2, 1))
        self.beta, self.cross = r.choice([1.0, 0.5]), r.random() < 0.5

    def batch(self, r):
        return torch.rand(self.n, 1, 16, 16), torch.randn(self.n, self.z)

    def forward(self, x, eps):
        h = self.down(x).flatten(1)
        mean, var = self.mean(h), self.var(h)
        z = mean + torch.exp(0.5 * var) * eps
        y = self.up(self.back(z).view(-1, self.c, 4, 4))
        miss = F.binary_cross_entropy_with_logits(y, x, reduction="sum") if self.cross else \
            F.mse_loss(torch.sigmoid(y), x, reduction="sum")
        kl = -0.5 * torch.sum(1 + var - mean.pow(2) - var.exp())
        return (miss + self.beta * kl) / self.n


class Gan(Net):
    """A generator and a critic with spectral norms, both sides' losses in one step."""
    steps = ("none", "none", "sgd")

    def __init__(self, r):
        super().__init__()
        c, self.n, self.z = r.choice([6, 8]), r.choice([3, 4]), 8
        self.c = c
        self.start = nn.Linear(self.z, 2 * c * 9)
        self.make = nn.Sequential(nn.ConvTranspose2d(2 * c, c, 4, 2, 1), nn.BatchNorm2d(c),
                                  nn.ReLU(), nn.Conv2d(c, 3, 3, 1, 1))
        wrap = nn.utils.parametrizations.spectral_norm if r.random() < 0.6 else lambda m: m
        self.look = nn.Sequential(wrap(nn.Conv2d(3, c, 3, 1)), nn.LeakyReLU(0.2),
                                  wrap(nn.Conv2d(c, 2 * c, 4, 2)), nn.LeakyReLU(0.2),
                                  nn.Flatten(), wrap(nn.Linear(2 * c, 1)))
        self.form = r.choice(["hinge", "cross", "square"])

    def batch(self, r):
        return torch.tanh(torch.randn(self.n, 3, 6, 6)), torch.randn(self.n, self.z)

    def forward(self, x, z):
        y = torch.tanh(self.make(self.start(z).view(-1, 2 * self.c, 3, 3)))
        real, fake, seen = self.look(x), self.look(y.detach()), self.look(y)
        if self.form == "hinge":
            return F.relu(1 - real).mean() + F.relu(1 + fake).mean() - 0.1 * seen.mean()
        if self.form == "square":
            return (real - 1).pow(2).mean() + fake.pow(2).mean() + 0.1 * (seen - 1).pow(2).mean()
        return F.softplus(-real).mean() + F.softplus(fake).mean() + 0.1 * F.softplus(-seen).mean()


class Diffusion(Net):
    """Predicts the noise in a noisy picture at a time; group norms, SiLU, some attention."""
    can_recompute = True

    def __init__(self, r):
        super().__init__()
        c, self.n, self.px = r.choice([8, 12]), 2, r.choice([8, 12])
        self.c, self.attends = c, r.random() < 0.6
        self.time = mlp([c, 2 * c, 2 * c], nn.SiLU)
        self.inp = nn.Conv2d(3, c, 3, 1, 1)
        self.blocks = nn.ModuleList(nn.ModuleDict({
            "n1": nn.GroupNorm(4, c), "c1": nn.Conv2d(c, c, 3, 1, 1), "t": nn.Linear(2 * c, c),
            "n2": nn.GroupNorm(4, c), "c2": nn.Conv2d(c, c, 3, 1, 1)})
            for _ in range(r.choice([2, 3, 4])))
        self.qkv, self.o = nn.Conv1d(c, 3 * c, 1), nn.Conv1d(c, c, 1)
        self.norm, self.out = nn.GroupNorm(2, c), nn.Conv2d(c, 3, 3, 1, 1)
        self.velocity = r.random() < 0.4

    def batch(self, r):
        return (torch.randn(self.n, 3, self.px, self.px), torch.randint(1000, (self.n,)),
                torch.randn(self.n, 3, self.px, self.px))

    def block(self, m, x, t):
        y = m["c1"](F.silu(m["n1"](x))) + m["t"](F.silu(t))[:, :, None, None]
        return x + m["c2"](F.silu(m["n2"](y)))

    def forward(self, x, t, eps):
        keep = torch.cos(t.float() / 1000 * 1.5).pow(2).to(x.dtype).view(-1, 1, 1, 1)
        noisy = keep.sqrt() * x + (1 - keep).sqrt() * eps
        rate = torch.exp(-math.log(10000) * torch.arange(self.c // 2).float() / (self.c // 2))
        angle = t.float()[:, None] * rate[None]
        emb = self.time(torch.cat([angle.sin(), angle.cos()], -1).to(x.dtype))
        h = self.inp(noisy)
        for m in self.blocks:
            h = self.segment(lambda h, emb, m=m: self.block(m, h, emb), h, emb)
        if self.attends:
            z = h.flatten(2)
            q, k, v = self.qkv(z).chunk(3, 1)
            a = F.softmax(torch.bmm(q.transpose(1, 2), k) * self.c ** -0.5, -1)
            h = h + self.o(torch.bmm(v, a.transpose(1, 2))).view(h.shape)
        y = self.out(F.silu(self.norm(h)))
        goal = keep.sqrt() * eps - (1 - keep).sqrt() * x if self.velocity else eps
        return F.mse_loss(y, goal)


class Flow(Net):
    """Affine couplings; the likelihood of data by the determinants."""

    def __init__(self, r):
        super().__init__()
        self.n, self.d = r.choice([24, 40]), r.choice([6, 8])
        h, act = r.choice([16, 24]), r.choice([nn.ReLU, nn.Tanh, lambda: nn.LeakyReLU(0.1)])
        self.layers = nn.ModuleList(mlp([self.d // 2, h, h, self.d], act)
                                    for _ in range(r.choice([3, 4, 6])))
        self.scale = nn.ParameterList(nn.Parameter(0.1 * torch.randn(2, self.d))
                                      for _ in self.layers)

    def batch(self, r):
        return (torch.randn(self.n, self.d) * 1.5 + 0.2,)

    def forward(self, x):
        logdet = torch.zeros(self.n, dtype=x.dtype)
        for net, norm in zip(self.layers, self.scale):
            x = x * torch.exp(norm[0]) + norm[1]
            a, b = x.chunk(2, 1)
            s, t = net(a).chunk(2, 1)
            s = 2 * torch.tanh(s / 2)
            x = torch.cat([b * torch.exp(s) + t, a], 1)
            logdet = logdet + s.sum(1) + norm[0].sum()
        lp = -0.5 * (x ** 2).sum(1) - 0.5 * self.d * math.log(2 * math.pi)
        return -(lp + logdet).mean() / self.d


class Dqn(Net):
    """Double Q-learning with a dueling head; targets by the same network, without gradient."""

    def __init__(self, r):
        super().__init__()
        self.n, self.d, self.actions = r.choice([24, 48]), 8, r.choice([3, 5])
        h = r.choice([24, 32])
        self.body = mlp([self.d, h, h], r.choice([nn.ReLU, nn.ELU, nn.Tanh]))
        self.v, self.a = nn.Linear(h, 1), nn.Linear(h, self.actions)
        self.decay, self.loss = 0.97, r.choice(["huber_loss", "smooth_l1_loss", "mse_loss"])

    def batch(self, r):
        return (torch.randn(self.n, self.d), torch.randint(self.actions, (self.n, 1)),
                torch.randn(self.n), torch.randn(self.n, self.d), torch.rand(self.n).round(),
                0.5 + torch.rand(self.n))

    def q(self, x):
        h = F.relu(self.body(x))
        a = self.a(h)
        return self.v(h) + a - a.mean(1, keepdim=True)

    def forward(self, x, action, reward, after, done, weight):
        q = self.q(x).gather(1, action).squeeze(1)
        with torch.no_grad():
            ahead = self.q(after)
            best = torch.max(ahead, 1)[0]
            goal = reward + self.decay * best * (1 - done)
        return (getattr(F, self.loss)(q, goal, reduction="none") * weight).mean()


class Contrastive(Net):
    """Two views of each picture find each other; a temperature is learnt."""

    def __init__(self, r):
        super().__init__()
        self.n, c, d = r.choice([5, 8]), r.choice([8, 12]), r.choice([8, 16])
        self.body = nn.Sequential(nn.Conv2d(3, c, 3, 2, 1), nn.BatchNorm2d(c), nn.ReLU(),
                                  nn.Conv2d(c, 2 * c, 3, 2, 1), nn.BatchNorm2d(2 * c), nn.ReLU(),
                                  nn.AdaptiveAvgPool2d(1), nn.Flatten())
        self.head = mlp([2 * c, 2 * c, d], nn.ReLU)
        self.heat = nn.Parameter(torch.tensor([1.5]))
        self.form = r.choice(["both", "cross"])

    def batch(self, r):
        x = torch.randn(self.n, 3, 12, 12)
        return x + 0.2 * torch.randn(x.shape), x + 0.2 * torch.randn(x.shape)

    def forward(self, a, b):
        if self.form == "both":
            z = F.normalize(self.head(self.body(torch.cat([a, b]))), dim=1)
            s = torch.mm(z, z.t()) * self.heat.exp()
            s = s.masked_fill(torch.eye(2 * self.n, dtype=torch.bool), -1e4)
            return F.cross_entropy(s, (torch.arange(2 * self.n) + self.n) % (2 * self.n))
        a, b = (F.normalize(self.head(self.body(x)), dim=-1) for x in (a, b))
        s = self.heat.exp() * a @ b.t()
        y = torch.arange(self.n)
        return (F.cross_entropy(s, y) + F.cross_entropy(s.t(), y)) / 2


class Siamese(Net):
    """The same network for an anchor, a like and an unlike."""

    def __init__(self, r):
        super().__init__()
        self.n, self.d, self.form = r.choice([8, 12]), r.choice([20, 30]), \
            r.choice(["triplet", "cosine", "ranking"])
        h = r.choice([16, 24])
        self.body = nn.Sequential(nn.Linear(self.d, h), nn.BatchNorm1d(h), nn.SiLU(),
                                  nn.Linear(h, h), nn.LayerNorm(h), nn.Tanh(), nn.Linear(h, 12))

    def batch(self, r):
        x = torch.randn(self.n, self.d)
        return x, x + 0.5 * torch.randn(x.shape), torch.randn(x.shape)

    def forward(self, a, p, n):
        a, p, n = self.body(a), self.body(p), self.body(n)
        if self.form == "triplet":
            return F.triplet_margin_loss(a, p, n, margin=2.0)
        if self.form == "cosine":
            y = torch.ones(self.n, dtype=a.dtype)
            return F.cosine_embedding_loss(a, p, y) + F.cosine_embedding_loss(a, n, -y)
        return F.margin_ranking_loss(F.cosine_similarity(a, p), F.cosine_similarity(a, n),
                                     torch.ones(self.n, dtype=a.dtype), margin=0.5)


class AutoEncoder(Net):
    """Sparse, with the decoder's weights those of the encoder."""

    def __init__(self, r):
        super().__init__()
        self.n, self.d, h = r.choice([12, 20]), r.choice([30, 48]), r.choice([12, 18])
        self.up, self.mid = nn.Linear(self.d, 2 * h), nn.Linear(2 * h, h)
        self.b1, self.b2 = nn.Parameter(torch.zeros(2 * h)), nn.Parameter(torch.zeros(self.d))
        self.act_name = r.choice(["sigmoid", "tanh", "relu"])
        self.p = r.choice([0.0, 0.2])

    def batch(self, r):
        return (torch.randn(self.n, self.d) @ torch.randn(self.d, self.d) * 0.15,)

    def act(self, x):
        return getattr(torch, self.act_name)(x)

    def forward(self, x):
        h = self.act(self.up(F.dropout(x, self.p, True)))
        code = self.act(self.mid(h))
        h = self.act(F.linear(code, self.mid.weight.t(), self.b1))
        y = F.linear(h, self.up.weight.t(), self.b2)
        return F.huber_loss(y, x) + 1e-3 * code.abs().mean()


class Mixture(Net):
    """A mixture of normal distributions whose parameters a network gives."""

    def __init__(self, r):
        super().__init__()
        self.n, self.d, self.k, self.out = r.choice([20, 40]), 5, r.choice([3, 5]), 2
        h = r.choice([16, 24])
        self.body = mlp([self.d, h, h], r.choice([nn.Tanh, nn.ReLU, nn.Softplus]))
        self.pi, self.mean, self.std = (nn.Linear(h, self.k * m) for m in (1, self.out, self.out))

    def batch(self, r):
        return torch.randn(self.n, self.d), torch.randn(self.n, self.out)

    def forward(self, x, y):
        h = torch.tanh(self.body(x))
        pi = F.log_softmax(self.pi(h), dim=-1)
        mean = self.mean(h).view(self.n, self.k, self.out)
        std = F.softplus(self.std(h)).view(mean.shape) + 0.05
        z = (y.unsqueeze(1) - mean) / std
        lp = -0.5 * z.square().sum(-1) - torch.log(std).sum(-1)
        return -torch.logsumexp(pi + lp, dim=-1).mean()


class Physics(Net):
    """tanh units; an equation of heat by finite differences, and its boundary."""
    steps = ("none", "adam", "adam", "sgd")

    def __init__(self, r):
        super().__init__()
        h = r.choice([16, 24])
        self.n, self.step = r.choice([24, 40]), 0.1
        layers = [2] + [h] * r.choice([2, 3, 4]) + [1]
        self.layers = nn.ModuleList(nn.Linear(a, b) for a, b in zip(layers, layers[1:]))
        for m in self.layers:
            nn.init.xavier_normal_(m.weight)

    def batch(self, r):
        return torch.rand(self.n, 2), torch.rand(self.n // 2, 2)

    def u(self, x):
        for m in self.layers[:-1]:
            x = torch.tanh(m(x))
        return self.layers[-1](x)

    def forward(self, x, edge):
        move = torch.tensor([[self.step, 0.0], [0.0, self.step]], dtype=x.dtype)
        u, left, right, later = self.u(x), self.u(x - move[0]), self.u(x + move[0]), \
            self.u(x + move[1])
        curve = (left - 2 * u + right) / self.step ** 2
        rest = (later - u) / self.step - 0.1 * curve
        goal = torch.sin(math.pi * edge[:, :1])
        edge = torch.stack([edge[:, 0], torch.zeros_like(edge[:, 1])], 1)
        return rest.pow(2).mean() + 10 * F.mse_loss(self.u(edge), goal)


class Distill(Net):
    """A small network learns from a large one, without gradient there, and from labels."""

    def __init__(self, r):
        super().__init__()
        self.n, self.d, self.classes = r.choice([12, 20]), 24, r.choice([5, 8])
        self.heat = r.choice([2.0, 4.0])
        big, h = r.choice([32, 48]), r.choice([12, 16])
        self.teacher = nn.Sequential(nn.Linear(self.d, big), nn.GELU(), nn.LayerNorm(big),
                                     nn.Linear(big, big), nn.GELU(), nn.Linear(big, self.classes))
        self.student = nn.Sequential(nn.Linear(self.d, h), nn.LayerNorm(h), nn.GELU("tanh"),
                                     nn.Linear(h, h), nn.SiLU(), nn.Linear(h, self.classes))
        self.hint = nn.Linear(h, big)

    def batch(self, r):
        return torch.randn(self.n, self.d), torch.randint(self.classes, (self.n,))

    def forward(self, x, y):
        with torch.no_grad():
            inner = self.teacher[:3](x)
            soft = F.softmax(self.teacher[3:](inner) / self.heat, dim=-1)
        mid = self.student[:3](x)
        z = self.student[3:](mid)
        kl = F.kl_div(F.log_softmax(z / self.heat, dim=-1), soft, reduction="batchmean")
        hint = 1 - F.cosine_similarity(self.hint(mid), inner, dim=-1).mean()
        return F.cross_entropy(z, y) + self.heat ** 2 * kl + 0.1 * hint


class DeepSets(Net):
    """Sets of several sizes: points are mapped, added up by set, and ranked."""

    def __init__(self, r):
        super().__init__()
        self.sets, self.points, self.d = r.choice([5, 8]), r.choice([30, 50]), 4
        h = r.choice([16, 24])
        act = r.choice([nn.ReLU, nn.CELU, nn.Hardswish])
        self.phi, self.rho = mlp([self.d, h, h], act), mlp([2 * h, h, 1], act)
        self.list = r.random() < 0.5

    def batch(self, r):
        own = torch.cat([torch.arange(self.sets),
                         torch.randint(self.sets, (self.points - self.sets,))])
        return torch.randn(self.points, self.d), own, torch.randn(self.sets)

    def forward(self, x, own, y):
        h = self.phi(x)
        at = own.unsqueeze(1).expand(h.shape)
        total = torch.zeros(self.sets, h.shape[1], dtype=h.dtype).scatter_add(0, at, h)
        count = torch.zeros(self.sets, dtype=h.dtype).index_add(
            0, own, torch.ones(self.points, dtype=h.dtype))
        z = self.rho(torch.cat([total / count.unsqueeze(1), torch.log1p(total.abs())], 1))
        z = z.squeeze(1)
        if self.list:
            order = torch.argsort(y, descending=True)
            z = z.index_select(0, order)
            return (torch.logcumsumexp(z.flip(0), 0).flip(0) - z).mean()
        gaps = z.unsqueeze(0) - z.unsqueeze(1)
        sign = torch.sign(y.unsqueeze(0) - y.unsqueeze(1)).to(z.dtype)
        return F.softplus(-gaps * sign).mean()


class Ode(Net):
    """An equation of motion, integrated by Runge and Kutta's fourth order."""

    def __init__(self, r):
        super().__init__()
        self.n, self.d, self.step = r.choice([12, 20]), r.choice([3, 4]), 0.2
        h = r.choice([16, 24])
        self.up, self.down = nn.Linear(self.d + 1, h), nn.Linear(h, self.d)
        self.steps_taken = r.choice([2, 3])
        self.act = r.choice(["tanh", "sigmoid", "sin"])

    def batch(self, r):
        return torch.randn(self.n, self.d), torch.randn(self.n, self.d)

    def f(self, t, x):
        x = torch.cat([x, torch.full_like(x[:, :1], t)], 1)
        return self.down(getattr(torch, self.act)(self.up(x)))

    def forward(self, x, y):
        h, t = self.step, 0.0
        for _ in range(self.steps_taken):
            k1 = self.f(t, x)
            k2 = self.f(t + h / 2, x + h / 2 * k1)
            k3 = self.f(t + h / 2, x + h / 2 * k2)
            k4 = self.f(t + h, x + h * k3)
            x = x + h / 6 * (k1 + 2 * k2 + 2 * k3 + k4)
            t += h
        return (x - y).pow(2).sum(-1).sqrt().mean()


class SkipGram(Net):
    """Words and their neighbours, against words drawn at random."""

    def __init__(self, r):
        super().__init__()
        self.vocab, self.n, self.drawn = r.choice([80, 150]), r.choice([16, 30]), r.choice([3, 5])
        d = r.choice([12, 20])
        self.word, self.near = nn.Embedding(self.vocab, d), nn.Embedding(self.vocab, d)
        self.mix = nn.Linear(d, d, bias=False)
        self.rnorm = r.random() < 0.5

    def batch(self, r):
        return (torch.randint(self.vocab, (self.n,)), torch.randint(self.vocab, (self.n,)),
                torch.randint(self.vocab, (self.n, self.drawn)))

    def forward(self, word, near, drawn):
        v = self.mix(self.word(word))
        if self.rnorm:
            v = v / v.norm(dim=-1, keepdim=True)
        good = (v * self.near(near)).sum(-1)
        bad = torch.bmm(self.near(drawn), v.unsqueeze(2)).squeeze(2)
        return -(F.logsigmoid(good) + F.logsigmoid(-bad).sum(-1)).mean()


class TwoTower(Net):
    """Users and things meet in a product; bags of history, in-batch negatives."""

    def __init__(self, r):
        super().__init__()
        self.n, self.size, d = r.choice([8, 12]), 70, r.choice([8, 12])
        self.seen = nn.EmbeddingBag(self.size, d, mode="mean")
        self.item, self.age = nn.Embedding(self.size, d), nn.Linear(3, d)
        act = r.choice([nn.ReLU, nn.GELU])
        self.user, self.thing = mlp([2 * d, 24, 8], act), mlp([d, 24, 8], act)
        self.often = nn.Parameter(torch.zeros(self.size))

    def batch(self, r):
        sizes = torch.randint(1, 5, (self.n,))
        start = torch.cumsum(sizes, 0) - sizes
        return (torch.randint(self.size, (int(sizes.sum()),)), start,
                torch.randn(self.n, 3), torch.randint(self.size, (self.n,)))

    def forward(self, seen, start, age, item):
        u = self.user(torch.cat([self.seen(seen, start), torch.tanh(self.age(age))], 1))
        v = self.thing(self.item(item))
        u, v = u / u.norm(dim=1, keepdim=True), v / (v.norm(dim=1, keepdim=True) + 1e-4)
        s = torch.matmul(u, v.t()) / 0.2 - self.often.index_select(0, item)
        y = torch.arange(self.n)
        return F.cross_entropy(s, y) + 0.1 * F.l1_loss(u, v)


NETS = {"gcn": ("teach", Gcn), "dlrm": ("teach", Dlrm), "twotower": ("teach", TwoTower),
        "vae": ("teach", Vae), "diffusion": ("teach", Diffusion), "dqn": ("teach", Dqn),
        "contrastive": ("teach", Contrastive), "mixture": ("teach", Mixture),
        "distill": ("teach", Distill), "ode": ("teach", Ode),
        "gat": ("report", Gat), "widedeep": ("report", WideDeep), "gan": ("report", Gan),
        "flow": ("report", Flow), "ppo": ("report", Ppo), "siamese": ("report", Siamese),
        "autoencoder": ("report", AutoEncoder), "physics": ("report", Physics),
        "deepsets": ("report", DeepSets), "skipgram": ("report", SkipGram)}
