"""The same networks in public packages that know nothing of each other: transformers, timm, torchvision, torchaudio,
litgpt, open_clip, whisper, fair-esm, segment-anything, mambapy, peft; as in fourth_ports.py, but that a side is built
by build(fault) with its own weights and gives (run, the modules to mark).

A family: name -> (bench(), device(bench model), faults); each gives (model, run), run() gives (logits, loss). A fault:
name -> (module of the bench, module of the device, change(device's model)): where it lies, by paths, and what it does.
Written after the judge had been taught on all other sets: what it said of them first stands in RESULTS.md.
Versions: transformers 5.24, timm 1.0.31, torchvision 0.29, torchaudio 2.11, litgpt 0.5.13, open_clip 3.3, whisper
20250625, fair-esm 2.0, segment-anything 1.0, mambapy 1.2, peft 0.21. A package that is not there has no families."""
import re

import torch
import torch.nn.functional as F
from torch import nn

V = 61


def filled(model, seed=7):
    """Weights that matter: norms off one, biases off zero, products that keep their size."""
    g = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for name, p in model.named_parameters():
            if p.dim() > 1:
                fan = p[0].numel()
                scale = 1.0 if "embed" in name.lower() or "wte" in name else 1.2 / fan ** 0.5
                if p.shape[0] != 1 and "A_log" not in name:
                    p.copy_(torch.randn(p.shape, generator=g) * scale)
                elif "A_log" not in name:
                    p.copy_(torch.randn(p.shape, generator=g) * 0.5)
            elif name.endswith("weight") or "norm" in name and not name.endswith("bias"):
                p.copy_(1 + 0.3 * torch.randn(p.shape, generator=g))
            else:
                p.copy_(0.3 * torch.randn(p.shape, generator=g))
        for name, b in model.named_buffers():
            if name.endswith("running_mean"):
                b.copy_(0.2 * torch.randn(b.shape, generator=g))
            elif name.endswith("running_var"):
                b.copy_(0.5 + torch.rand(b.shape, generator=g))
    return model.train(False)


def load(model, state, rename=(), drop=()):
    """The model with another's values under its own names."""
    new = {}
    for k, v in state.items():
        if any(re.search(d, k) for d in drop):
            continue
        for a, b in rename:
            k = re.sub(a, b, k)
        new[k] = v
    own = model.state_dict()
    for k in own:
        if k not in new and not re.search(r"num_batches|position_ids|inv_freq|alignment_heads|_features|A_log$", k):
            raise SystemExit(f"{type(model).__name__}: no value for {k}")
    model.load_state_dict({k: v for k, v in new.items() if k in own}, strict=False)
    return model.train(False)


def fused(state, path, parts, to):
    """q, k and v as one weight."""
    out = dict(state)
    for kind in ("weight", "bias"):
        for k in [k for k in state if k.endswith(f"{parts[0]}.{kind}") and re.search(path, k)]:
            base = k[:-len(f"{parts[0]}.{kind}")]
            out[base + to[kind]] = torch.cat([state[f"{base}{p}.{kind}"] for p in parts])
            for p in parts:
                del out[f"{base}{p}.{kind}"]
    return out


def ids(n=9, rows=2, top=V, seed=3):
    return torch.randint(3, top, (rows, n), generator=torch.Generator().manual_seed(seed))


def picture(size, rows=2, seed=4):
    return torch.randn(rows, 3, size, size, generator=torch.Generator().manual_seed(seed))


def next_token(logits, x):
    return F.cross_entropy(logits[:, :-1].reshape(-1, logits.shape[-1]).float(), x[:, 1:].reshape(-1))


def classes(y):
    return F.cross_entropy(y.float(), torch.arange(y.shape[0]) % y.shape[1])


def squares(y):
    g = torch.Generator().manual_seed(5)
    return F.mse_loss(y.float(), torch.randn(y.shape, generator=g))


def ends(logits, loss):
    """A run that gives both."""
    def run():
        y = logits()
        return y, loss(y)
    return run


def dtype_of(m):
    return next(m.parameters()).dtype


def setting(path, **values):
    """A fault: another value of an attribute."""
    def change(m):
        for k, v in values.items():
            at = m.get_submodule(path)
            setattr(at, k, v(getattr(at, k)) if callable(v) and not isinstance(v, nn.Module) else v)
    return change


