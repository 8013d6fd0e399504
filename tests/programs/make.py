#!/usr/bin/env python3
"""Records pairs of small programs that are equal up to rewriting, and pairs that are not.

Usage: make.py FOLDER [--half teach|held] [--seed N] [--groups G,...] [--more|--third|--fourth|--fifth|--sixth|--real|--real-more]
               [--only NAME,...] [--msprobe N] [--sixteen N] [--jobs N]

Groups: exchange (an operator or a loss in another's place) and rewriting (a formula of the same value), see ops.py;
clean and fault (networks as two frameworks' users write them, right, and with one statement of the port wrong), see
ports.py; of --more, those of more_ops.py and more_ports.py; of --third to --sixth the networks of third_ports.py to
sixth_ports.py; of --real and --real-more the same networks in packages that know nothing of each other
(real_ports.py, more_real_ports.py); hf (models of transformers with eager and with fused attention, and experts in
three ways: all right).
Each pair is made both ways: each side is the device once. One of --sixteen pairs (4) is of 16 bits, too, on both
sides; one of --msprobe (5) is recorded by msprobe's own recorder, too, if it is there; else by accrecord.
A name belongs to one half, by its hash. Teach is to look at; of held, look at the table alone.

A case is FOLDER/GROUP/CASE/{device,bench} and truth.json: `clean`, and `device` and `bench`, the op calls of each
side that ran where the two differ. A pair whose truth is not so by its numbers is
none, and the maker's status is 1.
Needs torch; PYTHONPATH is set by itself. Each recording is a process of its own, forked."""
import argparse
import functools
import importlib
import importlib.util
import json
import os
import random
import shutil
import subprocess
import sys
import zlib

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.join(HERE, "..", "..")
BIN = os.environ.get("BIN", os.path.join(ROOT, "bin"))
sys.path[:0] = [HERE, os.path.join(ROOT, "python")]

import torch  # noqa: E402
import torch.nn.functional as F  # noqa: E402

import ops  # noqa: E402
import more_ops  # noqa: E402
import more_ports  # noqa: E402
import more_real_ports  # noqa: E402
import fifth_ports  # noqa: E402
import fourth_ports  # noqa: E402
import ports  # noqa: E402
import real_ports  # noqa: E402
import sixth_ports  # noqa: E402
import third_ports  # noqa: E402

DOMAIN = {"any": lambda h: h, "positive": lambda h: F.softplus(h) + 0.2, "unit": torch.sigmoid}
MARK = ", in site, "
PACKAGES = {**real_ports.FAMILIES, **more_real_ports.FAMILIES}
FAMILIES = {**ports.FAMILIES, **more_ports.FAMILIES, **third_ports.FAMILIES, **fourth_ports.FAMILIES, **fifth_ports.FAMILIES, **sixth_ports.FAMILIES}


def site(f, *args, **keywords):
    """What runs below this frame is where the two programs differ."""
    return f(*args, **keywords)


def half_of(name):
    return "held" if zlib.crc32(name.encode()) % 2 else "teach"


# --- what is recorded: functions of nothing that give (logits, loss)

def host(seed, dtype, domain, between, loss):
    """Two products, and a third that makes o; then `between`, a product, and the loss."""
    g = torch.Generator().manual_seed(seed)

    def r(*shape):
        return torch.randn(*shape, generator=g).to(dtype)
    x = r(4, ops.T, ops.X) * 1.5
    w = [(r(ops.X, ops.X) / 2).requires_grad_() for _ in range(3)]
    b = [(0.3 * r(ops.X)).requires_grad_() for _ in range(3)]
    p = ops.parts(dtype)
    deep = seed % 2 == 1
    n = 1 + 0.1 * r(ops.X)

    def run():
        h = F.linear(x, w[0], b[0])
        h = F.layer_norm(h, (ops.X,), n) if deep else h
        o = DOMAIN[domain](F.linear(x, w[1], b[1]))
        h = DOMAIN[domain](h)
        s = between(h, o, p)
        y = F.linear(s + h if deep else s, w[2], b[2])
        return y, loss(y, p)
    return run


def usual_loss(y, p):
    return F.cross_entropy(y.flatten(0, 1).float(), p["labels"].flatten())


def formula(module, table, name, side, seed, dtype):
    """Looked up as it runs: a recorder may have put its own functions in place of torch's by then."""
    return host(seed, dtype, getattr(module, table)[name][2], lambda h, o, p: site(getattr(module, table)[name][side], h, o, p), usual_loss)


