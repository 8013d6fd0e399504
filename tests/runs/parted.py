#!/usr/bin/env python3
"""How often does the rule parted of acccurve accuse curves of small trainings, and how often does it find a fault?

    BIN=bin parted.py OUT SEEDS

Needs torch. Other seeds, and weights that are off by a rounding from a step on, are right; a loss or a norm that is
another from step 25 on is wrong. tests/RESULTS.md has the figures of four seeds.
"""
import json
import os
import subprocess
import sys

import torch

torch.set_num_threads(1)
OUT, SEEDS, BIN = sys.argv[1], int(sys.argv[2]), os.environ["BIN"]
NAMES = "loss", "grad_norm", "entropy", "accuracy", "accuracy_mean"


class Gru(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.e, self.r, self.o = torch.nn.Linear(1, 16), torch.nn.GRU(16, 16, batch_first=True), torch.nn.Linear(16, 4)

    def forward(self, x):
        return self.o(self.r(self.e(x.unsqueeze(-1)))[0][:, -1])


def network(kind):
    n = torch.nn
    return {"mlp": lambda: n.Sequential(n.Linear(8, 32), n.Tanh(), n.Linear(32, 32), n.Tanh(), n.Linear(32, 4)),
            "conv": lambda: n.Sequential(n.Conv1d(1, 8, 3), n.ReLU(), n.Flatten(), n.Linear(48, 4)),
            "gru": Gru,
            "pg": lambda: n.Sequential(n.Linear(8, 16), n.Tanh(), n.Linear(16, 4))}[kind]()


def train(kind, seed, noise=0, at=0, fault=""):
    """60 steps; weights get `noise` at step `at`, or the fault holds from there on."""
    g = torch.Generator().manual_seed(seed)
    torch.manual_seed(seed)
    m, rows, mean = network(kind), [], None
    o = torch.optim.AdamW(m.parameters(), 3e-3 if kind == "gru" else 1e-2)
    w = torch.randn(8, 4, generator=torch.Generator().manual_seed(99))
    for s in range(1, 61):
        if noise and s == at:
            with torch.no_grad():
                for p in m.parameters():
                    p.mul_(1 + noise * torch.randn(p.shape))
        x = torch.randn(16, 8, generator=g)
        y = (x @ w).argmax(1)
        out = m(x.unsqueeze(1) if kind == "conv" else x)
        lp = torch.log_softmax(out, 1)
        if kind == "pg":
            a = (lp.exp().cumsum(1) < torch.rand(16, 1, generator=g)).sum(1).clamp(max=3)
            r = (a == y).float()
            loss, hit = -(lp[range(16), a] * (r - r.mean())).mean(), r.mean().item()
        else:
            loss, hit = torch.nn.functional.nll_loss(lp, y), (out.argmax(1) == y).float().mean().item()
        loss = loss * (1.05 if fault == "loss" and s >= at else 1)
        o.zero_grad()
        loss.backward()
        norm = torch.nn.utils.clip_grad_norm_(m.parameters(), 1e9).item()
        o.step()
        mean = hit if mean is None else .95 * mean + .05 * hit
        rows.append((s, loss.item(), norm * (1.03 if fault == "norm" and s >= at else 1),
                     -(lp.exp() * lp).sum(1).mean().item(), hit, mean))
    return rows


def write(rows, name):
    path = f"{OUT}/{name}.csv"
    with open(path, "w") as f:
        f.write("step," + ",".join(NAMES) + "\n" + "".join("%d,%.6f,%.6f,%.6f,%.6f,%.6f\n" % r for r in rows))
    return path


def pairs(a, b, name):
    with open(f"{OUT}/{name}.acc", "wb") as f:
        subprocess.run([f"{BIN}/accalign", a, b], stdout=f, check=True)
    return f"{OUT}/{name}.acc"


def parted(a, b, noise):
    """The tags that the rule accuses."""
    c = subprocess.run([f"{BIN}/acccurve", *(["--noise", noise] if noise else []), pairs(a, b, "pairs")],
                       stdout=subprocess.PIPE, check=False)
    r = subprocess.run([f"{BIN}/accfmt", "--json"], input=c.stdout, stdout=subprocess.PIPE, check=False)
    return [d["tag"] for d in map(json.loads, r.stdout.splitlines())
            if d.get("rule") == "parted" and d["kind"] == "curve"]


def main():
    total = {}
    os.makedirs(OUT, exist_ok=True)
    for kind in ("mlp", "conv", "gru", "pg"):
        for seed in range(SEEDS):
            base = write(train(kind, seed), "base")
            spread = pairs(write(train(kind, seed, 1e-7, 1), "again"), base, "spread")
            cases = [("other seed", train(kind, seed + 1000))]
            cases += [(f"weights off by {n:g}", train(kind, seed, n, at)) for n in (1e-7, 1e-5, 1e-3, 1e-2)
                      for at in (1, 12, 20, 30)]
            cases += [(f"another {f}", train(kind, seed, 0, 25, f)) for f in ("loss", "norm")]
            for name, rows in cases:
                for how, noise in (("", None), (" --noise", spread)):
                    tags = parted(write(rows, "x"), base, noise)
                    t = total.setdefault(name + how, [0, 0])
                    t[0] += bool(tags)
                    t[1] += 1
    for name, (bad, n) in total.items():
        print(f"{name}: {bad} of {n}")


main()
