"""One Llama's weights as writers of 2026 leave them: what faults.py makes its pairs of. Each writer is a function of a
path and a state dict under Hugging Face's names; what it returns is what accdiff is given. FULL keep each value, FEW
keep the linear weights of layers in fewer bits; RANKS are written by real processes, of many state dicts at once.

torch 2.15, transformers 5, safetensors, lightning 2, accelerate, gguf, onnx, keras, flax, orbax, paddle, bitsandbytes,
torchao, compressed-tensors; ggml by ctransformers' library; gptqmodel's and autoawq's sources (see make_packed.py)."""
import importlib.abc
import importlib.machinery
import os
import sys
import types

os.environ.update(KERAS_BACKEND="numpy", JAX_PLATFORMS="cpu")
import numpy as np
import torch

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "data"))
D, H, KV, F, V, L = 256, 8, 4, 512, 320, 2
HD = D // H
CONFIG = dict(hidden_size=D, intermediate_size=F, num_hidden_layers=L, num_attention_heads=H, num_key_value_heads=KV,
              vocab_size=V, max_position_embeddings=64, tie_word_embeddings=False, architectures=["LlamaForCausalLM"])


def llama(seed=49):
    import make_writers2026 as W
    W.D, W.H, W.KV, W.F, W.V, W.L, W.HD = D, H, KV, F, V, L, HD
    return W.llama(seed)


def is_linear(name):
    return "_proj" in name