def ending(module, table, name, side, seed, dtype):
    return host(seed, dtype, "any", lambda h, o, p: torch.tanh(h + o), lambda y, p: site(getattr(module, table)[name][side], y.float(), p))


def program(family, port, fault, wrong, dtype):
    weights, bench, device, _ = FAMILIES[family]
    side = device if port else bench
    if isinstance(side, type):      # a module, which is there before recording begins
        before = torch.get_default_dtype()
        torch.set_default_dtype(dtype)
        with torch.no_grad():
            side = side({k: v.to(dtype) for k, v in weights().items()})
        torch.set_default_dtype(before)

    def run():
        w = None if isinstance(side, torch.nn.Module) else {k: v.to(dtype).requires_grad_() for k, v in weights().items()}

        def at(name, right, bad=None):
            if name != fault:
                return right()
            return site(bad if wrong and bad is not None else right)
        return side(at) if isinstance(side, torch.nn.Module) else side(w, at)
    return run


def real(name, port, fault, wrong, dtype):
    """A network of real_ports.py: one side's package or the other's."""
    bench, device, faults, _ = PACKAGES[name]
    model, run = bench()
    at = faults[fault][0] if fault else None
    if port:
        model, run = device(model)
        at = faults[fault][1] if fault else None
        if wrong:
            faults[fault][2](model)
    model.to(dtype)
    if fault:
        m = model.get_submodule(at)
        m.forward = functools.partial(site, m.forward)
    return run


def hf_models():
    """name -> (config class, keywords, ways of each side)"""
    import transformers as t
    small = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4, "vocab_size": 61, "max_position_embeddings": 32, "pad_token_id": 0}
    gated = dict(small, intermediate_size=48, num_key_value_heads=2)
    each = {"head_dim": 8}
    attention = [("eager", "sdpa")]
    experts = [("eager", "grouped_mm"), ("eager", "batched_mm"), ("grouped_mm", "batched_mm")]
    return {
        "llama": (t.LlamaConfig, gated, attention), "qwen2": (t.Qwen2Config, gated, attention), "qwen3": (t.Qwen3Config, dict(gated, **each), attention),
        "gemma": (t.GemmaConfig, dict(gated, **each), attention), "mistral": (t.MistralConfig, gated, attention), "phi3": (t.Phi3Config, gated, attention),
        "neox": (t.GPTNeoXConfig, dict(small, intermediate_size=48), attention), "gpt2": (t.GPT2Config, {"n_embd": 32, "n_layer": 2, "n_head": 4, "vocab_size": 61, "n_positions": 32}, attention),
        "mixtral": (t.MixtralConfig, dict(gated, num_local_experts=4), experts), "qwen3moe": (t.Qwen3MoeConfig, dict(gated, num_experts=4, num_experts_per_tok=2, moe_intermediate_size=24, **each), experts)}


def hf(name, way, dtype):
    import transformers as t
    kind, keywords, ways = hf_models()[name]
    config = kind(**keywords)
    experts = len(ways) > 1
    config._attn_implementation = "sdpa" if experts else way
    torch.manual_seed(5)
    m = t.AutoModelForCausalLM.from_config(config, **({"experts_implementation": way} if experts else {"attn_implementation": way})).to(dtype)
    m.train(False)
    g = torch.Generator().manual_seed(6)
    ids = torch.randint(1, 61, (2, 9), generator=g)

    def run():
        out = m(input_ids=ids, labels=ids)
        return out.logits, out.loss
    return run


# --- cases: (group, name, device, bench, clean), the programs as functions that make a run

