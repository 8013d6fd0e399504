"""What real processes write together of one Llama: layouts_ranks.py WRITER WORLD LIST; LIST is a JSON of [path, file of
a state dict]. DeepSpeed 0.19 (ZeRO 1 to 3, and the universal checkpoint of these), FSDP2, megatron-core (GPTModel, files of ranks and
torch_dist). CPU and gloo."""
import json
import os
import socket
import subprocess
import sys

import layouts as lay

import torch

ZERO = ("zero1", "zero2", "zero3", "universal")
MEGATRON = ("mcore-tp2", "mcore-pp2", "mcore-dist", "mcore-dist-tp2")
FSDP = ("fsdp2", "fsdp2-dcp", "fsdp2-hf")
WRITERS = ZERO + MEGATRON + FSDP


# --- DeepSpeed ---

def zero(todo, stage, rank):
    import deepspeed
    deepspeed.init_distributed(dist_backend="gloo")
    for path, sd in todo:
        m = lay.model_of(dict(sd))
        opt = torch.optim.AdamW(m.parameters(), lr=0.0, weight_decay=0.0)
        how = {"train_micro_batch_size_per_gpu": 1, "zero_allow_untested_optimizer": True, "zero_force_ds_cpu_optimizer": False,
               "zero_optimization": {"stage": int(stage), "stage3_param_persistence_threshold": 0}}
        engine, *_ = deepspeed.initialize(model=m, optimizer=opt, config=how)
        ids = torch.arange(8)[None]
        engine.backward(engine(input_ids=ids, labels=ids).loss)  # the converter wants states; at a rate of 0 no weight changes
        engine.step()
        engine.save_checkpoint(path, tag="global_step1")
        engine.destroy()


def universal(paths):
    """By DeepSpeed's own converter, in one process behind the others."""
    for p in paths:
        from deepspeed.checkpoint.ds_to_universal import main, parse_arguments
        argv = sys.argv
        sys.argv = ["ds_to_universal", "--input_folder", p + "-zero/global_step1", "--output_folder", p + "/global_step1"]
        main(parse_arguments())
        sys.argv = argv


# --- megatron-core ---

