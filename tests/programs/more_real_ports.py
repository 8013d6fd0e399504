"""More networks in public packages that know nothing of each other, as real_ports.py has them, of other packages and
other kinds: torchtune's interleaved rotation against rotate_half, caps and windows, experts, norms behind, one norm
for two branches, torch's own encoder, graphs by edges and dense, losses and a CRF of two packages.
Written after the judge had been taught on all other sets: what it said of them first stands in RESULTS.md.
Versions: transformers 5.24, litgpt 0.5.13, torchtune 0.6.1, timm 1.0.31, torchvision 0.29, open_clip 3.3,
torch_geometric 2.8.1, pytorch-metric-learning 2.9.0, lightly 1.6.0, pytorch-crf 0.7.2, torch-struct 0.5."""
import re

import torch
import torch.nn.functional as F
from torch import nn

from real_ports import V, QuickGelu, classes, dtype_of, ends, filled, forward, fused, hf_llama, ids, load, next_token, picture, put, rolled, setting, squares, swapped, weights


def hf_lm(kind, **more):
    import transformers as t
    c = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4, "num_key_value_heads": 2, "vocab_size": V, "intermediate_size": 48, "max_position_embeddings": 32,
         "pad_token_id": 0, "attn_implementation": "eager", **more}
    m = filled(getattr(t, kind + "ForCausalLM")(getattr(t, kind + "Config")(**c)))
    x = ids()
    return m, ends(lambda: m(input_ids=x, use_cache=False).logits, lambda y: next_token(y, x))


def litgpt(copy, state, first=True, **more):
    import litgpt.scripts.convert_hf_checkpoint as convert
    from litgpt.config import Config
    from litgpt.model import GPT
    c = Config(**{"name": "small", "block_size": 32, "vocab_size": V, "padded_vocab_size": V, "n_layer": 2, "n_head": 4, "n_query_groups": 2, "n_embd": 32, "rotary_percentage": 1.0,
                  "parallel_residual": False, "bias": False, "norm_class_name": "RMSNorm", "mlp_class_name": "LLaMAMLP", "intermediate_size": 48, "rope_base": 10000, **more})
    new = {}
    getattr(convert, copy)(*([c] if first else []), {}, new, dict(state))
    m = load(GPT(c), new)
    x = ids()
    return m, ends(lambda: m(x), lambda y: next_token(y, x))


def config(path, **values):
    """A fault: another value in the configuration of one module alone."""
    def change(m):
        import copy
        at = m.get_submodule(path)
        at.config = copy.copy(at.config)
        for k, v in values.items():
            setattr(at.config, k, v)
    return change


# --- Llama: transformers and torchtune, whose rotation is of neighbours, with the weights in another order

def tune_llama(bench):
    from torchtune.models.convert_weights import hf_to_tune
    from torchtune.models.llama2 import llama2
    m = llama2(vocab_size=V, num_layers=2, num_heads=4, num_kv_heads=2, embed_dim=32, max_seq_len=32, intermediate_dim=48, norm_eps=1e-5)
    m = load(m, hf_to_tune(dict(bench.state_dict()), num_heads=4, num_kv_heads=2, dim=32), drop=["rotary"])
    x = ids()
    return m, ends(lambda: m(x), lambda y: next_token(y, x))


def unturned(m):
    at = m.layers[0].attn
    with torch.no_grad():
        at.q_proj.weight.copy_(at.q_proj.weight.view(4, 4, 2, 32).transpose(1, 2).reshape(32, 32))


TUNE = {
    "unturned": ("model.layers.0.self_attn", "layers.0.attn", unturned),
    "still": ("model.layers.1.self_attn", "layers.1.attn", setting("layers.1.attn", pos_embeddings=None)),
    "eps": ("model.layers.1.post_attention_layernorm", "layers.1.mlp_norm", setting("layers.1.mlp_norm", eps=1e-2)),
    "gelu": ("model.layers.0.mlp", "layers.0.mlp", setting("layers.0.mlp", activation=nn.GELU())),
    "gate": ("model.layers.1.mlp", "layers.1.mlp", swapped("layers.1.mlp.w1.weight", "layers.1.mlp.w3.weight")),
    "causal": ("model.layers.0.self_attn", "layers.0.attn", setting("layers.0.attn", is_causal=False)),
}


