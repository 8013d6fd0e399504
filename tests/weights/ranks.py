"""Checkpoints over ranks against one: what make.py --ranks writes. A case is A (the ranks), B (another
layout, mostly one file), and three twins of A: one element of one rank's part is another, two parts
have changed places, one copy of what all have is old.

How ranks hold a model is written from Megatron-LM's own: tensor_parallel/layers.py and mlp.py (columns,
rows; of gated units each rank has its gate and its up), vocabulary padded to a multiple of 128 for
each rank, pipeline stages and their chunks with numbers of their own (transformer_block.py,
model0.., model1..), experts numbered by rank (moe/experts.py), and training/checkpointing.py (names
of folders). FSDP splits the first axis of each tensor into equal parts, the last ones shorter or
empty (torch's _shard_tensor); DCP's .metadata as torch writes it."""
import io
import json
import os
import pickle
import random
import sys

import numpy as np
import torch

import make


def axis_of(name, w, gated):
    """Of what is split over tensor parallel ranks the axis, and into how many pieces each part is."""
    last = name.split('.')
    if 'layer_norm' in name or 'layernorm' in name or 'norm.' in name or 'router' in name:
        return None
    if any(x in last for x in ('word_embeddings', 'output_layer', 'linear_qkv', 'query_key_value', 'linear_q_up_proj',
                               'linear_kv_up_proj')):
        return 0, 1
    if '.experts.weight' in name:  # experts one behind the other: (experts, in, out)
        return (2, 2 if gated else 1) if name.endswith('1') else (1, 1)
    if any(x in last for x in ('linear_fc1', 'dense_h_to_4h')):
        return 0, 2 if gated else 1
    if any(x in last for x in ('linear_proj', 'dense', 'linear_fc2', 'dense_4h_to_h')) and w.v.ndim == 2:
        return 1, 1
    return None


def take(v, how, n, i):
    if how is None or n == 1:
        return v
    axis, pieces = how
    rows = v.shape[axis] // pieces // n
    parts = [np.take(v, range(p * rows * n + i * rows, p * rows * n + (i + 1) * rows), axis) for p in range(pieces)]
    return np.concatenate(parts, axis)


def number(name, word):
    words = name.split('.')
    for k in range(1, len(words)):
        if words[k - 1] == word and words[k].isdigit():
            return k, int(words[k])
    return None, None


def split(full, tp, pp, ep, vpp=1, gated=True, tied=False):
    """Coordinates (t, p, e) to a dict of what this rank has: local name to (name, values)."""
    layers = sorted({number(k, 'layers')[1] for k in full} - {None})
    experts = sorted({e for k in full for e in [expert(k)[1]] if e is not None})
    each = len(layers) // (pp * vpp)
    out = {}
    for t in range(tp):
        for p in range(pp):
            for e in range(ep):
                d = out[t, p, e] = {}
                for k, w in full.items():
                    words = k.split('.')
                    at, layer = number(k, 'layers')
                    chunk = 0
                    if layer is not None:
                        chunk, rest = divmod(layer, each * pp)
                        stage, local = divmod(rest, each)
                        words[at] = str(local)
                    else:
                        stage = 0 if 'embeddings' in k else pp - 1
                        chunk = 0 if 'embeddings' in k else vpp - 1
                    if stage != p:
                        continue
                    name = '.'.join(words)
                    if expert(k)[1] is not None:
                        mine = len(experts) // ep
                        if expert(k)[1] // mine != e:
                            continue
                        name = expert_as(name, expert(k)[1] % mine)
                    top = 'model%d.' % chunk if vpp > 1 else 'model.'
                    name = top + (name[6:] if name.startswith('model.') else name)
                    v = take(w.v, axis_of(k, w, gated), tp, t)
                    if '.experts.weight' in k:
                        v = grouped(v, ep, e, k.endswith('1'))
                    d[name] = (k, v)
    return out