def halves_to_pairs(v, heads):
    """The rows of q or k as Meta and llama.cpp have them."""
    return v.reshape(heads, 2, v.shape[0] // heads // 2, -1).transpose(1, 2).reshape(v.shape)


def rotary(name):
    return H if "q_proj" in name else KV if "k_proj" in name else 0


# --- torch's own, and Hugging Face's ---

def model_of(sd):
    """The real module; what a fault has dropped or cut stays out of what it saves."""
    from transformers import LlamaConfig, LlamaForCausalLM
    m = LlamaForCausalLM(LlamaConfig(**{**CONFIG, "vocab_size": len(sd.get("model.embed_tokens.weight", range(V)))}))
    m.load_state_dict(sd, strict=False)
    return m


def safetensors(path, sd):
    from safetensors.torch import save_file
    save_file({k: v.contiguous().clone() for k, v in sd.items()}, path + ".safetensors", metadata={"format": "pt"})
    return path + ".safetensors"


def transformers(path, sd):
    model_of(sd).save_pretrained(path, state_dict=sd, max_shard_size="2MB")
    return path


def pickled(path, sd):
    torch.save(sd, path + ".bin")
    return path + ".bin"


def lightning(path, sd):
    import lightning.pytorch as pl

    class Module(pl.LightningModule):
        def __init__(self):
            super().__init__()
            self.model = module_of(sd)
    t = pl.Trainer(accelerator="cpu", logger=False, max_steps=0, enable_checkpointing=False, enable_progress_bar=False,
                   enable_model_summary=False)
    t.strategy.connect(Module())
    t.save_checkpoint(path + ".ckpt")
    return path + ".ckpt"


def module_of(sd):
    import make_writers2026 as W
    return W.module(sd)


def module(path, sd):
    torch.save(module_of(sd), path + ".pt")
    return path + ".pt"


def scripted(path, sd):
    m = module_of(sd)
    m.forward = lambda x: x
    torch.jit.save(torch.jit.trace_module(m, {"forward": torch.ones(1)}), path + ".pt")
    return path + ".pt"


def exported(path, sd):
    import make_writers2026 as W
    W.exported(path + ".pt2", sd)
    return path + ".pt2"


def dcp(path, sd):
    import torch.distributed.checkpoint as d
    d.save({"model": sd}, checkpoint_id=path, no_dist=True)
    return path


def dcp_safetensors(path, sd):
    import torch.distributed.checkpoint as d
    from torch.distributed.checkpoint.filesystem import FileSystemWriter, SerializationFormat
    d.save(sd, storage_writer=FileSystemWriter(path, serialization_format=SerializationFormat.SAFETENSORS), no_dist=True)
    return path


def dcp_huggingface(path, sd):
    import torch.distributed.checkpoint as d
    from torch.distributed.checkpoint import HuggingFaceStorageWriter
    d.save(sd, storage_writer=HuggingFaceStorageWriter(path=path, fqn_to_index_mapping=dict.fromkeys(sd, 1)), no_dist=True)
    return path


def meta(path, sd):
    import make_writers2026 as W
    out = W.meta(sd, "")
    for k, v in sd.items():
        if rotary(k):
            out[k.replace("model.", "").replace("self_attn", "attention").replace("q_proj", "wq").replace("k_proj", "wk")] = \
                halves_to_pairs(v, rotary(k))
    os.makedirs(path)
    torch.save({k: v.clone() for k, v in out.items()}, path + "/consolidated.00.pth")
    return path


def packed(path, sd):
    """Phi-3's: q, k and v, gate and up in one."""
    out = {}
    for k, v in sd.items():
        for whole, parts in (("qkv_proj", ("q_proj", "k_proj", "v_proj")), ("gate_up_proj", ("gate_proj", "up_proj"))):
            if parts[0] in k:
                out[k.replace(parts[0], whole)] = torch.cat([sd[k.replace(parts[0], x)] for x in parts])
            if any(x in k for x in parts):
                break
        else:
            out[k] = v
    return safetensors(path, out)


# --- other frameworks ---

def gguf(path, sd, kind="F32", ggml=None):
    import gguf as g

    import make_writers2026 as W
    w = g.GGUFWriter(path + ".gguf", "llama")
    w.add_block_count(L)
    for k, v in sd.items():
        v = halves_to_pairs(v, rotary(k)) if rotary(k) else v
        few = is_linear(k) and kind != "F32"
        for a, b in W.GGUF:
            k = k.replace(a, b)
        t = getattr(g.GGMLQuantizationType, kind if few else "F32")
        a = v.contiguous().float().numpy()
        w.add_tensor(k, a if not few else ggml(a, kind) if ggml else g.quantize(a, t), raw_dtype=t)
    w.write_header_to_file()
    w.write_kv_data_to_file()
    w.write_tensors_to_file()
    w.close()
    return path + ".gguf"


def onnx(path, sd, beside=False):
    import onnx as o
    t = [o.numpy_helper.from_array(v.contiguous().numpy(), k) for k, v in sd.items()]
    m = o.helper.make_model(o.helper.make_graph([], "g", [], [], t))
    os.makedirs(path)
    o.save_model(m, path + "/model.onnx", **({"save_as_external_data": True, "location": "model.data"} if beside else {}))
    return path + "/model.onnx"


def npz(path, sd):
    np.savez(path + ".npz", **{k: v.numpy() for k, v in sd.items()})
    return path + ".npz"


def turned(sd, weight="kernel"):
    """A tree as Flax's modules have it: kernels of (in, out)."""
    tree = {}
    for k, v in sd.items():
        at, words = tree, k.split(".")
        words[-1] = "embedding" if "embed" in k else weight if v.ndim > 1 else "weight"
        for w in words[:-1]:
            at = at.setdefault(w, {})
        at[words[-1]] = np.ascontiguousarray(v.numpy().T if words[-1] == weight else v.numpy())
    return tree


def flax(path, sd):
    import flax.serialization
    with open(path + ".msgpack", "wb") as f:
        f.write(flax.serialization.to_bytes({"params": turned(sd)}))
    return path + ".msgpack"


def orbax(path, sd):
    import orbax.checkpoint as ocp
    ocp.Checkpointer(ocp.PyTreeCheckpointHandler(use_ocdbt=False, use_zarr3=False)).save(os.path.abspath(path),
                                                                                      {"params": turned(sd)})
    return path


def paddle(path, sd):
    import paddle as p
    p.save({("llama" + k[5:] if k.startswith("model.") else k): p.to_tensor(v.numpy()) for k, v in sd.items()}, path + ".pdparams")
    return path + ".pdparams"


def keras(path, sd):
    """A model of Keras' own layers, called as the modules are."""
    import keras as k
    layers, values = [], []
    for name, v in sd.items():
        own, v = name.rsplit(".", 1)[0], v.numpy()
        if "embed" in name:
            layer, v, shape = k.layers.Embedding(*v.shape, name=own), v, (4,)
        elif v.ndim == 1:
            layer, shape = k.layers.LayerNormalization(center=False, name=own), (4, len(v))
        else:
            layer, v, shape = k.layers.Dense(len(v), use_bias=False, name=own), v.T, (4, v.shape[1])
        layer.build(shape)
        layers.append(layer)
        values.append(v)

    class Model(k.Model):
        def __init__(self):
            super().__init__()
            self.all = layers
            self.built = True

        def call(self, x):
            return x
    m = Model()
    for layer, v in zip(layers, values):
        layer.set_weights([np.ascontiguousarray(v)])
    m.save_weights(path + ".weights.h5")
    return path + ".weights.h5"


# --- in few bits ---

def replace_linear(sd, few):
    """Each linear weight's tensors in its place: few(module's name, weight) to a dict of last words."""
    out = {}
    for k, v in sd.items():
        if is_linear(k):
            out.update({(k + a if a[:1] == "." else k[:-6] + a if a else k): t for a, t in few(k, v).items()})
        else:
            out[k] = v
    return out


def bitsandbytes(path, sd, kind="nf4", nested=False):
    import bitsandbytes.functional as bnb

    def few(k, v):
        if kind == "int8":
            q, s, _ = bnb.int8_vectorwise_quant(v.half())
            return {"weight": q, "SCB": s, "weight_format": torch.tensor(0, dtype=torch.uint8)}
        q, state = bnb.quantize_4bit(v.bfloat16(), blocksize=64, quant_type=kind, compress_statistics=nested)
        return {"weight": q, **{"." + a: b for a, b in state.as_dict(packed=True).items()}}
    return safetensors(path, replace_linear(sd, few))


def torchao(path, sd, how=None):
    from torchao.quantization import quantize_
    m = model_of(sd).bfloat16()
    quantize_(m, how(), filter_fn=lambda m, n: isinstance(m, torch.nn.Linear) and is_linear(n))
    torch.save({k: v for k, v in m.state_dict().items() if k in sd}, path + ".bin")
    return path + ".bin"


def compressed(path, sd, form=None, **more):
    from compressed_tensors.compressors import BaseCompressor
    from compressed_tensors.quantization import QuantizationArgs, QuantizationScheme
    from compressed_tensors.quantization.utils import calculate_qparams
    args = QuantizationArgs(**more)
    way, scheme = BaseCompressor.get_value_from_registry(form), QuantizationScheme(targets=["Linear"], weights=args)

    def few(k, v):
        v = v.float()
        one, kw = {"weight": v}, {}
        if form.startswith("nvfp4"):
            one["weight_global_scale"] = kw["global_scale"] = (448 * 6 / v.abs().max()).float().reshape(1)
        x = v.view(len(v), -1, more.get("group_size", v.shape[1]))
        low, high = (v.min().reshape(1), v.max().reshape(1)) if more["strategy"] == "tensor" else (x.amin(2), x.amax(2))
        one["weight_scale"], one["weight_zero_point"] = calculate_qparams(low, high, args, **kw)
        return {a: getattr(b, "data", b) for a, b in way.compress(one, scheme).items()}
    return safetensors(path, replace_linear(sd, few))


def grid(v, bits, sym, group):
    x, most = v.float().view(len(v), -1, group), 2 ** bits - 1
    if sym:
        s = 2 * x.abs().amax(2) / most
        return s.half().float(), torch.full_like(s, (most + 1) // 2)
    low, high = x.amin(2).clamp(max=0), x.amax(2).clamp(min=0)
    s = ((high - low) / most).half().float()
    return s, torch.round(-low / s)


def gptq(path, sd, bits=4, sym=True, order=False, first=True):
    from gptqmodel.nn_modules.qlinear.torch import TorchLinear
    from gptqmodel.utils.model import convert_gptq_v2_to_v1_format_module
    g = torch.Generator().manual_seed(1)

    def few(k, v):
        n, m = v.shape
        idx = torch.arange(m) // 64
        if order:
            idx = idx[torch.randperm(m, generator=g)]
        s, z = grid(v[:, torch.argsort(idx, stable=True)], bits, sym, 64)
        lin = torch.nn.Linear(m, n, bias=False)
        lin.weight.data = v.float().clone()
        q = TorchLinear(bits=bits, group_size=64, desc_act=order, sym=sym, in_features=m, out_features=n, bias=False,
                        pack_dtype=torch.int32, adapter=None, register_buffers=True)
        q.pack_original(lin, s, z, idx.to(torch.int32))
        if first:
            q.qzero_format(format=2)
            convert_gptq_v2_to_v1_format_module(q, types.SimpleNamespace(bits=bits, pack_dtype=torch.int32))
        return {a: getattr(q, a) for a in ("qweight", "qzeros", "scales", "g_idx")}
    os.makedirs(path)
    with open(path + "/quantize_config.json", "w") as f:
        f.write('{"bits": %d, "group_size": 64, "sym": %s, "desc_act": %s, "checkpoint_format": "%s", "quant_method": "gptq"}' % (
            bits, str(sym).lower(), str(order).lower(), "gptq" if first else "gptq_v2"))
    return safetensors(path + "/model", replace_linear(sd, few))  # by its name: the settings of two formats are others


def awq(path, sd):
    from awq.modules.linear.gemm import WQLinear_GEMM

    def few(k, v):
        s, z = grid(v, 4, False, 64)
        n, m = v.shape
        x = torch.clamp(torch.round(v.float().view(n, -1, 64) / s[..., None]) + z[..., None], 0, 15) - z[..., None]
        lin = torch.nn.Linear(m, n, bias=False)
        lin.weight.data = (x * s[..., None]).view(n, m)
        q = WQLinear_GEMM.from_linear(lin, 4, 64, scales=s.T.contiguous(), zeros=z.T.contiguous())
        return {a: getattr(q, a) for a in ("qweight", "qzeros", "scales")}
    return safetensors(path, replace_linear(sd, few))


def onnxruntime(path, sd):
    """Initializers as onnxruntime's quantize_dynamic leaves them (its own: make_onnxruntime.py)."""
    import onnx as o
    t = []
    for k, v in sd.items():
        if is_linear(k):
            s = np.float32(v.abs().max() / 127)
            t += [o.numpy_helper.from_array(np.clip(np.rint(v.numpy() / s), -127, 127).astype("i1"), k + "_quantized"),
                  o.numpy_helper.from_array(s, k + "_scale"), o.numpy_helper.from_array(np.int8(0), k + "_zero_point")]
        else:
            t.append(o.numpy_helper.from_array(v.contiguous().numpy(), k))
    o.save_model(o.helper.make_model(o.helper.make_graph([], "g", [], [], t)), path + ".onnx")
    return path + ".onnx"


class Nothing(type("Base", (), {})):
    """What a package that packing does not need has: anything."""
    def __init__(self, *args, **kwargs):
        pass

    def __getattr__(self, name):
        return Nothing()

    def __call__(self, *args, **kwargs):
        return Nothing()

    def __or__(self, other):
        return self

    def __mro_entries__(self, bases):
        return ()


class Absent(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Packages that gptqmodel imports for what is not called here."""
    names = ("pcre", "requests", "datasets", "PIL", "maturin", "device_smi", "tokenicer", "defuser")

    def find_spec(self, name, path, target=None):
        mine = name.split(".")[0] in self.names
        return importlib.machinery.ModuleSpec(name, self, is_package=True) if mine else None

    def create_module(self, spec):
        m = types.ModuleType(spec.name)

        def get(name):
            if name.startswith("__"):
                raise AttributeError(name)
            return Nothing()
        m.__path__, m.__getattr__ = [], get
        return m

    def exec_module(self, module):
        pass


def sources(gptqmodel, autoawq):
    """Modules of two packages whose whole does not load where no GPU is."""
    sys.path.insert(0, gptqmodel)
    sys.meta_path.append(Absent())
    for n in ("", ".modules", ".modules.linear", ".utils"):
        m = types.ModuleType("awq" + n)
        m.__path__ = [os.path.join(autoawq, "awq" + n.replace(".", "/"))]
        sys.modules["awq" + n] = m


def open_ggml(lib):
    """ggml's own quantizers, as make_quantized.py loads them."""
    with open(os.path.join(HERE, "..", "data", "make_quantized.py")) as f:
        head = f.read().split("def llama(")[0]
    scope = {"__file__": os.path.join(HERE, "..", "data", "make_quantized.py")}
    exec(compile(head, "make_quantized.py", "exec"), scope)
    library = scope["open_ggml"](lib)
    return lambda w, kind: scope["quantize"](library, w, kind)