# --- Gemma 2: transformers and litgpt (caps, windows, norms before and behind, embeddings scaled)

def hf_gemma2():
    return hf_lm("Gemma2", head_dim=8, query_pre_attn_scalar=16, sliding_window=4, attn_logit_softcapping=5.0, final_logit_softcapping=6.0, rms_norm_eps=1e-6)


def litgpt_gemma2(bench):
    return litgpt("copy_weights_gemma_2", bench.state_dict(), False, name="Gemma-2-small", head_size=8, scale_embeddings=True, attention_scores_scalar=16, attention_logit_softcapping=5.0,
                  final_logit_softcapping=6.0, sliding_window_size=4, sliding_window_indices=[1, 0], mlp_class_name="GemmaMLP", gelu_approximate="tanh", norm_eps=1e-6,
                  norm_class_name="RMSNorm", post_attention_norm=True, post_mlp_norm=True)


GEMMA2 = {
    "cap": ("model.layers.0.self_attn", "transformer.h.0.attn", config("transformer.h.0.attn", attention_logit_softcapping=50.0)),
    "window": ("model.layers.0.self_attn", "transformer.h.0.attn", setting("transformer.h.0.attn", apply_sliding_window_attention=False)),
    "scalar": ("model.layers.1.self_attn", "transformer.h.1.attn", config("transformer.h.1.attn", attention_scores_scalar=8)),
    "exact": ("model.layers.0.mlp", "transformer.h.0.mlp", config("transformer.h.0.mlp", gelu_approximate="none")),
    "unit": ("model.layers.1.post_feedforward_layernorm", "transformer.h.1.post_mlp_norm", setting("transformer.h.1.post_mlp_norm", add_unit_offset=False)),
}


# --- Mixtral: transformers and litgpt

def hf_mixtral():
    m, run = hf_lm("Mixtral", num_local_experts=4, num_experts_per_tok=2, sliding_window=None, rms_norm_eps=1e-5, experts_implementation="eager")
    with torch.no_grad():
        for name, p in m.named_parameters():
            if p.dim() == 3:                    # one weight an expert: its fan is a row's
                p.mul_(p.shape[1] ** 0.5)
    return m, run


def litgpt_mixtral(bench):
    state = {}
    for k, v in bench.state_dict().items():      # as its checkpoints have them
        if k.endswith("mlp.experts.gate_up_proj"):
            for e in range(4):
                one, three = v[e].chunk(2)
                at = k.replace("mlp.experts.gate_up_proj", f"block_sparse_moe.experts.{e}.")
                state[at + "w1.weight"], state[at + "w3.weight"] = one, three
        elif k.endswith("mlp.experts.down_proj"):
            for e in range(4):
                state[k.replace("mlp.experts.down_proj", f"block_sparse_moe.experts.{e}.w2.weight")] = v[e]
        else:
            state[k.replace("mlp.gate", "block_sparse_moe.gate")] = v
    return litgpt("copy_weights_hf_llama", state, norm_eps=1e-5, mlp_class_name="LLaMAMoE", n_expert=4, n_expert_per_token=2, rope_base=1000000)


MIXTRAL = {
    "one": ("model.layers.0.mlp", "transformer.h.0.mlp", config("transformer.h.0.mlp", n_expert_per_token=1)),
    "expert": ("model.layers.1.mlp", "transformer.h.1.mlp", swapped("transformer.h.1.mlp.experts.0.proj.weight", "transformer.h.1.mlp.experts.2.proj.weight")),
    "router": ("model.layers.1.mlp", "transformer.h.1.mlp", weights(lambda m: m.transformer.h[1].mlp.gate.weight.copy_(m.transformer.h[1].mlp.gate.weight.roll(1, 0)))),
    "eps": ("model.layers.0.input_layernorm", "transformer.h.0.norm_1", setting("transformer.h.0.norm_1", eps=1e-2)),
}