def grouped(v, ep, e, first):
    """Megatron's GroupedMLP: the experts of a rank in one matrix (moe/experts.py, which views it as these)."""
    mine = np.ascontiguousarray(np.split(v, ep)[e])
    return mine.reshape(v.shape[1] if first else -1, -1 if first else v.shape[2])


def stacked(full):
    """All experts' weights of a layer one behind the other, as grouped products take them."""
    out = {}
    for k, w in full.items():
        if '.experts.linear_fc' not in k:
            out[k] = w
        elif k.endswith('.weight0'):
            each = [full[k[:-1] + str(e)] for e in range(make.E)]
            head = k.split('linear_fc')[0]
            out[head + 'weight' + k.split('linear_fc')[1][0]] = make.W(
                np.ascontiguousarray(np.stack([x.v.T for x in each])), frozenset().union(*[x.src for x in each]))
    return out


def expert(name):
    if '.local_experts.' in name:
        return number(name, 'local_experts')
    if '.experts.linear_fc' in name:
        last = name.split('.')[-1]
        return -1, int(last[6:])
    return None, None


def expert_as(name, local):
    at, n = expert(name)
    words = name.split('.')
    words[at] = 'weight%d' % local if at == -1 else str(local)
    return '.'.join(words)


def folder(t, p, e, tp, pp, ep):
    return 'mp_rank_%02d' % t + ('_%03d' % p if pp > 1 else '') + ('_%03d' % e if ep > 1 else '')


def order(t, p, e):
    """As accdump-read numbers ranks: by pipeline, expert, tensor."""
    return p, e, t


def save_ranks(path, ranks, tp, pp, ep, cast):
    top = os.path.join(path, 'iter_0000010')
    for (t, p, e), d in ranks.items():
        at = os.path.join(top, folder(t, p, e, tp, pp, ep))
        os.makedirs(at)
        state = {'checkpoint_version': 3.0, 'iteration': 10}
        for name, (_, v) in d.items():
            m, rest = name.split('.', 1)
            state.setdefault(m, {})[rest] = make.cast(v, cast)
        torch.save(state, os.path.join(at, 'model_optim_rng.pt'))


# --- DCP: its classes are younger than this torch ---

def newer(module, name):
    mod = sys.modules.get(module)
    if mod is None:
        mod = sys.modules[module] = type(sys)(module)
    if not hasattr(mod, name):
        c = type(name, (), {'__init__': lambda self, **f: self.__dict__.update(f)})
        c.__module__, c.__qualname__ = module, name
        setattr(mod, name, c)
    return getattr(mod, name)


META, FILES = 'torch.distributed.checkpoint.metadata', 'torch.distributed.checkpoint.filesystem'