def forward(path, how):
    """A fault: how(old forward, *args) in place of forward."""
    def change(m):
        at = m.get_submodule(path)
        old = at.forward
        at.forward = lambda *a, **k: how(old, *a, **k)
    return change


def put(path, module):
    def change(m):
        parent, _, last = path.rpartition(".")
        setattr(m.get_submodule(parent), last, module)
    return change


def weights(what):
    """A fault of the converter: what(state) in place."""
    def change(m):
        with torch.no_grad():
            what(m)
    return change


def swapped(a, b):
    def change(m):
        with torch.no_grad():
            x, y = m.get_parameter(a), m.get_parameter(b)
            t = x.clone()
            x.copy_(y)
            y.copy_(t)
    return change


# --- llama: transformers and litgpt

def hf_llama():
    import transformers as t
    c = t.LlamaConfig(hidden_size=32, num_hidden_layers=2, num_attention_heads=4, num_key_value_heads=2, vocab_size=V, intermediate_size=48,
                      max_position_embeddings=32, rms_norm_eps=1e-5, pad_token_id=0, attn_implementation="sdpa")
    m = filled(t.LlamaForCausalLM(c))
    x = ids()
    return m, ends(lambda: m(input_ids=x, use_cache=False).logits, lambda y: next_token(y, x))


def litgpt_llama(bench):
    from litgpt.config import Config
    from litgpt.model import GPT
    from litgpt.scripts.convert_hf_checkpoint import copy_weights_hf_llama
    c = Config(block_size=32, vocab_size=V, padded_vocab_size=V, n_layer=2, n_head=4, n_query_groups=2, n_embd=32, rotary_percentage=1.0, parallel_residual=False,
               bias=False, norm_class_name="RMSNorm", mlp_class_name="LLaMAMLP", intermediate_size=48, norm_eps=1e-5, rope_base=10000)
    state = {}
    copy_weights_hf_llama(c, {}, state, dict(bench.state_dict()))
    m = load(GPT(c), state)
    x = ids()
    return m, ends(lambda: m(x), lambda y: next_token(y, x))


def rolled(m):
    m.cos, m.sin = m.cos.roll(1, 0), m.sin.roll(1, 0)


def llama_gelu(m):
    mlp = m.transformer.h[0].mlp
    mlp.forward = lambda x: mlp.proj(F.gelu(mlp.fc_1(x)) * mlp.fc_2(x))


def llama_scale(m):
    at = m.transformer.h[1].attn
    old = at.scaled_dot_product_attention
    at.scaled_dot_product_attention = lambda q, k, v, mask=None: old(q * 2 ** 0.5, k, v, mask)


LLAMA = {
    "eps": ("model.norm", "transformer.ln_f", setting("transformer.ln_f", eps=1e-2)),
    "gelu": ("model.layers.0.mlp", "transformer.h.0.mlp", llama_gelu),
    "rope": ("model.layers.0.self_attn", "transformer.h.0.attn", rolled),
    "qkv": ("model.layers.1.self_attn", "transformer.h.1.attn", weights(lambda m: m.transformer.h[1].attn.qkv.weight.copy_(m.transformer.h[1].attn.qkv.weight.roll(8, 0)))),
    "scale": ("model.layers.1.self_attn", "transformer.h.1.attn", llama_scale),
}


# --- GPT-NeoX: transformers and litgpt

def hf_neox():
    import transformers as t
    c = t.GPTNeoXConfig(hidden_size=32, num_hidden_layers=2, num_attention_heads=4, vocab_size=V, intermediate_size=64, max_position_embeddings=32,
                        rotary_pct=0.5, use_parallel_residual=True, hidden_dropout=0.0, attention_dropout=0.0, attn_implementation="eager")
    m = filled(t.GPTNeoXForCausalLM(c))
    x = ids()
    return m, ends(lambda: m(input_ids=x, use_cache=False).logits, lambda y: next_token(y, x))