# --- OLMo 2: transformers and litgpt (norms behind, and over all heads of queries and keys)

def hf_olmo2():
    return hf_lm("Olmo2", rms_norm_eps=1e-6)


def litgpt_olmo2(bench):
    return litgpt("copy_weights_olmo2", bench.state_dict(), norm_eps=1e-6, norm_1=False, norm_2=False, norm_qk=True, norm_qk_type="olmo2", post_attention_norm=True, post_mlp_norm=True)


OLMO2 = {
    "keys": ("model.layers.0.self_attn", "transformer.h.0.attn", weights(lambda m: m.transformer.h[0].attn.norm_k.weight.fill_(1.0))),
    "rope": ("model.layers.1.self_attn", "transformer.h.1.attn", rolled),
    "before": ("model.layers.1.mlp", "transformer.h.1", lambda m: (setattr(m.transformer.h[1], "norm_2", m.transformer.h[1].post_mlp_norm), setattr(m.transformer.h[1], "post_mlp_norm", nn.Identity()))),
    "gelu": ("model.layers.0.mlp", "transformer.h.0.mlp", lambda m: setattr(m.transformer.h[0].mlp, "forward", lambda x, p=m.transformer.h[0].mlp: p.proj(F.gelu(p.fc_1(x)) * p.fc_2(x)))),
}


# --- Phi: transformers and litgpt (one norm for both branches, a part of each head turned, biases everywhere)

def hf_phi():
    return hf_lm("Phi", num_key_value_heads=4, partial_rotary_factor=0.5, intermediate_size=64, resid_pdrop=0.0, embd_pdrop=0.0, attention_dropout=0.0, hidden_act="gelu_new")


def litgpt_phi(bench):
    return litgpt("copy_weights_phi", bench.state_dict(), n_query_groups=4, rotary_percentage=0.5, intermediate_size=64, bias=True, lm_head_bias=True, shared_attention_norm=True,
                  parallel_residual=True, norm_class_name="LayerNorm", mlp_class_name="GptNeoxMLP", gelu_approximate="tanh", norm_eps=1e-5)


PHI = {
    "exact": ("model.layers.0.mlp", "transformer.h.0.mlp", config("transformer.h.0.mlp", gelu_approximate="none")),
    "head": ("lm_head", "lm_head", weights(lambda m: m.lm_head.bias.zero_())),
    "rope": ("model.layers.0.self_attn", "transformer.h.0.attn", rolled),
    "qkv": ("model.layers.1.self_attn", "transformer.h.1.attn", weights(lambda m: m.transformer.h[1].attn.qkv.bias.copy_(m.transformer.h[1].attn.qkv.bias.roll(32)))),
    "sequential": ("model.layers.1", "transformer.h.1", lambda m: setattr(m.transformer.h[1], "forward", lambda x, cos, sin, *a, b=m.transformer.h[1], **k: (
        lambda h: h + b.mlp(b.norm_1(h)))(x + b.attn(b.norm_1(x), cos, sin)))),
}


# --- BERT: transformers and torch's own encoder

def hf_bert():
    import transformers as t
    c = t.BertConfig(hidden_size=32, num_hidden_layers=2, num_attention_heads=4, intermediate_size=64, vocab_size=V, max_position_embeddings=16, hidden_dropout_prob=0.0,
                     attention_probs_dropout_prob=0.0, attn_implementation="eager", pad_token_id=0)
    m = filled(t.BertForMaskedLM(c))
    x, mask = bert_ids()
    return m, ends(lambda: m(input_ids=x, attention_mask=mask).logits[mask.bool()], lambda y: F.cross_entropy(y.float(), x[mask.bool()].roll(1)))


def bert_ids():
    x = ids()
    mask = torch.ones_like(x)
    mask[1, 6:] = 0
    return x, mask


