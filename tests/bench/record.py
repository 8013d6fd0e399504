"""What recording costs: two networks, forward, backward and optimizer, on this CPU.

Usage: record.py FOLDER [NET...]       needs torch; FOLDER takes some 15 GB for a time
ACCREC_LIBRARY is libaccrec.so in the folder of the programs.

Prints of each network lines of what, figure, unit and, where there is one, goal, separated by tabs:
seconds a step, bare and with each kind of recording until all is on its way to the disk; of what is
written beside dd of the same bytes; of what is recorded, which is more where tensors are equal and stand
once in the file, beside torch.save; memory above the bare run."""
import os
import resource
import shutil
import subprocess
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "record"))
STEPS = 2


def network(name):
    import nets
    import torch
    torch.manual_seed(0)
    if name == "transformer":
        return nets.transformer(d=512, heads=8, layers=12, batch=4, length=128, words=1000)
    return nets.resnet(widths=(64, 128, 256, 512), blocks=2, batch=8, size=224)


class Saver:
    """Plain hooks: what goes into and comes out of each module, by torch.save."""

    def __init__(self, folder):
        import torch
        self.n, self.folder, self.torch = 0, folder, torch
        os.makedirs(folder)
        torch.nn.modules.module.register_module_forward_hook(self.hook)

    def save(self, x):
        if isinstance(x, self.torch.Tensor):
            self.torch.save(x.detach().clone(), f"{self.folder}/{self.n}.pt")
            self.n += 1
        elif isinstance(x, (tuple, list)):
            for v in x:
                self.save(v)

    def hook(self, module, args, y):
        self.save(args)
        self.save(list(module.parameters(recurse=False)))
        self.save(y)


def child(name, mode, folder):
    """Prints seconds a step, peak memory in MB, and bytes written."""
    step = network(name)
    step()
    from nets import accrecord
    if mode in ("full", "statistics", "hash"):
        accrecord._replace(accrecord.Recorder(folder, detail={
            "full": accrecord.FULL, "statistics": accrecord.STATISTICS, "hash": accrecord.HASH}[mode]))
        accrecord._now.start()
    elif mode == "save":
        Saver(folder)
    start = time.perf_counter()
    for _ in range(STEPS):
        step()
    accrecord.record_switch(False)
    if mode in ("full", "save"):
        os.sync()
    seconds = (time.perf_counter() - start) / STEPS
    written = sum(e.stat().st_size for e in os.scandir(folder)) if os.path.isdir(folder) else 0
    print(seconds, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024, written / STEPS)


def read_rate():
    """Bytes a second at which one thread reads memory."""
    import torch
    torch.set_num_threads(1)
    x = torch.ones(1 << 26)
    best = 1e9
    for _ in range(5):
        start = time.perf_counter()
        x.sum()
        best = min(best, time.perf_counter() - start)
    return x.numel() * 4 / best


def recorded(folder):
    """Bytes of all tensors of a recording, a step."""
    programs = os.path.dirname(os.environ["ACCREC_LIBRARY"])
    read = subprocess.Popen([programs + "/accdump-read", folder], stdout=subprocess.PIPE)
    lens = subprocess.run([programs + "/accfmt", "-f", "csv", "-c", "len"], stdin=read.stdout,
                          stdout=subprocess.PIPE, check=True).stdout.split()[1:]
    if read.wait() != 0:
        sys.exit("record.py: a recording that cannot be read")
    return sum(int(n) for n in lens if n) / STEPS


def dd(folder, n):
    start = time.perf_counter()
    subprocess.run(["dd", "if=/dev/zero", f"of={folder}/dd", "bs=1M", f"count={int(n / 2**20)}",
                    "conv=fsync", "status=none"], check=True)
    seconds = time.perf_counter() - start
    os.remove(f"{folder}/dd")
    return seconds


def say(what, figure, unit, *goal):
    print("\t".join([what, f"{figure:.4g}", unit, *goal]), flush=True)


def main(out, names):
    rate = read_rate()
    for name in names or ("transformer", "resnet18"):
        got = {}
        for mode in ("bare", "statistics", "hash", "full", "save"):
            folder = os.path.join(out, f"{name}-{mode}")
            shutil.rmtree(folder, ignore_errors=True)
            text = subprocess.run([sys.executable, __file__, "--child", name, mode, folder], check=True,
                                  stdout=subprocess.PIPE).stdout.split()
            got[mode] = [float(v) for v in text]
            if mode == "full":
                plain = dd(out, got["full"][2])
                whole = recorded(folder)
            shutil.rmtree(folder, ignore_errors=True)
        bare, size = got["bare"][0], got["full"][2]
        say(f"{name}: a step, bare", bare, "s")
        say(f"{name}: recorded in full", whole / 1e6, "MB a step")
        say(f"{name}: written of that", size / 1e6, "MB a step")
        for mode in ("statistics", "hash"):
            seconds = got[mode][0]
            say(f"{name}: {mode}", seconds / bare, "times bare")
            say(f"{name}: {mode}, less reading each tensor once", (seconds - size / rate) / bare,
                "times bare", "<=", "1.5")
        say(f"{name}: full", got["full"][0] / bare, "times bare")
        say(f"{name}: full, beside bare and dd conv=fsync", got["full"][0] / (bare + plain),
            "times both", "<=", "1.3")
        rates = [n / (got[m][0] - bare) for m, n in (("full", whole), ("save", got["save"][2]))]
        say(f"{name}: full, beside torch.save of each tensor, a byte recorded", rates[0] / rates[1],
            "times as fast", ">=", "5")
        say(f"{name}: memory above bare, full", got["full"][1] - got["bare"][1], "MB", "<=", "256")


if __name__ == "__main__":
    if sys.argv[1] == "--child":
        child(*sys.argv[2:])
    else:
        main(sys.argv[1], sys.argv[2:])
