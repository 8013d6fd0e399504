#!/usr/bin/python3
"""Makes everything under curves/: logs and other files that hold curves, and, in expect/, what
Python reads in them (json, csv, re, struct), a line a point: tag, tag.raw, step, value, res,
class. Tags and classes are those of the tables below, made by hand from accstream(5)."""
import csv
import decimal
import io
import json
import math
import os
import re
import struct

HERE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "curves")
TAGS = {
    "train/grad_norm": "grad_norm", "Loss": "loss", "val/loss": "eval_loss", "train loss": "train_loss", "val loss": "eval_loss",
    "lm loss": "loss", "lm-loss": "loss", "lm_loss": "loss", "lr": "learning_rate",
    "learning rate": "learning_rate", "grad norm": "grad_norm", "global_norm": "grad_norm",
    "loss scale": "loss_scale", "number of skipped iterations": "skipped_iterations",
    "number of nan iterations": "nan_iterations", "overflow cond": "overflow",
    "train/loss": "loss", "train/learning_rate": "learning_rate", "eval/loss": "eval_loss",
    "LR": "learning_rate", "validation loss": "eval_loss",
    "validation lm loss": "eval_loss", "validation lm loss PPL": "eval_ppl",
    "lm loss vs samples": "loss_vs_samples", "eval/accuracy": "eval_accuracy",
}
TIME = re.compile(r"[tT]ime|timing|tflops|mfu|throughput|per_second|per second|PerSec|TFLOP|power")
COUNT = re.compile(r"consumed|batch|skipped|nan iter|zeros|^memory|epoch|overflow|total_flos|"
                   r"percentage|total_steps|MemAlloc|reserve_length|seqlen")


def tag(raw):
    return TAGS.get(raw, re.sub(r"[ -]+", "_", raw))


def kind(raw):
    if raw.startswith(("grad_reduced/", "module/")):
        return "monitor"
    if raw.startswith("local_norm"):
        return "metric"
    return "time" if TIME.search(raw) else "count" if COUNT.search(raw) else "metric"


def number(v):
    v = float(v)
    return repr(v)


def printed(text):
    """Half a unit of the last digit."""
    if not re.fullmatch(r"[-+0-9.eE]+", text) or re.fullmatch(r"[-+0-9]+", text):
        return 0.0
    if text.startswith("."):
        text = "0" + text
    return float(decimal.Decimal(5).scaleb(decimal.Decimal(text).as_tuple().exponent - 1))


def float32(v):
    return abs(float(v)) * 2.0**-24


def write(name, data):
    path = os.path.join(HERE, name)
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "wb") as f:
        f.write(data if isinstance(data, bytes) else data.encode())


def expect(name, points):
    """points: raw tag, step, value, res."""
    out = ""
    for raw, step, value, res in points:
        t = tag(raw)
        out += "\t".join([t, raw if raw != t else "", "" if step is None else str(step),
                          number(value), "" if not res else repr(float(res)), kind(raw)]) + "\n"
    write("expect/" + name + ".tsv", out)


# --- Megatron

MEGATRON = [
    "using world size: 8, data-parallel-size: 1\n",
    "  loss_scale_window ............................... 1000\n",
    "setting training iterations to 1000\n",
    # 1.0, 2.0; all iterations skipped: no loss
    " iteration        1/    1000 | elapsed time per iteration (ms): 5837.9 |"
    " learning rate: 0.000E+00 | lm loss: 1.249319E+01 | loss scale: 8388608.0 |\n",
    " iteration        2/    1000 | consumed samples:           40 |"
    " elapsed time per iteration (ms): 5837.9 | learning rate: 0.000E+00 |"
    " global batch size:     4 | loss scale: 8388608.0 |"
    " number of skipped iterations:  10 | number of nan iterations:   0 |\n",
    # MoE and random-ltd: no blank behind the bar; CRLF
    " iteration        3/    1000 | consumed samples:         2560 | consumed tokens: "
    "     5242880 | learning rate: 9.339E-08 | global batch size:   256 |reserve_length:   256 |"
    " lm loss: 1.078335E+01 | loss scale: 2048.0 | number of skipped iterations:   0 |"
    " number of nan iterations:   0 |\r\n",
    "time (ms) | forward-compute: 349.79 | backward-compute: 263.45 | optimizer: 309.28\n",
    "host:67012:69256 [3] NCCL INFO comm 0x7e6868002fb0 rank 0 nranks 1 - Init COMPLETE\n",
    "[Rank 3] (after 3 iterations) memory (MB) | allocated: 1674.31005859375 |"
    " max allocated: 5663.76025390625 | reserved: 6098.0 | max reserved: 6098.0\n",
    # colours, torchrun's and mpirun's prefixes, dates
    "\033[31m[default3]:[2023-01-01 00:00:01] iteration        4/    1000 | consumed samples:   "
    "      96 | throughput per GPU (TFLOP/s/GPU): 26.8 | learning rate: 1.406250E-04 |"
    " global batch size:    32 | lm loss: 1.107468E+01 | load_balancing_loss: 1.020000E+00 |"
    " loss scale: 1.0 | grad norm: 30.066 | num zeros: 1299.0 | params norm: 496.206 |\033[0m\n",
    "7: INFO [2026-06-22 19:25:37] >>  iteration 5/1000 | lm-loss: 1.05E+01 | loss scale: -1.0 |"
    " grad norm: nan | power per GPU (W/GPU): 500 |\n",
    # NaN: the loss is left out
    " iteration        6/    1000 | consumed samples:           40 | loss scale: 1.0 |"
    " grad norm: inf | number of skipped iterations:   0 | number of nan iterations:   1 |\n",
    "-" * 60 + "\n",
    " validation loss at iteration 6 | lm loss value: 9.082474E+00 | lm loss PPL: 8.799707E+03 | \n",
    "-" * 60 + "\n",
    "progress  50%|#####     |\r progress 100%|##########|\r iteration        7/    1000 |"
    " lm loss: INF | ETA: 3 days |\n",
    # restarted from a checkpoint
    " > loading checkpoint, iteration 5/1000\n",
    " iteration        6/    1000 | lm loss: 1.01E+01 | number of nan iterations:   0 |\n",
    " iteration 1/ 2 of evaluation\n",
    " iteration        8/    1000 | lm loss: 9.5E+00 | \n",  # the run was killed
]