def cases(groups, which, dtype, seed):
    both = []
    module, families = {"first": (ops, ports.FAMILIES), "more": (more_ops, more_ports.FAMILIES), "third": (None, third_ports.FAMILIES), "fourth": (None, fourth_ports.FAMILIES),
                        "fifth": (None, fifth_ports.FAMILIES), "sixth": (None, sixth_ports.FAMILIES), "real": (None, {}), "real-more": (None, {})}[which]
    for group, table, clean in (("exchange", "EXCHANGES", False), ("rewriting", "REWRITINGS", True)):
        for name in getattr(module, table, ()):
            both.append((group, name, *(lambda s, t=table, n=name, i=i: formula(module, t, n, i, s, dtype) for i in (0, 1)), clean))
    for group, table, clean in (("exchange", "WRONG_LOSSES", False), ("rewriting", "LOSSES", True)):
        for name in getattr(module, table, ()):
            both.append((group, "loss-" + name, *(lambda s, t=table, n=name, i=i: ending(module, t, n, i, s, dtype) for i in (0, 1)), clean))
    for name, (_, _, _, faults) in families.items():
        both.append(("clean", name, lambda s, n=name: program(n, True, None, False, dtype), lambda s, n=name: program(n, False, None, False, dtype), True))
        for fault in faults:
            both.append(("fault", f"{name}-{fault}", lambda s, n=name, f=fault: program(n, True, f, True, dtype),
                         lambda s, n=name, f=fault: program(n, False, f, False, dtype), False))
    for name, (_, _, faults, package) in {"real": real_ports.FAMILIES, "real-more": more_real_ports.FAMILIES}.get(which, {}).items():
        if importlib.util.find_spec(package) is None:
            print(f"no {package}: not {name}")
            continue
        both.append(("clean", name, lambda s, n=name: real(n, True, None, False, dtype), lambda s, n=name: real(n, False, None, False, dtype), True))
        for fault in faults:
            both.append(("fault", f"{name}-{fault}", lambda s, n=name, f=fault: real(n, True, f, True, dtype),
                         lambda s, n=name, f=fault: real(n, False, f, False, dtype), False))
    if "hf" in groups:
        for name, (_, _, ways) in hf_models().items():
            for a, b in ways:
                both.append(("hf", f"{name}-{a}-{b}", lambda s, n=name, a=a: hf(n, a, dtype), lambda s, n=name, b=b: hf(n, b, dtype), True))
    for group, name, one, other, clean in both:
        if group in groups:
            yield group, name, one, other, clean, seed + zlib.crc32(name.encode()) % 2


# --- recording

def in_child(what, *args):
    """Runs what(*args) in a process of its own; its words are shown if it fails."""
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(read)
        os.dup2(write, 1)
        os.dup2(write, 2)
        try:
            what(*args)
            sys.stdout.flush()
            os._exit(0)
        except BaseException:
            import traceback
            traceback.print_exc()
            sys.stderr.flush()
            os._exit(1)
    os.close(write)
    with os.fdopen(read, errors="replace") as f:
        said = f.read()
    if os.waitpid(child, 0)[1] != 0:
        raise SystemExit(f"{args}: {said[-3000:]}")


def record(maker, seed, folder, recorder):
    run = maker(seed)
    if recorder == "msprobe":
        from msprobe.pytorch import PrecisionDebugger
        debugger = PrecisionDebugger(task="tensor", level="L1", dump_path=folder)
        debugger.start()
        importlib.reload(ops)
        importlib.reload(more_ops)
        y, loss = run()
        loss.backward()
        debugger.stop()
        debugger.step()
    else:
        import accrecord
        with accrecord.record(output_dir=folder, record_level=2):
            y, loss = run()
            loss.backward()
    torch.save((y.detach(), loss.detach()), folder + ".pt")


def marked(folder):
    """The op calls below site()."""
    read = subprocess.run(f"'{BIN}/accdump-read' '{folder}' | '{BIN}/accfmt' -f json", shell=True, stdout=subprocess.PIPE, text=True, check=True)
    stacks, names = set(), []
    for line in read.stdout.splitlines():
        r = json.loads(line)
        if r["kind"] == "stack" and any(MARK in f or f.rstrip().endswith(MARK.strip(", ")) for f in r["frames"]):
            stacks.add(r["id"])
        elif r.get("stack") in stacks and r.get("key") not in names:
            names.append(r["key"])
    return names


def check(path, clean, sixteen):
    """Is the truth so, by what the programs gave?"""
    (y, l), (z, m) = (torch.load(f"{path}/{s}.pt", weights_only=True) for s in ("device", "bench"))
    off = max(((y.double() - z.double()).norm() / z.double().norm()).item(), (abs(l - m) / abs(m)).item())
    if clean and not off < (0.2 if sixteen else 1e-4):
        raise SystemExit(f"{path}: said to be equal, and off by {off}")
    if not clean and not sixteen and not off > 1e-5:
        raise SystemExit(f"{path}: said to be wrong, and off by {off}")
    for s in ("device", "bench"):
        os.remove(f"{path}/{s}.pt")


