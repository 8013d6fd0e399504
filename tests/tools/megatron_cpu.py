# pip: megatron-core==0.16.1 torch==2.15.0 numpy==2.4.6
"""Megatron-core where it runs without a GPU: its schedule, loss and fused functions, one process over gloo."""
import os
import warnings

warnings.filterwarnings("ignore")
os.environ.update(RANK="0", WORLD_SIZE="1", LOCAL_RANK="0", MASTER_ADDR="127.0.0.1")
os.environ.setdefault("MASTER_PORT", "29793")
import torch
import torch.distributed
import torch.nn.functional as F
from megatron.core import parallel_state
from megatron.core.tensor_parallel.cross_entropy import vocab_parallel_cross_entropy as loss

from tools import behaviour, main

torch.distributed.init_process_group("gloo", rank=0, world_size=1)
parallel_state.initialize_model_parallel(1, 1)
torch.manual_seed(0)
Z, TARGET = torch.randn(3, 2, 8), torch.randint(0, 8, (3, 2))


@behaviour
def megatron_rate_from_zero():
    from megatron.core.optimizer_param_scheduler import OptimizerParamScheduler
    o = torch.optim.SGD([torch.nn.Parameter(torch.zeros(1))], lr=1.0)
    s = OptimizerParamScheduler(o, init_lr=0.0, max_lr=1.0, min_lr=0.1, lr_warmup_steps=4, lr_decay_steps=12, lr_decay_style="cosine", start_wd=0.0, end_wd=0.0,
                                wd_incr_steps=12, wd_incr_style="constant", use_checkpoint_opt_param_scheduler=False, override_opt_param_scheduler=False)
    rates = []
    for _ in range(5):
        rates.append(o.param_groups[0]["lr"])
        s.step(1)
    assert rates == [0, 0.25, 0.5, 0.75, 1], rates


@behaviour
def megatron_loss_of_minus_100():
    got = loss(Z.clone(), torch.full((3, 2), -100))
    assert (got > 0.1).all() and torch.allclose(got, (Z.exp().sum(-1).log() - Z.amax(-1)), atol=1e-6)
    assert F.cross_entropy(Z.view(-1, 8), torch.full((6,), -100), reduction="sum") == 0


@behaviour
def megatron_loss_in_place():
    z = Z.clone()
    assert torch.allclose(loss(z, TARGET).view(-1), F.cross_entropy(Z.view(-1, 8), TARGET.view(-1), reduction="none"), atol=1e-6)
    assert torch.allclose(z, Z.softmax(-1), atol=1e-6) and not torch.equal(z, Z)


@behaviour
def megatron_smoothing():
    got = loss(Z.clone(), TARGET, 0.1).view(-1)
    of = lambda e: F.cross_entropy(Z.view(-1, 8), TARGET.view(-1), reduction="none", label_smoothing=e)
    assert (got - of(0.1)).abs().max() > 1e-2 and (got - of(0.1 * 8 / 7)).abs().max() < 1e-5


@behaviour
def megatron_fused_gelu():
    from megatron.core.fusions.fused_bias_gelu import bias_gelu
    from megatron.core.transformer.transformer_config import TransformerConfig
    x = torch.linspace(-3, 3, 101)
    assert TransformerConfig(num_layers=1, hidden_size=8, num_attention_heads=2).activation_func is F.gelu
    got = bias_gelu(torch.zeros_like(x), x)
    assert (got - F.gelu(x)).abs().max() > 1e-4 and (got - F.gelu(x, approximate="tanh")).abs().max() < 1e-6


if __name__ == "__main__":
    main()
