#!/usr/bin/env python3
"""The metrics of verl, NeMo-RL and TRL for a JSON Lines file with both columns, as these programs compute them, in
plain Python with exact sums: {"name": value} under the names of accstream(5).

    metrics.py FILE.jsonl
"""
import json
import math
import sys

pairs = []
for line in open(sys.argv[1]):
    o = json.loads(line)
    pairs.append(list(zip(o["rollout_log_probs"], o["old_log_probs"])))
tokens = [t for s in pairs for t in s]
n, m = len(tokens), len(pairs)
mean = lambda v: math.fsum(v) / len(v)
clamp = lambda x: max(-20.0, min(20.0, x))
l = [b - a for a, b in tokens]
seq = [math.fsum(b - a for a, b in s) for s in pairs]
out = {"tok.n": n, "tok.samples": m}
# verl: rollout_corr/kl, k3_kl, chi2_token, chi2_seq, log_ppl_diff, ppl_ratio
out["tok.k1"] = mean([a - b for a, b in tokens])
out["tok.k2"] = mean([x * x / 2 for x in l])
out["tok.k3"] = mean([math.exp(x) - x - 1 for x in l])
out["tok.chi2"] = mean([math.exp(clamp(x)) ** 2 for x in l]) - 1
out["tok.chi2_seq"] = mean([math.exp(2 * clamp(x)) for x in seq]) - 1
d = [mean([a for a, _ in s]) - mean([b for _, b in s]) for s in pairs]
out["tok.log_ppl_diff"], out["tok.log_ppl_abs_diff"] = mean(d), mean([abs(x) for x in d])
out["tok.log_ppl_diff_max"], out["tok.log_ppl_diff_min"] = max(d), min(d)
out["tok.ppl_ratio"] = mean([math.exp(x) for x in d])
# verl: training/rollout_probs_diff_*, rollout_actor_probs_pearson_corr
p, q = [math.exp(a) for a, _ in tokens], [math.exp(b) for _, b in tokens]
e = [abs(x - y) for x, y in zip(p, q)]
out["tok.prob_diff_mean"], out["tok.prob_diff_max"] = mean(e), max(e)
out["tok.prob_diff_std"] = math.sqrt(math.fsum((x - mean(e)) ** 2 for x in e) / (n - 1))
mp, mq = mean(p), mean(q)
out["tok.pearson"] = math.fsum((x - mp) * (y - mq) for x, y in zip(p, q)) / math.sqrt(
    math.fsum((x - mp) ** 2 for x in p) * math.fsum((y - mq) ** 2 for y in q))
# NeMo-RL: token_mult_prob_error
out["tok.exp_abs"] = mean([math.exp(abs(x)) for x in l])
# TRL: sampling/sampling_logp_difference, importance_sampling_ratio
out["tok.abs"], out["tok.max_abs"] = mean([abs(x) for x in l]), max(abs(x) for x in l)
r = [math.exp(x) for x in l]
out["tok.ratio_min"], out["tok.ratio_mean"], out["tok.ratio_max"] = min(r), mean(r), max(r)
# effective sample sizes, clip share
out["tok.ess"] = math.fsum(r) ** 2 / (n * math.fsum(x * x for x in r))
w = [math.exp(x) for x in seq]
out["tok.ess_seq"] = math.fsum(w) ** 2 / (m * math.fsum(x * x for x in w))
out["tok.clip"] = sum(not 0.8 <= x <= 1.2 for x in r) / n


def error(per):
    """The standard error of a ratio of sums over samples."""
    k = math.fsum(per) / n
    v = math.fsum((x - k * len(s)) ** 2 for x, s in zip(per, pairs))
    return math.sqrt(v * m / (m - 1)) / n


out["tok.k1_se"] = error([-x for x in seq])
out["tok.k2_se"] = error([math.fsum((b - a) ** 2 / 2 for a, b in s) for s in pairs])
out["tok.k3_se"] = error([math.fsum(math.exp(b - a) - (b - a) - 1 for a, b in s) for s in pairs])
json.dump(out, sys.stdout)