def litgpt_neox(bench):
    from litgpt.config import Config
    from litgpt.model import GPT
    from litgpt.scripts.convert_hf_checkpoint import copy_weights_gpt_neox
    c = Config(block_size=32, vocab_size=V, padded_vocab_size=V, n_layer=2, n_head=4, n_embd=32, rotary_percentage=0.5, parallel_residual=True, bias=True,
               lm_head_bias=False, norm_class_name="LayerNorm", mlp_class_name="GptNeoxMLP", intermediate_size=64, norm_eps=1e-5)
    state = {}
    copy_weights_gpt_neox(c, state, {k.replace("lm_head", "embed_out").replace("model.", "gpt_neox.", 1) if not k.startswith("gpt_neox") else k: v for k, v in bench.state_dict().items()})
    m = load(GPT(c), state)
    x = ids()
    return m, ends(lambda: m(x), lambda y: next_token(y, x))


def neox_sequential(m):
    import copy
    at = m.transformer.h[1]
    at.config = copy.copy(at.config)
    at.config.parallel_residual = False


def neox_tanh(m):
    mlp = m.transformer.h[1].mlp
    mlp.forward = lambda x: mlp.proj(F.gelu(mlp.fc(x), approximate="tanh"))


NEOX = {
    "sequential": ("gpt_neox.layers.1", "transformer.h.1", neox_sequential),
    "tanh": ("gpt_neox.layers.1.mlp", "transformer.h.1.mlp", neox_tanh),
    "rope": ("gpt_neox.layers.0.attention", "transformer.h.0.attn", rolled),
    "norms": ("gpt_neox.layers.0.input_layernorm", "transformer.h.0.norm_1", swapped("transformer.h.0.norm_1.weight", "transformer.h.0.norm_2.weight")),
    "bias": ("gpt_neox.layers.1.attention.dense", "transformer.h.1.attn.proj", weights(lambda m: m.transformer.h[1].attn.proj.bias.zero_())),
}


# --- ViT: timm and torchvision

def timm_vit():
    from timm.models.vision_transformer import VisionTransformer
    m = filled(VisionTransformer(img_size=16, patch_size=4, embed_dim=32, depth=2, num_heads=4, num_classes=7, mlp_ratio=2))
    x = picture(16)
    return m, ends(lambda: m(x.to(dtype_of(m))), lambda y: classes(y))


def tv_vit(bench):
    from torchvision.models.vision_transformer import VisionTransformer
    m = VisionTransformer(16, 4, 2, 4, 32, 64, num_classes=7)
    rename = [(r"^cls_token", "class_token"), (r"^pos_embed", "encoder.pos_embedding"), (r"^patch_embed\.proj", "conv_proj"), (r"^blocks\.(\d+)\.", r"encoder.layers.encoder_layer_\1."),
              (r"norm1", "ln_1"), (r"norm2", "ln_2"), (r"attn\.qkv\.", "self_attention.in_proj_"), (r"attn\.proj", "self_attention.out_proj"), (r"mlp\.fc1", "mlp.0"),
              (r"mlp\.fc2", "mlp.3"), (r"^norm\.", "encoder.ln."), (r"^head\.", "heads.head.")]
    m = load(m, bench.state_dict(), rename)
    m.load_state_dict({"class_token": bench.cls_token}, strict=False)
    x = picture(16)
    return m, ends(lambda: m(x.to(dtype_of(m))), lambda y: classes(y))


TVL = "encoder.layers.encoder_layer_{}"
VIT = {
    "tanh": ("blocks.0.mlp", TVL.format(0) + ".mlp", setting(TVL.format(0) + ".mlp.1", approximate="tanh")),
    "eps": ("norm", "encoder.ln", setting("encoder.ln", eps=1e-2)),
    "patch": ("patch_embed", "conv_proj", weights(lambda m: m.conv_proj.weight.copy_(m.conv_proj.weight.transpose(2, 3).clone()))),
    "relu": ("blocks.1.mlp", TVL.format(1) + ".mlp", put(TVL.format(1) + ".mlp.1", nn.ReLU())),
    "heads": ("blocks.1.attn", TVL.format(1) + ".self_attention", setting(TVL.format(1) + ".self_attention", num_heads=8, head_dim=4)),
}


# --- ResNet: timm and torchvision

def timm_resnet():
    import timm
    m = filled(timm.create_model("resnet18", num_classes=7))
    x = picture(32)
    return m, ends(lambda: m(x.to(dtype_of(m))), lambda y: classes(y))


def tv_resnet(bench):
    import torchvision
    m = load(torchvision.models.resnet18(num_classes=7), bench.state_dict())
    x = picture(32)
    return m, ends(lambda: m(x.to(dtype_of(m))), lambda y: classes(y))


