"""One network and batch, with its parameters in other groups of the optimizer, and in another order: tests/data/groups.tar.gz, and
*_saved.tar.gz the checkpoints, of torch 2.15 itself. Needs that, and accrecord with its library (ACCREC_LIBRARY).

Usage: make_groups.py

    all/ two/ ...   a step of AdamW as accrecord records it (level 2): all parameters in one group; weights and what has one
                    dimension; all, from the last to the first; biases and others, these from the last on; two with no decay
                    of what has one dimension
    sums/           the same of all, statistics alone
    bent/           as two, with one element of one bias after the step times 1.001
    *.pt            three steps, as torch.save writes model and optimizer: named with the names of parameters
    sgd*.pt         SGD without momentum, which has no state, with names
    list*.pt        gradients as a list: in order, from the last on and rounded otherwise, and that with one times 1.05
    *.dcp/          a distributed checkpoint, flat: each parameter has its own settings
"""
import os
import shutil
import sys
import tarfile
import warnings

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "../../python"))
sys.dont_write_bytecode = True
warnings.simplefilter("ignore")

import torch  # noqa: E402
import torch.distributed.checkpoint as dcp  # noqa: E402
from torch.distributed.checkpoint.state_dict import StateDictOptions, get_state_dict  # noqa: E402

import accrecord  # noqa: E402


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.emb, self.fc1, self.norm = torch.nn.Embedding(4, 3), torch.nn.Linear(3, 5), torch.nn.LayerNorm(5)
        self.fc2, self.head = torch.nn.Linear(5, 3), torch.nn.Linear(3, 4)

    def forward(self, x):
        return self.head(self.fc2(self.norm(torch.relu(self.fc1(self.emb(x))))))


def groups(model, kind, named=False):
    have = list(model.named_parameters())

    def of(wanted, **settings):
        return {"params": [(n, p) if named else p for n, p in wanted], **settings}

    flat = [(n, p) for n, p in have if p.dim() < 2]
    wide = [(n, p) for n, p in have if p.dim() > 1]
    return {"all": [of(have)], "two": [of(wide), of(flat)], "back": [of(have[::-1])],
            "three": [of([x for x in have if "bias" in x[0]]), of([x for x in have if "bias" not in x[0]][::-1])],
            "decay": [of(wide), of(flat, weight_decay=0.0)]}[kind]


def train(kind, steps, named=False, optimizer=torch.optim.AdamW, **settings):
    torch.manual_seed(1)
    model = Net()
    made = optimizer(groups(model, kind, named), lr=1e-2, weight_decay=0.1, **settings)
    for _ in range(steps):
        x = torch.randint(0, 4, (8,))
        torch.nn.functional.cross_entropy(model(x), x).backward()
        made.step()
        made.zero_grad()
    return model, made


def record(out, kind, **options):
    accrecord.start_record(output_dir=out, record_stack=False, **options)
    train(kind, 1)
    accrecord.record_switch(False)
    accrecord._replace(None)


def bent(out):
    """The kernel errs for one element."""
    adam = sys.modules["torch.optim.adam"]
    single = adam._single_tensor_adam

    def erring(params, *args, **kwargs):
        single(params, *args, **kwargs)
        for p in params:
            if p.shape == (3,):
                p[2] *= 1.001

    adam._single_tensor_adam = erring
    try:
        record(out, "two")
    finally:
        adam._single_tensor_adam = single


def gradients():
    torch.manual_seed(1)
    model = Net()
    x = torch.randint(0, 4, (8,))
    torch.nn.functional.cross_entropy(model(x), x).backward()
    have = [p.grad for p in model.parameters()]
    back = [g * (1 + 2e-6 * torch.randn_like(g)) for g in have[::-1]]
    for name, wanted in ("list", have), ("list-back", back), ("list-bent", [g * 1.05 if i == 3 else g for i, g in enumerate(back)]):
        torch.save(wanted, name + ".pt")


def main():
    top = os.path.join(HERE, "groups")
    shutil.rmtree(top, ignore_errors=True)
    os.makedirs(top)
    os.chdir(top)
    for kind in "all", "two", "back", "three", "decay":
        record(kind, kind)
    record("sums", "back", record_level=1)
    bent("bent")
    gradients()
    for kind in "all", "two", "decay", "three":
        model, made = train(kind, 3)
        torch.save({"model": model.state_dict(), "optimizer": made.state_dict()}, kind + ".pt")
    for kind in "all", "decay":
        model, made = train(kind, 3, True)
        torch.save({"model": model.state_dict(), "optimizer": made.state_dict()}, kind + "-named.pt")
        model, made = train(kind, 1, True, torch.optim.SGD)
        torch.save({"model": model.state_dict(), "optimizer": made.state_dict()}, kind + "-sgd.pt")
        weights, state = get_state_dict(*train(kind, 1), options=StateDictOptions(flatten_optimizer_state_dict=True))
        dcp.save({"model": weights, "optim": state}, checkpoint_id=kind + ".dcp")
    os.chdir(HERE)
    for out, saved in ("groups.tar.gz", False), ("groups_saved.tar.gz", True):
        with tarfile.open(out, "w:gz") as tar:
            for name in sorted(os.listdir("groups")):
                if ("." in name) == saved:
                    tar.add(os.path.join("groups", name), name, filter=plain)
    shutil.rmtree(top)


def plain(info):
    info.mtime, info.uid, info.gid, info.uname, info.gname = 1, 0, 0, "", ""
    return info


if __name__ == "__main__":
    main()
