"""Each step is judged when it ends, and only what is bad is kept: start_record(keep=3, bench="gpu").

A step is a recording of its own, in FOLDER/rankR.live; while the next is recorded, the programs judge
it, against the same step of the bench, or by itself. Then it is deleted. Of one that is bad are left
stepK.rankR.acc, a stream with the tensors of the op call that went wrong and of its neighbours, and
the statistics of all others, and stepK.rankR.txt, what the programs say; and of all a line in
rankR.judged."""
from __future__ import annotations

import json
import os
import shlex
import shutil
import subprocess
import threading
import warnings
from typing import Any, Callable, Dict, Iterable, List, Optional, Sequence, Set, Tuple


def program(name: str) -> str:
    """One of the programs, for a shell: that of the source tree where this file lies in one."""
    here = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "bin", name)
    return shlex.quote(here) if os.path.exists(here) else name


def shell(command: str) -> Tuple[int, bytes, str]:
    """Exit status, standard output, and what is said of trouble."""
    done = subprocess.run(["sh", "-c", command], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                          stdin=subprocess.DEVNULL, check=False)
    return done.returncode, done.stdout, done.stderr.decode(errors="replace").strip()


class Calls:
    """What is found in the records of a step that was judged."""

    def __init__(self, lines: Iterable[str]) -> None:
        self.made: Dict[str, List[str]] = {}   # hash of a tensor -> op calls, in their order
        self.used: Dict[str, List[str]] = {}
        self.culprits: List[str] = []
        self.bad: List[str] = []
        for line in lines:
            r = json.loads(line)
            if r["kind"] == "finding" and r.get("name") and r["what"] in ("culprit", "overflow", "difference"):
                self.culprits.append(r["name"])
            if r["kind"] in ("pair", "tensor"):
                self.take(r, "a." if r["kind"] == "pair" else "")

    def take(self, r: Dict[str, Any], side: str) -> None:
        """A tensor of the device; side: what its keys begin with."""
        key, value = r.get(side + "key"), r.get(side + "s.hash")
        if key and r.get("bad") and key not in self.bad:
            self.bad.append(key)
        if key and value:
            where = self.made if r.get(side + "io") in ("out", "grad") else self.used
            where.setdefault(value, []).append(key)

    def worth(self) -> List[str]:
        """The culprits, or what is bad first; what made their inputs, and what took their outputs;
        their other pass."""
        first = (self.culprits or self.bad)[:3]
        keys = dict.fromkeys(first)
        for one, other in ((self.used, self.made), (self.made, self.used)):
            for value, of in one.items():
                if any(k in of for k in first):
                    keys.update(dict.fromkeys(other.get(value, [])[:4]))
        for k in first:
            keys[k.replace(".backward", ".forward")] = keys[k.replace(".forward", ".backward")] = None
        return list(keys)