class TorchBert(nn.Module):
    def __init__(self):
        super().__init__()
        self.words, self.places, self.kinds = nn.Embedding(V, 32, 0), nn.Embedding(16, 32), nn.Embedding(2, 32)
        self.norm = nn.LayerNorm(32, eps=1e-12)
        self.encoder = nn.TransformerEncoder(nn.TransformerEncoderLayer(32, 4, 64, 0.0, "gelu", 1e-12, batch_first=True), 2, enable_nested_tensor=False)
        self.dense, self.act, self.last = nn.Linear(32, 32), nn.GELU(), nn.LayerNorm(32, eps=1e-12)
        self.head = nn.Linear(32, V)

    def forward(self, x, mask):
        h = self.norm(self.words(x) + self.places(torch.arange(x.shape[1])) + self.kinds(torch.zeros_like(x)))
        h = self.encoder(h, src_key_padding_mask=~mask)
        return self.head(self.last(self.act(self.dense(h))))[mask]


def torch_bert(bench):
    torch.backends.mha.set_fastpath_enabled(False)
    state = {re.sub(r"^bert\.", "", k): v for k, v in bench.state_dict().items()}
    state = fused(state, "self", ("query", "key", "value"), {"weight": "in_proj_weight", "bias": "in_proj_bias"})
    rename = [(r"^embeddings\.word_embeddings", "words"), (r"^embeddings\.position_embeddings", "places"), (r"^embeddings\.token_type_embeddings", "kinds"), (r"^embeddings\.LayerNorm", "norm"),
              (r"^encoder\.layer\.", "encoder.layers."), (r"attention\.self\.", "self_attn."), (r"attention\.output\.dense", "self_attn.out_proj"), (r"attention\.output\.LayerNorm", "norm1"),
              (r"intermediate\.dense", "linear1"), (r"output\.dense", "linear2"), (r"output\.LayerNorm", "norm2"), (r"^cls\.predictions\.transform\.dense", "dense"),
              (r"^cls\.predictions\.transform\.LayerNorm", "last"), (r"^cls\.predictions\.decoder", "head")]
    m = load(TorchBert(), state, rename)
    x, mask = bert_ids()
    return m, ends(lambda: m(x, mask.bool()), lambda y: F.cross_entropy(y.float(), x[mask.bool()].roll(1)))


BL = "bert.encoder.layer.{}"
BERT = {
    "relu": (BL.format(0), "encoder.layers.0", setting("encoder.layers.0", activation=lambda _: F.relu)),
    "before": (BL.format(1), "encoder.layers.1", setting("encoder.layers.1", norm_first=True)),
    "eps": (BL.format(1) + ".output.LayerNorm", "encoder.layers.1.norm2", setting("encoder.layers.1.norm2", eps=1e-1)),
    "padding": (BL.format(0), "encoder.layers.0", forward("encoder.layers.0", lambda old, x, *a, **k: old(x))),
    "tanh": ("cls.predictions.transform", "act", setting("act", approximate="tanh")),
    "bias": (BL.format(0), "encoder.layers.0.self_attn", weights(lambda m: m.encoder.layers[0].self_attn.in_proj_bias.copy_(m.encoder.layers[0].self_attn.in_proj_bias.roll(32)))),
}


# --- CLIP's picture tower: transformers and open_clip

def hf_clip_vision():
    import transformers as t
    c = t.CLIPVisionConfig(hidden_size=32, intermediate_size=128, num_hidden_layers=2, num_attention_heads=4, image_size=16, patch_size=4, projection_dim=24, hidden_act="gelu",
                           attn_implementation="sdpa")
    m = filled(t.CLIPVisionModelWithProjection(c))
    x = picture(16)
    return m, ends(lambda: m(pixel_values=x.to(dtype_of(m))).image_embeds, squares)


