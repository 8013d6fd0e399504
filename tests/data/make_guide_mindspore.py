"""MindSpore 2.10's optimizers alone, in graph mode, with gradients that are loaded: two steps each, as its Dump records them,
into tests/data/guide_mindspore.tar.gz. Needs mindspore. A process for each: the numbers of iterations are those of the process.

Usage: make_guide_mindspore.py
"""
import json
import os
import subprocess
import sys
import tarfile
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
SHAPES = [(4, 3), (5,), (3, 5)]
KINDS = "Adam", "AdamWeightDecay", "Momentum"


def record(kind):
    settings = {"dump_mode": 0, "path": os.path.abspath(kind), "net_name": "Net", "iteration": "all", "saved_data": "tensor",
                "input_output": 0, "kernels": [], "support_device": [0], "op_debug_mode": 0}
    with open(kind + ".json", "w") as f:
        json.dump({"common_dump_settings": settings, "e2e_dump_settings": {"enable": True, "trans_flag": True}}, f)
    os.environ["MINDSPORE_DUMP_CONFIG"] = os.path.abspath(kind + ".json")
    import mindspore as ms
    import numpy as np
    ms.set_context(mode=ms.GRAPH_MODE, device_target="CPU", jit_config={"jit_level": "O0"})
    rng = np.random.RandomState(3)

    class Step(ms.nn.Cell):
        def __init__(self):
            super().__init__()
            weights = [ms.Parameter(ms.Tensor(rng.randn(*s).astype(np.float32)), name=f"w{i}") for i, s in enumerate(SHAPES)]
            more = (1e-2, 0.9) if kind == "Momentum" else (1e-2,)
            self.optimizer = getattr(ms.nn, kind)(weights, *more, weight_decay=0.1)

        def construct(self, *gradients):
            return self.optimizer(gradients)

    step = Step()
    for _ in range(2):
        step(*[ms.Tensor((0.1 * rng.randn(*s)).astype(np.float32)) for s in SHAPES])


def plain(info):
    info.mtime, info.uid, info.gid, info.uname, info.gname = 1, 0, 0, "", ""
    return info


def main():
    with tempfile.TemporaryDirectory() as top:
        for kind in KINDS:
            subprocess.run([sys.executable, os.path.abspath(__file__), kind], cwd=top, check=True)
        with tarfile.open(os.path.join(HERE, "guide_mindspore.tar.gz"), "w:gz") as tar:
            for kind in KINDS:
                for folder, _, names in sorted(os.walk(os.path.join(top, kind))):
                    for name in sorted(names):
                        # The steps' tensors alone.
                        if name.endswith(".npy"):
                            path = os.path.join(folder, name)
                            tar.add(path, os.path.relpath(path, top), filter=plain)


if __name__ == "__main__":
    if len(sys.argv) > 1:
        record(sys.argv[1])
    else:
        main()