class Online:
    """Instead of a recording: one for each step, which is judged while the next is recorded."""

    def __init__(self, make: Callable[[str], Any], folder: str, rank: int, bench: Optional[str], keep: int) -> None:
        self.make, self.folder, self.rank, self.bench, self.keep = make, folder, rank, bench, keep
        self.live = os.path.join(folder, f"rank{rank}.live")
        self.log = os.path.join(folder, f"rank{rank}.judged")
        os.makedirs(folder, exist_ok=True)
        if os.path.exists(self.log):
            raise FileExistsError(f"{self.log}: a recording is there already")
        shutil.rmtree(self.live, ignore_errors=True)   # of one that died
        self.number, self.kept, self.lacks = 0, 0, False
        self.worker: Optional[threading.Thread] = None
        self.frames: Dict[int, Sequence[str]] = {}
        self.say("# step, exit status, what is kept")
        self.open()

    def open(self) -> None:
        """The recording of a step begins."""
        os.makedirs(self.live, exist_ok=True)
        self.stream, self.empty = self.make(self.place(self.number)), True
        self.told: Set[int] = set()
        self.stream.step(self.number)

    def place(self, number: int) -> str:
        """The folder of a step, while it is judged."""
        return os.path.join(self.live, str(number))

    def say(self, text: str) -> None:
        """A line of rankR.judged."""
        with open(self.log, "a", encoding="utf-8") as f:
            f.write(text + "\n")

    def put(self, *args: Any, stack: int = 0, **place: Any) -> None:
        """As that of Stream."""
        if stack and stack not in self.told:
            self.stream.stack(self.frames[stack])
            self.told.add(stack)
        self.stream.put(*args, stack=stack, **place)
        self.empty = False

    def stack(self, frames: Sequence[str]) -> int:
        """As that of Stream; each step's recording is told of it where it is used."""
        n = self.stream.stack(frames)
        self.frames[n] = frames
        self.told.add(n)
        return n

    def sync(self) -> None:
        """Wait until all is written."""
        self.stream.sync()

    def step(self, number: int) -> None:
        """The step that was recorded is judged, and another one begins."""
        self.end()
        if not self.empty:
            self.worker = threading.Thread(target=self.judge, args=(self.number,))
            self.worker.start()
        self.number = number
        self.open()

    def close(self) -> None:
        """The last step is judged."""
        self.end()
        if not self.empty:
            self.judge(self.number)   # here: where Python itself ends, it starts no thread
        shutil.rmtree(self.live, ignore_errors=True)

    def end(self) -> None:
        """The step is whole. One that is judged still is waited for: no more than two are there."""
        self.stream.close()
        if self.worker is not None:
            self.worker.join()
            self.worker = None

    def judge(self, number: int) -> None:
        """Judge a step; whatever happens, its recording goes."""
        live, judged = self.place(number), os.path.join(self.live, "judged.acc")
        try:
            self.judge_step(number, live, judged)
        except (OSError, ValueError, KeyError) as e:
            warnings.warn(f"accrecord: step {number} could not be judged: {e}")
            self.say(f"{number}\t2\tnot judged: {e}")
        finally:
            shutil.rmtree(live, ignore_errors=True)

    def judge_step(self, number: int, live: str, judged: str) -> None:
        """Read, align with the bench, measure, judge; what is bad is left."""
        read = program("accdump-read")
        if self.bench is None:
            judges = f"{program('accaudit')} | {program('accmetric')} | {program('accfirstbad')} --all"
        else:
            of_bench = os.path.join(self.live, "bench.acc")
            rc, _, why = shell(f"{read} -s {number} -r {self.rank} {shlex.quote(self.bench)} "
                               f">{shlex.quote(of_bench)}")
            if rc:
                if not self.lacks:
                    warnings.warn(f"accrecord: step {number} is not compared: {why}")
                self.lacks = True
                self.say(f"{number}\t2\tnot compared: {why}")
                return
            judges = f"{program('accalign')} - {shlex.quote(of_bench)} | {program('accmetric')} | " \
                     f"{program('accfirstbad')} --all"
        status, _, why = shell(f"{read} {shlex.quote(live)} | {judges} >{shlex.quote(judged)}")
        if status == 0:
            self.say(f"{number}\t0\t")
        elif self.kept < self.keep:
            self.kept += 1
            self.say(f"{number}\t{status}\t{self.leave(number, live, judged, why)}")
        else:
            self.say(f"{number}\t{status}\t")

    def leave(self, number: int, live: str, judged: str, why: str) -> str:
        """Keep what is worth it: the name of that."""
        name = f"step{number}.rank{self.rank}.acc"
        path, text = os.path.join(self.folder, name), os.path.join(self.folder, name[:-3] + "txt")
        rc, lines, _ = shell(f"{program('accfmt')} --json {shlex.quote(judged)}")
        keys = Calls(lines.decode(errors="replace").splitlines()).worth()
        globs = ",".join("".join("?" if ch in "[]*?\\," else ch for ch in k) for k in keys) or "-"
        shell(f"{program('accfmt')} --bad {shlex.quote(judged)} >{shlex.quote(text)}")
        rc, _, bad = shell(f"{program('accdump-read')} --keep={shlex.quote(globs)} {shlex.quote(live)} "
                           f">{shlex.quote(path)}")
        first = keys[0] if keys else why or "see there"
        warnings.warn(f"accrecord: step {number} is bad: {first} ({text})")
        if rc > 1:
            warnings.warn(f"accrecord: {path}: {bad}")
        return name