def chunks_of(k, v, grid):
    """Where the ranks' parts of a tensor begin, and what each is: FSDP over the first axis, behind
    tensor parallel ranks over the first or the second one, as torch.chunk cuts; of experts over the first
    axis, then FSDP over the second. Empty ones begin where the tensor ends."""
    def cut(lo, hi, n, i):
        each = -(-(hi - lo) // n)
        return min(lo + i * each, hi), min(lo + (i + 1) * each, hi)
    fsdp, tp = grid if isinstance(grid, tuple) else (grid, 1)
    out = []
    for d in range(fsdp):
        for t in range(tp):
            box = [[0, n] for n in v.shape]
            axis = 1 if any(x in k for x in ('o_proj', 'down_proj')) and v.ndim == 2 else 0
            if '.experts.' in k and v.ndim == 3:
                box[0] = cut(0, v.shape[0], tp, t)
                box[1] = cut(0, v.shape[1], fsdp, d)
            else:
                if v.ndim > 1:
                    box[axis] = cut(0, v.shape[axis], tp, t)
                elif t > 0:  # a copy: saved once
                    continue
                box[0] = cut(*box[0], fsdp, d)
            out.append((d * tp + t, [(n, n) if lo == hi else (lo, hi) for (lo, hi), n in zip(box, v.shape)]))
    return out


def save_dcp(path, full, grid, cast, change=None, lost=None):
    """Each tensor in parts over a grid of ranks; change(name, i, part, box, value) may return another part.
    .metadata as torch writes it of DTensors, also of the empty parts of some. lost: (name, part) that
    is not there, or is there twice."""
    Metadata, Index = newer(META, 'Metadata'), newer(META, 'MetadataIndex')
    Tensor, Chunk = newer(META, 'TensorStorageMetadata'), newer(META, 'ChunkStorageMetadata')
    Props, Info = newer(META, 'TensorProperties'), newer(FILES, '_StorageInfo')
    Format = newer(META, '_MEM_FORMAT_ENCODING')
    Format.__reduce__ = lambda s: (type(s), (0,))
    Format.__init__ = lambda s, *a: None
    # As its __getstate__ has it: a tuple, in which the format is a number of an enum.
    Props.__getstate__ = lambda s: (s.dtype, torch.strided, False, Format(), False)
    hash_of = lambda s: hash((s.fqn, s.offset))  # noqa: E731
    Index.__hash__, Index.__eq__ = hash_of, lambda s, o: (s.fqn, s.offset) == (o.fqn, o.offset)
    os.makedirs(path)
    n = grid[0] * grid[1] if isinstance(grid, tuple) else grid
    files, names, storage = [b''] * n, {}, {}
    for name, w in full.items():
        v = make.cast(w.v, cast)
        chunks = []
        for i, (rank, box) in enumerate(chunks_of(name, w.v, grid)):
            if any(lo == hi for lo, hi in box) and not isinstance(grid, tuple):
                continue
            part = v[tuple(slice(lo, hi) for lo, hi in box)].clone()
            if change is not None:
                part = change(name, i, part, box, v)
            at = torch.Size([lo for lo, _ in box])
            if lost == (name, i, 'missing'):
                continue
            if lost == (name, i, 'overlap'):
                at = torch.Size([max(0, lo - 1) for lo in at])
            chunks.append(Chunk(offsets=at, sizes=part.shape))
            f = io.BytesIO()
            torch.save(part, f)
            storage[Index(fqn=name, offset=at, index=i)] = Info(
                relative_path='__%d_0.distcp' % rank, offset=len(files[rank]), length=len(f.getvalue()))
            files[rank] += f.getvalue()
        names[name] = Tensor(properties=Props(dtype=v.dtype), size=v.shape, chunks=chunks)
    for i, b in enumerate(files):
        with open(os.path.join(path, '__%d_0.distcp' % i), 'wb') as f:
            f.write(b)
    with open(os.path.join(path, '.metadata'), 'wb') as f:
        pickle.dump(Metadata(state_dict_metadata=names, planner_data={k: (k,) for k in names}, storage_data=storage,
                             storage_meta=None, version='1.0.0'), f)


# --- cases ---

def mcore(**o):
    return lambda h: make.megatron(h, kv=make.KV, **o)


def same(h):
    return h


def experts(h):
    return stacked(make.megatron(h, kv=make.KV, te=True, grouped_experts=1, pad_to=128))


def unpacked(h):
    """What packed_experts() packed, an expert a tensor."""
    out = {}
    for k, w in h.items():
        if not k.endswith('_proj') or '.experts' not in k:
            out[k] = w
            continue
        gated, (names, moe) = k.endswith('gate_up_proj'), next(
            m[::-1] for m in (make.QWEN3MOE, make.MIXTRAL) if m[1][0].split('%d')[0] in k)
        turned = w.v.shape[1] == make.D if gated else w.v.shape[2] == make.D
        for e in range(make.E):
            v = w.v[e].T if turned else w.v[e]
            head = k[:k.index(names[0].split('%d')[0])]
            for name, part in zip(names[:2] if gated else names[2:], np.split(v, 2) if gated else [v]):
                out[head + name % e] = make.W(np.ascontiguousarray(part), [s for s in w.src if s == head + name % e])
    return out


#         name, model, Megatron's, (tp, pp, ep, vpp), the other side: a conversion, or one over ranks
CASES = [
    ('tp2', lambda r: make.llama(r, layers=4), mcore(pad_to=128), (2, 1, 1, 1), same),
    ('tp4-gqa', lambda r: make.llama(r, layers=4), mcore(pad_to=512), (4, 1, 1, 1), same),
    ('pp2', lambda r: make.llama(r, layers=4), mcore(pad_to=128), (1, 2, 1, 1), same),
    ('pp2-chunks', lambda r: make.llama(r, layers=4), mcore(te=True), (1, 2, 1, 2), same),
    ('tp2pp2', lambda r: make.llama(r, layers=4, bias=True), mcore(te=True, pad_to=256), (2, 2, 1, 1), same),
    ('ep2', lambda r: make.llama(r, layers=4, moe=make.MIXTRAL), mcore(), (1, 1, 2, 1), same),
    ('tp2ep2', lambda r: make.llama(r, layers=4, moe=make.QWEN3MOE, qknorm=True), mcore(pad_to=128), (2, 1, 2, 1), same),
    ('tp2pp2ep2', lambda r: make.llama(r, layers=4, moe=make.MIXTRAL), mcore(te=True, grouped_experts=1, pad_to=128),
     (2, 2, 2, 1), same),
    ('tp2-lm', lambda r: make.llama(r, layers=4), mcore(old=True, pad_to=128), (2, 1, 1, 1), same),
    ('tp2-init', lambda r: make.llama(r, layers=4, init=True, qknorm=True), mcore(pad_to=128), (2, 1, 1, 1), same),
    ('tp2-gpt2', lambda r: make.gpt2(r), lambda h: make.gpt2_megatron(h), (2, 1, 1, 1), make.gpt2_hf),
    ('tp2ep2-mla', lambda r: make.deepseek(r), mcore(te=True, grouped_experts=1, pad_to=128), (2, 1, 2, 1), same),
    ('tp2-tp4', lambda r: make.llama(r, layers=4), mcore(pad_to=512), (2, 1, 1, 1), (mcore(pad_to=512), (4, 1, 1, 1))),
    ('tp4-tp2pp2', lambda r: make.llama(r, layers=4), mcore(pad_to=512), (4, 1, 1, 1), (mcore(pad_to=512), (2, 2, 1, 1))),
    ('one-tp2pp2', lambda r: make.llama(r, layers=4), None, None, (mcore(pad_to=128), (2, 2, 1, 1))),
    ('fsdp4', lambda r: make.llama(r, layers=4), None, 4, same),
    ('fsdp3-meta', lambda r: make.llama(r, layers=4), None, 3, make.meta),
    ('fsdp8-mcore', lambda r: make.llama(r, layers=4, init=True), None, 8, mcore()),
    ('fsdp2tp2', lambda r: make.llama(r, layers=4), None, (2, 2), same),
    ('fsdp3tp2-meta', lambda r: make.llama(r, layers=4, bias=True), None, (3, 2), make.meta),
    ('fsdp5tp2', lambda r: make.llama(r, layers=4, qknorm=True), None, (5, 2), same),
    ('fsdp3tp4-mcore', lambda r: make.llama(r, layers=4), None, (3, 4), mcore()),
    ('fsdp2ep2', lambda r: make.packed_experts(make.llama(r, layers=4, moe=make.QWEN3MOE)), None, (2, 2), unpacked),
    ('fsdp3ep2-turned', lambda r: make.packed_experts(make.llama(r, layers=4, moe=make.MIXTRAL), True), None, (3, 2),
     unpacked),
    ('ep2-stacked', lambda r: make.llama(r, layers=4, moe=make.MIXTRAL), experts, (1, 1, 2, 1), same),
    ('tp2ep2-stacked', lambda r: make.llama(r, layers=4, moe=make.QWEN3MOE), experts, (2, 1, 2, 1), same),
    ('tp2pp2-stacked', lambda r: make.llama(r, layers=4, moe=make.MIXTRAL), experts, (2, 2, 1, 1), same),
    ('ep4-stacked-ep2', lambda r: make.llama(r, layers=4, moe=make.QWEN3MOE), experts, (1, 1, 4, 1),
     (experts, (2, 1, 2, 1))),
]
TWINS = ['element', 'swapped', 'stale']


def twin(ranks, kind, full, gated, tp, rnd):
    """Another dict of ranks, the name of the tensor that is wrong, the ranks that are."""
    out = {c: dict(d) for c, d in ranks.items()}
    at = sorted(out)
    places = {}
    for c in at:
        for local, (k, v) in out[c].items():
            places.setdefault(k, []).append((c, local))
    whole = lambda k: axis_of(k, full[k], gated) is None or tp == 1  # noqa: E731
    big = [k for k in places if full[k].v.ndim > 1]
    if kind == 'element':
        k = rnd.choice([k for k in big if not whole(k)] or big)
        c, local = rnd.choice(places[k])
        v = out[c][local][1].copy()
        used = v.size if 'embeddings' not in k and 'output' not in k else v.shape[1] * 8
        if 'embeddings' in k or 'output' in k:   # the last rank may have padding alone
            c, local = places[k][0]
            v = out[c][local][1].copy()
        i = rnd.randrange(used)
        v.flat[i] += 0.1
        # All copies of this part, where there are some: this fault is not theirs.
        out[c][local] = (k, v)
        return out, [k], [c]
    if kind == 'swapped':
        ks = [k for k in big if not whole(k) and 'embeddings' not in k and 'output' not in k]
        if ks:
            k = rnd.choice(ks)
            # Of two tensor parallel ranks that are neighbours, in all places that have these.
            for c, local in places[k]:
                if c[0] < 2:
                    o = (1 - c[0],) + c[1:]
                    out[c][local] = (k, ranks[o][local][1])
            return out, [k], sorted({c for c, _ in places[k] if c[0] < 2})
        # No tensor is split: two of one shape on one rank.
        k = rnd.choice([k for k in big if 'layers' in k])
        c, local = places[k][0]
        other = [m for m, (_, v) in out[c].items() if m != local and v.shape == out[c][local][1].shape
                 and m.split('.')[-2:] == local.split('.')[-2:]]
        m = rnd.choice(other)
        out[c][local], out[c][m] = (k, out[c][m][1]), (out[c][m][0], out[c][local][1])
        return out, [k, out[c][m][0]], [c]
    ks = [k for k in places if whole(k) and len(places[k]) > 1 and np.ptp(full[k].v) > 0] or \
         [k for k in places if len(places[k]) > 1 and full[k].v.ndim > 1] or big
    k = rnd.choice(ks)
    c, local = places[k][-1]
    v = out[c][local][1]
    out[c][local] = (k, v + (0.1 * v.std() + 1e-3) * np.sign(v + 1e-9).astype('f4'))
    return out, [k], [c]


def rank_number(c, ranks):
    return sorted(ranks, key=lambda x: order(*x)).index(c)


def write(out, case, rnd, rng, small=False):
    name, model, conv, how, other = case
    make.KV, make.H = (4, 8) if 'tp4' in name else (2, 4)
    make.HD = make.D // make.H
    d = os.path.join(out, name)
    os.mkdir(d)
    h = model(rng)
    cast_a, cast_b = ('bf16', 'bf16') if small else rnd.choice([('f32', 'f32'), ('bf16', 'bf16'), ('f32', 'bf16'), ('bf16', 'f32')])
    gated = 'gpt2' not in name
    twins = []
    if isinstance(how, int) or how is not None and len(how) == 2:
        a = h
        save_dcp(os.path.join(d, 'a'), a, how, cast_a)
        big = [k for k in a if a[k].v.ndim > 1]
        for kind in TWINS:
            k = rnd.choice(big)
            boxes = [b for _, b in chunks_of(k, a[k].v, how)]
            size = lambda b: [hi - lo for lo, hi in b]  # noqa: E731
            full_ones = [i for i, b in enumerate(boxes) if 0 not in size(b)]
            part = rnd.choice(full_ones[:2])
            two = [(i, j) for i in full_ones for j in full_ones if i < j and size(boxes[i]) == size(boxes[j])]
            two = rnd.choice(two) if two else (part, part)

            def change(fqn, j, p, box, v, kind=kind, k=k, part=part, boxes=boxes, two=two):
                if fqn != k:
                    return p
                if kind == 'swapped' and j in two:
                    other = two[0] if j == two[1] else two[1]
                    return v[tuple(slice(lo, hi) for lo, hi in boxes[other])].clone() if other != j else p * 2
                if kind == 'stale' and j == part:
                    return p + 0.1 * p.std()
                if kind == 'element' and j == part:
                    p.view(-1)[rnd.randrange(p.numel())] += 0.1
                return p
            save_dcp(os.path.join(d, kind), a, how, cast_a, change)
            twins.append({'path': kind, 'fault': kind, 'bad': [k], 'rank': None})
        names = {k: k for k in a}
    elif how is None:
        a = h
        make.safetensors(os.path.join(d, 'a'), {k: make.cast(w.v, cast_a) for k, w in a.items()})
    else:
        a = conv(h)
        tp, pp, ep, vpp = how
        ranks = split(a, tp, pp, ep, vpp, gated)
        save_ranks(os.path.join(d, 'a'), ranks, tp, pp, ep, cast_a)
        for kind in TWINS:
            bad, names, where = twin(ranks, kind, a, gated, tp, rnd)
            save_ranks(os.path.join(d, kind), bad, tp, pp, ep, cast_a)
            twins.append({'path': kind, 'fault': kind, 'bad': names,
                          'rank': [rank_number(c, ranks) for c in where]})
    if isinstance(other, tuple):
        b = other[0](h)
        tp, pp, ep, vpp = other[1]
        ranks = split(b, tp, pp, ep, vpp, gated)
        save_ranks(os.path.join(d, 'b'), ranks, tp, pp, ep, cast_b)
        for kind in TWINS if how is None else ():
            bad, names, where = twin(ranks, kind, b, gated, tp, rnd)
            save_ranks(os.path.join(d, kind), bad, tp, pp, ep, cast_b)
            twins.append({'path': kind, 'fault': kind, 'bad': names, 'of': 'b',
                          'rank': [rank_number(c, ranks) for c in where]})
    else:
        b = other(h)
        make.safetensors(os.path.join(d, 'b'), {k: make.cast(w.v, cast_b) for k, w in b.items()})
    pairs = [[x, y] for x, w in a.items() for y, u in b.items() if w.src & u.src]
    with open(os.path.join(d, 'truth.json'), 'w') as f:
        json.dump({'family': name, 'cast': [cast_a, cast_b], 'pairs': pairs, 'a': 'a', 'b': 'b', 'tied': [],
                   'twins': twins, 'groups': {k: sorted(w.src) for s in (a, b) for k, w in s.items()}}, f)


SMALL = ['tp2pp2ep2', 'fsdp8-mcore', 'tp4-tp2pp2']


def main(out, seeds=1, small=False):
    """small: the few that tests/data/weights/ranks.tar.gz holds, of few elements."""
    os.makedirs(out)
    if small:
        make.D, make.F, make.V = 16, 16, 18
    for case in CASES if small else ():
        if case[0] in SMALL:
            write(out, case, random.Random(1), np.random.default_rng(1), True)
    if small:
        return
    for s in range(seeds):
        for i, case in enumerate(CASES):
            named = (case[0] + ('-%d' % s if s else ''),) + case[1:]
            write(out, named, random.Random(1000 * s + i), np.random.default_rng(1000 * s + i))