def make(folder, case, kind, recorder):
    group, name, one, other, clean, seed = case
    path = {way: f"{folder}/{group}/{name}-{kind}-{recorder}-{way}" for way in "ab"}
    for p in path.values():
        shutil.rmtree(p, ignore_errors=True)
        os.makedirs(p)
    for side, maker in (("device", one), ("bench", other)):
        in_child(record, maker, seed, f"{path['a']}/{side}", recorder)
    check(path["a"], clean, kind != "f32")
    place = {side: [] if clean else marked(f"{path['a']}/{side}") for side in ("device", "bench")}
    if not clean and not (place["device"] and place["bench"]):
        if recorder != "msprobe":
            raise SystemExit(f"{path['a']}: nothing is recorded where it differs")
        for p in path.values():     # it does not record all functions
            shutil.rmtree(p)
        return
    shutil.copytree(path["a"] + "/device", path["b"] + "/bench", copy_function=os.link)
    shutil.copytree(path["a"] + "/bench", path["b"] + "/device", copy_function=os.link)
    for way, device, bench in (("a", "device", "bench"), ("b", "bench", "device")):
        truth = {"group": group, "name": name, "clean": clean, "kind": kind, "recorder": recorder, "half": half_of(name),
                 "device": place[device], "bench": place[bench]}
        with open(f"{path[way]}/truth.json", "w", encoding="utf8") as f:
            json.dump(truth, f)


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("folder")
    p.add_argument("--half", choices=["teach", "held"])
    p.add_argument("--seed", type=int, default=0)
    p.add_argument("--groups", default="exchange,rewriting,clean,fault,hf")
    p.add_argument("--more", dest="which", action="store_const", const="more", default="first")
    p.add_argument("--third", dest="which", action="store_const", const="third")
    p.add_argument("--fourth", dest="which", action="store_const", const="fourth")
    p.add_argument("--fifth", dest="which", action="store_const", const="fifth")
    p.add_argument("--sixth", dest="which", action="store_const", const="sixth")
    p.add_argument("--real", dest="which", action="store_const", const="real")
    p.add_argument("--real-more", dest="which", action="store_const", const="real-more")
    p.add_argument("--only")
    p.add_argument("--sixteen", type=int, default=4)
    p.add_argument("--msprobe", type=int, default=5)
    p.add_argument("--jobs", type=int, default=2)
    a = p.parse_args()
    torch.set_num_threads(1)
    groups = a.groups.split(",")
    if "hf" in groups:
        try:
            import transformers  # noqa: F401
        except ImportError:
            groups.remove("hf")
            print("no transformers: no models of it")
    if a.msprobe > 0:
        try:
            import msprobe.pytorch  # noqa: F401
        except ImportError:
            a.msprobe = 0
            print("no msprobe: all is recorded by accrecord")
    todo = []
    for kind in ("f32", "bf16", "f16"):
        dtype = {"f32": torch.float32, "bf16": torch.bfloat16, "f16": torch.float16}[kind]
        for case in cases(groups, a.which, dtype, a.seed):
            group, name = case[:2]
            if (a.half and half_of(name) != a.half) or (a.only and name not in a.only.split(",")):
                continue
            draw = random.Random(f"{a.seed} {name}")
            sixteen, probe, which = draw.randrange(max(1, a.sixteen)), draw.randrange(max(1, a.msprobe)), draw.choice(["bf16", "f16"])
            # The formula of a 16-bit fault drowns in rounding where it is small; an experts' kernel is of bf16 alone.
            if kind == "f32" or (a.sixteen > 0 and sixteen == 0 and kind == which and not (group == "hf" and kind == "f16")):
                todo.append((case, kind, "accrecord"))
            if kind == "f32" and a.msprobe > 0 and probe == 0:
                todo.append((case, kind, "msprobe"))
    jobs = []
    for i in range(a.jobs):     # processes, as each forks
        child = os.fork()
        if child == 0:
            failed = False
            for t in todo[i::a.jobs]:
                try:
                    make(a.folder, *t)
                except SystemExit as x:
                    failed = True
                    print(x, file=sys.stderr)
            os._exit(failed)
        jobs.append(child)
    bad = [os.waitpid(j, 0)[1] for j in jobs]
    print(f"{2 * len(todo)} cases in {a.folder}")
    sys.exit(any(bad))


if __name__ == "__main__":
    main()