def open_clip_vision(bench):
    from open_clip.transformer import VisionTransformer
    m = VisionTransformer(16, 4, 32, 2, 4, 4.0, output_dim=24)
    state = {re.sub(r"^vision_model\.", "", k): v for k, v in bench.state_dict().items()}
    state = fused(state, "self_attn", ("q_proj", "k_proj", "v_proj"), {"weight": "in_proj_weight", "bias": "in_proj_bias"})
    state["proj"] = state.pop("visual_projection.weight").t()
    rename = [(r"^embeddings\.class_embedding", "class_embedding"), (r"^embeddings\.patch_embedding", "conv1"), (r"^embeddings\.position_embedding\.weight", "positional_embedding"),
              (r"^pre_layrnorm", "ln_pre"), (r"^post_layernorm", "ln_post"), (r"^encoder\.layers", "transformer.resblocks"), (r"self_attn", "attn"), (r"layer_norm1", "ln_1"),
              (r"layer_norm2", "ln_2"), (r"mlp\.fc1", "mlp.c_fc"), (r"mlp\.fc2", "mlp.c_proj")]
    m = load(m, state, rename)
    x = picture(16)
    return m, ends(lambda: m(x.to(dtype_of(m))), squares)


PICTURE = {
    "quick": ("vision_model.encoder.layers.1.mlp", "transformer.resblocks.1.mlp", put("transformer.resblocks.1.mlp.gelu", QuickGelu())),
    "pre": ("vision_model.pre_layrnorm", "ln_pre", weights(lambda m: m.ln_pre.bias.zero_())),
    "patch": ("vision_model.embeddings.patch_embedding", "conv1", weights(lambda m: m.conv1.weight.copy_(m.conv1.weight.flip(1)))),
    "heads": ("vision_model.encoder.layers.0.self_attn", "transformer.resblocks.0.attn", setting("transformer.resblocks.0.attn", num_heads=2, head_dim=16)),
}


# --- DINOv2: transformers and timm (scales of layers, q, k and v in one)

def hf_dino():
    import transformers as t
    c = t.Dinov2Config(hidden_size=32, num_hidden_layers=2, num_attention_heads=4, mlp_ratio=2, image_size=16, patch_size=4, num_labels=7, attn_implementation="eager", layerscale_value=1.0,
                       use_swiglu_ffn=False)
    m = filled(t.Dinov2Model(c))
    x = picture(16)
    return m, ends(lambda: m(pixel_values=x.to(dtype_of(m))).last_hidden_state, squares)


def timm_dino(bench):
    from timm.models.vision_transformer import VisionTransformer
    m = VisionTransformer(img_size=16, patch_size=4, embed_dim=32, depth=2, num_heads=4, num_classes=0, mlp_ratio=2, init_values=1.0, global_pool="")
    state = fused(bench.state_dict(), "attention", ("q_proj", "k_proj", "v_proj"), {"weight": "qkv.weight", "bias": "qkv.bias"})
    rename = [(r"^embeddings\.cls_token", "cls_token"), (r"^embeddings\.position_embeddings", "pos_embed"), (r"^embeddings\.patch_embeddings\.projection", "patch_embed.proj"),
              (r"^encoder\.layer\.", "blocks."), (r"attention\.o_proj", "attn.proj"), (r"attention\.", "attn."), (r"layer_scale(\d)\.lambda1", r"ls\1.gamma"), (r"^layernorm", "norm")]
    m = load(m, state, rename)
    x = picture(16)
    return m, ends(lambda: m(x.to(dtype_of(m))), squares)


DINO = {
    "scale": ("encoder.layer.0", "blocks.0", weights(lambda m: m.blocks[0].ls1.gamma.fill_(1.0))),
    "eps": ("layernorm", "norm", setting("norm", eps=1e-2)),
    "tanh": ("encoder.layer.1.mlp", "blocks.1.mlp", setting("blocks.1.mlp.act", approximate="tanh")),
    "softmax": ("encoder.layer.1.attention", "blocks.1.attn", setting("blocks.1.attn", scale=1.0, fused_attn=False)),
    "place": ("embeddings", "patch_embed", weights(lambda m: m.pos_embed.copy_(m.pos_embed.flip(1)))),
}


# --- Swin: timm and torchvision (windows, shifts, biases of places, merging of patches)

def timm_swin():
    from timm.models.swin_transformer import SwinTransformer
    m = filled(SwinTransformer(img_size=32, patch_size=4, embed_dim=16, depths=(2, 2), num_heads=(2, 4), window_size=4, mlp_ratio=2, num_classes=7, drop_path_rate=0.0))
    x = picture(32)
    return m, ends(lambda: m(x.to(dtype_of(m))), classes)


