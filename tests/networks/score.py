"""What the judge says of a case, and the tables of many."""
import collections
import json
import math
import os
import subprocess
import tempfile

PLAIN = "accdump-read {d} | accalign - {b} | accmetric | accfirstbad | accfmt --json"
AUDIT = ("accdump-read {b} | accaudit >{t} && accdump-read {d} | accaudit | accalign - {t} | "
         "accmetric | accfirstbad | accfmt --json")
MODES = ("plain", "audit")
FIELDS = ("id", "half", "noise", "task", "what", "cat", "kind", "mode", "want", "got", "place",
          "confidence", "witness")
BINS = (0, 0.5, 0.8, 0.9, 0.95, 0.99, 0.999, 1.01)


def verdict(case, mode):
    """(the op call that is named or "-", the next ones, confidence, the witness or "-") of a case."""
    with tempfile.NamedTemporaryFile() as audited:
        where = {"d": os.path.join(case, "device"), "b": os.path.join(case, "bench"),
                 "t": audited.name}
        command = AUDIT if mode == "audit" else PLAIN
        q = subprocess.run(command.format(**{k: f"'{v}'" for k, v in where.items()}),
                           shell=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    if q.returncode not in (0, 1):
        return "ERROR " + (q.stderr.strip() or "no stream").splitlines()[0], [], math.nan, "-"
    for line in q.stdout.splitlines():
        rec = json.loads(line)
        if rec.get("kind") == "finding" and rec.get("what") == "culprit":
            return (rec.get("name", "?"), list(rec.get("ranked") or []),
                    float(rec.get("confidence", math.nan)), rec.get("witness", "-"))
    return "-", [], math.nan, "-"


def score(case):
    """Rows of the results of one case, one of each mode. place: 1 to 3, 0: not among them."""
    with open(os.path.join(case, "truth.json")) as f:
        t = json.load(f)
    what = "tie" if t.get("tie") else "clean" if t["clean"] else "faulty"
    want = t["op"] if what == "faulty" else "-"
    for mode in MODES:
        # Of statistics there is nothing to audit, which accaudit calls trouble.
        got, ranked, sure, witness = verdict(case, "plain" if t["task"] == "statistics" else mode)
        first = [got] + [r for r in ranked if r != got]
        place = first.index(want) + 1 if want in first[:3] else 0
        yield (t["id"], t["half"], t["noise"], t["task"], what, t.get("cat", "-"),
               t.get("kind", "-"), mode, want, got, str(place), f"{sure:.6f}", witness)


def read(path):
    with open(path) as f:
        return [dict(zip(FIELDS, line.rstrip("\n").split("\t"))) for line in f]


def share(n, of):
    return f"{n}/{of}" + (f" {100 * n / of:.0f}%" if of else "")


def counts(rows):
    faulty = [r for r in rows if r["what"] == "faulty"]
    out = [share(sum(r["place"] == "1" for r in faulty), len(faulty)),
           share(sum(r["place"] != "0" for r in faulty), len(faulty))]
    for what in ("clean", "tie"):
        some = [r for r in rows if r["what"] == what]
        out.append(share(sum(r["got"] != "-" for r in some), len(some)))
    return out


def table(head, lines):
    lines = [head] + lines
    wide = [max(len(x[i]) for x in lines) for i in range(len(head))]
    return ["    " + "  ".join(x.ljust(w) for x, w in zip(line, wide)).rstrip()
            for line in lines]


def parts(rows):
    """(title, rows) of all, and of each value of what the table is by."""
    yield "all", rows
    for key in ("noise", "task", "cat"):
        for v in sorted({r[key] for r in rows} - {"-"}):
            yield v, [r for r in rows if r[key] == v]


def percent(n, of):
    return f"{100 * n / of:.0f} %" if of else "-"


def summary(results):
    """The table of tests/RESULTS.md: faults that are named first, clean runs that are accused."""
    sides = [(half, mode) for half in ("teach", "report") for mode in MODES]
    out = ["| | " + " | ".join(f"{half}, {mode}" for half, mode in sides) + " |",
           "|---" * (1 + len(sides)) + "|"]
    cats = {r["cat"] for r in results}
    titles = [t for t, _ in parts(results) if t not in cats]
    for title in titles:
        cells = []
        for half, mode in sides:
            rows = [r for t, some in parts([r for r in results if r["half"] == half
                                            and r["mode"] == mode]) if t == title for r in some]
            faulty = [r for r in rows if r["what"] == "faulty"]
            clean = [r for r in rows if r["what"] == "clean"]
            named = percent(sum(r["place"] == "1" for r in faulty), len(faulty))
            blamed = percent(sum(r["got"] != "-" for r in clean), len(clean))
            cells.append(f"{named}, {blamed}")
        out.append(f"| {title} | " + " | ".join(cells) + " |")
    return out


def witnesses(rows):
    """How often each witness accuses, in the half that teaches nothing, and is right."""
    rows = [r for r in rows if r["witness"] != "-"]
    of, right = (collections.Counter(r["witness"] for r in some)
                 for some in (rows, [r for r in rows if r["got"] == r["want"]]))
    return ["", "Witnesses of the report half, for lib/judge/measured.h:", ""] + \
        table(["witness", "right", "of"], [[w, str(right[w]), str(n)] for w, n in of.most_common()])


def report(results):
    """The tables, as lines of text."""
    out = []
    for mode in MODES:
        for half in ("teach", "report"):
            rows = [r for r in results if r["half"] == half and r["mode"] == mode]
            if not rows:
                continue
            out += ["", f"{half}, {mode}:", ""]
            out += table(["", "named", "in first three", "clean accused", "ties accused"],
                         [[t] + counts(some) for t, some in parts(rows)])
        rows = [r for r in results if r["mode"] == mode and r["got"] != "-"
                and not r["got"].startswith("ERROR")]
        lines = []
        for low, high in zip(BINS, BINS[1:]):
            line = [f"{low} to {min(high, 1)}"]
            for half in ("teach", "report"):
                some = [r for r in rows if r["half"] == half
                        and low <= float(r["confidence"]) < high]
                line.append(share(sum(r["want"] == r["got"] for r in some), len(some)))
            lines.append(line)
        out += ["", f"Verdicts that are right, by their confidence, {mode}:", ""]
        out += table(["confidence", "teach", "report"], lines)
    out += witnesses([r for r in results if r["half"] == "report" and r["mode"] == "audit"])
    out += ["", "Named, and clean runs accused, for tests/RESULTS.md:", ""] + summary(results)
    errors = collections.Counter(r["got"] for r in results if r["got"].startswith("ERROR"))
    for text, n in errors.most_common():
        out.append(f"{n} times {text}")
    return out