RESNET = {
    "eps": ("layer2.0.bn1", "layer2.0.bn1", setting("layer2.0.bn1", eps=1e-1)),
    "pool": ("maxpool", "maxpool", put("maxpool", nn.AvgPool2d(3, 2, 1))),
    "relu": ("layer1.1.act1", "layer1.1.relu", put("layer1.1.relu", nn.LeakyReLU(0.2))),
    "stride": ("layer3.0.downsample.0", "layer3.0.downsample.0", forward("layer3.0.downsample.0", lambda old, x: old(x.flip(-1)))),
    "train": ("layer4.0.bn2", "layer4.0.bn2", lambda m: m.layer4[0].bn2.train(True)),
}


# --- CLIP's text tower: transformers and open_clip

def hf_clip():
    import transformers as t
    c = t.CLIPTextConfig(vocab_size=V, hidden_size=32, intermediate_size=128, num_hidden_layers=2, num_attention_heads=4, max_position_embeddings=10, projection_dim=24,
                         hidden_act="gelu", eos_token_id=V - 1, bos_token_id=0, pad_token_id=1, attn_implementation="eager")
    m = filled(t.CLIPTextModelWithProjection(c))
    x = clip_ids()
    return m, ends(lambda: m(input_ids=x).text_embeds, lambda y: squares(y))


def clip_ids():
    x = ids(10, top=V - 1)
    x[:, -1] = V - 1
    return x


def open_clip_text(bench):
    from open_clip.transformer import TextTransformer
    m = TextTransformer(context_length=10, vocab_size=V, width=32, heads=4, layers=2, output_dim=24)
    state = {re.sub(r"^text_model\.", "", k): v for k, v in bench.state_dict().items()}
    state = fused(state, "self_attn", ("q_proj", "k_proj", "v_proj"), {"weight": "in_proj_weight", "bias": "in_proj_bias"})
    rename = [(r"^embeddings\.token_embedding", "token_embedding"), (r"^embeddings\.position_embedding\.weight", "positional_embedding"), (r"^encoder\.layers", "transformer.resblocks"),
              (r"self_attn", "attn"), (r"layer_norm1", "ln_1"), (r"layer_norm2", "ln_2"), (r"mlp\.fc1", "mlp.c_fc"), (r"mlp\.fc2", "mlp.c_proj"), (r"^final_layer_norm", "ln_final"),
              (r"^text_projection\.weight", "text_projection")]
    state["text_projection.weight"] = state["text_projection.weight"].t()
    m = load(m, state, rename)
    x = clip_ids()
    return m, ends(lambda: m(x), lambda y: squares(y))


class QuickGelu(nn.Module):
    def forward(self, x):
        return x * torch.sigmoid(1.702 * x)


CLIP = {
    "quick": ("text_model.encoder.layers.0.mlp", "transformer.resblocks.0.mlp", put("transformer.resblocks.0.mlp.gelu", QuickGelu())),
    "eps": ("text_model.encoder.layers.1.layer_norm2", "transformer.resblocks.1.ln_2", setting("transformer.resblocks.1.ln_2", eps=1e-2)),
    "mask": ("text_model.encoder.layers.0.self_attn", "transformer.resblocks.0.attn", setting("", attn_mask=lambda m: torch.zeros_like(m))),
    "final": ("text_model.final_layer_norm", "ln_final", weights(lambda m: m.ln_final.weight.copy_(m.ln_final.weight.roll(1)))),
}


# --- wav2vec 2.0: transformers and torchaudio, by its own importer

def hf_wav2vec():
    import transformers as t
    c = t.Wav2Vec2Config(hidden_size=32, num_hidden_layers=2, num_attention_heads=4, intermediate_size=48, vocab_size=17, conv_dim=[16, 16], conv_kernel=[5, 3], conv_stride=[4, 2],
                         num_feat_extract_layers=2, num_conv_pos_embeddings=8, num_conv_pos_embedding_groups=4, feat_extract_norm="group", do_stable_layer_norm=False,
                         attn_implementation="eager", layerdrop=0.0, apply_spec_augment=False)
    m = filled(t.Wav2Vec2ForCTC(c))
    x = torch.randn(2, 160, generator=torch.Generator().manual_seed(8))
    return m, ends(lambda: m(x.to(dtype_of(m))).logits, lambda y: squares(y))


