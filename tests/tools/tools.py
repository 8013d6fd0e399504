"""What the scripts beside this share: one function a behaviour, named as its row in share/behaviours.

A script asserts in each function what was seen; main() says which of them hold, and which changed."""
import sys
import traceback
import warnings

warnings.filterwarnings("ignore")
FOUND = []


def behaviour(f):
    FOUND.append(f)
    return f


def main():
    wanted, bad = sys.argv[1:], 0
    for f in FOUND:
        name = f.__name__.replace("_", "-")
        if wanted and name not in wanted:
            continue
        try:
            f()
            print("holds   ", name, flush=True)
        except Exception as e:  # what a tool raises now is news, too
            bad += 1
            at = traceback.extract_tb(e.__traceback__)[-1]
            print("CHANGED ", name, "%s %s at %s:%d" % (type(e).__name__, str(e)[:120], at.filename.rsplit("/", 1)[-1], at.lineno),
                  flush=True)
    sys.exit(bad > 0)
