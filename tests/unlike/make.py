#!/usr/bin/python3
"""Records two programs that compute the same network, as a migration has them, and one of these with a fault.

Usage: make.py FOLDER [--seeds N] [--first S] [--faults K] [--bugs B] [--families all|NAME,...] [--quick]

Needs torch. By itself a transformer: the bench is written as Hugging Face writes it (samples first, q, k and
v apart, -inf added to what is hidden); the device as Megatron-LM does (tokens first, q, k and v packed by
heads, baddbmm, bools hide, gate and up packed) or as nanoGPT does (samples first, one product for q, k and v,
-inf filled in). The families of families.py are other networks, the bench as a framework's users write them,
the device as ports do; how is drawn by the seed, and every fourth seed is recorded in msprobe's layout.
Widths, depth, norm and activation are drawn by the seed; the weights are the same numbers. Of each pair of
programs three kinds of dtypes: f32 on both sides, the device in bf16, both in bf16. A case is
FOLDER/NAME/{device, bench} and truth.json: `ops`, the op calls of the device that are wrong (one beneath the
recorder, or those that a bug of the program marks), or null."""
import argparse
import json
import math
import os
import random
import shutil
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.join(HERE, "..", "..")
BIN = os.environ.get("BIN", os.path.join(ROOT, "bin"))
DTYPES = ["f32-f32", "bf16-f32", "bf16-bf16"]    # device, bench
PROGRAMS = ["megatron", "nano"]


def network(seed):
    """What both programs compute: sizes, and the weights by name."""
    import torch
    r = random.Random(seed)
    c = dict(heads=r.choice([2, 4]), depth=r.choice([2, 3]), vocab=r.randrange(50, 120), tokens=r.choice([8, 12, 16]),
             batch=r.choice([2, 3]), norm=r.choice(["layer", "rms"]), act=r.choice(["gelu", "swiglu", "relu"]))
    c["width"] = c["heads"] * r.choice([8, 16])
    c["inner"] = c["width"] * r.choice([2, 4])
    d, f = c["width"], c["inner"]
    torch.manual_seed(seed)
    w = {"emb": torch.randn(c["vocab"], d), "pos": 0.3 * torch.randn(c["tokens"], d), "nf": 1 + 0.1 * torch.randn(d),
         "nfb": 0.1 * torch.randn(d), "head": torch.randn(c["vocab"], d) / math.sqrt(d)}
    for i in range(c["depth"]):
        for n in "qkvo":
            w[f"{i}.{n}"] = 1.2 * torch.randn(d, d) / math.sqrt(d)
            w[f"{i}.{n}b"] = 0.1 * torch.randn(d)
        w[f"{i}.up"], w[f"{i}.gate"] = (torch.randn(f, d) / math.sqrt(d) for _ in range(2))
        w[f"{i}.upb"] = 0.1 * torch.randn(f)
        w[f"{i}.down"], w[f"{i}.downb"] = torch.randn(d, f) / math.sqrt(f), 0.1 * torch.randn(d)
        for n in ("n1", "n2"):
            w[f"{i}.{n}"], w[f"{i}.{n}b"] = 1 + 0.1 * torch.randn(d), 0.1 * torch.randn(d)
    ids = torch.randint(0, c["vocab"], (c["batch"], c["tokens"]))
    return c, w, ids, torch.randint(0, c["vocab"], ids.shape)