def audio_wav2vec(bench):
    from torchaudio.models.wav2vec2.utils import import_huggingface_model
    m = import_huggingface_model(bench).train(False)
    x = torch.randn(2, 160, generator=torch.Generator().manual_seed(8))
    return m, ends(lambda: m(x.to(dtype_of(m)))[0], lambda y: squares(y))


AL = "encoder.transformer.layers.{}"
WAV = {
    "relu": ("wav2vec2.encoder.layers.0.feed_forward", AL.format(0) + ".feed_forward", put(AL.format(0) + ".feed_forward.intermediate_dropout", nn.ReLU())),
    "scale": ("wav2vec2.encoder.layers.1.attention", AL.format(1) + ".attention", forward(AL.format(1) + ".attention", lambda old, x, **k: old(x * 1.1, **k))),
    "eps": ("wav2vec2.encoder.layers.1.final_layer_norm", AL.format(1) + ".final_layer_norm", setting(AL.format(1) + ".final_layer_norm", eps=1e-1)),
    "norm_first": ("wav2vec2.encoder.layers.1", AL.format(1), setting(AL.format(1), layer_norm_first=True)),
}


# --- ESM-2: transformers and fair-esm

def hf_esm():
    import transformers as t
    c = t.EsmConfig(vocab_size=33, hidden_size=32, num_hidden_layers=2, num_attention_heads=4, intermediate_size=128, max_position_embeddings=40, position_embedding_type="rotary",
                    mask_token_id=32, pad_token_id=1, token_dropout=True, emb_layer_norm_before=False, attn_implementation="eager", hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0)
    m = filled(t.EsmForMaskedLM(c))
    m.lm_head.decoder.weight = m.esm.embeddings.word_embeddings.weight
    x = ids(11, top=24)

    def run():
        y = m(input_ids=x, attention_mask=torch.ones_like(x)).logits
        return y, F.cross_entropy(y.flatten(0, 1).float(), x.flatten())
    return m, run


def fair_esm(bench):
    from esm.model.esm2 import ESM2
    m = ESM2(2, 32, 4, "ESM-1b", True)
    rename = [(r"^esm\.embeddings\.word_embeddings", "embed_tokens"), (r"^esm\.encoder\.layer\.", "layers."), (r"attention\.self\.query", "self_attn.q_proj"), (r"attention\.self\.key", "self_attn.k_proj"),
              (r"attention\.self\.value", "self_attn.v_proj"), (r"attention\.self\.rotary_embeddings", "self_attn.rot_emb"), (r"attention\.output\.dense", "self_attn.out_proj"),
              (r"attention\.LayerNorm", "self_attn_layer_norm"), (r"intermediate\.dense", "fc1"), (r"(layers\.\d+)\.output\.dense", r"\1.fc2"), (r"(layers\.\d+)\.LayerNorm", r"\1.final_layer_norm"),
              (r"^esm\.encoder\.emb_layer_norm_after", "emb_layer_norm_after"), (r"^lm_head\.decoder\.weight", "lm_head.weight"), (r"^lm_head\.bias", "lm_head.bias")]
    state = dict(bench.state_dict())
    state.update({"contact_head.regression.weight": torch.zeros(1, 8), "contact_head.regression.bias": torch.zeros(1)})
    m = load(m, state, rename)
    x = ids(11, top=24)

    def run():
        y = m(x)["logits"]
        return y, F.cross_entropy(y.flatten(0, 1).float(), x.flatten())
    return m, run


ESM = {
    "dropout": ("esm.embeddings", "embed_tokens", setting("", token_dropout=False)),
    "scale": ("esm.encoder.layer.0.attention", "layers.0.self_attn", setting("layers.0.self_attn", scaling=0.25)),
    "eps": ("esm.encoder.layer.1.LayerNorm", "layers.1.final_layer_norm", setting("layers.1.final_layer_norm", eps=1e-1)),
    "tied": ("lm_head.decoder", "lm_head", weights(lambda m: setattr(m.lm_head, "weight", nn.Parameter(m.lm_head.weight.detach() * 1.2)))),
}


# --- Whisper: transformers and openai's

