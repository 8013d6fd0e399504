"""Samples that TRL, OpenRLHF and others save as parquet, as the JSON Lines that accdump-read(1) reads:

    python3 -m accrecord.samples FILE.parquet ... > FILE.jsonl

Every column is kept under its name. Needs pyarrow, or fastparquet."""
from __future__ import annotations

import json
import sys
from typing import Any, Dict, Iterator


def rows(path: str) -> Iterator[Dict[str, Any]]:
    """The rows of a file as dicts, a batch in memory at a time where pyarrow reads it."""
    try:
        import pyarrow.parquet
    except ImportError:
        pyarrow = None
    if pyarrow is not None:
        with pyarrow.parquet.ParquetFile(path) as f:
            for batch in f.iter_batches(batch_size=256):
                yield from batch.to_pylist()
        return
    try:
        import fastparquet
    except ImportError:
        sys.exit("accrecord.samples: parquet is read by pyarrow or fastparquet, and neither is installed")
    for frame in fastparquet.ParquetFile(path).iter_row_groups():
        yield from frame.to_dict("records")


def plain(v: Any) -> Any:
    """A value as json writes it: arrays as lists, what json does not know as text."""
    if hasattr(v, "tolist"):
        v = v.tolist()
    if isinstance(v, dict):
        return {str(k): plain(x) for k, x in v.items()}
    if isinstance(v, (list, tuple)):
        return [plain(x) for x in v]
    if v is None or isinstance(v, (bool, int, float, str)):
        return v
    return str(v)


def main() -> None:
    """Of each file named on the command line all rows, a line each."""
    if len(sys.argv) < 2 or sys.argv[1].startswith("-"):
        print(__doc__, file=sys.stderr)
        sys.exit(0 if sys.argv[1:] == ["--help"] else 2)
    for path in sys.argv[1:]:
        try:
            for row in rows(path):
                sys.stdout.write(json.dumps(plain(row), ensure_ascii=False) + "\n")
        except (OSError, ValueError) as e:
            sys.exit(f"accrecord.samples: {path}: {e}")


if __name__ == "__main__":
    main()