def megatron():
    text = "".join(MEGATRON)
    points, step, key = [], 0, "lm loss"
    for line in re.split(r"[\r\n]", re.sub(r"\033\[[0-9;]*m", "", text)):
        m = re.search(r"iteration\s+(\d+)\s*/\s*\d+\s*\|(.*)", line)
        v = re.search(r"validation loss at iteration (\d+) \|(.*)", line)
        t = re.search(r"time \(ms\) \|(.*)", line)
        r = re.search(r"\[Rank (\d+)\] \(after (\d+) iterations\) memory \(MB\) \|(.*)", line)
        prefix, rest = "", ""
        if m:
            step, rest = int(m.group(1)), m.group(2)
        elif v:
            step, prefix, rest = int(v.group(1)), "validation ", v.group(2)
        elif t:
            prefix, rest = "time/", t.group(1)
        elif r:
            prefix, rest = "memory/rank%s/" % r.group(1), r.group(3)
        got = {}
        for part in rest.split("|"):
            p = re.fullmatch(r"\s*(.+?)\s*:\s*(\S.*?)\s*", part)
            try:
                float(p.group(2))
            except (AttributeError, ValueError):
                continue
            raw = prefix + re.sub(" value$", "", p.group(1))
            got[raw] = p.group(2)
            points.append((raw, step, p.group(2), printed(p.group(2))))
            key = raw if raw in ("lm loss", "lm-loss") else key
        if float(got.get("number of nan iterations", 0)) > 0 and key not in got:
            points.append((key, step, math.nan, 0))
    write("megatron.log", text)
    expect("megatron.log", points)


# --- MindFormers

MINDFORMERS = [
    ("[INFO] 2023-07-11 10:47:36,427 [/a/callback.py:269] print_output_info: Epoch:[  1/  2], "
     "step:[    4/  125], loss:[2.244/2.250], time:507844.205 ms, lr:[0.], overflow cond: True, "
     "loss_scale: 268435460.0",
     4, [("loss", "2.244", 0.0005), ("average loss", "2.250", 0.0005), ("time", "507844.205", 0.0005),
         ("lr", "0", 0), ("overflow cond", "1", 0), ("loss_scale", "268435460.0", 16.00000023841858)]),
    ("x epoch_end: Per sink_size step time: 533756.177 ms, per step time: 133439.044 ms, avg loss: 2.244",
     4, [("Per sink_size step time", "533756.177", 0.0005), ("per step time", "133439.044", 0.0005),
         ("avg loss", "2.244", 0.0005)]),
    ("2025-04-07 15:34:29,173 - [mindformers/core/callback/callback.py:529] - INFO - { "
     "Epoch:[  2/  2], step:[    2/   19], loss: 10.633, per_step_time: 1752ms, lr: 1e-05, "
     "overflow cond: False, loss_scale: 1.0, global_norm: [44.313248], "
     "train_throughput_per_npu: 170.738T",
     21, [("loss", "10.633", 0.0005), ("per_step_time", "1752", 0), ("lr", "1e-05", float32(1e-05)),
          ("overflow cond", "0", 0), ("loss_scale", "1.0", float32(1)),
          ("global_norm", "44.313248", float32(44.313248)),
          ("train_throughput_per_npu", "170.738", 0.0005)]),
    ("- INFO -    0.0% |███      | 0.00600 samples/s/p  25 days, 2:07:47 }", None, []),
    ("- INFO - opt_global_step: 0, skip_data_grad_norm_threshold: 3.0, is_skip: [ True]", None, []),
    ("- INFO - Current global norm [44.313248] of step 21 has been 1 consecutive times greater than "
     "threshold: 3.0", None, []),
    ("The global norm [7.5] of step 22 is still greater or equal than threshold", 22,
     [("global_norm", "7.5", float32(7.5))]),
    ("- INFO - embedding_local_norm: 251.79117", 21,
     [("local_norm/embedding", "251.79117", float32(251.79117))]),
    ("{ Epoch:[  2/  2], step:[    3/   19], loss: 10.633001, lm_loss: 10.5, "
     "load_balancing_loss: 0.133001, per_step_time: 1752ms, lr: 9.981987e-06", 22,
     [("total loss", "10.633001", 5e-7), ("lm_loss", "10.5", 0.05),
      ("load_balancing_loss", "0.133001", 5e-7), ("per_step_time", "1752", 0),
      ("lr", "9.981987e-06", float32(9.981987e-06))]),
    ("step 23/25, loss: 15.994116, per_step_time: 153259ms, overflow cond: False, loss_scale: 1.0, "
     "global_norm: [18.362312]", 23,
     [("loss", "15.994116", 5e-7), ("per_step_time", "153259", 0), ("overflow cond", "0", 0),
      ("loss_scale", "1.0", 0.05), ("global_norm", "18.362312", float32(18.362312))]),
    ("{ step:[   24/   10], loss:  11.813965, per_step_time:  13570ms, load_balancing_loss:   1.093977, "
     "lr: 1.000000e-05, grad_norm: NaN, throughput:   1.36T }", 24,
     [("loss", "11.813965", 5e-7), ("per_step_time", "13570", 0),
      ("load_balancing_loss", "1.093977", 5e-7), ("lr", "1.000000e-05", 5e-12),
      ("grad_norm", "nan", 0), ("throughput", "1.36", 0.005)]),
    ("{ step:[   25/   10], loss: N/A (non-last PP stage, see rank 7), grad_norm:   3.500000 }", 25,
     [("grad_norm", "3.500000", 5e-7)]),
    ("Epoch:[  1/  2], step:[   26/   30] local_norm/model.layers.0.weight: 0.1234", 26,
     [("local_norm/model.layers.0.weight", "0.1234", 5e-5)]),
    ("Epoch:[  1/  2], step:[   26/   30] micro_local_loss: 3.5000", 26,
     [("micro_local_loss/0", "3.5000", 5e-5)]),
    ("Epoch:[  1/  2], step:[   26/   30] micro_local_loss: 3.7000", 26,
     [("micro_local_loss/1", "3.7000", 5e-5)]),
]