def hf_whisper():
    import transformers as t
    c = t.WhisperConfig(vocab_size=V, num_mel_bins=8, encoder_layers=2, encoder_attention_heads=4, decoder_layers=2, decoder_attention_heads=4, encoder_ffn_dim=128, decoder_ffn_dim=128,
                        d_model=32, max_source_positions=12, max_target_positions=16, pad_token_id=0, bos_token_id=1, eos_token_id=2, decoder_start_token_id=1, attn_implementation="sdpa")
    m = filled(t.WhisperForConditionalGeneration(c))
    with torch.no_grad():
        from whisper.model import sinusoids
        m.model.encoder.embed_positions.weight.copy_(sinusoids(12, 32))
    m.proj_out.weight = m.model.decoder.embed_tokens.weight
    x, mel = ids(7), torch.randn(2, 8, 24, generator=torch.Generator().manual_seed(9))
    return m, ends(lambda: m(input_features=mel.to(dtype_of(m)), decoder_input_ids=x, use_cache=False).logits, lambda y: next_token(y, x))


def openai_whisper(bench):
    from whisper.model import ModelDimensions, Whisper
    m = Whisper(ModelDimensions(8, 12, 32, 4, 2, V, 16, 32, 4, 2))
    rename = [(r"^model\.", ""), (r"\.layers\.", ".blocks."), (r"encoder_attn_layer_norm", "cross_attn_ln"), (r"self_attn_layer_norm", "attn_ln"), (r"final_layer_norm", "mlp_ln"),
              (r"self_attn\.", "attn."), (r"encoder_attn\.", "cross_attn."), (r"q_proj", "query"), (r"k_proj", "key"), (r"v_proj", "value"), (r"out_proj", "out"), (r"fc1", "mlp.0"), (r"fc2", "mlp.2"),
              (r"encoder\.layer_norm", "encoder.ln_post"), (r"decoder\.layer_norm", "decoder.ln"), (r"embed_tokens", "token_embedding"), (r"encoder\.embed_positions\.weight", "encoder.positional_embedding"),
              (r"decoder\.embed_positions\.weight", "decoder.positional_embedding")]
    m = load(m, bench.state_dict(), rename, ["proj_out"])
    x, mel = ids(7), torch.randn(2, 8, 24, generator=torch.Generator().manual_seed(9))
    return m, ends(lambda: m(mel.to(dtype_of(m)), x), lambda y: next_token(y, x))


WHISPER = {
    "tanh": ("model.encoder.layers.1", "encoder.blocks.1.mlp", setting("encoder.blocks.1.mlp.1", approximate="tanh")),
    "conv": ("model.encoder.conv2", "encoder.conv2", weights(lambda m: m.encoder.conv2.weight.copy_(m.encoder.conv2.weight.flip(-1)))),
    "cross": ("model.decoder.layers.1.encoder_attn", "decoder.blocks.1.cross_attn", swapped("decoder.blocks.1.cross_attn.key.weight", "decoder.blocks.1.cross_attn.value.weight")),
    "order": ("model.decoder.layers.0.final_layer_norm", "decoder.blocks.0.mlp_ln", weights(lambda m: m.decoder.blocks[0].mlp_ln.load_state_dict(m.decoder.blocks[0].attn_ln.state_dict()))),
}


# --- SAM's picture encoder: transformers and segment-anything

def hf_sam():
    import transformers as t
    from transformers.models.sam.modeling_sam import SamVisionEncoder
    c = t.SamVisionConfig(hidden_size=32, output_channels=16, num_hidden_layers=2, num_attention_heads=4, image_size=32, patch_size=4, window_size=3, global_attn_indexes=[1],
                          num_pos_feats=8, mlp_dim=64, use_rel_pos=True, attn_implementation="eager")
    m = filled(SamVisionEncoder(c))
    x = picture(32)
    return m, ends(lambda: m(x.to(dtype_of(m))).last_hidden_state, lambda y: squares(y))


