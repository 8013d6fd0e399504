"""Where the faults of layouts.py and meshes.py are: what accdiff may name, and no more.

A fault's places, fixed by what its maker changes: op calls (as the bench counts them, a regular expression), perhaps with an
argument of them, or ("says") words of the sentence: the function of the maker whose line it names, or what a rule says. What
the fault's data merely go through later is no place of it. Of one that is on one rank, no other may be named."""
import re

# A gradient that is not what it should be once it is reduced: who reduces, gathers norms of it, or takes it.
REDUCED = [r"Functional\.(sgd|adam)\.\d+\.forward", r"Module\..*parameters_grad", r"Distributed\.(all_reduce|reduce_scatter)",
           r"Torch\.ops\.fsdp\.(chunk_cat|.*reduce)", r"Torch\.(_foreach_norm|linalg\.vector_norm)", r"Tensor\.div_",
           "says in reduce:", "says rule idle_optimizer", "says which a cut to a norm hides"]
SCALED = [r"Functional\.cross_entropy\.\d+\.backward", "says in loss:", "says which a cut to a norm hides"]
DATA = [r"Tensor\.(chunk|__getitem__)\.[0-3]\.forward", r"Functional\.embedding\.0\.forward"]


def calls(name, first, each, end="forward"):
    """This op call of each micro-batch, which has so many of the kind."""
    return [rf"{name}\.{first + each * i}\.{end}(?: |$)" for i in range(4)]


def one_gradient(maker):
    """Of the last norm's weight: the op call that gives it, its place among the optimizer's gradients, who reduces."""
    own = calls(r"Functional\.layer_norm", 4, 5, "backward") if maker == "layouts" else calls(r"Tensor\.mul", 28, 29, "backward")
    at = 2 if maker == "layouts" else 28
    return own + [rf"Functional\.(sgd|adam)\.0\.forward 1\.{at}$", rf"Torch\._foreach_norm\.0\.forward 0\.{at}$",
                  rf"Torch\.linalg\.vector_norm\.{at}\.", r"Module\.norm\..*parameters_grad", r"Distributed\.", "says in reduce:"]


def product(maker):
    """The product whose output is not summed over the ranks as it should be, or who takes it."""
    at = (11, 6) if maker == "layouts" else (13, 12)
    return [rf"Functional\.linear\.{at[0]}\.forward", rf"Tensor\.add\.{at[1]}\.forward", r"Distributed\.",
            "says in _prepare_output_fn:"]


def weight(maker, layout):
    """Who takes the weight that is off, or gathers it."""
    late = layout.startswith(("pp", "pipe"))
    first, each = ((10 if late else 4), 13) if maker == "layouts" else ((19 if late else 12), 22)
    gathers = [r"Torch\.ops\.fsdp\.all_gather", r"Distributed\.all_gather"] if "fsdp" in layout or layout == "hsdp" else []
    return calls(r"Functional\.linear", first, each) + gathers


def of(maker, layout, fault, ranks):
    """(places, the rank that it is on or None)"""
    split = layout.startswith(("tp", "sp"))
    if fault == "stale":
        return weight(maker, layout), ranks - 1
    if fault == "scale":
        return SCALED, None
    if fault == "data":
        return DATA, None
    if fault == "same":
        return [r"Functional\.dropout\.\d+\.forward"], None
    if fault == "own":
        return SCALED + ["says in loss_of:"], None
    if fault == "pos":
        return ([r"Functional\.embedding\.1\.forward"], None) if maker == "layouts" else \
            ([r"Tensor\.add\.0\.forward", r"Torch\.outer\.0\.forward", r"says in forward: at = "], ranks - 1)
    if fault == "clip":
        return ["says in clip:", r"Functional\.adam\.\d+\.forward 1\."], None
    if layout == "pp.micro" and fault == "sum":
        return [*SCALED, r"Tensor\.div\.\d+\.", "says in stages:"], None
    if layout == "pp3.micro" and fault == "lost":
        return REDUCED, 1
    if fault in ("lost", "twice", "group") and split and (fault != "group" or layout == "tp4"):
        return product(maker), None
    if fault in ("lost", "twice", "unseen") and layout != "pp.micro":
        return one_gradient(maker), None
    return REDUCED, None    # nosync, sum, mean, group; pp.micro-lost


def bench_name(finding):
    """The op call as the bench has it: a stage has numbers of its own, and those of all stages together are others again."""
    bench = re.search(r"; (?:rank \d+|its ranks) recorded it as \S+?(?:, the bench as (\S+))?(?:;|$)", finding["text"])
    head = re.match(r"(?:probably )?(\S+):", finding["text"])
    return finding.get("name", "") if not bench else bench[1] or (head[1] if head else "")


def named(maker, layout, fault, ranks, finding):
    """Is what this finding names where the fault is?"""
    places, rank = of(maker, layout, fault, ranks)
    said = re.search(r"^rank (\d+),|rank (\d+) that is off|; rank (\d+) recorded it as", finding["text"])
    if rank is not None and said and int(next(x for x in said.groups() if x)) != rank:
        return False
    at = f"{bench_name(finding)} {finding.get('pos', '')}".strip()
    if any(re.search(p[5:], finding["text"]) if p.startswith("says ") else re.match(p, at) for p in places):
        return True
    # A sum over ranks that is missing is said of the op call that gives the summands.
    return finding["what"] == "missing" and finding.get("rule") == "reduction" and places == REDUCED
