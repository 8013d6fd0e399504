"""Programs that run a network more than once, or by steps: pairs of inputs, samplers, teachers, opponents, policies, recurrences
in parallel form, images among tokens, detectors, chains of labels, batches in parts of which all go forward first. As in ports.py.

Written before the judge saw any of them: what it said first stands in RESULTS.md."""
import itertools
import math

import torch
import torch.nn.functional as F

from ports import B, D, T, V, rand, tokens


def draw(seed, *shape, like=None):
    x = torch.randn(*shape, generator=torch.Generator().manual_seed(seed))
    return x if like is None else x.to(like.dtype)


# --- two views of each image: one after the other, or as one batch; a margin between what belongs together and what does not

def siamese_weights():
    return rand(601, c0=(8, 3, 3, 3), b0=8, n0=8, m0=8, c1=(12, 8, 3, 3), b1=12, n1=12, m1=12, out=(D, 12), ob=D)


def siamese_views(w):
    return draw(602, 4, 3, 8, 8, like=w["c0"]), draw(603, 4, 3, 8, 8, like=w["c0"])


def siamese_bench(w, site):
    def net(x):
        x = F.relu(F.group_norm(F.conv2d(x, w["c0"], w["b0"], 1, 1), 4, w["n0"], w["m0"]))
        x = site("second", lambda: F.conv2d(x, w["c1"], w["b1"], 2, 1))
        x = F.relu(site("groups", lambda: F.group_norm(x, 3, w["n1"], w["m1"])))
        e = F.linear(site("pool", lambda: x.mean((2, 3))), w["out"], w["ob"])
        return site("unit", lambda: F.normalize(e, dim=1))
    a, b = (net(x) for x in siamese_views(w))
    near = (a - b).pow(2).sum(1)
    far = site("far", lambda: (a - b.roll(1, 0)).pow(2).sum(1))
    return torch.cat([a, b]), site("margin", lambda: F.relu(near - far + 1.).mean())


def siamese_port(w, site):
    x = torch.cat(siamese_views(w))
    x = F.conv2d(x, w["c0"], w["b0"], padding=1)
    x = F.group_norm(x, 4, w["n0"], w["m0"]).clamp(min=0)
    x = site("second", lambda: F.conv2d(x, w["c1"], w["b1"], 2, 1), lambda: F.conv2d(x, w["c1"], None, 2, 1))
    x = site("groups", lambda: F.group_norm(x, 3, w["n1"], w["m1"]), lambda: F.group_norm(x, 6, w["n1"], w["m1"])).clamp(min=0)
    p = site("pool", lambda: F.adaptive_avg_pool2d(x, 1).flatten(1), lambda: F.adaptive_max_pool2d(x, 1).flatten(1))
    e = torch.addmm(w["ob"], p, w["out"].t())
    e = site("unit", lambda: e / e.norm(dim=1, keepdim=True), lambda: e / e.norm(dim=0, keepdim=True))
    a, b = e.chunk(2)
    near = F.pairwise_distance(a, b, eps=0.) ** 2
    far = site("far", lambda: F.pairwise_distance(a, torch.cat([b[-1:], b[:-1]]), eps=0.) ** 2, lambda: F.pairwise_distance(a, torch.cat([b[-1:], b[:-1]]), eps=0.))
    return e, site("margin", lambda: torch.clamp(near - far + 1., min=0.).sum() / len(near), lambda: torch.clamp(near - far + 0.5, min=0.).sum() / len(near))


# --- four steps of a sampler: by what the noise is taken to be, or by what the image is taken to be

STEPS = (0.95, 0.7, 0.45, 0.2, 0.)      # noise levels t: x = a(t) image + s(t) noise


def sampler_weights():
    return rand(611, into=(2 * D, 12), ib=2 * D, t0=(2 * D, 8), tb=2 * D, h0=(2 * D, 2 * D), n0=2 * D, hb=2 * D, h1=(2 * D, 2 * D), n1=2 * D, out=(12, 2 * D))


def levels(t):
    return math.cos(t * math.pi / 2), math.sin(t * math.pi / 2)


def sampler_bench(w, site):
    x = draw(612, 6, 12, like=w["into"])

    def noise(x, t):
        f = 2. ** torch.arange(4).float() * t
        e = site("waves", lambda: torch.cat([f.sin(), f.cos()])[None]).to(x.dtype)
        e = F.silu(F.linear(e, w["t0"], w["tb"]))
        h = site("added", lambda: F.linear(x, w["into"], w["ib"]) + e)
        h = h + F.silu(F.linear(site("norm", lambda: F.layer_norm(h, (2 * D,), w["n0"])), w["h0"], w["hb"]))
        h = site("residual", lambda: h + F.silu(F.linear(F.layer_norm(h, (2 * D,), w["n1"]), w["h1"])))
        return F.linear(h, w["out"])
    for t, u in zip(STEPS, STEPS[1:]):
        (a, s), (b, r) = levels(t), levels(u)
        e = noise(x, t)
        x = site("step", lambda: b * (x - s * e) / a + r * e)
    return x, site("ending", lambda: (x - 1).pow(2).mean())