def meta_sam(bench):
    from functools import partial
    from segment_anything.modeling.image_encoder import ImageEncoderViT
    m = ImageEncoderViT(img_size=32, patch_size=4, embed_dim=32, depth=2, num_heads=4, mlp_ratio=2, out_chans=16, use_rel_pos=True, window_size=3, global_attn_indexes=(1,),
                        norm_layer=partial(nn.LayerNorm, eps=1e-6))
    rename = [(r"^patch_embed\.projection", "patch_embed.proj"), (r"^layers", "blocks"), (r"layer_norm1\.", "norm1."), (r"layer_norm2\.", "norm2."), (r"^neck\.norm1", "neck.1"), (r"^neck\.norm2", "neck.3"),
              (r"^neck\.layer_norm1", "neck.1"), (r"^neck\.layer_norm2", "neck.3"), (r"^neck\.conv1", "neck.0"), (r"^neck\.conv2", "neck.2")]
    state = {}
    for k, v in bench.state_dict().items():
        for a, b in rename[:3] if not k.startswith("neck") else rename[4:] if "layer_norm" in k or "conv" in k else rename:
            k = re.sub(a, b, k)
        state[k] = v
    m = load(m, {re.sub(r"(blocks\.\d+\.mlp\.)lin", r"\1lin", k): v for k, v in state.items()}, [(r"(blocks\.\d+)\.layer_norm(\d)", r"\1.norm\2")])
    x = picture(32)
    return m, ends(lambda: m(x.to(dtype_of(m))), lambda y: squares(y))


SAM = {
    "tanh": ("layers.0.mlp", "blocks.0.mlp", setting("blocks.0.mlp.act", approximate="tanh")),
    "scale": ("layers.1.attn", "blocks.1.attn", setting("blocks.1.attn", scale=0.25)),
    "relpos": ("layers.0.attn", "blocks.0.attn", swapped("blocks.0.attn.rel_pos_h", "blocks.0.attn.rel_pos_w")),
    "eps": ("neck.layer_norm1", "neck.1", setting("neck.1", eps=1e-1)),
}


# --- Mamba: transformers and mambapy

def hf_mamba():
    import transformers as t
    c = t.MambaConfig(vocab_size=V, hidden_size=16, state_size=4, num_hidden_layers=2, expand=2, conv_kernel=3, time_step_rank=2, use_bias=False, use_conv_bias=True, pad_token_id=0,
                      layer_norm_epsilon=1e-5, residual_in_fp32=False, tie_word_embeddings=False)
    m = filled(t.MambaForCausalLM(c))
    x = ids(8)
    return m, ends(lambda: m(input_ids=x, use_cache=False).logits, lambda y: next_token(y, x))


def mambapy_lm(bench):
    from mambapy.mamba import Mamba, MambaConfig, RMSNorm

    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.embedding = nn.Embedding(V, 16)
            self.core = Mamba(MambaConfig(d_model=16, n_layers=2, dt_rank=2, d_state=4, d_conv=3))
            self.norm = RMSNorm(16, 1e-5, False)
            self.head = nn.Linear(16, V, bias=False)

        def forward(self, x):
            return self.head(self.norm(self.core(self.embedding(x))))
    m = load(Model(), bench.state_dict(), [(r"^backbone\.embeddings", "embedding"), (r"^backbone\.layers", "core.layers"), (r"^backbone\.norm_f", "norm"), (r"^lm_head", "head")])
    x = ids(8)
    return m, ends(lambda: m(x), lambda y: next_token(y, x))


def no_skip(m):
    with torch.no_grad():
        m.core.layers[1].mixer.D.zero_()


MAMBA = {
    "skip": ("backbone.layers.1.mixer", "core.layers.1.mixer", no_skip),
    "eps": ("backbone.layers.0.norm", "core.layers.0.norm", setting("core.layers.0.norm", eps=1e-1)),
    "dt": ("backbone.layers.0.mixer", "core.layers.0.mixer", weights(lambda m: m.core.layers[0].mixer.dt_proj.bias.zero_())),
    "conv": ("backbone.layers.1.mixer", "core.layers.1.mixer", weights(lambda m: m.core.layers[1].mixer.conv1d.weight.copy_(m.core.layers[1].mixer.conv1d.weight.flip(-1)))),
}


# --- LoRA: peft as trained, and merged

def merged_lora():
    m, _ = hf_llama()
    m, run = lora_of(m)
    m = m.merge_and_unload().train(False)
    return m, lambda: run(m)


def lora_of(base):
    from peft import LoraConfig, get_peft_model
    m = get_peft_model(base, LoraConfig(r=4, lora_alpha=8, lora_dropout=0.0, target_modules=["q_proj", "v_proj", "down_proj"]))
    g = torch.Generator().manual_seed(12)
    with torch.no_grad():
        for n, p in m.named_parameters():
            if "lora_" in n:
                p.copy_(torch.randn(p.shape, generator=g) * 0.2)
            p.requires_grad_(True)
    x = ids()

    def run(m=m):
        y = m(input_ids=x, use_cache=False).logits
        return y, next_token(y, x)
    return m.train(False), run


