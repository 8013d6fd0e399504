# pip: deepspeed==0.19.8 torch==2.15.0 numpy==2.4.6 ninja==1.13.2
"""DeepSpeed's engine on the CPU, one process over gloo."""
import logging
import os

os.environ.update(DS_ACCELERATOR="cpu", MASTER_ADDR="127.0.0.1", RANK="0", LOCAL_RANK="0", WORLD_SIZE="1")
os.environ.setdefault("MASTER_PORT", "29581")
logging.disable(logging.CRITICAL)
import deepspeed
import torch

from tools import behaviour, main

ONE = torch.ones(1, 4)


def engine(optimizer=None, **config):
    torch.manual_seed(0)
    net = torch.nn.Linear(4, 1, bias=False)
    config = {"train_micro_batch_size_per_gpu": 1, "zero_allow_untested_optimizer": True, "gradient_clipping": 0.0,
              "optimizer": optimizer or {"type": "SGD", "params": {"lr": 1.0}}, **config}
    config = {k: v for k, v in config.items() if v is not None}
    return deepspeed.initialize(model=net, model_parameters=net.parameters(), config=config)[0]


def step(e, x, times=1):
    """By how much the first weight moved."""
    before = e.module.weight.detach().float().clone()
    e.backward(e(x).sum() * times)
    e.step()
    return (before - e.module.weight.detach().float())[0, 0].item()


@behaviour
def deepspeed_adam_is_adamw():
    for more, decoupled in (({}, True), ({"adam_w_mode": False}, False)):
        e = engine({"type": "Adam", "params": {"lr": 0.1, "weight_decay": 0.5, "torch_adam": True, **more}})
        before = e.module.weight.detach().clone()
        step(e, 0 * ONE)
        assert torch.allclose(e.module.weight, 0.95 * before) == decoupled, more


@behaviour
def deepspeed_warmup_log():
    e = engine(scheduler={"type": "WarmupLR", "params": {"warmup_min_lr": 0, "warmup_max_lr": 0.1, "warmup_num_steps": 10}})
    moved = [step(e, ONE) for _ in range(4)]
    assert moved[:2] == [0, 0] and abs(moved[2] - 0.0301) < 1e-3 and abs(moved[3] - 0.0477) < 1e-3, moved


@behaviour
def deepspeed_bf16_skips_nan():
    for stage in (0, 1, 2):
        e = engine(bf16={"enabled": True}, zero_optimization={"stage": stage})
        step(e, ONE.bfloat16(), float("nan"))
        assert e.module.weight.isfinite().all() and e.skipped_steps == e.global_steps == 1, stage


@behaviour
def deepspeed_bf16_accumulates():
    for stage in (0, 1, 2):
        e = engine(bf16={"enabled": True}, gradient_accumulation_steps=600, zero_optimization={"stage": stage})
        moved = sum(step(e, ONE.bfloat16()) for _ in range(600))
        assert abs(moved - 0.5) < 0.01, (stage, moved)
    assert abs(sum(step(e, ONE) for e in [engine(gradient_accumulation_steps=600)] for _ in range(600)) - 1) < 0.01


@behaviour
def deepspeed_clips_by_default():
    moved = [step(engine(gradient_clipping=c), ONE, 100) for c in (None, 0.0)]
    assert abs(moved[0] - 0.5) < 1e-3 and abs(moved[1] - 100) < 1e-3, moved


if __name__ == "__main__":
    main()
