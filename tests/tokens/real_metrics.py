#!/usr/bin/env python3
"""acctoken's metrics beside what verl's and TRL's own functions make of the same samples: real_metrics.py [SEED ...]

    pip install torch; pip install --no-deps verl==0.9.1 trl==1.16.0 accelerate ray tensordict ...
    NEMO_RL=FOLDER, a checkout of NeMo-RL: its loss's metrics, too

Samples of unlike lengths, with masks that leave out stretches, in numbers of float64; tops are whole vocabularies. What TRL
computes within a method of its trainer is taken out of that method's source and run on tensors. Theirs add 1e-8 to what they
divide by, so 1e-6 of a number may differ. Programs from PATH.
"""
import ast
import inspect
import json
import os
import subprocess
import sys
import tempfile
import textwrap
import types

import torch

torch.set_default_dtype(torch.float64)
VOCAB = 11


def batch(seed):
    g = torch.Generator().manual_seed(seed)
    n, width = 24, 40
    length = torch.randint(3, width + 1, (n,), generator=g)
    mask = (torch.arange(width) < length[:, None]).long()
    for i in range(0, n, 3):  # what a tool answered
        a = int(torch.randint(0, int(length[i]), (1,), generator=g))
        mask[i, a:a + 4] = 0
    mask[:, 0] = 1
    a = torch.randn(n, width, VOCAB, generator=g) * 2
    b = a + torch.randn(n, width, VOCAB, generator=g) * 0.1
    ids = torch.multinomial(a.softmax(-1).view(-1, VOCAB), 1, generator=g).view(n, width)
    of = lambda z: z.log_softmax(-1).gather(-1, ids[..., None])[..., 0]
    return dict(length=length, mask=mask, ids=ids, a=a, b=b, rollout=of(a), trainer=of(b))


def ours(d):
    with tempfile.TemporaryDirectory() as tmp:
        for name, z, lp in ("a", d["a"], d["rollout"]), ("b", d["b"], d["trainer"]):
            with open(f"{tmp}/{name}.jsonl", "w") as f:
                for i, n in enumerate(d["length"].tolist()):
                    tops = z[i, :n].log_softmax(-1).tolist()
                    f.write(json.dumps(dict(id=f"s{i}", prompt_ids=[1, 2 + i], response_mask=d["mask"][i, :n].tolist(), meta_info=dict(
                        output_token_logprobs=[[l, t, None] for l, t in zip(lp[i, :n].tolist(), d["ids"][i, :n].tolist())],
                        output_top_logprobs=[sorted(([p, k, None] for k, p in enumerate(row)), reverse=True) for row in tops]))) + "\n")
        out = subprocess.run(f"accalign {tmp}/a.jsonl {tmp}/b.jsonl | acctoken | accfmt --json", shell=True, capture_output=True, text=True).stdout
    return next(o for o in map(json.loads, out.splitlines()) if o["kind"] == "rollout")


def of_verl(d):
    from tensordict import TensorDict
    from verl import DataProto
    from verl.trainer.ppo.core_algos import compute_policy_loss, kl_penalty_forward
    from verl.trainer.ppo.rollout_corr_helper import compute_is_metrics, compute_offpolicy_metrics
    from verl.utils.debug.metrics import calculate_debug_metrics
    from verl.utils.torch_functional import entropy_from_logits, masked_mean
    a, b, mask = d["rollout"], d["trainer"], d["mask"]
    got = compute_offpolicy_metrics(b, a, mask)
    out = {"tok.k1": got["kl"], "tok.k3": got["k3_kl"], "tok.chi2": got["chi2_token"], "tok.chi2_seq": got["chi2_seq"]}
    out.update({"tok." + k: got[k] for k in ("log_ppl_diff", "log_ppl_abs_diff", "log_ppl_diff_max", "log_ppl_diff_min", "ppl_ratio")})
    out["tok.k2"] = float(masked_mean(kl_penalty_forward(a, b, "k2"), mask))
    data = DataProto(batch=TensorDict(dict(rollout_log_probs=a, old_log_probs=b, response_mask=mask, responses=d["ids"]), batch_size=len(a)))
    got = calculate_debug_metrics(data)
    out.update({"tok.prob_diff_" + k: got["training/rollout_probs_diff_" + k] for k in ("mean", "max", "std")})
    out["tok.pearson"] = got["training/rollout_actor_probs_pearson_corr"]
    ratio = torch.exp(b - a)
    got = compute_is_metrics(ratio, ratio, b - a, mask, "token", 1e9)
    out["tok.ess"] = got["rollout_is_eff_sample_size"]
    # Of sequences: each weight once, which is what a mask of one column is.
    one = torch.ones_like(mask[:, :1])
    whole = ((b - a) * mask).sum(-1, keepdim=True)
    out["tok.ess_seq"] = compute_is_metrics(whole.exp(), whole.exp(), whole, one, "token", 1e9)["rollout_is_eff_sample_size"]
    # What its loss clips where an advantage is above 0, and where it is below.
    out["tok.clip"] = sum(float(compute_policy_loss(a, b, sign * torch.ones_like(a), mask, cliprange=0.2, clip_ratio_c=1e9)[1]) for sign in (1, -1))
    for side in "ab":
        out["tok.entropy_" + side] = float(masked_mean(entropy_from_logits(d[side]), mask))
    return out