def sampler_port(w, site):
    x = draw(612, 6, 12, like=w["into"])
    waves = [torch.stack([g for k in range(4) for g in (torch.tensor(2. ** k * t).sin(), torch.tensor(2. ** k * t).cos())]) for t in STEPS]
    for i, (t, u) in enumerate(zip(STEPS, STEPS[1:])):
        e = waves[i].view(4, 2)
        e = site("waves", lambda: e.t().reshape(1, 8), lambda: e.flip(1).t().reshape(1, 8)).to(x.dtype).expand(len(x), 8)
        e = F.silu(torch.addmm(w["tb"], e, w["t0"].t()))
        h = F.linear(x, w["into"], w["ib"])
        h = site("added", lambda: e + h, lambda: e * h)
        g = site("norm", lambda: F.layer_norm(h, (2 * D,), w["n0"], None, 1e-5), lambda: F.rms_norm(h, (2 * D,), w["n0"], 1e-5))
        g = torch.addmm(w["hb"], g, w["h0"].t())
        h = h + g * torch.sigmoid(g)
        g = F.linear(F.layer_norm(h, (2 * D,), w["n1"]), w["h1"])
        h = site("residual", lambda: h + g * torch.sigmoid(g), lambda: g * torch.sigmoid(g))
        e = h @ w["out"].t()
        (a, s), (b, r) = levels(t), levels(u)
        image = (x - s * e) / a
        x = site("step", lambda: b * image + (x - a * image) * (r / s), lambda: b * image + (x - image) * (r / s))
    return x, site("ending", lambda: F.mse_loss(x, torch.ones_like(x)), lambda: F.l1_loss(x, torch.ones_like(x)))


# --- a student of a teacher: soft targets and hard ones, hidden states by a projection

def distill_weights():
    return rand(621, emb=(V, D), temb=(V, 2 * D), t0=(2 * D, 2 * D), tn=2 * D, t1=(V, 2 * D), s0=(D, D), nn=D, s1=(V, D), fit=(2 * D, D))


def distill_bench(w, site):
    ids, labels = tokens(622)
    with torch.no_grad():
        g = site("teacher", lambda: F.gelu(F.linear(F.embedding(ids, w["temb"]), w["t0"])))
        told = F.linear(F.layer_norm(g, (2 * D,), w["tn"]), w["t1"])
    h = F.gelu(F.linear(F.embedding(ids, w["emb"]), w["s0"]))
    y = F.linear(F.layer_norm(h, (D,), w["nn"]), w["s1"])
    hard = F.cross_entropy(y.float().view(-1, V), labels.reshape(-1))
    p, q = site("warm", lambda: (F.log_softmax(y.float() / 2, -1), F.softmax(told.float() / 2, -1)))
    soft = site("soft", lambda: F.kl_div(p.view(-1, V), q.view(-1, V), reduction="batchmean") * 4)
    hint = site("hint", lambda: F.mse_loss(F.linear(h, w["fit"]), g).float())
    return y, site("shares", lambda: 0.5 * hard + 0.5 * soft + 0.1 * hint)


def distill_port(w, site):
    ids, labels = tokens(622)
    x = w["emb"][ids]
    g = x.new_zeros(())
    with torch.no_grad():
        t = torch.matmul(w["temb"][ids], w["t0"].t())
        g = site("teacher", lambda: 0.5 * t * (1 + torch.erf(t / math.sqrt(2.))), lambda: F.relu(t))
        told = F.linear(F.layer_norm(g, (2 * D,), w["tn"]), w["t1"])
    t = torch.matmul(x, w["s0"].t())
    h = 0.5 * t * (1 + torch.erf(t / math.sqrt(2.)))
    y = F.linear(F.layer_norm(h, (D,), w["nn"]), w["s1"])
    hard = F.nll_loss(F.log_softmax(y.float().view(-1, V), 1), labels.reshape(-1))
    p, q = site("warm", lambda: ((y.float() / 2).log_softmax(-1), (told.float() / 2).log_softmax(-1)), lambda: (y.float().log_softmax(-1), told.float().log_softmax(-1)))
    soft = site("soft", lambda: 4. * (q.exp() * (q - p)).sum(-1).mean(), lambda: 4. * (p.exp() * (p - q)).sum(-1).mean())
    hint = site("hint", lambda: (torch.matmul(h, w["fit"].t()) - g).float().square().mean(), lambda: (torch.matmul(h, w["fit"].t()) - g).float().square().sum(-1).mean())
    return y, site("shares", lambda: (hard + soft) / 2 + hint / 10, lambda: hard + soft / 2 + hint / 10)