def apart_lora(bench):
    m, _ = hf_llama()
    m, run = lora_of(m)
    return m, lambda: run(m)


PL = "base_model.model.model.layers.{}"
LORA = {
    "alpha": ("model.layers.0.self_attn.q_proj", PL.format(0) + ".self_attn.q_proj", setting(PL.format(0) + ".self_attn.q_proj", scaling={"default": 1.0})),
    "unused": ("model.layers.1.mlp.down_proj", PL.format(1) + ".mlp.down_proj", setting(PL.format(1) + ".mlp.down_proj", _disable_adapters=True)),
}


# --- ConvNeXt: timm and torchvision

def timm_convnext():
    from timm.models.convnext import ConvNeXt
    m = filled(ConvNeXt(num_classes=7, depths=(1, 1, 1, 1), dims=(16, 16, 32, 32)))
    x = picture(64)
    return m, ends(lambda: m(x.to(dtype_of(m))), lambda y: classes(y))


def tv_convnext(bench):
    from torchvision.models.convnext import CNBlockConfig, ConvNeXt
    m = ConvNeXt([CNBlockConfig(16, 16, 1), CNBlockConfig(16, 32, 1), CNBlockConfig(32, 32, 1), CNBlockConfig(32, None, 1)], num_classes=7)
    state = dict(bench.state_dict())
    new = {}
    for k, v in state.items():
        k = re.sub(r"^stem\.", "features.0.", k)
        k = re.sub(r"^stages\.(\d)\.downsample\.", lambda a: f"features.{2 * int(a[1])}.", k)
        k = re.sub(r"^stages\.(\d)\.blocks\.(\d)\.", lambda a: f"features.{2 * int(a[1]) + 1}.{a[2]}.", k)
        k = re.sub(r"conv_dw", "block.0", k)
        k = re.sub(r"(features\.\d\.\d\.)norm", r"\1block.2", k)
        k = re.sub(r"mlp\.fc1", "block.3", k)
        k = re.sub(r"mlp\.fc2", "block.5", k)
        k = re.sub(r"gamma", "layer_scale", k)
        k = re.sub(r"^head\.norm", "classifier.0", k)
        k = re.sub(r"^head\.fc", "classifier.2", k)
        new[k] = v.reshape(-1, 1, 1) if k.endswith("layer_scale") else v
    m = load(m, new)
    x = picture(64)
    return m, ends(lambda: m(x.to(dtype_of(m))), lambda y: classes(y))


CONVNEXT = {
    "tanh": ("stages.1.blocks.0.mlp", "features.3.0.block", setting("features.3.0.block.4", approximate="tanh")),
    "gamma": ("stages.2.blocks.0", "features.5.0", weights(lambda m: m.features[5][0].layer_scale.fill_(1.0))),
    "eps": ("stages.0.blocks.0.norm", "features.1.0.block", setting("features.1.0.block.2", eps=1e-1)),
    "turned": ("stages.3.blocks.0.conv_dw", "features.7.0.block.0", weights(lambda m: m.features[7][0].block[0].weight.copy_(m.features[7][0].block[0].weight.flip(-1)))),
}


FAMILIES = {
    "llama-litgpt": (hf_llama, litgpt_llama, LLAMA, "litgpt"), "neox-litgpt": (hf_neox, litgpt_neox, NEOX, "litgpt"), "vit-torchvision": (timm_vit, tv_vit, VIT, "timm"),
    "resnet-torchvision": (timm_resnet, tv_resnet, RESNET, "timm"), "clip-open": (hf_clip, open_clip_text, CLIP, "open_clip"), "wav2vec-torchaudio": (hf_wav2vec, audio_wav2vec, WAV, "torchaudio"),
    "esm-fair": (hf_esm, fair_esm, ESM, "esm"), "whisper-openai": (hf_whisper, openai_whisper, WHISPER, "whisper"), "sam-meta": (hf_sam, meta_sam, SAM, "segment_anything"),
    "mamba-py": (hf_mamba, mambapy_lm, MAMBA, "mambapy"), "lora-merged": (merged_lora, apart_lora, LORA, "peft"), "convnext-torchvision": (timm_convnext, tv_convnext, CONVNEXT, "timm"),
}
