#!/usr/bin/env python3
"""Reads an acc stream as accstream(5) has it: records(file) gives each record's kind and a dict of its fields, also
of the head and the end. As a program it prints one object of JSON a line, as accfmt --json does."""
import json
import sys

import msgpack  # python3-msgpack


def records(file):
    lists, last, n, kind = [], {}, 0, None
    for first, *rest in msgpack.Unpacker(file, raw=False, max_buffer_size=0, unicode_errors="surrogateescape"):
        if isinstance(first, str):          # a record with its keys
            kind, fields = first, rest[0]
        elif first == len(lists):           # the next list of keys
            lists.append(rest)
            continue
        else:                               # a record by a list: a bit for each value that is there
            (kind, keys), bits, values, fields = lists[first], rest[0], iter(rest[1:]), {}
            for i, key in enumerate(keys):
                of = "name" if key in ("a.name", "b.name", "ab.name") and "name" in fields else key
                there = bits[i // 8] >> i % 8 & 1
                fields[key] = next(values) if there else last[of]
                if of == key:
                    last[key] = fields[key]
        if kind == "acc" and fields["v"] > 3 or kind == "end" and fields["n"] != n:
            raise ValueError("records were lost, or are of a version that is too new")
        n += kind not in ("acc", "end")
        yield kind, fields
    if kind != "end":
        raise ValueError("no end record: an earlier command failed?")


if __name__ == "__main__":
    for kind, fields in records(sys.stdin.buffer):
        shared = {s + k[2:]: v for k, v in fields.items() if k.startswith("ab.") for s in "ab"}
        fields = {"kind": kind, **{k: v for k, v in fields.items() if not k.startswith("ab.")}, **shared}
        print(json.dumps(fields, default=bytes.hex))