def programs(c, w):
    import torch
    from torch import nn
    import torch.nn.functional as F
    heads, d, vocab = c["heads"], c["width"], c["vocab"]
    each = d // heads

    def given(module, weight, bias=None):
        module.weight.data = w[weight].clone()
        if bias is not None:
            module.bias.data = w[bias].clone()
        return module

    def own(value):
        return nn.Parameter(value.clone())

    class RMSNorm(nn.Module):
        def __init__(self, name):
            super().__init__()
            self.weight = own(w[name])

        def forward(self, x):
            variance = x.pow(2).mean(-1, keepdim=True)
            x = x * torch.rsqrt(variance + 1e-5)
            return self.weight * x

    def norm_module(name):
        return given(nn.LayerNorm(d), name, name + "b") if c["norm"] == "layer" else RMSNorm(name)

    class Attention(nn.Module):
        def __init__(self, i):
            super().__init__()
            self.q_proj, self.k_proj, self.v_proj, self.o_proj = (
                given(nn.Linear(d, d), f"{i}.{n}", f"{i}.{n}b") for n in "qkvo")

        def forward(self, x, mask):
            b, t, _ = x.shape
            q = self.q_proj(x).view(b, t, heads, each).transpose(1, 2)
            k = self.k_proj(x).view(b, t, heads, each).transpose(1, 2)
            v = self.v_proj(x).view(b, t, heads, each).transpose(1, 2)
            scores = torch.matmul(q, k.transpose(2, 3)) / math.sqrt(each)
            scores = scores + mask
            p = F.softmax(scores, dim=-1)
            return self.o_proj(torch.matmul(p, v).transpose(1, 2).reshape(b, t, d))

    class MLP(nn.Module):
        def __init__(self, i):
            super().__init__()
            self.up_proj = given(nn.Linear(d, c["inner"]), f"{i}.up", f"{i}.upb")
            self.down_proj = given(nn.Linear(c["inner"], d), f"{i}.down", f"{i}.downb")
            if c["act"] == "swiglu":
                self.gate_proj = given(nn.Linear(d, c["inner"], bias=False), f"{i}.gate")

        def forward(self, x):
            if c["act"] == "swiglu":
                return self.down_proj(F.silu(self.gate_proj(x)) * self.up_proj(x))
            return self.down_proj((F.gelu if c["act"] == "gelu" else F.relu)(self.up_proj(x)))

    class Block(nn.Module):
        def __init__(self, i):
            super().__init__()
            self.attn, self.mlp = Attention(i), MLP(i)
            self.input_norm, self.post_norm = norm_module(f"{i}.n1"), norm_module(f"{i}.n2")

        def forward(self, x, mask):
            x = x + self.attn(self.input_norm(x), mask)
            return x + self.mlp(self.post_norm(x))

    class HuggingFace(nn.Module):
        def __init__(self):
            super().__init__()
            self.embed = given(nn.Embedding(vocab, d), "emb")
            self.position = own(w["pos"])
            self.layers = nn.ModuleList([Block(i) for i in range(c["depth"])])
            self.norm = norm_module("nf")
            self.lm_head = given(nn.Linear(d, vocab, bias=False), "head")

        def forward(self, ids, labels):
            x = self.embed(ids) + self.position
            mask = torch.full((c["tokens"], c["tokens"]), float("-inf"), dtype=x.dtype).triu(1)
            for layer in self.layers:
                x = layer(x, mask)
            logits = self.lm_head(self.norm(x)).float()
            return F.cross_entropy(logits.view(-1, vocab), labels.view(-1))

    class Parts(nn.Module):
        """Weights of a layer as plain parameters."""
        def __init__(self, i):
            super().__init__()
            for n in ("o", "ob", "up", "upb", "gate", "down", "downb", "n1", "n1b", "n2", "n2b"):
                setattr(self, n, own(w[f"{i}.{n}"]))

        def norm(self, x, n):
            if c["norm"] == "layer":
                return F.layer_norm(x, (d,), getattr(self, n), getattr(self, n + "b"))
            return x * torch.rsqrt(torch.mean(x * x, dim=-1, keepdim=True) + 1e-5) * getattr(self, n)

        def last_norm(self, x, scale, shift):
            if c["norm"] == "layer":
                return F.layer_norm(x, (d,), scale, shift)
            return x * torch.rsqrt(torch.mean(x * x, dim=-1, keepdim=True) + 1e-5) * scale

    class MegatronLayer(Parts):
        def __init__(self, i):
            super().__init__(i)
            self.query_key_value = own(torch.stack([w[f"{i}.{n}"].view(heads, each, d) for n in "qkv"], 1).reshape(3 * d, d))
            self.qkv_bias = own(torch.stack([w[f"{i}.{n}b"].view(heads, each) for n in "qkv"], 1).reshape(3 * d))
            if c["act"] == "swiglu":
                self.h_to_4h = own(torch.cat([self.gate.data, self.up.data]))
                self.h_to_4h_bias = own(torch.cat([torch.zeros(c["inner"]), self.upb.data]))

        def mlp(self, x):
            if c["act"] == "swiglu":
                gate, up = torch.chunk(F.linear(x, self.h_to_4h, self.h_to_4h_bias), 2, dim=-1)
                return F.linear(F.silu(gate) * up, self.down, self.downb)
            return F.linear((F.gelu if c["act"] == "gelu" else torch.relu)(F.linear(x, self.up, self.upb)), self.down, self.downb)

        def forward(self, x, hidden):
            t, b, _ = x.shape
            mixed = F.linear(self.norm(x, "n1"), self.query_key_value, self.qkv_bias).view(t, b, heads, 3 * each)
            q, k, v = mixed.split(each, dim=-1)
            q = q.reshape(t, b * heads, each).transpose(0, 1)
            k = k.reshape(t, b * heads, each).permute(1, 2, 0)
            v = v.reshape(t, b * heads, each).transpose(0, 1)
            room = torch.empty(b * heads, t, t, dtype=x.dtype)
            scores = torch.baddbmm(room, q, k, beta=0.0, alpha=1 / math.sqrt(each)).view(b, heads, t, t)
            p = torch.softmax(scores.masked_fill(hidden, -10000.0), -1)
            context = torch.bmm(p.view(b * heads, t, t), v).transpose(0, 1).reshape(t, b, d)
            x = x + F.linear(context, self.o, self.ob)
            return x + self.mlp(self.norm(x, "n2"))

    class NanoLayer(Parts):
        def __init__(self, i):
            super().__init__(i)
            self.c_attn = own(torch.cat([w[f"{i}.{n}"] for n in "qkv"]))
            self.c_attn_bias = own(torch.cat([w[f"{i}.{n}b"] for n in "qkv"]))

        def mlp(self, x):
            if c["act"] == "swiglu":
                return F.linear(F.linear(x, self.up, self.upb) * F.silu(F.linear(x, self.gate)), self.down, self.downb)
            h = F.linear(x, self.up, self.upb)
            return F.linear(F.gelu(h) if c["act"] == "gelu" else h.clamp(min=0), self.down, self.downb)

        def forward(self, x, hidden):
            b, t, _ = x.size()
            q, k, v = F.linear(self.norm(x, "n1"), self.c_attn, self.c_attn_bias).split(d, dim=2)
            q, k, v = (s.view(b, t, heads, each).transpose(1, 2) for s in (q, k, v))
            scores = (q @ k.transpose(-2, -1)) * (1.0 / math.sqrt(each))
            p = F.softmax(scores.masked_fill(hidden, float("-inf")), dim=-1)
            y = (p @ v).transpose(1, 2).contiguous().view(b, t, d)
            x = x + F.linear(y, self.o, self.ob)
            return x + self.mlp(self.norm(x, "n2"))

    class Plain(nn.Module):
        def __init__(self, layer, tokens_first):
            super().__init__()
            self.tokens_first = tokens_first
            self.word, self.position = own(w["emb"]), own(w["pos"])
            self.layers = nn.ModuleList([layer(i) for i in range(c["depth"])])
            self.scale, self.shift, self.output = own(w["nf"]), own(w["nfb"]), own(w["head"])

        def forward(self, ids, labels):
            x = F.embedding(ids, self.word) + self.position
            if self.tokens_first:
                x = x.transpose(0, 1).contiguous()
            hidden = torch.ones(c["tokens"], c["tokens"], dtype=torch.bool).triu(1)
            for layer in self.layers:
                x = layer(x, hidden)
            logits = F.linear(self.layers[0].last_norm(x, self.scale, self.shift), self.output)
            if self.tokens_first:
                logits = logits.transpose(0, 1).contiguous()
            return F.cross_entropy(logits.float().view(-1, vocab), labels.view(-1))

    return {"hf": HuggingFace, "megatron": lambda: Plain(MegatronLayer, True), "nano": lambda: Plain(NanoLayer, False)}


