#!/usr/bin/env python3
"""Makes tests/data/rollout: six samples in every form that is read. Needs torch and numpy.

What matters is that all forms hold the same ids and log-probabilities; these are drawn, from a fixed seed, and are
numbers of float32.
"""
import json
import os
import random

import numpy as np
import torch

OUT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "rollout")
os.makedirs(OUT, exist_ok=True)
rng = random.Random(5)
samples = []
for i in range(6):
    g = i // 2
    prompt = [1] + [10 + (7 * g + k) % 40 for k in range(4 + g)]
    response = [rng.randrange(3, 90) for _ in range(rng.randrange(8, 14))] + [2]
    lp = [float(np.float32(-rng.expovariate(0.7))) for _ in response]
    train = [float(np.float32(x + rng.gauss(0, 0.004))) for x in lp]
    tops = [[[float(np.float32(-0.3 - rng.random())), 5, None], [float(np.float32(-2 - rng.random())), 6, None]] for _ in response]
    samples.append(dict(prompt=prompt, response=response, lp=lp, train=train, tops=tops, i=i,
                        mask=[1] * len(response), text=" ".join(f"w{t}" for t in response), ptext=" ".join(f"w{t}" for t in prompt)))


def lines(name, objects):
    with open(os.path.join(OUT, name), "w") as f:
        for o in objects:
            f.write(json.dumps(o) + "\n")


lines("hand.jsonl", [dict(id=f"s{s['i']}", prompt_ids=s["prompt"], response_ids=s["response"], logprobs=s["lp"], response_mask=s["mask"]) for s in samples])
lines("trainer.jsonl", [dict(id=f"s{s['i']}", prompt_ids=s["prompt"], response_ids=s["response"], old_log_probs=s["train"]) for s in samples])
lines("all.jsonl", [dict(input_ids=s["prompt"] + s["response"], response_length=len(s["response"]), rollout_log_probs=s["lp"], old_log_probs=s["train"]) for s in samples])
lines("verl.jsonl", [dict(input=s["ptext"], output=s["text"], gts=None, score=1.0, step=3, rollout_log_probs=s["lp"], response_ids=s["response"]) for s in samples])
lines("texts.jsonl", [dict(input=s["ptext"], output=s["text"], gts=None, score=1.0, step=3) for s in samples])
json.dump([dict(text=s["text"], output_ids=s["response"], meta_info=dict(
    id=f"r{s['i']}", prompt_tokens=len(s["prompt"]), cached_tokens=0, weight_version="default", finish_reason=dict(type="stop", matched=2),
    input_token_logprobs=[[None if k == 0 else -1.5, t, None] for k, t in enumerate(s["prompt"])],
    output_token_logprobs=[[l, t, None] for l, t in zip(s["lp"], s["response"])],
    output_top_logprobs=s["tops"])) for s in samples], open(os.path.join(OUT, "sglang.json"), "w"))
json.dump(dict(id="cmpl-1", object="text_completion", created=1, model="m", choices=[dict(
    index=s["i"], text=s["text"], token_ids=s["response"], prompt_token_ids=s["prompt"], finish_reason="stop",
    prompt_logprobs=[None] + [{str(t): dict(logprob=-1.5, rank=1)} for t in s["prompt"][1:]],
    logprobs=dict(tokens=[f"w{t}" for t in s["response"]], token_logprobs=s["lp"],
                  top_logprobs=[{"w5": a[0][0], "w6": a[1][0]} for a in s["tops"]], text_offset=[0] * len(s["response"])))
    for s in samples]), open(os.path.join(OUT, "completion.json"), "w"))
lines("tokens.jsonl", [dict(id=f"cmpl-{s['i']}", object="text_completion", choices=[dict(index=0, text=s["text"], logprobs=dict(
    tokens=[f"token_id:{t}" for t in s["response"]], token_logprobs=s["lp"], top_logprobs=None))]) for s in samples])