def tv_swin(bench):
    from torchvision.models.swin_transformer import SwinTransformer
    m = SwinTransformer([4, 4], 16, [2, 2], [2, 4], [4, 4], mlp_ratio=2, stochastic_depth_prob=0.0, num_classes=7)
    new = {}
    for k, v in bench.state_dict().items():
        k = re.sub(r"^patch_embed\.proj", "features.0.0", k)
        k = re.sub(r"^patch_embed\.norm", "features.0.2", k)
        k = re.sub(r"^layers\.0\.blocks", "features.1", k)
        k = re.sub(r"^layers\.1\.downsample", "features.2", k)
        k = re.sub(r"^layers\.1\.blocks", "features.3", k)
        k = re.sub(r"mlp\.fc1", "mlp.0", k)
        k = re.sub(r"mlp\.fc2", "mlp.3", k)
        k = re.sub(r"^head\.fc", "head", k)
        new[k] = v
    own = m.state_dict()
    m = load(m, {**{k: v for k, v in own.items() if "index" in k}, **{k: v for k, v in new.items() if "index" not in k and "mask" not in k}})
    x = picture(32)
    return m, ends(lambda: m(x.to(dtype_of(m))), classes)


SWIN = {
    "shift": ("layers.0.blocks.1", "features.1.1", setting("features.1.1.attn", shift_size=[0, 0])),
    "bias": ("layers.0.blocks.0.attn", "features.1.0.attn", weights(lambda m: m.features[1][0].attn.relative_position_bias_table.copy_(m.features[1][0].attn.relative_position_bias_table.flip(0)))),
    "merge": ("layers.1.downsample", "features.2", weights(lambda m: m.features[2].reduction.weight.copy_(m.features[2].reduction.weight.roll(16, 1)))),
    "relu": ("layers.1.blocks.0.mlp", "features.3.0.mlp", put("features.3.0.mlp.1", nn.ReLU())),
    "eps": ("layers.1.blocks.1.norm2", "features.3.1.norm2", setting("features.3.1.norm2", eps=1e-1)),
}


# --- MobileNet V3: timm and torchvision (depthwise, squeezing, hard gates)

def timm_mobile():
    import timm
    m = filled(timm.create_model("mobilenetv3_small_100", num_classes=7))
    for b in m.modules():
        if isinstance(b, nn.BatchNorm2d):
            b.eps = 1e-3
    x = picture(48)
    return m, ends(lambda: m(x.to(dtype_of(m))), classes)


def tv_mobile(bench):
    import torchvision
    m = torchvision.models.mobilenet_v3_small(num_classes=7)
    own = m.state_dict()
    m = load(m, {k: v.reshape(own[k].shape) for k, v in zip(own, bench.state_dict().values())})   # in the order of their layers
    x = picture(48)
    return m, ends(lambda: m(x.to(dtype_of(m))), classes)


MOBILE = {
    "hard": ("blocks.3.0", "features.7.block", put("features.7.block.0.2", nn.SiLU())),
    "eps": ("blocks.4.0.bn1", "features.9.block.0.1", setting("features.9.block.0.1", eps=1e-1)),
    "gate": ("blocks.2.1.se", "features.5.block.2", setting("features.5.block.2", scale_activation=nn.Sigmoid())),
    "last": ("act2", "classifier.1", put("classifier.1", nn.ReLU())),
}


# --- a graph: by edges and dense, both of torch_geometric

def graph():
    g = torch.Generator().manual_seed(9)
    dense = (torch.rand(11, 11, generator=g) < 0.3).float().triu(1)
    dense = dense + dense.t()
    return torch.randn(11, 16, generator=g), dense


class ByEdges(nn.Module):
    def __init__(self):
        super().__init__()
        from torch_geometric.nn import GCNConv, GINConv, SAGEConv
        self.one, self.two = GCNConv(16, 24), SAGEConv(24, 24)
        self.three = GINConv(nn.Sequential(nn.Linear(24, 24), nn.ReLU(), nn.Linear(24, 24)))
        self.head = nn.Linear(24, 5)

    def forward(self, x, edges):
        return self.head(self.three(F.elu(self.two(F.relu(self.one(x, edges)), edges)), edges))


