#!/usr/bin/python3
"""Puts together the tensors in parts of a stream, as accfmt --json prints it on standard input, from what
accstream(5) says of part.rows alone: whole.py FILE writes them as safetensors."""
import json
import os
import struct
import sys

SIZE = {'f32': 4, 'bf16': 2, 'f16': 2}
NAME = {'f32': 'F32', 'bf16': 'BF16', 'f16': 'F16'}
root, header, body = {}, {}, b''
for r in map(json.loads, sys.stdin):
    if r['kind'] == 'data':
        sys.exit('elements in the stream')
    if r['kind'] == 'source':
        root[r['id']] = r['root']
    if r['kind'] != 'tensor' or 'part.rows' not in r:
        continue
    size, parts = SIZE[r['dtype']], []
    for src, file, off, n in zip(r['part.src'], r['part.file'], r['part.off'], r['part.len']):
        with open(os.path.join(root[src], file), 'rb') as f:
            f.seek(off)
            parts.append(f.read(n))
    rows, whole, i = r['part.rows'], b'', 0
    while i < len(rows):
        n, pieces = rows[i:i + 2]
        piece = [rows[i + 2 + 4 * k:i + 6 + 4 * k] for k in range(pieces)]
        for row in range(n):
            for part, first, count, hop in piece:
                at = first + row * hop
                whole += parts[part][at * size:(at + count) * size]
        i += 2 + 4 * pieces
    header[r['name']] = {'dtype': NAME[r['dtype']], 'shape': r['shape'], 'data_offsets': [len(body), len(body) + len(whole)]}
    body += whole
text = json.dumps(header).encode()
with open(sys.argv[1], 'wb') as f:
    f.write(struct.pack('<Q', len(text)) + text + body)
print(len(header))
