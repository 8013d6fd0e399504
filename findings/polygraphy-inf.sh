#!/bin/sh
# polygraphy 0.53.6: its comparison, as it is by default, fails an infinity against the same infinity, since their difference is
# NaN. So a model with a mask of -inf among the outputs that are compared does not agree with itself, and one looks for a fault
# that is none.
# Seen on 2026-11-29:
#   [1, 2] against itself: True
#   [1, inf] against itself: False
set -eu
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
python3 -m venv "$tmp/v"
"$tmp/v/bin/pip" install -q polygraphy==0.53.6 numpy==2.4.6
cd "$tmp"
"$tmp/v/bin/python" -W ignore - <<'END'
import numpy as np
import polygraphy.logger
from polygraphy.comparator import Comparator, CompareFunc, IterationResult, RunResults
polygraphy.logger.G_LOGGER.module_severity = polygraphy.logger.G_LOGGER.CRITICAL


def agrees(x):
    runs = RunResults([(n, [IterationResult({"y": np.array(x, dtype="f4")})]) for n in ("a", "b")])
    return bool(Comparator.compare_accuracy(runs, compare_func=CompareFunc.simple()))


for x, seen in (([1, 2], True), ([1, np.inf], False), ([1, -np.inf], False)):
    print(x, "against itself:", agrees(x))
    assert agrees(x) is seen
END