# --- a critic of what is real and of what a generator makes, each by itself or all at once; what the generator loses in the same step

def gan_weights():
    return rand(631, g0=(2 * D, 8), gb=2 * D, gn=2 * D, gm=2 * D, g1=(12, 2 * D), d0=(2 * D, 12), db=2 * D, d1=(D, 2 * D), d2=(1, D))


def gan_bench(w, site):
    real, z = draw(632, 5, 12, like=w["g0"]), draw(633, 5, 8, like=w["g0"])

    def critic(x):
        x = site("slope", lambda: F.leaky_relu(F.linear(x, w["d0"], w["db"]), 0.2))
        return F.linear(F.leaky_relu(F.linear(x, w["d1"]), 0.2), w["d2"])
    h = F.linear(z, w["g0"], w["gb"])
    h = F.relu(site("batch", lambda: F.batch_norm(h, None, None, w["gn"], w["gm"], True)))
    fake = site("range", lambda: torch.tanh(F.linear(h, w["g1"])))
    a, b = critic(real), critic(fake.detach())
    d = site("hinge", lambda: F.relu(1 - a).mean() + F.relu(1 + b).mean())
    g = site("other", lambda: -critic(fake).mean())
    return fake, site("both", lambda: (d + g).float())


def gan_port(w, site):
    real, z = draw(632, 5, 12, like=w["g0"]), draw(633, 5, 8, like=w["g0"])

    def critic(x):
        x = F.linear(x, w["d0"], w["db"])
        x = site("slope", lambda: torch.where(x > 0, x, 0.2 * x), lambda: torch.where(x > 0, x, 0.01 * x))
        x = F.linear(x, w["d1"])
        return F.linear(torch.max(x, 0.2 * x), w["d2"])
    h = torch.addmm(w["gb"], z, w["g0"].t())
    mean, var = h.mean(0), h.var(0, unbiased=False)
    h = site("batch", lambda: (h - mean) / torch.sqrt(var + 1e-5) * w["gn"] + w["gm"], lambda: (h - mean) / torch.sqrt(h.var(0) + 1e-5) * w["gn"] + w["gm"]).clamp(min=0)
    h = F.linear(h, w["g1"])
    fake = site("range", lambda: 2 * torch.sigmoid(2 * h) - 1, lambda: torch.sigmoid(2 * h))
    a, b = critic(torch.cat([real, fake.detach()])).split(5)
    d = site("hinge", lambda: (1 - a).clamp(min=0).mean() + (1 + b).clamp(min=0).mean(), lambda: (1 - a).clamp(min=0).mean() + (1 - b).clamp(min=0).mean())
    c = critic(fake)
    g = site("other", lambda: -torch.mean(c), lambda: torch.mean(F.softplus(-c)))
    return fake, site("both", lambda: (g + d).float(), lambda: (g + d / 2).float())


# --- a policy and a value: advantages from behind by a loop or by a matrix, a clipped ratio, an entropy

def ppo_weights():
    return rand(641, w0=(2 * D, 8), b0=2 * D, w1=(2 * D, 2 * D), b1=2 * D, pi=(5, 2 * D), v=(1, 2 * D))


def ppo_data(w):
    g = torch.Generator().manual_seed(642)
    return draw(643, 9, 8, like=w["w0"]), torch.randint(0, 5, (8,), generator=g), draw(644, 8), 0.3 * draw(645, 8) - 1.6, (torch.rand(8, generator=g) < 0.8).float()


def ppo_bench(w, site):
    x, act, reward, old, goes_on = ppo_data(w)
    h = site("body", lambda: torch.tanh(F.linear(torch.tanh(F.linear(x, w["w0"], w["b0"])), w["w1"], w["b1"])))
    y, v = F.linear(h[:8], w["pi"]).float(), F.linear(h, w["v"])[:, 0].float()

    def advantages():
        out, last = [], 0.
        for t in reversed(range(8)):
            delta = reward[t] + 0.9 * v.detach()[t + 1] * goes_on[t] - v.detach()[t]
            last = delta + 0.9 * 0.8 * goes_on[t] * last
            out.insert(0, last)
        return torch.stack(out)
    adv = site("behind", advantages)
    target = adv + v.detach()[:8]
    adv = site("normal", lambda: (adv - adv.mean()) / (adv.std() + 1e-8))
    p = torch.distributions.Categorical(logits=y)
    ratio = site("ratio", lambda: torch.exp(p.log_prob(act) - old))
    policy = site("clip", lambda: -torch.min(ratio * adv, torch.clamp(ratio, 0.8, 1.2) * adv).mean())
    value = site("value", lambda: 0.5 * (v[:8] - target).pow(2).mean())
    return y, site("entropy", lambda: policy + 0.5 * value - 0.1 * p.entropy().mean())