def megatron(todo, writer, rank, world):
    import types
    torch.cuda.synchronize = lambda *a, **k: None
    torch.cuda.current_device = lambda: torch.device("cpu")
    torch.cuda.is_available = lambda: False
    from megatron.core import dist_checkpointing, parallel_state
    from megatron.core.models.gpt.gpt_layer_specs import get_gpt_layer_local_spec
    from megatron.core.models.gpt.gpt_model import GPTModel
    from megatron.core.tensor_parallel.random import model_parallel_cuda_manual_seed
    from megatron.core.transformer.transformer_config import TransformerConfig
    pp = 2 if "pp" in writer else 1
    tp = world // pp
    parallel_state.initialize_model_parallel(tp, pp)
    try:
        model_parallel_cuda_manual_seed(1)
    except Exception:  # where no GPU is
        pass
    for path, sd in todo:
        c = TransformerConfig(num_layers=lay.L, hidden_size=lay.D, num_attention_heads=lay.H, num_query_groups=lay.KV,
                              ffn_hidden_size=lay.F, use_cpu_initialization=True, add_bias_linear=False, gated_linear_unit=True,
                              activation_func=torch.nn.functional.silu, normalization="RMSNorm", tensor_model_parallel_size=tp,
                              pipeline_model_parallel_size=pp, pipeline_dtype=torch.float32, perform_initialization=False)
        m = GPTModel(c, get_gpt_layer_local_spec(normalization="RMSNorm"), vocab_size=lay.V, max_sequence_length=64,
                     pre_process=parallel_state.is_pipeline_first_stage(), post_process=parallel_state.is_pipeline_last_stage(),
                     share_embeddings_and_output_weights=False, position_embedding_type="rope")
        fill(m, sd, rank % tp, tp, lay.L // pp * (rank // tp))
        if "dist" in writer:
            os.makedirs(path + "/iter_0000003", exist_ok=True)
            state = {**m.sharded_state_dict(), "iteration": 3, "checkpoint_version": 3.0}
            dist_checkpointing.save(state, path + "/iter_0000003")
        else:
            d = f"{path}/iter_0000003/mp_rank_{rank % tp:02}" + (f"_{rank // tp:03}" if pp > 1 else "")
            os.makedirs(d)
            args = types.SimpleNamespace(tensor_model_parallel_size=tp, pipeline_model_parallel_size=pp)
            torch.save({"model": m.state_dict_for_save_checkpoint(), "iteration": 3, "checkpoint_version": 3.0,
                        "args": vars(args)}, d + "/model_optim_rng.pt")
        torch.distributed.barrier()


def fill(m, sd, r, tp, first):
    """Hugging Face's weights into this rank's module, as the bridges convert them."""
    words = {"input_layernorm.weight": "input_layernorm.weight", "pre_mlp_layernorm.weight": "post_attention_layernorm.weight",
             "self_attention.linear_proj.weight": "self_attn.o_proj.weight", "mlp.linear_fc2.weight": "mlp.down_proj.weight"}
    top = {"embedding.word_embeddings.weight": "model.embed_tokens.weight", "decoder.final_layernorm.weight": "model.norm.weight",
           "output_layer.weight": "lm_head.weight"}
    for name, p in m.named_parameters():
        if name in top:
            v = sd[top[name]]
        else:
            _, _, layer, last = name.split(".", 3)
            h = f"model.layers.{int(layer) + first}."
            if last == "self_attention.linear_qkv.weight":
                q, k, v = (sd[h + f"self_attn.{x}_proj.weight"].view(lay.KV, -1, lay.D) for x in "qkv")
                v = torch.cat([q, k, v], 1).reshape(-1, lay.D)
            elif last == "mlp.linear_fc1.weight":
                v = torch.cat([sd[h + f"mlp.{x}_proj.weight"].chunk(tp)[r] for x in ("gate", "up")])
            else:
                v = sd[h + words[last]]
        if v.shape != p.shape:
            v = v.chunk(tp, 0 if v.shape[1:] == p.shape[1:] else 1)[r]
        p.data.copy_(v)


# --- FSDP2 ---

def fsdp(todo, writer, rank, world):
    import torch.distributed.checkpoint as dcp
    from torch.distributed.checkpoint import HuggingFaceStorageWriter
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.fsdp import fully_shard
    mesh = init_device_mesh("cpu", (world,))
    for path, sd in todo:
        m = lay.module_of(sd)
        if hasattr(m, "model"):
            for x in getattr(m.model, "layers", torch.nn.Module()).children():
                fully_shard(x, mesh=mesh)
        fully_shard(m, mesh=mesh)
        state = m.state_dict()
        if writer == "fsdp2":
            os.makedirs(path, exist_ok=True)
            torch.save(state, f"{path}/model_world_size_{world}_rank_{rank}.pt")
        elif writer == "fsdp2-dcp":
            dcp.save({"model": state}, checkpoint_id=path)
        else:
            dcp.save(state, storage_writer=HuggingFaceStorageWriter(path=path, fqn_to_index_mapping=dict.fromkeys(state, 1),
                                                                    save_distributed=True))


def process(rank, writer, world, todo):
    import torch.distributed as dist
    os.environ.update(MASTER_ADDR="127.0.0.1", RANK=str(rank), LOCAL_RANK=str(rank), WORLD_SIZE=str(world),
                      DS_ACCELERATOR="cpu")
    torch.set_num_threads(1)
    sds = [(path, torch.load(f)) for path, f in todo]
    if writer not in ZERO:
        dist.init_process_group("gloo", rank=rank, world_size=world)
    if writer in ZERO:
        stage = "3" if writer == "universal" else writer[-1]
        zero([(p + "-zero" if writer == "universal" else p, sd) for p, sd in sds], stage, rank)
    elif writer in MEGATRON:
        megatron(sds, writer, rank, world)
    else:
        fsdp(sds, writer, rank, world)
    dist.barrier()
    dist.destroy_process_group()


def write(writer, pairs, world=2):
    """pairs: of path and state dict. Writes all by one start of the processes."""
    todo = []
    for i, (path, sd) in enumerate(pairs):
        f = f"{path}.sd"
        torch.save(sd, f)
        todo.append((path, f))
    with open("todo.json", "w") as f:
        json.dump(todo, f)
    subprocess.run([sys.executable, os.path.abspath(__file__), writer, str(world), "todo.json"], check=True)
    for _, f in todo:
        os.remove(f)


if __name__ == "__main__":
    with open(sys.argv[3]) as f:
        todo = json.load(f)
    os.environ["DS_ACCELERATOR"] = "cpu"
    with socket.socket() as s:  # a port that is free
        s.bind(("127.0.0.1", 0))
        os.environ["MASTER_PORT"] = str(s.getsockname()[1])
    torch.multiprocessing.spawn(process, (sys.argv[1], int(sys.argv[2]), todo), nprocs=int(sys.argv[2]))
    if sys.argv[1] == "universal":
        universal([p for p, _ in todo])