def mindformers():
    write("worker_3.log", "".join(line + "\n" for line, _, _ in MINDFORMERS))
    expect("worker_3.log", [(t, step, v, res) for _, step, got in MINDFORMERS for t, v, res in got])


# --- lists of norms

NORMS = """before
print torch local norm:
[tensor(0.1234, device='cuda:0'), tensor(3.1000e+02, device='cuda:0', grad_fn=<PowBackward0>)]
[default0]: another process says: loss
 iteration       11/    1000 | lm loss: 1.0E+01 |
 norm_size: 3
local_norm:
Tensor(shape=[3], dtype=Float32, value=
[ 1.25000000e-01  3.00000000e+00
NCCL INFO Connected all rings
  nan])
 iteration       12/    1000 | lm loss: 9.0E+00 |
local_norm:  [0.5 2.]
local_norm: True
 iteration       13/    1000 | lm loss: 8.0E+00 |
"""


def norms():
    write("norms.log", NORMS)
    expect("norms.log", [
        ("local_norm/0", 11, "0.1234", 5e-5), ("local_norm/1", 11, "310", 0.005),
        ("lm loss", 11, "10", 0.5), ("local_norm/0", 12, "0.125", 5e-10),
        ("local_norm/1", 12, "3", 5e-9), ("local_norm/2", 12, "nan", 0), ("lm loss", 12, "9", 0.05),
        ("local_norm/0", 13, "0.5", 0.05), ("local_norm/1", 13, "2", 0.5), ("lm loss", 13, "8", 0.05)])


# --- DeepSpeed, dicts

DEEPSPEED = """[2022-10-29 00:42:31,001] [INFO] [logging.py:68:log_dist] [Rank 0] step=10, skipped=2, lr=[0.0001, 0.0002], mom=[(0.9, 0.95)]
[2022-10-29 00:42:31,004] [INFO] [timer.py:198:stop] 0/10, RunningAvgSamplesPerSec=357.25, CurrSamplesPerSec=358.5, MemAllocated=1.64GB, MaxMemAllocated=5.53GB
[2025-08-27 10:12:22,229] [INFO] [loss_scaler.py:184:update_scale] [deepspeed] OVERFLOW! Rank 0 Skipping step. Attempted loss scale: 4, reducing to 2
epoch=0/micro_step=20/global_step=20, RunningAvgSamplesPerSec=357.5, CurrSamplesPerSec=358.25
steps: 20 loss: 2.1234 iter time (s): 1.234 samples/sec: 12.345
[INFO] Grad overflow on iteration 5
"""


def deepspeed():
    points = [("skipped", 10, 2, 0), ("lr", 10, 0.0001, 0),
              ("RunningAvgSamplesPerSec", 10, 357.25, 0.005), ("CurrSamplesPerSec", 10, 358.5, 0.05),
              ("MemAllocated", 10, 1.64, 0.005), ("MaxMemAllocated", 10, 5.53, 0.005),
              ("overflow", 11, 1, 0), ("loss scale", 11, 2, 0),
              ("RunningAvgSamplesPerSec", 20, 357.5, 0.05),
              ("CurrSamplesPerSec", 20, 358.25, 0.005),
              ("loss", 20, 2.1234, 5e-5), ("iter time", 20, 1.234, 0.0005),
              ("samples per second", 20, 12.345, 0.0005), ("overflow", 5, 1, 0)]
    write("deepspeed.log", DEEPSPEED)
    expect("deepspeed.log", points)