NOTED = """
def noted(recorder, name, *rest):
    begin(name)
    return record(recorder, name, *rest)
"""


class Beneath:
    """What happens beneath the recorder: a fault of one op call, or none; and the op calls that a bug marks."""

    def __init__(self, fault, case):
        import accrecord
        from nets import TorchFunctionMode
        self.kind, self.key = fault.split(":") if fault else (None, None)
        self.case, self.seen, self.marked, self.effect = case, {}, [], 0.0
        self.now = None    # the op call that the recorder runs
        outer, space = self, {"record": accrecord.Recorder.op, "begin": self.begin}
        # A frame of the recorder's own, so that it is no line of the program.
        exec(compile(NOTED, accrecord.__file__, "exec"), space)
        accrecord.Recorder.op = space["noted"]

        class Mode(TorchFunctionMode):
            def __torch_function__(self, func, types, args=(), kwargs=None):
                y = func(*args, **(kwargs or {}))
                frame = sys._getframe(1)
                while frame and os.path.dirname(frame.f_code.co_filename) != os.path.dirname(accrecord.__file__):
                    frame = frame.f_back
                return outer.called(y) if frame and frame.f_code.co_name == "op" else y

        self.mode = Mode()

    def begin(self, name):
        n = self.seen[name] = self.seen.get(name, -1) + 1
        self.now = f"{name}.{n}.forward"
        if self.case and self.case.marked:
            self.marked.append(self.now)

    def called(self, y):
        if self.now != self.key or self.kind == "bug" or not hasattr(y, "is_floating_point") or not y.is_floating_point():
            return y
        wrong = self.wrong(y)
        change = (wrong - y).detach().float()
        change = change[change.isfinite()]
        whole = y.detach().float()
        self.effect = float(change.norm() / whole[whole.isfinite()].norm().clamp(min=1e-30))
        return wrong

    def wrong(self, y):
        import torch
        if self.kind == "scaled":
            return y * 1.05
        if self.kind == "coarse":
            return y + ((y * 8).round() / 8 - y).detach()    # with its gradient
        factor = torch.ones(y.shape, dtype=y.dtype)
        if self.kind == "part":
            factor.view(-1)[: max(1, y.numel() // 8)] = 1.2
        else:
            factor[..., -1] = 0
        return y * factor


def digest(model):
    """What a program ends in: numbers that differ where its gradients or buffers do."""
    import torch
    out = []
    for v in [p.grad for p in model.parameters() if p.grad is not None] + list(model.buffers()):
        v = v.detach().double().flatten()
        out.append(float(v.norm()))
        out.append(float(v @ torch.linspace(1, 2, v.numel(), dtype=torch.double)))
    return out


def run(seed, program, dtype, folder, fault, layout=""):
    """One step: what it ends in, the op calls that a bug marks, and how much a fault changes its output."""
    sys.path[:0] = [os.path.join(ROOT, "python"), os.path.join(ROOT, "tests", "record"), HERE]
    import torch
    import accrecord
    torch.set_num_threads(1)
    case = None
    if ":" in program:
        from families import built
        case, model = built(*program.split(":")[:1], seed, program.split(":")[1], fault[4:] if fault.startswith("bug:") else None)
        step = model.step
    else:
        c, w, ids, labels = network(seed)
        model = programs(c, w)[program]()

        def step():
            model(ids, labels).backward()
    if dtype == "bf16":
        model = model.bfloat16()
    beneath = Beneath(fault, case)
    if fault:
        beneath.mode.__enter__()
    accrecord.start_record(output_dir=folder, layout=layout or None)
    step()
    accrecord.record_switch(False)
    if fault:
        beneath.mode.__exit__(None, None, None)
    return {"end": digest(model), "marked": beneath.marked, "effect": beneath.effect}


COMPUTES = set("""linear matmul baddbmm bmm softmax layer_norm gelu silu relu mul add rsqrt mean pow embedding div clamp
    conv2d conv1d batch_norm group_norm interpolate addmm einsum sum exp sigmoid tanh sqrt var square sub truediv maximum
    max_pool2d avg_pool2d cross_entropy log_softmax cumsum logsumexp amax index_add index_select where erf""".split())


def forked(*args):
    """run in a process of its own, with torch loaded once."""
    import torch    # noqa: F401: before the fork
    back, there = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(back)
        with os.fdopen(there, "w") as f:
            json.dump(run(*args), f)
        sys.exit()    # as a program ends: the recorder closes what it wrote
    os.close(there)
    with os.fdopen(back) as f:
        text = f.read()
    if os.waitpid(child, 0)[1] != 0:
        raise RuntimeError(f"not recorded: {args}")
    return json.loads(text)


def differs(a, b):
    return max((abs(x - y) / max(abs(x), abs(y), 1e-6) for x, y in zip(a, b)), default=0)


def computing(folder):
    """The op calls of a dump in which something could go wrong."""
    q = subprocess.run(f"{BIN}/accdump-read {folder} | {BIN}/accfmt --tsv --no-header -c key,op,pass",
                       shell=True, check=True, stdout=subprocess.PIPE, text=True)
    keys = set()
    for key, op, way in (line.split("\t") for line in q.stdout.splitlines()):
        name = op.split(".")[-1]
        if way == "forward" and name.strip("_") in COMPUTES and (name.endswith("__") or not name.endswith("_")):
            keys.add(key)
    return sorted(keys)


def make(base, seed, program, bench, dtypes, plain, bugs, r):
    """The cases of one pair of programs and dtypes."""
    device_type, bench_type = dtypes.split("-")
    layout = "msprobe" if ":" in program and seed % 4 == 3 else ""
    fault, keys, end = "", [], []
    todo = [("clean", None)] + [(f"f{i + 1}", None) for i in range(plain)] + [(b, "bug:" + b) for b in bugs]
    for name, given in todo:
        case = f"{base}-{name}"
        for _ in range(8):
            if name != "clean":
                fault = given or r.choice(["scaled", "part", "row", "coarse"]) + ":" + r.choice(keys)
            shutil.rmtree(case, ignore_errors=True)
            os.makedirs(case)
            got = forked(seed, program, device_type, os.path.join(case, "device"), fault, layout)
            change = differs(got["end"], end) if given else got["effect"]
            matters = name == "clean" or change >= (0.002 if dtypes == "f32-f32" else 0.03 if given else 0.01)
            if matters or given:
                break
        if not matters:
            shutil.rmtree(case)    # nothing of this network shows it
            continue
        if name == "clean":
            end = got["end"]
            keys = computing(case + "/device")
            forked(seed, bench, bench_type, os.path.join(case, "bench"), "", layout)
        else:
            os.symlink(os.path.join("..", os.path.basename(base) + "-clean", "bench"), os.path.join(case, "bench"))
        with open(os.path.join(case, "truth.json"), "w", encoding="utf8") as f:
            json.dump({"ops": (got["marked"] if given else [fault.split(":")[-1]]) if fault else None,
                       "kind": fault.split(":")[0] + (" " + given[4:] if given else "") if fault else None,
                       "program": program.split(":")[0], "dtypes": dtypes}, f)


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("folder")
    p.add_argument("--seeds", type=int, default=4)
    p.add_argument("--first", type=int, default=0)
    p.add_argument("--faults", type=int, default=2)
    p.add_argument("--bugs", type=int, default=2, help="so many of a program, of the families")
    p.add_argument("--families", default="megatron,nano", help="names with commas between, or all (not these two)")
    p.add_argument("--quick", action="store_true", help="one pair of programs and dtypes of each seed")
    a = p.parse_args()
    sys.path.insert(0, HERE)
    from families import FAMILIES
    wanted = list(FAMILIES) if a.families == "all" else a.families.split(",")
    for seed in range(a.first, a.first + a.seeds):
        r = random.Random(seed)
        pairs = [(d, t) for d in wanted for t in DTYPES]
        for program, dtypes in [r.choice(pairs)] if a.quick else pairs:
            family = program in FAMILIES
            bugs = r.sample(FAMILIES[program][1], a.bugs) if family else []
            make(os.path.join(a.folder, f"{seed}-{program}-{dtypes}"), seed, program + ":device" if family else program,
                 program + ":bench" if family else "hf", dtypes, a.faults, bugs, r)


if len(sys.argv) > 1 and sys.argv[1] == "--run":
    run(int(sys.argv[2]), *sys.argv[3:7])
elif __name__ == "__main__":
    main()