def ppo_port(w, site):
    x, act, reward, old, goes_on = ppo_data(w)
    h = torch.addmm(w["b0"], x, w["w0"].t()).tanh()
    h = site("body", lambda: torch.addmm(w["b1"], h, w["w1"].t()).tanh(), lambda: torch.addmm(w["b1"], h, w["w1"].t()).relu())
    y, v = (h[:8] @ w["pi"].t()).float(), (h @ w["v"].t()).float().squeeze(1)
    with torch.no_grad():
        delta = reward + 0.9 * v[1:] * goes_on - v[:-1]
        # What of delta[s] counts at t: the product of 0.72 and goes_on from t to s - 1.
        many = torch.ones(8, 8)
        for t, s in itertools.combinations(range(8), 2):
            many[t, s] = 0.72 ** (s - t) * goes_on[t:s].prod()
        adv = site("behind", lambda: (many.triu() * delta).sum(1), lambda: (many.triu() * (delta + 0.9 * v[1:] * (1 - goes_on))).sum(1))
        target = adv + v[:-1]
        adv = site("normal", lambda: (adv - adv.mean()) / (adv.var().sqrt() + 1e-8), lambda: adv - adv.mean())
    logp = torch.log_softmax(y, -1)
    taken = logp.gather(1, act[:, None])[:, 0]
    ratio = site("ratio", lambda: (taken - old).exp(), lambda: (old - taken).exp())
    policy = site("clip", lambda: torch.max(-adv * ratio, -adv * ratio.clamp(0.8, 1.2)).mean(), lambda: torch.max(-adv * ratio, -adv * ratio.clamp(0.9, 1.1)).mean())
    value = site("value", lambda: F.mse_loss(v[:-1], target) / 2, lambda: F.smooth_l1_loss(v[:-1], target) / 2)
    entropy = -(logp.exp() * logp).sum(1)
    return y, site("entropy", lambda: policy + 0.5 * value - 0.1 * entropy.mean(), lambda: policy + 0.5 * value + 0.1 * entropy.mean())


# --- a state that forgets and takes in, token after token or all tokens by a matrix (linear attention as Mamba 2 has it)

def state_weights():
    w = rand(651, emb=(V, D), n0=D, nz=2 * D, head=(V, D))
    w.update(rand(652, x=(2 * D, D), z=(2 * D, D), b=(8, D), c=(8, D), dt=(4, D), dtb=4, a=4, skip=4, o=(D, 2 * D)))
    w["emb"] *= 4
    return w


def state_bench(w, site):
    ids, labels = tokens(653)
    e = F.embedding(ids, w["emb"])
    h = F.rms_norm(e, (D,), w["n0"], 1e-5)
    x, z = F.silu(F.linear(h, w["x"])).view(B, T, 4, 8), F.linear(h, w["z"])
    b, c = site("short", lambda: (F.silu(F.linear(h, w["b"])), F.silu(F.linear(h, w["c"]))))
    dt = site("soft", lambda: F.softplus(F.linear(h, w["dt"]).float() + w["dtb"].float()))
    decay = site("decay", lambda: torch.exp(-torch.exp(w["a"].float()) * dt))

    def scan():
        state, out = x.new_zeros(B, 4, 8, 8).float(), []
        for t in range(T):
            state = state * decay[:, t, :, None, None] + dt[:, t, :, None, None] * x[:, t, :, :, None].float() * b[:, t, None, None, :].float()
            out.append(torch.einsum("bhpn,bn->bhp", state, c[:, t].float()))
        return torch.stack(out, 1)
    y = site("scan", scan)
    y = site("skip", lambda: y + w["skip"].float()[:, None] * x.float())
    y = y.reshape(B, T, 2 * D).to(h.dtype)
    y = site("gated", lambda: F.rms_norm(y * F.silu(z), (2 * D,), w["nz"], 1e-5))
    y = F.linear(e + F.linear(y, w["o"]), w["head"])
    return y, F.cross_entropy(y.float().view(-1, V), labels.reshape(-1))