class ByMatrix(nn.Module):
    def __init__(self):
        super().__init__()
        from torch_geometric.nn import DenseGCNConv, DenseGINConv, DenseSAGEConv
        self.one, self.two = DenseGCNConv(16, 24), DenseSAGEConv(24, 24)
        self.three = DenseGINConv(nn.Sequential(nn.Linear(24, 24), nn.ReLU(), nn.Linear(24, 24)))
        self.head = nn.Linear(24, 5)

    def forward(self, x, adj):
        return self.head(self.three(F.elu(self.two(F.relu(self.one(x, adj)), adj)), adj))[0]


def edges_graph():
    m = filled(ByEdges())
    x, adj = graph()
    e = adj.nonzero().t().contiguous()
    return m, ends(lambda: m(x.to(dtype_of(m)), e), classes)


def dense_graph(bench):
    rename = [(r"two\.lin_l\.bias", "two.lin_root.bias"), (r"two\.lin_l\.", "two.lin_rel."), (r"two\.lin_r\.", "two.lin_root.")]
    m = load(ByMatrix(), bench.state_dict(), rename)
    x, adj = graph()
    return m, ends(lambda: m(x.to(dtype_of(m)), adj.to(dtype_of(m))), classes)


GRAPH = {
    "loop": ("one", "one", forward("one", lambda old, x, adj: old(x, adj, add_loop=False))),
    "mean": ("two", "two", forward("two", lambda old, x, adj: old(x, adj + torch.eye(11, dtype=adj.dtype)))),
    "own": ("three", "three", forward("three", lambda old, x, adj: old(x, adj, add_loop=False))),
    "bias": ("one", "one", weights(lambda m: m.one.bias.zero_())),
}


# --- contrast: pytorch-metric-learning and lightly

class Views(nn.Module):
    def __init__(self, how):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(16, 32), nn.LayerNorm(32), nn.GELU(), nn.Linear(32, 24))
        self.loss = Loss(how)


class Loss(nn.Module):
    def __init__(self, how):
        super().__init__()
        self.how, self.temperature = how, 0.2
        if how == "pml":
            from pytorch_metric_learning.losses import NTXentLoss
            self.inner = NTXentLoss(temperature=0.2)
        else:
            from lightly.loss import NTXentLoss
            self.inner = NTXentLoss(temperature=0.2)

    def forward(self, a, b):
        if self.how == "pml":
            return self.inner(torch.cat([a, b]), torch.arange(a.shape[0]).repeat(2))
        return self.inner(a, b)


def views_run(m):
    g = torch.Generator().manual_seed(10)
    x = torch.randn(6, 16, generator=g)
    n = torch.randn(6, 16, generator=g) * 0.3

    def run():
        a, b = m.body(x.to(dtype_of(m))), m.body((x + n).to(dtype_of(m)))
        return torch.cat([a, b]), m.loss(a.float(), b.float())
    return run


def pml_views():
    m = filled(Views("pml"))
    return m, views_run(m)


def lightly_views(bench):
    m = load(Views("lightly"), bench.state_dict())
    return m, views_run(m)


VIEWS = {
    "temperature": ("loss", "loss", lambda m: setattr(m.loss.inner, "temperature", 0.5)),
    "one": ("loss", "loss", forward("loss", lambda old, a, b: F.cross_entropy(F.normalize(a, dim=1) @ F.normalize(b, dim=1).t() / 0.2, torch.arange(a.shape[0])))),
    "unnormed": ("loss", "loss", forward("loss", lambda old, a, b: (lambda z: F.cross_entropy((z @ z.t() / 0.2).masked_fill(torch.eye(12, dtype=torch.bool), float("-inf")), torch.arange(12).roll(6)))(torch.cat([a, b])))),
}


# --- a chain of tags: pytorch-crf and torch-struct

TAGS = 5


