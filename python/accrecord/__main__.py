"""Runs a script that imports maca_tools or ptdbg_ascend, as it stands, with accrecord in their place:

    python3 -m accrecord SCRIPT.py [ARGUMENT...]
    torchrun --nproc-per-node=2 -m accrecord SCRIPT.py [ARGUMENT...]"""
import os
import runpy
import sys


def main() -> None:
    """Run the script that the command line names."""
    if len(sys.argv) < 2 or sys.argv[1].startswith("-"):
        print(__doc__, file=sys.stderr)
        sys.exit(0 if sys.argv[1:] == ["--help"] else 2)
    sys.argv = sys.argv[1:]
    # As Python itself does, the script's folder comes first; the names stand before what may be installed under them.
    sys.path[0] = os.path.dirname(os.path.abspath(sys.argv[0]))
    sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "aliases"))
    runpy.run_path(sys.argv[0], run_name="__main__")


main()