def state_port(w, site):
    ids, labels = tokens(653)
    e = F.embedding(ids, w["emb"])
    h = F.rms_norm(e, (D,), w["n0"], 1e-5)
    z, x, b, c, dt = F.linear(h, torch.cat([w["z"], w["x"], w["b"], w["c"], w["dt"]])).split([2 * D, 2 * D, 8, 8, 4], -1)
    x = F.silu(x).view(B, T, 4, 8)
    b, c = site("short", lambda: (F.silu(b), F.silu(c)), lambda: (F.silu(b), torch.tanh(c)))
    dt = site("soft", lambda: F.softplus(dt.float() + w["dtb"].float()), lambda: F.softplus(dt.float()) + w["dtb"].float())
    log = site("decay", lambda: -w["a"].float().exp() * dt, lambda: w["a"].float().neg() * dt)

    def whole(last):
        sums = log.cumsum(1).transpose(1, 2)                                # [batch, heads, tokens]
        l = torch.exp(last(sums[..., :, None] - sums[..., None, :]))
        s = torch.matmul(c.float(), b.float().mT)[:, None] * l * dt.transpose(1, 2)[:, :, None]
        return torch.matmul(s, x.float().transpose(1, 2)).transpose(1, 2)
    later = torch.ones(T, T).triu(1).bool()
    y = site("scan", lambda: whole(lambda s: s.masked_fill(later, float("-inf"))), lambda: whole(lambda s: s.masked_fill(later, 0.)))
    y = site("skip", lambda: y + x.float() * w["skip"].float()[None, None, :, None], lambda: y + x.float())
    y = y.flatten(2).to(h.dtype)
    y = site("gated", lambda: F.rms_norm(F.silu(z) * y, (2 * D,), w["nz"], 1e-5), lambda: F.silu(z) * F.rms_norm(y, (2 * D,), w["nz"], 1e-5))
    y = F.linear(e + F.linear(y, w["o"]), w["head"])
    return y, F.cross_entropy(y.float().view(-1, V), labels.reshape(-1))


# --- an image among tokens: patches by a convolution or by a product, four of them made one, put where the text has marks

def vlm_weights():
    w = rand(661, patch=(D, 3, 2, 2), pb=D, where=(16, D), vn=D, vm=D, vq=(D, D), vk=(D, D), vv=(D, D), vo=(D, D), nm=4 * D, join=(D, 4 * D), emb=(V, D), nf=D, head=(V, D))
    w.update(rand(662, nl=D, q=(D, D), k=(D, D), v=(D, D), o=(D, D)))
    w["emb"] *= 3
    return w


MARK = 5


def vlm_input(w):
    ids, labels = tokens(663)
    ids = torch.cat([torch.full((B, 4), MARK), ids % MARK + 6], 1)
    return draw(664, B, 3, 8, 8, like=w["patch"]), ids, torch.cat([torch.full((B, 4), -100), labels], 1)