def of_trl(d):
    from trl.trainer import grpo_trainer
    source = inspect.getsource(grpo_trainer.GRPOTrainer._generate_and_score_completions)
    tree = ast.parse(textwrap.dedent(source))
    blocks = [n for n in ast.walk(tree) if isinstance(n, ast.If) and ast.unparse(n.test) == "self.use_vllm and self.vllm_importance_sampling_correction"]
    blocks = [ast.unparse(b) for b in blocks]
    compute = next(b for b in blocks if "per_token_logps_diff = " in b)
    log = next(b for b in blocks if "sampling_logp_difference" in b)
    metrics = {}
    for mode in "token_truncate", "sequence_truncate":
        self = types.SimpleNamespace(
            use_vllm=True, vllm_importance_sampling_correction=True, vllm_importance_sampling_mode=mode, vllm_importance_sampling_clip_min=None,
            vllm_importance_sampling_clip_max=1e9, accelerator=types.SimpleNamespace(gather=lambda x: x),
            _metrics={"train": __import__("collections").defaultdict(list)})
        scope = dict(vars(grpo_trainer), self=self, mode="train", completion_mask=d["mask"], tool_mask=None, device="cpu",
                     old_per_token_logps=d["trainer"], sampling_per_token_logps=d["rollout"])
        exec(compute, scope)
        exec(log, scope)
        metrics[mode] = {k: v[0] for k, v in self._metrics["train"].items()}
    token = metrics["token_truncate"]
    s = "sampling/"
    out = {"tok.abs": token[s + "sampling_logp_difference/mean"], "tok.max_abs": token[s + "sampling_logp_difference/max"]}
    out.update({"tok.ratio_" + k: token[s + "importance_sampling_ratio/" + k] for k in ("min", "mean", "max")})
    from trl.trainer.utils import entropy_from_logits
    m = d["mask"].double()
    for side in "ab":
        out["tok.entropy_" + side] = float((entropy_from_logits(d[side]) * m).sum() / m.sum())
    return out


def of_nemo(d):
    """Its loss wants logits and advantages; its metrics come of what the two engines gave."""
    sys.path.insert(0, os.environ["NEMO_RL"])
    torch.Tensor.cuda = lambda self, *a, **k: self
    from nemo_rl.algorithms.loss_functions import ClippedPGLossFn
    from nemo_rl.algorithms.utils import calculate_kl_penalty_joschu2020, masked_mean
    first = lambda x: torch.cat([torch.zeros_like(x[:, :1]), x], 1)
    n = len(d["ids"])
    config = dict(ratio_clip_min=0.2, ratio_clip_max=0.2, ratio_clip_c=None, reference_policy_kl_penalty=0, use_on_policy_kl_approximation=False,
                  use_importance_sampling_correction=True, token_level_loss=True)
    data = dict(token_mask=first(d["mask"]), sample_mask=torch.ones(n), advantages=torch.ones(n, d["ids"].shape[1] + 1), prev_logprobs=first(d["trainer"]),
                generation_logprobs=first(d["rollout"]), reference_policy_logprobs=first(d["trainer"]), input_ids=first(d["ids"]))
    logits = torch.cat([d["b"], d["b"][:, :1]], 1)
    _, got = ClippedPGLossFn(config)(logits, data, torch.tensor(float(n)), d["mask"].sum().double())
    kl = masked_mean(calculate_kl_penalty_joschu2020(d["rollout"], d["trainer"]), d["mask"])
    return {"tok.exp_abs": got["token_mult_prob_error"], "tok.ratio_mean": got["sampling_importance_ratio"], "tok.k3": float(kl)}


def main():
    bad = 0
    for seed in [int(x) for x in sys.argv[1:]] or [1]:
        d = batch(seed)
        got = ours(d)
        assert got["tok.n"] == int(d["mask"].sum())
        for who, f in ("verl", of_verl), ("TRL", of_trl), *([("NeMo-RL", of_nemo)] if "NEMO_RL" in os.environ else []):
            for name, want in f(d).items():
                off = abs(got[name] - want) / max(abs(want), 1e-300)
                bad += not off < 1e-6
                print("%s %-7s %-22s %.12g %.12g %.1e" % ("ok   " if off < 1e-6 else "WRONG", who, name, want, got[name], off))
    sys.exit(bad > 0)


if __name__ == "__main__":
    main()
