"""Checkpoints over ranks of an optimizer with other groups of parameters: tests/data/groups_ranks.tar.gz, of DeepSpeed 0.19.8
and megatron-core 0.16.1 themselves, on a CPU. Needs torch 2.15 and both.

Usage: make_groups_ranks.py

    zero2-KIND/  zero3-all/   two ranks of DeepSpeed's ZeRO; KIND: all parameters in one group; two groups of the same
                              settings; decay: no decay of what has one dimension
    tp2-KIND/                 two tensor parallel ranks of Megatron: all, and its own groups (decay)
"""
import os
import shutil
import subprocess
import sys
import tarfile
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
os.environ.setdefault("DS_ACCELERATOR", "cpu")

import torch  # noqa: E402
import torch.distributed as dist  # noqa: E402


def zero(stage, kind):
    import deepspeed
    import deepspeed.comm.torch as comm
    comm.build_shm_op = lambda: None
    deepspeed.init_distributed("gloo", dist_init_required=False)
    sys.path.insert(0, HERE)
    from make_groups import Net
    torch.manual_seed(1)
    model = Net()
    wide = {"params": [p for p in model.parameters() if p.dim() > 1], "weight_decay": 0.1}
    flat = {"params": [p for p in model.parameters() if p.dim() < 2], "weight_decay": 0.0 if kind == "decay" else 0.1}
    groups = [{"params": list(model.parameters()), "weight_decay": 0.1}] if kind == "all" else [wide, flat]
    config = {"train_micro_batch_size_per_gpu": 8, "zero_optimization": {"stage": stage}, "bf16": {"enabled": True},
              "zero_force_ds_cpu_optimizer": False, "zero_allow_untested_optimizer": True}
    engine, *_ = deepspeed.initialize(model=model, optimizer=torch.optim.AdamW(groups, lr=1e-2), config=config)
    x = torch.arange(8) % 4
    engine.backward(torch.nn.functional.cross_entropy(engine(x).float(), x))
    engine.step()
    engine.save_checkpoint(f"zero{stage}-{kind}")


def megatron(kind):
    tensor, torch.cuda.current_device = torch.tensor, lambda: "cpu"

    def on_cpu(*args, **options):
        return tensor(*args, **{k: v for k, v in options.items() if k != "device"})

    torch.tensor = on_cpu
    from megatron.core import parallel_state
    from megatron.core.models.gpt import GPTModel
    from megatron.core.models.gpt.gpt_layer_specs import get_gpt_layer_local_spec
    from megatron.core.optimizer import OptimizerConfig, _get_param_groups
    from megatron.core.optimizer.optimizer import FP32Optimizer
    from megatron.core.transformer import TransformerConfig
    if not parallel_state.model_parallel_is_initialized():
        parallel_state.initialize_model_parallel(tensor_model_parallel_size=2)
    torch.manual_seed(1)
    config = TransformerConfig(num_layers=1, hidden_size=8, num_attention_heads=2, ffn_hidden_size=16,
                               use_cpu_initialization=True, tensor_model_parallel_size=2)
    model = GPTModel(config, get_gpt_layer_local_spec(), vocab_size=16, max_sequence_length=8,
                     position_embedding_type="learned_absolute")
    settings = OptimizerConfig(optimizer="adam", lr=1e-3, weight_decay=0.1, min_lr=0.0)
    groups = _get_param_groups([model], settings, {} if kind == "all" else None)
    for g in groups:
        g["weight_decay"] = 0.1 * g["wd_mult"]
    made = torch.optim.AdamW(groups, lr=1e-3, weight_decay=0.1)
    for p in model.parameters():
        p.grad = torch.full_like(p, 0.01)
    made.step()
    out = f"tp2-{kind}/iter_0000001/mp_rank_{dist.get_rank():02d}"
    os.makedirs(out)
    torch.save({"iteration": 1, "checkpoint_version": 3.0, "model": model.state_dict_for_save_checkpoint(),
                "optimizer": FP32Optimizer(made, settings, lambda *_: None).state_dict()}, out + "/model_optim_rng.pt")


def rank(part):
    dist.init_process_group("gloo")
    if part == "megatron":
        megatron("all")
        megatron("decay")
    else:
        for stage, kind in (2, "all"), (2, "two"), (2, "decay"), (3, "all"):
            zero(stage, kind)


def main():
    with tempfile.TemporaryDirectory() as top:
        for port, part in (29511, "zero"), (29513, "megatron"):
            ranks = [subprocess.Popen([sys.executable, os.path.abspath(__file__), part], cwd=top, env=dict(
                os.environ, RANK=str(r), LOCAL_RANK=str(r), WORLD_SIZE="2", MASTER_ADDR="127.0.0.1",
                MASTER_PORT=str(port))) for r in range(2)]
            if any([p.wait() for p in ranks]):
                sys.exit(f"make_groups_ranks: {part} failed")
        for folder, _, names in os.walk(top):
            for name in names:
                if name.endswith(".py"):
                    os.unlink(os.path.join(folder, name))
        with tarfile.open(os.path.join(HERE, "groups_ranks.tar.gz"), "w:gz") as tar:
            for name in sorted(os.listdir(top)):
                tar.add(os.path.join(top, name), name, filter=plain)
        shutil.rmtree(top, ignore_errors=True)
        os.makedirs(top)


def plain(info):
    info.mtime, info.uid, info.gid, info.uname, info.gname = 1, 0, 0, "", ""
    return info


if __name__ == "__main__":
    if len(sys.argv) > 1:
        rank(sys.argv[1])
    else:
        main()
