# pip: trl==1.16.0 verl==0.9.1 torch==2.15.0 numpy==2.4.6
"""TRL and verl: what the numbers are that they log of a rollout against its trainer."""
import ast
import collections
import inspect
import textwrap
import types

import torch

from tools import behaviour, main

A = torch.tensor([[-1.0, -2.0, -30.0]])  # who generated
B = torch.tensor([[-1.0, -26.0, -1.0]])  # who trains
MASK = torch.ones_like(A)


@behaviour
def verl_kl_bounded():
    from verl.trainer.ppo import core_algos
    from verl.trainer.ppo.rollout_corr_helper import compute_offpolicy_metrics
    assert core_algos.kl_penalty_forward(A, B, "k3").tolist() == [[0, 10, 10]]
    assert compute_offpolicy_metrics(B, A, MASK)["k3_kl"] > 1e12
    assert core_algos.compute_policy_loss(A, B, MASK, MASK, cliprange=0.2)[2] == 0 and (A - B).mean() < -1.6


@behaviour
def verl_ess_truncated():
    from verl.trainer.ppo.rollout_corr_helper import compute_rollout_correction_weights
    w, got = compute_rollout_correction_weights(B - A, MASK, "token", 2.0)
    raw = torch.exp(B - A)
    assert abs(got["rollout_is_eff_sample_size"] - 0.6) < 1e-3 and raw.sum() ** 2 / (3 * (raw ** 2).sum()) < 0.334 and w.max() == 2


@behaviour
def trl_ratio_masked():
    from trl import GRPOConfig
    from trl.trainer import grpo_trainer
    default = {k: f.default for k, f in GRPOConfig.__dataclass_fields__.items()}
    assert (default["vllm_importance_sampling_mode"], default["vllm_importance_sampling_clip_max"]) == ("sequence_mask", 3.0)
    tree = ast.parse(textwrap.dedent(inspect.getsource(grpo_trainer.GRPOTrainer._generate_and_score_completions)))
    blocks = [ast.unparse(n) for n in ast.walk(tree)
              if isinstance(n, ast.If) and ast.unparse(n.test) == "self.use_vllm and self.vllm_importance_sampling_correction"]
    self = types.SimpleNamespace(use_vllm=True, accelerator=types.SimpleNamespace(gather=lambda v: v), _metrics={"train": collections.defaultdict(list)},
                                 **{k: default[k] for k in default if k.startswith("vllm_importance")})
    # Two sequences of two tokens: of one all agrees, of the other the ratio is e^2.
    scope = dict(vars(grpo_trainer), self=self, mode="train", completion_mask=torch.ones(2, 2), tool_mask=None, device="cpu",
                 old_per_token_logps=torch.tensor([[-1.0, -1], [-1, -1]]), sampling_per_token_logps=torch.tensor([[-1.0, -1], [-2, -2]]))
    for what in "per_token_logps_diff = ", "sampling_logp_difference":
        exec(next(b for b in blocks if what in b), scope)
    got = {k.split("/", 1)[1]: v[0] for k, v in self._metrics["train"].items()}
    assert got["importance_sampling_ratio/mean"] == 0.5 and got["importance_sampling_ratio/min"] == 0 and got["importance_sampling_ratio/max"] == 1


@behaviour
def trl_dapo_default():
    from trl import GRPOConfig
    default = {k: f.default for k, f in GRPOConfig.__dataclass_fields__.items()}
    assert default["loss_type"] == "dapo" and default["beta"] == 0.0


if __name__ == "__main__":
    main()
