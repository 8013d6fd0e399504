# pip: transformers==5.24.0 torch==2.15.0 safetensors==0.8.0 accelerate==1.15.0 numpy==2.4.6
"""transformers, its Trainer, accelerate."""
import json
import math
import os
import tempfile

os.environ["HF_HUB_OFFLINE"] = "1"
import torch
import torch.nn.functional as F
import transformers

from tools import behaviour, main

SMALL = dict(vocab_size=16, hidden_size=8, intermediate_size=12, num_hidden_layers=1, num_attention_heads=2, num_key_value_heads=1)
transformers.logging.set_verbosity_error()


def llama():
    torch.manual_seed(0)
    return transformers.LlamaForCausalLM(transformers.LlamaConfig(**SMALL))


@behaviour
def hf_labels_padded():
    seen, old = [], F.cross_entropy
    F.cross_entropy = lambda x, y, **k: (seen.append((tuple(x.shape), y.tolist())), old(x, y, **k))[1]
    try:
        ids = torch.tensor([[1, 2, 3, 4]])
        llama()(input_ids=ids, labels=ids)
    finally:
        F.cross_entropy = old
    assert seen == [((4, 16), [2, 3, 4, -100])], seen


@behaviour
def hf_experts_implementation():
    c = transformers.MixtralConfig(num_local_experts=2, **SMALL)
    m = transformers.MixtralForCausalLM(c)
    with tempfile.TemporaryDirectory() as d:
        m.save_pretrained(d)
        text = open(d + "/config.json").read()
    assert m.config._experts_implementation == "grouped_mm" and "experts_implementation" not in text


@behaviour
def hf_stale_single_file():
    m = llama()
    with tempfile.TemporaryDirectory() as d:
        m.save_pretrained(d)
        with torch.no_grad():
            for p in m.parameters():
                p.zero_()
        m.save_pretrained(d, max_shard_size=400)
        left = sorted(f for f in os.listdir(d) if "safetensors" in f)
        assert "model.safetensors" in left and "model.safetensors.index.json" in left, left
        again = transformers.LlamaForCausalLM.from_pretrained(d)
    assert any(p.abs().max() > 0 for n, p in again.named_parameters() if "norm" not in n)


class Rows(torch.utils.data.Dataset):
    def __init__(self, n):
        self.n = n

    def __len__(self):
        return self.n

    def __getitem__(self, i):
        ids = torch.arange(6) % 5 + i % 7
        return {"input_ids": ids, "labels": ids}


class Renamed(transformers.LlamaForCausalLM):
    pass


Renamed.__name__ = Renamed.__qualname__ = "MyDecoder"


def train(model, n=4, **k):
    with tempfile.TemporaryDirectory() as d:
        a = dict(per_device_train_batch_size=1, max_steps=2, logging_steps=1, learning_rate=0.0, use_cpu=True, report_to=[],
                 save_strategy="no", disable_tqdm=True, gradient_accumulation_steps=2)
        a.update(k)
        t = transformers.Trainer(model, transformers.TrainingArguments(output_dir=d, **a), train_dataset=Rows(n))
        t.train()
        return [h for h in t.state.log_history if "loss" in h]


@behaviour
def hf_trainer_class_name():
    torch.manual_seed(0)
    one = train(transformers.LlamaForCausalLM(transformers.LlamaConfig(**SMALL)))
    torch.manual_seed(0)
    two = train(Renamed(transformers.LlamaConfig(**SMALL)))
    r = two[0]["loss"] / one[0]["loss"]
    assert abs(r - 5 / 6) < 1e-3, r


@behaviour
def hf_trainer_nan_is_zero():
    m = llama()
    with torch.no_grad():
        m.model.norm.weight.fill_(math.nan)
    assert train(m)[0]["loss"] == 0.0


@behaviour
def accelerate_clips_partial_sums():
    from accelerate import Accelerator
    a = Accelerator(cpu=True, gradient_accumulation_steps=4)
    net = torch.nn.Linear(1, 1, bias=False)
    net, opt = a.prepare(net, torch.optim.SGD(net.parameters(), lr=1.0))
    got = []
    for n in range(4):
        with a.accumulate(net):
            a.backward(net(torch.ones(1, 1)).sum())
            got.append(a.clip_grad_norm_(net.parameters(), 0.1).item())
            opt.step()
            opt.zero_grad()
    # Of all four, it is 1; clipped to 0.1 each time, it is 0.1 and a quarter.
    assert abs(got[0] - 0.25) < 1e-4 and all(abs(g - 0.35) < 1e-4 for g in got[1:]), got


if __name__ == "__main__":
    main()
