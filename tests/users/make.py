#!/usr/bin/env python3
"""Makes the inputs of tests/users/table in the folder named, with nothing but Python itself: logs in
the words of many trainers, configurations, weights, recordings by hand, job folders."""
import json
import math
import os
import random
import struct
import sys
import zipfile

OUT = sys.argv[1]
ROOT = sys.argv[2]


def write(path, data):
    path = os.path.join(OUT, path)
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "wb") as f:
        f.write(data if isinstance(data, bytes) else data.encode())


def f32(v):
    return struct.pack("<%df" % len(v), *v)


def npy(path, v):
    h = "{'descr': '<f4', 'fortran_order': False, 'shape': (%d, 8), }" % (len(v) // 8)
    h += " " * (63 - (10 + len(h)) % 64) + "\n"
    write(path, b"\x93NUMPY\1\0" + struct.pack("<H", len(h)) + h.encode() + f32(v))


def safetensors(path, tensors):
    head, data = {}, b""
    for name, v in tensors.items():
        head[name] = {"dtype": "F32", "shape": [len(v) // 8, 8],
                      "data_offsets": [len(data), len(data) + 4 * len(v)]}
        data += f32(v)
    h = json.dumps(head).encode()
    write(path, struct.pack("<Q", len(h)) + h + data)


# --- logs: each writer takes a list of losses

def loss(fault=0.0, n=12):
    return [9.0 * math.exp(-i / 8) + (fault if i >= 6 else 0) for i in range(n)]


LOGS = {
    "step": lambda i, v: "Step %d: loss %.4f, time 0.3s\n" % (i, v),
    "columns": lambda i, v: "%d %.4f\n" % (i, v),
    "tqdm": lambda i, v: " 50%%|#####     | %d/12 [00:01<00:02,  4.44it/s, loss=%.4f]\r" % (i + 1, v),
    "lightning": lambda i, v: "Epoch 0:  50%%|#####     | %d/12 [00:01<00:02,  4.44it/s, v_num=0, "
                              "train_loss=%.4f]\r" % (i + 1, v),
    "mmengine": lambda i, v: "2026/01/01 10:00:00 - mmengine - INFO - Epoch(train)  [1][%2d/12]  "
                             "lr: 1.0000e-02  eta: 0:10:00  loss: %.4f\n" % (i + 1, v),
    "torchtitan": lambda i, v: "[titan] INFO - \033[31mstep: %2d  \033[32mloss: %8.5f  tps: 1,234\033[0m\n"
                               % (i, v),
    "verl": lambda i, v: "step:%d - actor/pg_loss:%.6f - timing_s/step:%d.5\n" % (i, v, i),
    "slime": lambda i, v: "model.py:40 - step %d: {'train/loss': %.6f, 'train/step': %d}\n" % (i, v, i),
    "guess": lambda i, v: "2026-01-01 10:00:00 INFO loss=%.4f | global_step=%d\n" % (v, i),
    "imagenet": lambda i, v: "Epoch: [0][%2d/12]  Time  0.10 ( 0.12)  Loss %.4e (6.9)\n" % (i, v),
    "trainer": lambda i, v: "{'loss': %.4f, 'learning_rate': 1e-05, 'epoch': %.2f}\n" % (v, i / 12),
    "megatron": lambda i, v: " iteration %8d/      12 | lm loss: %.6E | loss scale: 1.0 |\n" % (i + 1, v),
    "mindformers": lambda i, v: "{ Epoch:[  1/  2], step:[ %d/   12], loss: %.4f, lr: 1e-05 }\n" % (i + 1, v),
    "jsonl": lambda i, v: '{"step": %d, "loss": %.6f, "lr": 1e-05}\n' % (i, v),
    "csv": lambda i, v: ("step,loss\n" if i == 0 else "") + "%d,%.4f\n" % (i, v),
    "keras": lambda i, v: "12/12 - 3s - loss: %.4f\n" % v,
}


def logs():
    for name, line in LOGS.items():
        for side, fault in (("a", 0), ("b", 0), ("bad", 1.0)):
            text = "".join(line(i, v) for i, v in enumerate(loss(fault)))
            write("log/%s.%s" % (name, side), text[:-1] + "\n" if text[-1] == "\r" else text)
    write("log/prose.a", "This is a page about training.\nIt has no numbers.\n")


# --- configurations

def configs():
    base = "optim:\n  lr: %s\n  betas: [0.9, %s]\nseed: %d\nmodel:\n  hidden_size: 64\n"
    write("conf/a.yaml", base % ("1.0e-4", "0.95", 1))
    write("conf/b.yaml", base % ("1.0e-4", "0.95", 1))
    write("conf/bad.yaml", base % ("3.0e-4", "0.999", 2))
    for side, lr in (("a", 1e-4), ("b", 1e-4), ("bad", 3e-4)):
        write("conf/%s.json" % side, json.dumps({"optim": {"lr": lr}, "hidden_size": 64}))
    for side, seed in (("a", 1), ("bad", 2)):
        write("own/%s.yaml" % side, "lr: 1.0e-4\nmodel:\n  layers: 12\nseed: %d\n" % seed)
    write("own/a.json", json.dumps({"lr": 1e-4, "model": {"layers": 12}, "seed": 1}))


# --- weights and recordings

def gauss(seed, n=64):
    r = random.Random(seed)
    return [r.gauss(0, 1) for _ in range(n)]


def weights():
    names = ["layers.%d.%s.weight" % (i, k) for i in range(3) for k in ("wq", "wo", "w1")]
    w = {n: gauss(n) for n in names}
    safetensors("w/a.safetensors", w)
    safetensors("w/b.safetensors", dict(reversed(list(w.items()))))
    safetensors("w/noise.safetensors", {n: [x * (1 + 1e-7) for x in v] for n, v in w.items()})
    bad = dict(w)
    bad["layers.1.wo.weight"] = [x * 1.03 for x in w["layers.1.wo.weight"]]
    safetensors("w/bad.safetensors", bad)
    swapped = dict(w)
    swapped["layers.0.wq.weight"], swapped["layers.0.wo.weight"] = \
        w["layers.0.wo.weight"], w["layers.0.wq.weight"]
    safetensors("w/swapped.safetensors", swapped)
    less = dict(w)
    del less["layers.2.w1.weight"]
    safetensors("w/less.safetensors", less)
    hf = {n.replace("layers", "model.blocks").replace("wq", "self_attn.q_proj"): v for n, v in w.items()}
    safetensors("w/hf.safetensors", hf)


MODULES = ["emb", "blocks.0.fc1", "blocks.0.act", "blocks.0.fc2", "blocks.1.fc1", "blocks.1.act",
           "blocks.1.fc2", "head"]


def net(fault=None, noise=0.0):
    """What each module was given and made; the faulty one has 3 % too much in 8 of 64 places."""
    x, out, r = gauss("x"), {}, random.Random(7)
    for m in MODULES:
        w = gauss(m)
        if m.endswith("act"):
            y = [v / 2 * (1 + math.erf(v / math.sqrt(2))) for v in x]
        else:
            y = [sum(x[8 * i + k] * w[8 * j + k] for k in range(8)) / 3 for i in range(8) for j in range(8)]
        if m == fault:
            y = [v * 1.03 if i % 8 == 5 else v for i, v in enumerate(y)]
        y = [v * (1 + noise * r.uniform(-1, 1)) for v in y]
        y = list(struct.unpack("<64f", f32(y)))
        out[m] = (x, y)
        x = y
    return out


def recordings():
    for side, v in (("a", gauss("w")), ("half", gauss("w")[:32]), ("nan", gauss("w"))):
        npy("one/%s/000-embed.npy" % side, v)
        npy("one/%s/001-attn.npy" % side, v[:8] + [math.nan] + v[9:] if side == "nan" else v)
    sides = {"a": net(noise=1e-7), "b": net(), "act": net("blocks.1.act", 1e-7), "emb": net("emb", 1e-7)}
    for side, n in sides.items():
        for i, (m, (x, y)) in enumerate(n.items()):
            npy("npy/%s/%03d-%s-in.npy" % (side, i, m), x)
            npy("npy/%s/%03d-%s-out.npy" % (side, i, m), y)
            npy("flat/%s/fwd_%s_out.npy" % (side, m), y)
            npy("sub/%s/fwd/%03d-%s-out.npy" % (side, i, m), y)
            npy("sub/%s/bwd/%03d-%s-out.npy" % (side, i, m), x)
            if m != "blocks.0.fc1":
                npy("less/%s/%03d-%s-out.npy" % (side, i, m), y)
            npy("ms/%s/%03d.Module.%s.%s.forward.0.input.0.npy" % (side, i, m, "GELU" if "act" in m else "Linear"), x)
            npy("ms/%s/%03d.Module.%s.%s.forward.0.output.0.npy" % (side, i, m, "GELU" if "act" in m else "Linear"), y)
            npy("steps/%s/iter_1/%03d-%s-out.npy" % (side, i, m), y)
            npy("names/%s \u8fd0\u884c/%03d-\u5c42 %s-out.npy" % (side, i, m), y)
            for step in range(1 if side == "a" else 3):
                npy("fewer/%s/step_%d/%03d-%s.npy" % (side, step, i, m), y)
        stat(side, n)


def stat(side, n):
    """Statistics in msprobe's form; three steps on two ranks, the fault in step 1 of rank 1."""
    clean = net()
    for step in range(3):
        for rank in range(2):
            data = {}
            for m, (x, y) in (n if (step, rank) == (1, 1) else clean).items():
                def leaf(v):
                    return {"type": "torch.Tensor", "dtype": "torch.float32", "shape": [8, 8],
                            "Max": max(v), "Min": min(v), "Mean": sum(v) / 64,
                            "Norm": math.sqrt(sum(a * a for a in v)), "requires_grad": False}
                kind = "GELU" if "act" in m else "Linear"
                data["Module.%s.%s.forward.0" % (m, kind)] = {
                    "input_args": [leaf(x)], "input_kwargs": {}, "output": [leaf(y)]}
            write("stat/%s/step%d/rank%d/dump.json" % (side, step, rank), json.dumps(
                {"task": "statistics", "level": "L0", "framework": "pytorch", "dump_data_dir": None,
                 "data": data}))


# --- job folders

def jobs():
    def copy(src, dst):
        for base, _, files in os.walk(os.path.join(OUT, src)):
            for f in files:
                full = os.path.join(base, f)
                rest = os.path.relpath(full, os.path.join(OUT, src))
                write(os.path.normpath(os.path.join(dst, rest)), open(full, "rb").read())
    with open(os.path.join(ROOT, "examples/config/npu.yaml")) as f:
        conf = f.read()
    for job, log, ckpt, dump, lr in (("a", "a", "a", "a", None), ("b", "b", "b", "b", None),
                                     ("fault", "bad", "a", "act", None), ("conf", "bad", "a", "act", "0.5"),
                                     ("weights", "bad", "bad", "act", None)):
        text = conf if lr is None else "\n".join(
            line.split(":")[0] + ": " + lr if "learning_rate:" in line else line for line in conf.split("\n"))
        write("job/%s/train.yaml" % job, text)
        write("job/%s/train.log" % job, open(os.path.join(OUT, "log/megatron." + log)).read())
        write("job/%s/ckpt/model.safetensors" % job,
              open(os.path.join(OUT, "w/%s.safetensors" % ckpt), "rb").read())
        copy("stat/" + dump, "job/%s/dump" % job)
        write("job/%s/README.md" % job, "What this was.\n")


logs()
configs()
weights()
recordings()
jobs()
os.makedirs(os.path.join(OUT, "empty"))
npy("one.npy", [float(i) for i in range(8)])
os.makedirs(os.path.join(OUT, "npz/a"))
with zipfile.ZipFile(os.path.join(OUT, "npz/a/step_0.npz"), "w") as z:
    z.write(os.path.join(OUT, "one.npy"), "x.npy")
write("pickle/a.pkl", b"\x80\4}\x94.")
write("rules/typo.rules", "rule x\nwhen m.foo > 1\n")