class Tagger(nn.Module):
    def __init__(self, crf):
        super().__init__()
        self.words = nn.Embedding(V, 24)
        self.rnn = nn.GRU(24, 16, batch_first=True, bidirectional=True)
        self.emit = nn.Linear(32, TAGS)
        self.crf = crf


def tagger_run(m):
    x = ids()
    tags = x % TAGS

    def run():
        e = m.emit(m.rnn(m.words(x))[0])
        return e, m.crf(e, tags)
    return run


class Torchcrf(nn.Module):
    def __init__(self):
        super().__init__()
        from torchcrf import CRF
        self.inner = CRF(TAGS, batch_first=True)

    def forward(self, e, tags):
        return -self.inner(e, tags, reduction="mean")


class Struct(nn.Module):
    def __init__(self):
        super().__init__()
        self.start_transitions, self.end_transitions = nn.Parameter(torch.zeros(TAGS)), nn.Parameter(torch.zeros(TAGS))
        self.transitions = nn.Parameter(torch.zeros(TAGS, TAGS))
        self.mean = True

    def forward(self, e, tags):
        from torch_struct import LinearChainCRF
        t = self.transitions.t() + e[:, 1:, :, None]        # (batch, steps, to, from)
        first = torch.zeros_like(t[:, :1]) + (self.start_transitions + e[:, 0])[:, None, None, :]
        last = torch.zeros_like(t[:, -1:]) + self.end_transitions[None, None, :, None]
        n = t.shape[1]
        t = torch.cat([t[:, :1] + first, t[:, 1:]], 1) + torch.cat([torch.zeros_like(t[:, :n - 1]), last], 1)
        d = LinearChainCRF(t)
        path = (F.one_hot(tags[:, 1:], TAGS)[..., None] * F.one_hot(tags[:, :-1], TAGS)[:, :, None]).to(t.dtype)
        loss = d.partition - (path * t).sum((1, 2, 3))
        return loss.mean() if self.mean else loss.sum()


def torchcrf_tagger():
    m = filled(Tagger(Torchcrf()))
    return m, tagger_run(m)


def struct_tagger(bench):
    m = load(Tagger(Struct()), bench.state_dict(), [(r"crf\.inner\.", "crf.")])
    return m, tagger_run(m)


CHAIN = {
    "turned": ("crf", "crf", weights(lambda m: m.crf.transitions.copy_(m.crf.transitions.t().clone()))),
    "end": ("crf", "crf", weights(lambda m: m.crf.end_transitions.zero_())),
    "sum": ("crf", "crf", setting("crf", mean=False)),
    "gru": ("rnn", "rnn", weights(lambda m: m.rnn.weight_hh_l0.copy_(torch.cat([m.rnn.weight_hh_l0[16:32], m.rnn.weight_hh_l0[:16], m.rnn.weight_hh_l0[32:]]).clone()))),
}


FAMILIES = {
    "llama-torchtune": (hf_llama, tune_llama, TUNE, "torchtune"), "gemma2-litgpt": (hf_gemma2, litgpt_gemma2, GEMMA2, "litgpt"), "mixtral-litgpt": (hf_mixtral, litgpt_mixtral, MIXTRAL, "litgpt"),
    "olmo2-litgpt": (hf_olmo2, litgpt_olmo2, OLMO2, "litgpt"), "phi-litgpt": (hf_phi, litgpt_phi, PHI, "litgpt"), "bert-torch": (hf_bert, torch_bert, BERT, "transformers"),
    "picture-open": (hf_clip_vision, open_clip_vision, PICTURE, "open_clip"), "dino-timm": (hf_dino, timm_dino, DINO, "timm"), "swin-torchvision": (timm_swin, tv_swin, SWIN, "timm"),
    "mobile-torchvision": (timm_mobile, tv_mobile, MOBILE, "timm"), "graph-dense": (edges_graph, dense_graph, GRAPH, "torch_geometric"), "views-lightly": (pml_views, lightly_views, VIEWS, "lightly"),
    "chain-struct": (torchcrf_tagger, struct_tagger, CHAIN, "torch_struct"),
}