lines("batch.jsonl", [dict(id=f"b{s['i']}", custom_id=f"s{s['i']}", response=dict(status_code=200, body=dict(
    id=f"chat-{s['i']}", object="chat.completion", choices=[dict(index=0, message=dict(role="assistant", content=s["text"]), finish_reason="stop",
    logprobs=dict(content=[dict(token=f"w{t}", logprob=l, bytes=None, top_logprobs=[dict(token="w5", logprob=a[0][0]), dict(token="w6", logprob=a[1][0])])
                           for t, l, a in zip(s["response"], s["lp"], s["tops"])]))]))) for s in samples])
# What was generated as a prompt that is scored: all is in the prompt, and one token is generated more.
lines("scored.jsonl", [dict(id=f"x{s['i']}", object="text_completion", choices=[dict(
    index=0, text="w9", token_ids=[9], logprobs=dict(tokens=["w9"], token_logprobs=[-0.5], top_logprobs=None),
    prompt_logprobs=[None] + [{str(t): dict(logprob=l)} for t, l in zip((s["prompt"] + s["response"])[1:], [-1.5] * (len(s["prompt"]) - 1) + s["lp"])],
    prompt_token_ids=s["prompt"] + s["response"])]) for s in samples])
torch.save(dict(rollout_id=3, samples=[dict(index=s["i"], group_index=s["i"] // 2, prompt=s["ptext"], tokens=s["prompt"] + s["response"], response=s["text"],
           response_length=len(s["response"]), label=None, reward=1.0, loss_mask=s["mask"], rollout_log_probs=s["lp"], status="completed",
           metadata=dict(id=7)) for s in samples]), os.path.join(OUT, "rollout_3.pt"))
torch.save(dict(rollout_id=3, rank=0, rollout_data=dict(
    tokens=[torch.tensor(s["prompt"] + s["response"]) for s in samples], response_lengths=[len(s["response"]) for s in samples],
    log_probs=[torch.tensor(s["train"]) for s in samples], rollout_log_probs=[torch.tensor(s["lp"]) for s in samples],
    loss_masks=[torch.tensor(s["mask"], dtype=torch.int32) for s in samples], rewards=[1.0] * 6)), os.path.join(OUT, "train_3_0.pt"))
P, R = max(len(s["prompt"]) for s in samples), max(len(s["response"]) for s in samples)
n = len(samples)
d = dict(prompts=torch.zeros(n, P, dtype=torch.long), responses=torch.zeros(n, R, dtype=torch.long), attention_mask=torch.zeros(n, P + R, dtype=torch.long),
         response_mask=torch.zeros(n, R, dtype=torch.long), rollout_log_probs=torch.zeros(n, R), old_log_probs=torch.zeros(n, R))
for k, s in enumerate(samples):
    p, r = len(s["prompt"]), len(s["response"])
    d["prompts"][k, P - p:] = torch.tensor(s["prompt"])
    d["responses"][k, :r] = torch.tensor(s["response"])
    d["attention_mask"][k, P - p:P + r] = 1
    d["response_mask"][k, :r] = 1
    d["rollout_log_probs"][k, :r] = torch.tensor(s["lp"])
    d["old_log_probs"][k, :r] = torch.tensor(s["train"])
d["input_ids"] = torch.cat([d["prompts"], d["responses"]], 1)
torch.save(d, os.path.join(OUT, "verl.pt"))
torch.save(dict(sequences=d["input_ids"], action_log_probs=d["rollout_log_probs"], attention_mask=d["attention_mask"], action_mask=d["response_mask"]),
           os.path.join(OUT, "openrlhf.pt"))
arrays = {k: d[k].numpy() for k in ("prompts", "responses", "attention_mask", "rollout_log_probs")}
np.savez(os.path.join(OUT, "hand.npz"), **arrays)
np.savez_compressed(os.path.join(OUT, "packed.npz"), **arrays)