def vlm_attend(w, h, kind, causal):
    q, k, v = (F.linear(h, w[kind + n]).view(B, -1, 2, D // 2).transpose(1, 2) for n in "qkv")
    return F.linear(F.scaled_dot_product_attention(q, k, v, is_causal=causal).transpose(1, 2).flatten(2), w[kind + "o"])


def vlm_bench(w, site):
    image, ids, labels = vlm_input(w)
    x = site("patches", lambda: F.conv2d(image, w["patch"], w["pb"], 2)).flatten(2).transpose(1, 2)
    x = site("places", lambda: x + w["where"])
    x = x + vlm_attend(w, F.layer_norm(x, (D,), w["vn"], w["vm"]), "v", False)
    x = site("four", lambda: x.view(B, 2, 2, 2, 2, D).transpose(2, 3).reshape(B, 4, 4 * D))
    x = F.linear(site("mlp", lambda: F.gelu(F.layer_norm(x, (4 * D,), w["nm"]))), w["join"])
    e = F.embedding(ids, w["emb"])
    e = site("among", lambda: e.masked_scatter((ids == MARK)[..., None].expand_as(e), x.flatten(0, 1)))
    e = e + vlm_attend(w, F.rms_norm(e, (D,), w["nl"], 1e-6), "", True)
    y = F.linear(F.rms_norm(e, (D,), w["nf"], 1e-6), w["head"])
    return y, site("shift", lambda: F.cross_entropy(y.float().view(-1, V), labels.reshape(-1)))


def vlm_port(w, site):
    image, ids, labels = vlm_input(w)
    p = image.view(B, 3, 4, 2, 4, 2).permute(0, 2, 4, 1, 3, 5).reshape(B, 16, 12)
    x = site("patches", lambda: F.linear(p, w["patch"].flatten(1), w["pb"]),
             lambda: F.linear(image.view(B, 3, 4, 2, 4, 2).permute(0, 2, 4, 3, 5, 1).reshape(B, 16, 12), w["patch"].flatten(1), w["pb"]))
    x = site("places", lambda: x + w["where"][None], lambda: x + w["where"].view(4, 4, D).transpose(0, 1).reshape(1, 16, D))
    h = F.layer_norm(x, (D,), w["vn"], w["vm"])
    q, k, v = F.linear(h, torch.cat([w["vq"], w["vk"], w["vv"]])).chunk(3, -1)
    q, k, v = (t.reshape(B, 16, 2, D // 2).permute(0, 2, 1, 3) for t in (q, k, v))
    a = torch.softmax(q @ k.mT / math.sqrt(D // 2), -1) @ v
    x = x + F.linear(a.transpose(1, 2).reshape(B, 16, D), w["vo"])
    g = x.view(B, 4, 4, D)
    corners = [g[:, i::2, j::2] for i in (0, 1) for j in (0, 1)]
    x = site("four", lambda: torch.cat(corners, -1).flatten(1, 2), lambda: torch.cat([corners[k] for k in (0, 2, 1, 3)], -1).flatten(1, 2))
    x = site("mlp", lambda: F.gelu(F.layer_norm(x, (4 * D,), w["nm"], None, 1e-5)), lambda: F.layer_norm(x, (4 * D,), w["nm"], None, 1e-5) * 1.)
    x = F.linear(x, w["join"])
    e = site("among", lambda: torch.cat([x, w["emb"][ids[:, 4:]]], 1), lambda: torch.cat([x.flip(0), w["emb"][ids[:, 4:]]], 1))
    h = F.rms_norm(e, (D,), w["nl"], 1e-6)
    q, k, v = (F.linear(h, w[n]).view(B, 10, 2, D // 2).transpose(1, 2) for n in "qkv")
    s = (q @ k.mT / math.sqrt(D // 2)).masked_fill(torch.ones(10, 10).triu(1).bool(), torch.finfo(q.dtype).min)
    e = e + F.linear((F.softmax(s.float(), -1).to(q.dtype) @ v).transpose(1, 2).flatten(2), w["o"])
    y = F.linear(F.rms_norm(e, (D,), w["nf"], 1e-6), w["head"])
    text = y[:, 4:].float().flatten(0, 1)
    return y, site("shift", lambda: F.cross_entropy(text, labels[:, 4:].flatten()), lambda: F.cross_entropy(text[:-1], labels[:, 4:].flatten()[1:]))


# --- a detector's head: boxes by distances that are means of classes, classes by sigmoids, boxes held against boxes

def boxes_weights():
    return rand(671, c0=(D, 3, 3, 3), b0=D, n0=D, m0=D, cls=(6, D, 1, 1), cb=6, reg=(16, D, 1, 1), rb=16)


def boxes_data(w):
    g = torch.Generator().manual_seed(672)
    low = 4 * torch.rand(2, 16, 2, generator=g)
    return draw(673, 2, 3, 8, 8, like=w["c0"]), torch.cat([low, low + 1 + 3 * torch.rand(2, 16, 2, generator=g)], -1), torch.randint(0, 6, (2, 16), generator=g)


def boxes_bench(w, site):
    x, truth, kind = boxes_data(w)
    h = F.conv2d(x, w["c0"], w["b0"], 2, 1)
    h = site("act", lambda: F.silu(F.group_norm(h, 4, w["n0"], w["m0"])))
    c = F.conv2d(h, w["cls"], w["cb"]).flatten(2).transpose(1, 2).float()
    r = F.conv2d(h, w["reg"], w["rb"]).flatten(2).transpose(1, 2).float()
    d = site("mean", lambda: F.softmax(r.view(2, 16, 4, 4), -1) @ torch.arange(4.))
    at = torch.stack(torch.meshgrid(torch.arange(4.), torch.arange(4.), indexing="xy"), -1).view(16, 2)
    at = site("centre", lambda: at + 0.5)
    p = site("corners", lambda: torch.cat([at - d[..., :2], at + d[..., 2:]], -1) * 2)
    low, high = torch.max(p[..., :2], truth[..., :2]), torch.min(p[..., 2:], truth[..., 2:])
    both = site("overlap", lambda: (high - low).clamp(0).prod(-1))
    any_ = (p[..., 2:] - p[..., :2]).prod(-1) + (truth[..., 2:] - truth[..., :2]).prod(-1) - both
    hull = (torch.max(p[..., 2:], truth[..., 2:]) - torch.min(p[..., :2], truth[..., :2])).prod(-1)
    box = site("giou", lambda: (1 - (both / any_ - (hull - any_) / hull)).mean())
    cls = site("classes", lambda: F.binary_cross_entropy_with_logits(c, F.one_hot(kind, 6).float()))
    return torch.cat([c, p], -1), site("gains", lambda: cls * 0.5 + box * 7.5)


def boxes_port(w, site):
    x, truth, kind = boxes_data(w)
    h = F.group_norm(F.conv2d(x, w["c0"], w["b0"], 2, 1), 4, w["n0"], w["m0"])
    h = site("act", lambda: h * h.sigmoid(), lambda: F.hardswish(h))
    y = F.conv2d(h, torch.cat([w["reg"], w["cls"]]), torch.cat([w["rb"], w["cb"]])).float()
    r, c = y[:, :16], y[:, 16:].flatten(2).transpose(1, 2)
    # As a convolution over the four classes of each side.
    r = r.reshape(2, 4, 4, 16).transpose(1, 2)
    d = site("mean", lambda: F.conv2d(r.softmax(1), torch.arange(4.).view(1, 4, 1, 1))[:, 0].transpose(1, 2), lambda: F.conv2d(r.softmax(2), torch.arange(4.).view(1, 4, 1, 1))[:, 0].transpose(1, 2))
    ys, xs = torch.arange(16) // 4, torch.arange(16) % 4
    at = site("centre", lambda: torch.stack([xs + 0.5, ys + 0.5], 1), lambda: torch.stack([xs + 0., ys + 0.], 1))
    p = site("corners", lambda: 2. * torch.cat([at - d[..., :2], d[..., 2:] + at], 2), lambda: 2. * torch.cat([at - d[..., 2:], d[..., :2] + at], 2))
    (ax, ay, bx, by), (cx, cy, dx, dy) = p.unbind(-1), truth.unbind(-1)
    wide, tall = torch.minimum(bx, dx) - torch.maximum(ax, cx), torch.minimum(by, dy) - torch.maximum(ay, cy)
    both = site("overlap", lambda: wide.relu() * tall.relu(), lambda: wide.relu() + tall.relu())
    any_ = (bx - ax) * (by - ay) + (dx - cx) * (dy - cy) - both
    hull = (torch.maximum(bx, dx) - torch.minimum(ax, cx)) * (torch.maximum(by, dy) - torch.minimum(ay, cy))
    box = site("giou", lambda: torch.mean(2 - both / any_ - any_ / hull), lambda: torch.mean(1 - both / any_))
    t = torch.zeros(2, 16, 6).scatter(2, kind[..., None], 1.)
    cls = site("classes", lambda: (F.softplus(c) - c * t).mean(), lambda: (F.softplus(c) - c * t).sum(-1).mean())
    return torch.cat([c, p], -1), site("gains", lambda: 7.5 * box + 0.5 * cls, lambda: 7.5 * box + cls)


# --- a chain of labels (CRF): all paths by recursion in logarithms, or by a product of matrices

K = 5


def chain_weights():
    w = rand(681, emb=(V, D), wi=(4 * D, D), wh=(4 * D, D), bi=4 * D, out=(K, D), ob=K, start=K, end=K, move=(K, K))
    w["emb"] *= 3
    return w


def chain_tags():
    return torch.randint(0, K, (B, T), generator=torch.Generator().manual_seed(682))


def chain_bench(w, site):
    ids, _ = tokens(683)
    tags, x = chain_tags(), F.embedding(ids, w["emb"])
    h, c, hs = x.new_zeros(B, D), x.new_zeros(B, D), []
    for t in range(T):
        i, f, g, o = (F.linear(x[:, t], w["wi"], w["bi"]) + F.linear(h, w["wh"])).chunk(4, 1)
        c = site("cell", lambda: torch.sigmoid(f) * c + torch.sigmoid(i) * torch.tanh(g))
        h = torch.sigmoid(o) * torch.tanh(c)
        hs.append(h)
    y = F.linear(torch.stack(hs, 1), w["out"], w["ob"]).float()
    start, end, move = (w[k].float() for k in ("start", "end", "move"))

    def path():
        s = start[tags[:, 0]] + y[:, 0].gather(1, tags[:, :1])[:, 0]
        for t in range(1, T):
            s = s + move[tags[:, t - 1], tags[:, t]] + y[:, t].gather(1, tags[:, t:t + 1])[:, 0]
        return s + end[tags[:, -1]]

    def paths():
        a = start + y[:, 0]
        for t in range(1, T):
            a = torch.logsumexp(a[:, :, None] + move + y[:, t, None, :], 1)
        return torch.logsumexp(a + end, 1)
    score, total = site("path", path), site("paths", paths)
    return y, site("mean", lambda: (total - score).mean())


def chain_port(w, site):
    ids, _ = tokens(683)
    tags, x = chain_tags(), w["emb"][ids]
    into = torch.matmul(x, w["wi"].t()) + w["bi"]
    h, c, y = x.new_zeros(B, D), x.new_zeros(B, D), []
    for t in range(T):
        g = torch.addmm(into[:, t], h, w["wh"].t())
        s = torch.sigmoid(g)
        c = site("cell", lambda: s[:, D:2 * D] * c + s[:, :D] * torch.tanh(g[:, 2 * D:3 * D]), lambda: s[:, :D] * c + s[:, D:2 * D] * torch.tanh(g[:, 2 * D:3 * D]))
        h = s[:, 3 * D:] * torch.tanh(c)
        y.append(F.linear(h, w["out"], w["ob"]))
    y = torch.stack(y, 1).float()
    start, end, move = (w[k].float() for k in ("start", "end", "move"))
    hot = F.one_hot(tags, K).float()

    def path(move):
        return (y * hot).sum((1, 2)) + hot[:, 0] @ start + hot[:, -1] @ end + ((hot[:, :-1] @ move) * hot[:, 1:]).sum((1, 2))

    def paths(end):
        top = y.amax(-1)
        p = (start + y[:, 0] - top[:, 0, None]).exp()[:, None]
        for t in range(1, T):
            p = torch.bmm(p, (move + (y[:, t] - top[:, t, None])[:, None]).exp())
        return torch.log((p[:, 0] * end.exp()).sum(1)) + top.sum(1)
    score = site("path", lambda: path(move), lambda: path(move.t()))
    total = site("paths", lambda: paths(end), lambda: paths(torch.zeros(K)))
    return y, site("mean", lambda: torch.sum(total - score) / B, lambda: torch.sum(total - score) / (B * T))


# --- a batch in parts of which all go forward before any goes back (as pipelines do), or at once

def parts_weights():
    w = rand(691, emb=(V, D), head=(V, D), nf=D)
    for i in range(2):
        w.update({f"{k}{i}": v for k, v in rand(692 + i, na=D, ba=D, up=(4 * D, D), down=(D, 4 * D)).items()})
    w["emb"] *= 4
    return w


def parts_tokens():
    g = torch.Generator().manual_seed(694)
    ids = torch.randint(0, V, (6, T + 1), generator=g)
    return ids[:, :-1], ids[:, 1:]


def parts_bench(w, site):
    ids, labels = parts_tokens()
    x = F.embedding(ids, w["emb"])
    for i in range(2):
        h = site("norm", lambda: F.layer_norm(x, (D,), w[f"na{i}"], w[f"ba{i}"])) if i == 0 else F.layer_norm(x, (D,), w[f"na{i}"], w[f"ba{i}"])
        x = site("residual", lambda: x + F.linear(F.gelu(F.linear(h, w[f"up{i}"])), w[f"down{i}"])) if i == 1 else x + F.linear(site("act", lambda: F.gelu(F.linear(h, w[f"up{i}"]))), w[f"down{i}"])
    y = F.linear(F.rms_norm(x, (D,), w["nf"], 1e-6), w["head"])
    return y, site("share", lambda: F.cross_entropy(y.float().view(-1, V), labels.reshape(-1)))


def parts_port(w, site):
    ids, labels = parts_tokens()
    xs = [F.embedding(i, w["emb"]) for i in ids.split(2)]
    for i in range(2):
        out = []
        for x in xs:
            h = site("norm", lambda: F.layer_norm(x, (D,), w["na0"], w["ba0"]), lambda: F.layer_norm(x, (D,), w["na0"], None)) if i == 0 else F.layer_norm(x, (D,), w["na1"], w["ba1"])
            u = F.linear(h, w[f"up{i}"])
            u = site("act", lambda: F.gelu(u), lambda: F.gelu(u, approximate="tanh") * 1.05) if i == 0 else F.gelu(u)
            d = F.linear(u, w[f"down{i}"])
            out.append(site("residual", lambda: x + d, lambda: h + d) if i == 1 else x + d)
        xs = out
    ys = [F.linear(F.rms_norm(x, (D,), w["nf"], 1e-6), w["head"]) for x in xs]
    losses = [F.cross_entropy(y.float().flatten(0, 1), l.flatten()) for y, l in zip(ys, labels.split(2))]
    return torch.cat(ys), site("share", lambda: torch.stack(losses).mean(), lambda: torch.stack(losses[:2]).mean())


FAMILIES = {
    "siamese": (siamese_weights, siamese_bench, siamese_port, ["second", "groups", "pool", "unit", "far", "margin"]),
    "sampler": (sampler_weights, sampler_bench, sampler_port, ["waves", "added", "norm", "residual", "step", "ending"]),
    "distill": (distill_weights, distill_bench, distill_port, ["teacher", "warm", "soft", "hint", "shares"]),
    "gan": (gan_weights, gan_bench, gan_port, ["slope", "batch", "range", "hinge", "other", "both"]),
    "ppo": (ppo_weights, ppo_bench, ppo_port, ["body", "behind", "normal", "ratio", "clip", "value", "entropy"]),
    "state": (state_weights, state_bench, state_port, ["short", "soft", "decay", "scan", "skip", "gated"]),
    "vlm": (vlm_weights, vlm_bench, vlm_port, ["patches", "places", "four", "mlp", "among", "shift"]),
    "boxes": (boxes_weights, boxes_bench, boxes_port, ["act", "mean", "centre", "corners", "overlap", "giou", "classes", "gains"]),
    "chain": (chain_weights, chain_bench, chain_port, ["cell", "path", "paths", "mean"]),
    "parts": (parts_weights, parts_bench, parts_port, ["norm", "act", "residual", "share"]),
}
