#!/usr/bin/env python3
"""What PyYAML makes of npu.yaml: npu.tsv. The other files are written by hand; what bash makes of
gpu.sh, and jq of the JSON files, the tests ask them."""
import pathlib
import re
import yaml

here = pathlib.Path(__file__).parent


def flat(value, key, out):
    if isinstance(value, dict):
        for k, v in value.items():
            flat(v, f"{key}.{k}" if key else str(k), out)
    elif isinstance(value, list) and any(isinstance(v, (dict, list)) for v in value):
        for i, v in enumerate(value):
            flat(v, f"{key}.{i}", out)
    elif isinstance(value, list):
        out[key] = "[" + ", ".join(map(str, value)) + "]"
    else:
        out[key] = "" if value is None else str(value)


class Loader(yaml.SafeLoader):
    """Scalars as text, as they are written; but merges."""

    yaml_implicit_resolvers = {"<": [("tag:yaml.org,2002:merge", re.compile("^<<$"))]}


out = {}
flat(yaml.load((here / "npu.yaml").read_text(), Loader=Loader), "", out)
with open(here / "npu.tsv", "w") as f:
    for k in sorted(out):
        f.write(f"{k}\t{out[k]}\n")


# training_args.bin as torch.save writes it, of classes that stand for transformers'.
def training_args():
    import enum
    import sys
    import types
    import torch

    module = types.ModuleType("transformers.training_args")

    class TrainingArguments:
        pass

    class SchedulerType(enum.Enum):
        LINEAR = "linear"

        def __reduce_ex__(self, protocol):  # as most versions of Python have it
            return self.__class__, (self.value,)

    for cls in TrainingArguments, SchedulerType:
        cls.__module__, cls.__qualname__ = module.__name__, cls.__name__
        setattr(module, cls.__name__, cls)
    sys.modules["transformers"] = types.ModuleType("transformers")
    sys.modules[module.__name__] = module
    args = TrainingArguments()
    args.__dict__.update(
        output_dir="out", per_device_train_batch_size=2, learning_rate=5e-05, warmup_ratio=0.0,
        lr_scheduler_type=SchedulerType.LINEAR, bf16=True, seed=42, deepspeed=None, label_names=["a"],
    )
    torch.save(args, here / "training_args.bin")


training_args()
