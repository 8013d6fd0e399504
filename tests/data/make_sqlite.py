#!/usr/bin/env python3
"""Makes tests/data/io/*.db: a table of every type, one that is a view, and one whose only leaf its root names many times."""

import os
import sqlite3
import struct

HERE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "io")


def new(name):
    path = os.path.join(HERE, name)
    if os.path.exists(path):
        os.remove(path)
    db = sqlite3.connect(path)
    db.execute("PRAGMA page_size=512")
    return path, db


path, db = new("types.db")
db.execute("CREATE TABLE t (i INTEGER, r REAL, s TEXT, b BLOB)")
db.executemany("INSERT INTO t VALUES (?, ?, ?, ?)",
               [(1, 0.5, "one", b"\x00\xff"), (-2**63, float("inf"), "", b""), (None, None, None, None), (3, 3, "d\u00e9", b"x" * 2000)])
db.commit()
db.close()

path, db = new("view.db")
db.execute("CREATE TABLE u (i INTEGER)")
db.execute("INSERT INTO u VALUES (7)")
db.execute("CREATE VIEW t AS SELECT a.i AS i, 0 AS r, hex(randomblob(9)) AS s, 0 AS b FROM u AS a, u AS c")
db.commit()
db.close()

# Page 1: the schema; 2: the table's root, an inner page of 60 cells, each of which names page 3, the leaf.
path, db = new("again.db")
db.execute("CREATE TABLE t (i INTEGER, r REAL, s TEXT, b BLOB)")
db.executemany("INSERT INTO t (i) VALUES (?)", [(5,)] * 45)
db.commit()
db.close()
with open(path, "rb") as f:
    pages = bytearray(f.read())
assert len(pages) == 1024
leaf = pages[512:]
cells = [struct.pack(">I", 3) + bytes([i + 1]) for i in range(60)]
root = bytearray(512)
at = 512
struct.pack_into(">BHHHBI", root, 0, 5, 0, len(cells), 512 - 5 * len(cells), 0, 3)
for i, c in enumerate(cells):
    at -= len(c)
    root[at:at + len(c)] = c
    struct.pack_into(">H", root, 12 + 2 * i, at)
pages[512:] = root + leaf
struct.pack_into(">I", pages, 28, 3)
with open(path, "wb") as f:
    f.write(pages)
