#!/usr/bin/env python3
"""What msprobe writes beside recordings, of a network of two layers: files.py FOLDER

Needs what make.py needs, and openpyxl. The device's second product is wrong in the first step. Recordings (statistics,
tensors, checksums, structure), msprobe's tables of them as CSV and xlsx, graph_visualize's .vis.db, data2db's
.trend.db, and what both of its monitors write, three steps of AdamW; calm is a device that only rounds otherwise.
Paths of the machine are taken out of stacks, before the tables are made, and out of .vis.db. tests/data/msprobe.tar.gz
has of these what tests/msprobe.bats uses: tar -C FOLDER --sort=name --owner=0 --group=0 --mtime=@0 -czf ... *
"""

import glob
import json
import os
import shutil
import sqlite3
import sys

import torch
import torch.nn as nn
import torch.nn.functional as F

torch.set_num_threads(1)


class Small(nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.n, self.b = nn.Linear(4, 6), nn.LayerNorm(6), nn.Linear(6, 3)

    def forward(self, x):
        return self.b(F.gelu(self.n(self.a(x))))


def train(side, start, step, steps=2):
    torch.manual_seed(3)
    m = Small()
    o = torch.optim.AdamW(m.parameters(), lr=0.01, foreach=False)
    linear, count = F.linear, [0]

    def bad(x, w, b=None):
        count[0] += 1
        out = linear(x, w, b)
        return out * 1.5 if count[0] == 2 else out

    def calm(x, w, b=None):
        return linear(x.double(), w.double(), None if b is None else b.double()).float()

    F.linear = {"device": bad, "calm": calm, "bench": linear}[side]
    start(m, o)
    for i in range(steps):
        g = torch.Generator().manual_seed(i)
        x, y = torch.randn(5, 4, generator=g), torch.randint(0, 3, (5,), generator=g)
        step(i, m, lambda: F.cross_entropy(m(x), y).backward(), o)


def record(folder, task, summary, side):
    os.makedirs(folder)
    config = os.path.join(folder, "config.json")
    with open(config, "w") as f:
        json.dump({"task": task, "dump_path": folder, "rank": [], "step": [], "level": "mix", "risk_level": "ALL",
                   "statistics": {"scope": [], "list": [], "data_mode": ["all"], "summary_mode": summary},
                   "tensor": {"scope": [], "list": [], "data_mode": ["all"]}}, f)
    held = []

    def start(m, o):
        from msprobe.pytorch import PrecisionDebugger
        held.append(PrecisionDebugger(config_path=config))

    def step(i, m, run, o):
        held[0].start(m)
        run()
        held[0].stop()
        held[0].step()
        o.step()
        o.zero_grad()

    train(side, start, step)
    os.remove(config)


def monitor2(folder, side):
    os.makedirs(folder)
    config = os.path.join(folder, "config.json")
    with open(config, "w") as f:
        json.dump({"framework": "pytorch", "output_dir": folder, "step_count_per_record": 2,
                   "patch_optimizer_step": False,
                   "monitors": {k: {"enabled": True, "ops": ["min", "max", "mean", "norm"]}
                                for k in ("module", "weight_grad", "optimizer", "param")}}, f)
    held = []

    def start(m, o):
        from msprobe.core.monitor_v2.trainer import TrainerMonitorV2
        held.append(TrainerMonitorV2(config, fr="pytorch"))
        held[0].start(model=m, optimizer=o)

    def step(i, m, run, o):
        run()
        o.step()
        o.zero_grad()
        held[0].step()

    train(side, start, step, 3)
    held[0].stop()
    os.remove(config)


def monitor1(folder, side):
    os.makedirs(folder)
    config = os.path.join(folder, "config.json")
    os.environ["MONITOR_OUTPUT_DIR"] = folder
    with open(config, "w") as f:
        json.dump({"targets": {"": {}}, "format": "csv", "ops": ["norm", "min", "max", "mean"], "wg_distribution": True,
                   "param_distribution": True, "mv_distribution": True, "xy_distribution": True, "all_xy": True,
                   "forward_only": False, "step_interval": 1}, f)
    held = []

    def start(m, o):
        from msprobe.pytorch import TrainerMon
        held.append(TrainerMon(config, params_have_main_grad=False))
        held[0].set_monitor(m, optimizer=o, grad_acc_steps=1)

    def step(i, m, run, o):
        run()
        o.step()
        o.zero_grad()

    train(side, start, step, 3)
    os.remove(config)


def child(what, *args):
    pid = os.fork()
    if pid == 0:
        status = 1
        try:
            what(*args)
            status = 0
        except BaseException:
            import traceback
            traceback.print_exc()
        finally:
            sys.stdout.flush()
            os._exit(status)
    if os.waitpid(pid, 0)[1] != 0:
        print("failed:", what.__name__, args)


def tool(*args):
    from msprobe.msprobe import main as msprobe
    sys.argv = ["msprobe", *args]
    msprobe()


def table(a, b, out, xlsx):
    from msprobe.pytorch.compare.pt_compare import pt_compare
    os.makedirs(out, exist_ok=True)
    pt_compare({"npu_path": a, "bench_path": b, "is_print_compare_log": False}, out, xlsx=xlsx)
    for path in glob.glob(os.path.join(out, "compare_result_*")):
        os.rename(path, os.path.join(out, "compare_result" + os.path.splitext(path)[1]))


def without_paths(top):
    """Stacks: two frames each, whose files are names alone."""
    for path in glob.glob(os.path.join(top, "*", "*", "step*", "*", "stack.json")):
        with open(path) as f:
            stacks = json.load(f)
        for v in stacks.values():
            v[1][:] = ["File " + os.path.basename(x.split(",")[0]) + x[x.index(","):] for x in v[1][:2]]
        with open(path, "w") as f:
            json.dump(stacks, f)
    for path in glob.glob(os.path.join(top, "*", "*", "step*", "*", "dump.json")):
        with open(path) as f:
            dump = json.load(f)
        dump["dump_data_dir"] = "" if dump["dump_data_dir"] else None
        with open(path, "w") as f:
            json.dump(dump, f)


def finish(out, name):
    (path,) = glob.glob(os.path.join(out, "*.vis.db"))
    db = sqlite3.connect(path)
    db.execute("UPDATE tb_nodes SET dump_data_dir = ''")
    db.commit()
    db.execute("VACUUM")
    db.close()
    os.rename(path, os.path.join(out, name + ".vis.db"))


def main(top):
    import msprobe.pytorch  # noqa: F401  (imported once, before the processes part)
    for side in ("device", "bench", "calm"):
        for name, task, summary in (("statistics", "statistics", "statistics"), ("md5", "statistics", "md5"),
                                    ("tensor", "tensor", "statistics"), ("structure", "structure", "statistics")):
            if side != "calm":
                child(record, os.path.join(top, name, side), task, summary, side)
        child(monitor2, os.path.join(top, "monitor2", side), side)
        child(monitor1, os.path.join(top, "monitor1", side), side)
    without_paths(top)
    for name in ("statistics", "md5", "tensor"):
        d = [glob.glob(os.path.join(top, name, s, "step0", "*", "dump.json"))[0] for s in ("device", "bench")]
        for xlsx in (False, True) if name == "statistics" else (False,):
            child(table, d[0], d[1], os.path.join(top, "table", name), xlsx)
    for name in ("statistics", "tensor"):
        d = [os.path.join(top, name, s, "step0") for s in ("device", "bench")]
        child(tool, "graph_visualize", "-tp", d[0], "-gp", d[1], "-o", os.path.join(top, "vis", name))
        finish(os.path.join(top, "vis", name), "compare")
    for name in ("statistics", "structure"):
        out = os.path.join(top, "vis", name + ".build")
        child(tool, "graph_visualize", "-tp", os.path.join(top, name, "device", "step0"), "-o", out)
        finish(out, "build")
    for side in ("device", "bench", "calm"):
        child(tool, "data2db", "--db", os.path.join(top, "trend", side), "--data", os.path.join(top, "monitor1", side))
    child(tool, "data2db", "--db", os.path.join(top, "trend", "dump"),
          "--data", os.path.join(top, "statistics", "device"))
    shutil.rmtree(os.path.join(top, "tensor"))
    shutil.rmtree(os.path.join(top, "md5"))


if __name__ == "__main__":
    main(os.path.abspath(sys.argv[1]))