def dicts():
    lines = [{"loss": 1.6693, "learning_rate": 1.977e-05, "epoch": 0.23},
             {"loss": 0.0, "grad_norm": math.nan, "learning_rate": 1.9e-05, "epoch": 0.46},
             {"eval_loss": 1.25, "eval_runtime": 3.5, "epoch": 0.46, "note": "it's {odd}, 'quoted'"},
             {"loss": "1.669", "learning_rate": "1.900e-05", "epoch": "0.69"},
             {"train_runtime": 10.5, "train_loss": 1.51234567, "epoch": 1.0}]
    # As tqdm.write prints them beside its bar: the bar is wiped, and drawn again behind. The bar of
    # an evaluation is another. Without a bar, lines are counted.
    def bar(n, of=40):
        return "\r%3d%%|##  | %d/%d [00:01<00:02,  1.0it/s]" % (100 * n // of, n, of)
    text, bare, points, steps = "\rLoading weights: 100%|####| 99/99 [00:01<00:00,  9.9it/s]\n", "", [], []
    n = 0
    for d, step in zip(lines, (10, 20, 20, 30, 40)):
        text += bar(step - ("train_loss" not in d)) + (bar(1, 4) if "eval_loss" in d else "") + "\r" + " " * 40 + "\r" + repr(d) + "\n"
        text += bar(step) if "train_loss" not in d else ""
        bare += "noise {'loss': 'mse'}\n" + repr(d) + "\n"
        n += "loss" in d
        steps += [(step, n)] * len([v for v in d.values() if v != d.get("note")])
        for k, v in d.items():
            try:
                float(v)
            except ValueError:
                continue
            rounded = "loss" in k and printed(repr(v)) >= 5e-5
            points.append((k, n, v, printed(v) if isinstance(v, str) else
                           printed(repr(v)) if rounded else 0))
    write("console.log", text + "\n")
    expect("console.log", [(p[0], step) + p[2:] for p, (step, _) in zip(points, steps)])
    write("console-bare.log", bare)
    expect("console-bare.log", points)
    rows = [{"current_steps": 10 * i, "total_steps": 500, "loss": 3.5 / i + 0.00001, "lr": 1e-05 / i,
             "epoch": 0.1 * i, "percentage": 2.0 * i, "elapsed_time": "0:00:12"} for i in (1, 2, 3)]
    write("trainer_log.jsonl", "".join(json.dumps(r) + "\n" for r in rows))
    expect("trainer_log.jsonl", [(k, r["current_steps"], v, 0) for r in rows for k, v in r.items()
                                 if k not in ("current_steps", "elapsed_time")])


# --- other trainers. Each line with the points that a reader of it sees, by hand: raw tag, number
# as printed. Sources: torchtitan's metrics.py; verl's aggregate_logger.py; slime's train_data_utils.py;
# mmengine's log_processor.py; tqdm's and Lightning's progress bars.

OTHERS = {
    "torchtitan.log": [
        ("[titan] 2025-01-01 00:00:00,000 - root - INFO - \033[31mstep:  1  \033[32mloss:  8.13090  "
         "\033[38;2;180;60;0mgrad_norm:  1.5555  \033[36mmemory:  1.20GiB(3.00%)  \033[34mtps: 1,234  "
         "\033[36mtflops: 0.50  \033[35mmfu: 0.05%\033[39m", 1,
         [("loss", "8.13090"), ("grad_norm", "1.5555"), ("tflops", "0.50"), ("mfu", "0.05")]),
        ("Training starts at step 1", None, []),
        ("step: 10  loss: nan  grad_norm:  2.0000", 10, [("loss", "nan"), ("grad_norm", "2.0000")])],
    "verl.log": [
        ("\033[36m(TaskRunner pid=12)\033[0m step:1 - actor/pg_loss:-0.345 - actor/grad_norm:0.0056 - "
         "actor/lr:1e-06 - timing_s/step:12.5", 1,
         [("actor/pg_loss", "-0.345"), ("actor/grad_norm", "0.0056"), ("actor/lr", "1e-06"),
          ("timing_s/step", "12.5")]),
        ("step:2 - actor/pg_loss:0.25", 2, [("actor/pg_loss", "0.25")])],
    "slime.log": [
        ("(Actor pid=3) [2025-01-01 10:00:00] model.py:400 - step 0: {'train/loss': 1.25, "
         "'train/grad_norm': 0.5, 'train/abs_diff': 0.001}", 0,
         [("train/loss", 1.25), ("train/grad_norm", 0.5), ("train/abs_diff", 0.001)]),
        ("rollout 1: {'rollout/raw_reward': 0.5}", 1, [("rollout/raw_reward", 0.5)]),
        ("perf 1: {'perf/train_time': 2.5}", 1, [("perf/train_time", 2.5)]),
        ("nothing 1: {'rollout/raw_reward': 0.5}", None, [])],
    "mmengine.log": [
        ("2023/01/01 10:00:00 - mmengine - INFO - Epoch(train)  [1][  50/1000]  lr: 1.0000e-02  "
         "eta: 0:10:00  time: 0.3000  memory: 1234  grad_norm: 3.5000  loss: 2.1000", 50,
         [("lr", "1.0000e-02"), ("time", "0.3000"), ("memory", "1234"), ("grad_norm", "3.5000"),
          ("loss", "2.1000")]),
        ("2023/01/01 10:00:00 - mmengine - INFO - Epoch(train)  [2][  50/1000]  loss: 1.9000", 1050,
         [("loss", "1.9000")]),
        ("2023/01/01 10:00:00 - mmengine - INFO - Epoch(val) [2][10/10]    loss: 2.5000", 1050,
         [("val/loss", "2.5000")]),
        ("2023/01/01 10:00:00 - mmengine - INFO - Iter(train) [  60/90000]  loss: 1.8000", 60,
         [("loss", "1.8000")])],
    "tqdm.log": [
        (" 33%|###3      | 1/3 [00:10<00:12,  4.44it/s, loss=1.23, lr=1e-05]\r", 1,
         [("loss", "1.23"), ("lr", "1e-05")]),
        ("100%|##########| 3/3 [00:10<00:00,  4.44s/it, loss=1.03, lr=1e-05]\n", 3,
         [("loss", "1.03"), ("lr", "1e-05")])],
    "lightning.log": [
        ("Epoch 0: 100%|##########| 3/3 [00:10<00:12,  4.44it/s, v_num=0, loss=1.23]\r", 3, [("loss", "1.23")]),
        ("Epoch 1:  33%|###3      | 1/3 [00:10<00:12,  4.44it/s, v_num=0, loss=1.13]\n", 4,
         [("loss", "1.13")])],
    "columns.txt": [
        ("# step loss norm", None, []),
        ("0 9.02 3.5", 0, [("loss", "9.02"), ("norm", "3.5")]),
        ("1 8.5 2.25", 1, [("loss", "8.5"), ("norm", "2.25")]),
        ("2 8.25 2.5", 2, [("loss", "8.25"), ("norm", "2.5")])],
    # Steps that each epoch counts anew: PaddleClas, a trainer with batches, MindSpore's LossMonitor by
    # steps and by epochs, OpenMMLab 1, timm, Swin, icefall. Counted through.
    "anew-iter.log": [
        ("[2031/08/13 19:01:56] root INFO: [Train][Epoch 1/4][Iter: 0/30]lr: 0.10000, loss: 6.88321, eta: 1:15:27",
         0, [("lr", "0.10000"), ("loss", "6.88321")]),
        ("[2031/08/13 19:01:56] root INFO: [Train][Epoch 1/4][Iter: 20/30]lr: 0.10000, loss: 6.5, eta: 1:15:27",
         20, [("lr", "0.10000"), ("loss", "6.5")]),
        ("[2031/08/13 19:01:56] root INFO: [Train][Epoch 2/4][Iter: 0/30]lr: 0.10000, loss: 6.25, eta: 1:15:27",
         30, [("lr", "0.10000"), ("loss", "6.25")]),
        ("[2031/08/13 19:01:56] root INFO: [Eval][Epoch 2/4][Iter: 5/10]loss: 7.5", 30, [("val/loss", "7.5")])],
    "anew-batch.log": [
        ("Epoch:   2 | Batch:    80/ 240 | LR: 1.00e-04 |Loss: 6.8832 | Time: 3.2s", 320,
         [("LR", "1.00e-04"), ("Loss", "6.8832")]),
        ("Epoch:   2 | Batch:   240/ 240 | LR: 1.00e-04 |Loss: 6.7 | Time: 3.2s", 480,
         [("LR", "1.00e-04"), ("Loss", "6.7")]),
        ("Epoch:   3 | Batch:    80/ 240 | LR: 1.00e-04 |Loss: 6.5 | Time: 3.2s", 560,
         [("LR", "1.00e-04"), ("Loss", "6.5")])],
    "anew-monitor.log": [
        ("epoch: 1 step: 1, loss is 6.8832116", 1, [("loss", "6.8832116")]),
        ("epoch: 1 step: 2, loss is 6.5", 2, [("loss", "6.5")]),
        ("epoch: 2 step: 1, loss is 6.25", 3, [("loss", "6.25")]),
        ("epoch: 2 step: 2, loss is [6.0]", 4, [("loss", "6.0")]),
        ("epoch: 3 step: 1, loss is 5.5", 5, [("loss", "5.5")])],
    "anew-epochs.log": [
        ("epoch: 1 step: 1600, loss is 6.883212", 1600, [("loss", "6.883212")]),
        ("epoch time: 9001.303 ms, per step time: 10.069 ms", None, []),
        ("epoch: 2 step: 1600, loss is 6.78", 3200, [("loss", "6.78")]),
        ("epoch: 3 step: 1600, loss is 6.5", 4800, [("loss", "6.5")])],
    "anew.jsonl": [
        ('{"env_info": "sys.platform: linux", "seed": 0}', None, []),
        ('{"mode": "train", "epoch": 1, "iter": 50, "lr": 0.02, "loss": 4.2548}', 50,
         [("epoch", 1), ("lr", 0.02), ("loss", 4.2548, 5e-5)]),
        ('{"mode": "train", "epoch": 1, "iter": 100, "lr": 0.02, "loss": 4.0879}', 100,
         [("epoch", 1), ("lr", 0.02), ("loss", 4.0879, 5e-5)]),
        ('{"mode": "train", "epoch": 2, "iter": 50, "lr": 0.02, "loss": 3.8934}', 150,
         [("epoch", 2), ("lr", 0.02), ("loss", 3.8934, 5e-5)]),
        ('{"mode": "val", "epoch": 2, "iter": 7, "lr": 0.02, "loss": 5.8934}', 150,
         [("val/epoch", 2), ("val/lr", 0.02), ("val/loss", 5.8934, 5e-5)])],
    "epochs.jsonl": [
        ('{"train_lr": 0.001, "train_loss": 6.00001, "epoch": 0}', 0,
         [("train_lr", 0.001), ("train_loss", 6.00001), ("epoch", 0)]),
        ('{"train_lr": 0.001, "train_loss": 5.00001, "epoch": 1}', 1,
         [("train_lr", 0.001), ("train_loss", 5.00001), ("epoch", 1)])],
    "timm.log": [
        ("Train: 0 [   0/1251 (  0%)]  Loss: 6.950 (6.95)  LR: 1.000e-06", 0, [("Loss", "6.950"), ("LR", "1.000e-06")]),
        ("Train: 0 [  50/1251 (  4%)]  Loss: 6.930 (6.95)  LR: 1.000e-06", 50, [("Loss", "6.930"), ("LR", "1.000e-06")]),
        ("Train: 1 [   0/1251 (  0%)]  Loss: 6.910 (6.95)  LR: 1.000e-06", 1251,
         [("Loss", "6.910"), ("LR", "1.000e-06")])],
    "swin.log": [
        ("[2031-05-01 10:00:00 swin](main.py 203): INFO Train: [0/300][0/1251]\teta 1:00:00 lr 0.000001\t"
         "loss 6.9000 (6.9512)\tmem 9000MB", 0, [("lr", "0.000001"), ("loss", "6.9000")]),
        ("[2031-05-01 10:00:00 swin](main.py 203): INFO Train: [1/300][10/1251]\teta 1:00:00 lr 0.000001\t"
         "loss 6.8000 (6.9512)\tmem 9000MB", 1261, [("lr", "0.000001"), ("loss", "6.8000")])],
    "icefall.log": [
        ("2031-04-28 21:16:30,929 INFO [train.py:755] Epoch 0, batch 0, loss[loss=0.4550, simple_loss=0.91], "
         "tot_loss[loss=0.4600, simple_loss=0.91]", 0,
         [("loss", "0.4550"), ("simple_loss", "0.91"), ("loss_2", "0.4600"), ("simple_loss_2", "0.91")]),
        ("2031-04-28 21:16:31,929 INFO [train.py:755] Epoch 0, batch 50, loss[loss=-0.4450, simple_loss=0.91], "
         "tot_loss[loss=0.4500, simple_loss=0.91]", 50,
         [("loss", "-0.4450"), ("simple_loss", "0.91"), ("loss_2", "0.4500"), ("simple_loss_2", "0.91")])],
    # A step of the optimizer beats one of the epoch; lines of other kinds are curves of their own.
    "fairseq.log": [
        ("2031-06-13 17:31:08 | INFO | train_inner | epoch 001:   100 / 1000 loss=7.745, num_updates=110, clip=0",
         110, [("loss", "7.745"), ("clip", "0")]),
        ("2031-06-13 17:32:08 | INFO | train_inner | epoch 001:   200 / 1000 loss=6.745, num_updates=210, clip=0",
         210, [("loss", "6.745"), ("clip", "0")]),
        ("2031-06-13 17:40:44 | INFO | valid | epoch 001 | valid on 'valid' subset | loss 20.001 | num_updates 210",
         210, [("val/loss", "20.001")]),
        ("2031-06-13 17:40:45 | INFO | train | epoch 001 | loss 5.101 | num_updates 210", 210,
         [("mean/loss", "5.101")])],
    "validate.log": [
        ("[titan] 2031-01-01 00:00:00,000 - root - INFO - step:  3  loss:  2.5  grad_norm:  1.5", 3,
         [("loss", "2.5"), ("grad_norm", "1.5")]),
        ("[titan] 2031-01-01 00:00:00,000 - root - INFO - validate step:  3  loss:  9.5000", 3,
         [("val/loss", "9.5000")])],
    # Where a line of its own says where training is.
    "header.log": [
        ("2031-05-01 10:00:00.0: ", None, []),
        ("epoch:  0", None, []),
        ("2031-05-01 10:00:30.0: train loss : -0.2123", 0, [("train loss", "-0.2123")]),
        ("2031-05-01 10:00:40.0: validation loss: -0.3123", 0, [("validation loss", "-0.3123")]),
        ("epoch:  1", None, []),
        ("2031-05-01 10:00:30.0: train loss : -0.25", 1, [("train loss", "-0.25")])],
    # One line of a known form makes no trainer's log of the others.
    "stray.log": [
        ("[2031-01-01 10:00:00,000] [INFO] [logging.py:96:log_dist] [Rank 0] step=10, skipped=0, lr=[1e-05], "
         "mom=[(0.9, 0.95)]", 10, [("skipped", "0"), ("lr", 1e-05)]),
        ("epoch 0 iter 1 train loss 2.9700 lr 1e-5", 1, [("train loss", "2.9700"), ("lr", "1e-5")]),
        ("epoch 0 iter 2 train loss 2.9500 lr 1e-5", 2, [("train loss", "2.9500"), ("lr", "1e-5")])],
    "wide.log": [
        ("step：10，loss：2.4451，lr：0.001", 10, [("loss", "2.4451"), ("lr", "0.001")]),
        ("step：20，loss：2.3451，lr：0.001", 20, [("loss", "2.3451"), ("lr", "0.001")])],
    "scalars.log": [
        ("step:1 - actor/pg_loss:np.float64(0.5) - actor/grad_norm:np.float64(3.25)", 1,
         [("actor/pg_loss", "0.5"), ("actor/grad_norm", "3.25")]),
        ("step:2 - actor/pg_loss:tensor(-0.25, device='npu:0') - actor/grad_norm:np.float64(3.5)", 2,
         [("actor/pg_loss", "-0.25"), ("actor/grad_norm", "3.5")])],
    "guess.log": [
        ("started at 2024-01-01 10:00:00", None, []),
        ("2024-01-01 10:00:01,123 INFO Step 1/20: train loss 9.02, val loss 9.5, time 0.3s", 1,
         [("train loss", "9.02"), ("val loss", "9.5")]),
        ("INFO loss=8.5 | acc@1: 75.5% | global_step=2", 2, [("loss", "8.5"), ("acc@1", "75.5")]),
        ("Epoch: [1][ 10/100]  Time  0.10 ( 0.12)  Loss 6.9100e+00 (6.93e+00)", 10,
         [("Time", "0.10"), ("Loss", "6.9100e+00")])],
}


def others():
    for name, lines in OTHERS.items():
        write(name, "".join(t if t[-1] in "\r\n" else t + "\n" for t, _, _ in lines))
        expect(name, [(k, step, v, res[0] if res else printed(v) if isinstance(v, str) else 0)
                      for _, step, got in lines for k, v, *res in got or []])


# --- JSON

def states():
    old = {"best_metric": None, "best_model_checkpoint": None, "epoch": 1.0, "global_step": 30,
           "log_history": [
               {"epoch": 0.02, "learning_rate": 0.0002, "loss": 5.4962, "step": 10},
               {"epoch": 0.04, "grad_norm": math.nan, "learning_rate": 0.0001, "loss": 0.0, "step": 20},
               {"epoch": 0.04, "eval_loss": math.nan, "eval_runtime": 1672.9077,
                "eval_samples_per_second": 2.989, "step": 20},
               {"epoch": 0.06, "loss": math.inf, "learning_rate": "0.000e+00", "note": "x",
                "sub": {"loss": 3}, "none": None, "step": 30},
               {"epoch": 0.04, "loss": 5.5, "step": 20},
               {"epoch": 0.06, "step": 30, "total_flos": 1.4692228116873216e+17, "train_loss": 4.25,
                "train_runtime": 38738.2786}],
           "max_steps": 30, "trial_params": None}
    new = {"log_history": [{"epoch": 0.2, "grad_norm": 12.390271186828613, "learning_rate": 4.002e-05,
                            "loss": 0.4518409729003906, "step": 500}], "logging_steps": 0.5,
           "stateful_callbacks": {"TrainerControl": {"args": {"should_log": False}}}}
    for name, d in (("trainer_state.json", old), ("new/trainer_state.json", new)):
        write(name, json.dumps(d, indent=2) + "\n")
        points = []
        for h in d["log_history"]:
            for k, v in h.items():
                if k == "step" or not isinstance(v, (int, float, str)) or v == "x":
                    continue
                short = k in ("loss", "train_loss") and math.isfinite(v) and \
                    len(repr(v).split(".")[1]) <= 4
                points.append((k, h["step"], v, 5e-5 if short else 0))
        expect(name.replace("/", "_"), points)


def golden():
    g = {"lm loss": {"start_step": 1, "end_step": 11, "step_interval": 5,
                     "values": {"1": 10.84081, "5": "nan", "11": 10.8354}},
         "num-zeros": {"start_step": 1, "end_step": 11, "step_interval": 5,
                       "values": {"1": 1539.0, "5": 1932.0, "11": 1388.0}},
         "old": {"start_step": 0, "end_step": 20, "step_interval": 10, "values": [1.5, 2.25, 3.123456]}}
    write("golden.json", json.dumps(g))
    points = [(k, int(s), v, 0 if v == "nan" else 5e-6) for k in ("lm loss", "num-zeros")
              for s, v in g[k]["values"].items()]
    points += [("old", 10 * i, v, 5e-6 if i < 2 else 0) for i, v in enumerate(g["old"]["values"])]
    expect("golden.json", points)
    b = {"lm loss margin": 0.02, "lm loss": [12.04083, 9.815609, 0.6931472], "grad norm": [33.354, 46.51],
         "time info": [154390.5], "memo info": [{"rank": 0, "allocated memory": 1.5}]}
    write("baseline.json", json.dumps(b, indent=4))
    expect("baseline.json", [(k, i + 1, v, r) for k, rs in
                             (("lm loss", (5e-6, 5e-7, 5e-8)), ("grad norm", (5e-4, 5e-4)),
                              ("time info", (0,))) for i, (v, r) in enumerate(zip(b[k], rs))])


# --- event files

def crc32c(data):
    c = 0xFFFFFFFF
    for b in data:
        c ^= b
        for _ in range(8):
            c = c >> 1 ^ (0x82F63B78 if c & 1 else 0)
    return c ^ 0xFFFFFFFF


def masked(data):
    c = crc32c(data)
    return struct.pack("<I", ((c >> 15 | c << 17) + 0xA282EAD8) & 0xFFFFFFFF)


def framed(data):
    n = struct.pack("<Q", len(data))
    return n + masked(n) + data + masked(data)


def varint(v):
    out = b""
    v &= 2**64 - 1
    while v > 127:
        out += bytes([v & 127 | 128])
        v >>= 7
    return out + bytes([v])


def field(n, v):
    if isinstance(v, int):
        return varint(n << 3) + varint(v)
    if isinstance(v, float):
        return varint(n << 3 | 5) + struct.pack("<f", v)
    v = v.encode() if isinstance(v, str) else v
    return varint(n << 3 | 2) + varint(len(v)) + v


def event(step, *values):
    time = varint(1 << 3 | 1) + struct.pack("<d", 1.6e9 + step)
    summary = field(5, b"".join(field(1, v) for v in values)) if values else b""
    return framed(time + (field(2, step) if step else b"") + summary)


def simple(tag_, v):
    return field(1, tag_) + field(2, float(v))


def tensor(tag_, dtype, body, plugin=None):
    meta = field(9, field(1, field(1, plugin))) if plugin else b""
    return field(1, tag_) + field(8, field(1, dtype) + field(2, b"") + body) + meta


def f32(v):
    return struct.unpack("<f", struct.pack("<f", v))[0]


def events():
    version = framed(b"\x09" + struct.pack("<d", 1.6e9) + field(3, "brain.Event:2"))
    one = version + event(0, simple("train/loss", 2.5), simple("train/learning_rate", 1e-3)) + \
        framed(field(4, b"graph" * 10)) + event(1, simple("train/loss", math.nan)) + \
        event(1, simple("train/loss", 2.25)) + event(2, simple("train/loss", 2.125))
    two = version + event(2, simple("train/loss", 2.0625)) + event(3, simple("eval/loss", 1.5)) + \
        event(-1, simple("lm loss vs samples", 1.0)) + event(300, simple("eval/accuracy", 0.1))
    sub = version + event(
        5, tensor("a", 1, field(4, struct.pack("<f", 0.1)), "scalars"),
        tensor("a", 2, b"\x32\x08" + struct.pack("<d", 0.1)), tensor("a", 3, field(7, b"\x07")),
        tensor("a", 9, field(4, struct.pack("<q", -5))), tensor("a", 19, field(4, b"\x00\x3c")),
        tensor("a", 14, field(4, b"\x80\xbf")), tensor("h", 1, field(5, 0.5), "hparams"),
        tensor("v", 1, field(4, struct.pack("<ff", 1, 2))), tensor("t", 7, field(8, "text"), "text"),
        field(1, "pic") + field(4, b"\x08\x01"), simple("b", -math.inf) + field(9, b""))
    ms, ms2 = (framed(field(3, v)) + framed(field(2, 7) + field(5, field(1, field(1, "loss") + field(3, 3.5))))
               for v in ("Mindspore.Event:1", "MindSpore.Event:1"))  # the latter is written by 2.10
    name = "events.out.tfevents.%d.host.1.%d"
    write("run/" + name % (1600000000, 0), one)
    write("run/" + name % (1600000100, 1), two)
    write("run/sub/" + name % (1600000001, 0), sub)
    write("run/readme.txt", "not an event file\n")
    write("ms.events.summary.1600000000.host_MS", ms)
    write("ms.events.summary.1600000001.host_MS", ms2)
    p = lambda t, s, v, exact=False: (t, s, v if exact else f32(v), 0 if exact else float32(f32(v)))
    first = [p("train/loss", 0, 2.5), p("train/learning_rate", 0, 1e-3),
             ("train/loss", 1, math.nan, 0), p("train/loss", 1, 2.25), p("train/loss", 2, 2.125)]
    expect("run", first + [
        p("train/loss", 2, 2.0625), p("eval/loss", 3, 1.5), p("lm loss vs samples", -1, 1.0),
        p("eval/accuracy", 300, 0.1), p("a", 5, 0.1), p("a", 5, 0.1, True), p("a", 5, 7, True),
        p("a", 5, -5, True), p("a", 5, 1.0), p("a", 5, -1.0), ("b", 5, -math.inf, 0)])
    for i in range(2):
        expect("ms.events.summary.160000000%d.host_MS" % i, [p("loss", 7, 3.5)])


# --- CSV

def table(name, rows, points, text=None):
    out = io.StringIO()
    csv.writer(out, lineterminator="\r\n").writerows(rows)
    write(name, out.getvalue() if text is None else text)
    expect(name, points)


def tables():
    rows = [["Wall time", "Step", "Value"], ["1600000000.5", "1", "2.5"], ["1600000001.5", "3", "NaN"]]
    table("run-a-b-tag-loss.csv", rows, [("loss", int(r[1]), r[2], 0) for r in rows[1:]])
    rows = [["Step", "gpu - lr - train/loss", "gpu - lr - train/loss__MIN", "gpu - lr - train/loss__MAX",
             "npu - train/loss", "npu - _step"],
            ["1", "2.5", "2.5", "2.5", "", "1"], ["2", "", "", "", "2.25", "2"],
            ["3.0", "1e-3", "", "", "-2.", "3"]]
    table("wandb.csv", rows, [("train/loss", 1, 2.5, 0), ("train/loss", 2, 2.25, 0),
                              ("train/loss", 3, 1e-3, 0), ("train/loss", 3, -2, 0)],
          "".join(",".join('"%s"' % c if c else "" for c in r) + "\n" for r in rows))
    rows = [["loss", "note, with\n\"all\"", "_step", "_runtime", "lr"], ["2.5", "x\ny", "10", "1.5", "inf"],
            ["2.25", "", "20", "2.5", ".5"]]
    table("history.csv", rows, [], None)
    out = io.StringIO()
    csv.writer(out, lineterminator="\n").writerows(rows)
    table("history.csv", rows, [(k, int(r[2]), r[i], 0) for r in rows[1:]
                                for i, k in ((0, "loss"), (3, "_runtime"), (4, "lr"))],
          b"\xef\xbb\xbf" + out.getvalue().encode())
    rows = [["index", "loss"], ["0", "2.5"], ["1", "2.25"]]
    table("index.csv", rows, [("loss", int(a), b, 0) for a, b in rows[1:]])
    rows = [["run_uuid", "key", "value", "step", "timestamp"], ["r1", "loss", "2.5", "0", "99"],
            ["r2", "lr", "0.1", "1", "99"]]
    table("mlflow.csv", rows, [(r[1], int(r[3]), r[2], 0) for r in rows[1:]])
    rows = [["vpp_stage", "name", "step", "micro_step", "min", "max", "norm", "nans", "shape", "dtype"],
            ["0", "layers.0.weight", "2", "0", "-1.5", "1.5", "3.25", "0", "[2, 3]", "torch.float32"],
            ["1", "layers.0.weight", "2", "1", "-1.25", "nan", "3.5", "1", "[2, 3]", "torch.float32"]]
    points = []
    for r in rows[1:]:
        for k, v in zip(rows[0][4:8], r[4:8]):
            t = "grad_reduced/" + r[1] + "/" + k + ("/vpp1" if r[0] == "1" else "") + "/micro" + r[3]
            points.append((t, int(r[2]), v, 0))
    table("Nov21_10-00-00-rank5-abc/grad_reduced_0-99.csv", rows, points)
    os.replace(os.path.join(HERE, "expect/Nov21_10-00-00-rank5-abc/grad_reduced_0-99.csv.tsv"),
               os.path.join(HERE, "expect/grad_reduced_0-99.csv.tsv"))
    os.rmdir(os.path.join(HERE, "expect/Nov21_10-00-00-rank5-abc"))
    # The monitor's second version.
    head = ["vpp_stage", "step", "module_name", "scope", "micro_step", "min", "max", "norm"]
    rows = [head, ["0", "0", "layers.0.attn", "input", "0", "1", "2", "3"],
            ["0", "0", "layers.0.attn", "output", "0", "4", "5", "6"],
            ["0", "0", "layers.0.mlp", "input", "0", "-1", "nan", "9"],
            ["1", "1", "layers.0.mlp", "input", "0", "7", "8", "9"]]
    points = []
    for r in rows[1:]:
        for k, v in zip(head[5:], r[5:]):
            t = "module/" + r[2] + "/" + r[3] + "/" + k + ("/vpp1" if r[0] == "1" else "") + "/micro" + r[4]
            points.append((t, int(r[1]), v, 0))
    name = "monitor_v2/rank_1/module_0-9.csv"
    table(name, rows, points)
    os.replace(os.path.join(HERE, "expect", name + ".tsv"), os.path.join(HERE, "expect/module_0-9.csv.tsv"))
    os.removedirs(os.path.join(HERE, "expect/monitor_v2/rank_1"))


if __name__ == "__main__":
    megatron()
    mindformers()
    norms()
    deepspeed()
    dicts()
    others()
    states()
    golden()
    events()
    tables()
