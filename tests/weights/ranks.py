"""Checkpoints over ranks against one: what make.py --ranks writes. A case is A (the ranks), B (another
layout, mostly one file), and three twins of A: one element of one rank's part is another, two parts
have changed places, one copy of what all have is old.

How ranks hold a model is written from Megatron-LM's own: tensor_parallel/layers.py and mlp.py (columns,
rows; of gated units each rank has its gate and its up), vocabulary padded to a multiple of 128 for
each rank, pipeline stages and their chunks with numbers of their own (transformer_block.py,
model0.., model1..), experts numbered by rank (moe/experts.py), and training/checkpointing.py (names
of folders). FSDP splits the first axis of each tensor into equal parts, the last ones shorter or
empty (torch's _shard_tensor); DCP's .metadata as torch writes it."""
import collections
import io
import json
import os
import pickle
import random
import shutil
import sys

import numpy as np
import torch

import make


LAYERS = 4


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


# --- flat shards ---

def module_order(full):
    """As transformers' modules have them: attention, layers, norms."""
    words = ['embed_tokens', 'q_proj', 'k_proj', 'v_proj', 'o_proj', 'gate_proj', 'up_proj', 'down_proj', 'q_norm', 'k_norm',
             'input_layernorm', 'post_attention_layernorm', 'model.norm', 'lm_head']

    if not any('q_proj' in k for k in full):
        return list(full)

    def key(k):
        layer = number(k, 'layers')[1]
        place = [i for i, w in enumerate(words) if w in k][-1]
        top = 0 if 'embed' in k else 1 if layer is not None else 2
        return top, layer or 0, place, k.endswith('bias')
    return sorted(full, key=key)


class Flat:
    """One flat vector over ranks: which parameters, from where on; and what each rank has of it."""

    def __init__(self, full, names, world, cast, align=1, pad=None, each=False):
        """align: of each parameter's first element; pad: the end is padded to a multiple of this; each: it
        is each parameter that is split, not all of them together."""
        self.at, self.world, self.each = {}, world, each
        self.v, self.shards = [], None
        values = {k: make.cast(full[k].v, cast).flatten() for k in names}
        if each:
            self.shards = [[] for _ in range(world)]
            n = 0
            for k in names:
                part = -(-len(values[k]) // world)
                v = torch.cat([values[k], torch.zeros(part * world - len(values[k]), dtype=values[k].dtype)])
                self.at[k] = (n, part, len(values[k]))
                for r in range(world):
                    self.shards[r].append(v[r * part:(r + 1) * part])
                n += part
            self.shards = [torch.cat(x) for x in self.shards]
            return
        n = 0
        for k in names:
            self.v.append(torch.full([-n % align], 42, dtype=values[k].dtype))
            n += -n % align
            self.at[k] = (n, len(values[k]))
            self.v.append(values[k])
            n += len(values[k])
        v = torch.cat(self.v)
        part = -(-n // (pad or world)) * (pad or world) // world
        full_v = torch.cat([v, torch.zeros(part * world - n, dtype=v.dtype)])
        self.shards = [full_v[r * part:(r + 1) * part].clone() for r in range(world)]
        if pad is None:  # without the padding, as state dicts have it
            for r in range(world):
                self.shards[r] = self.shards[r][:max(0, min(part, n - r * part))]
        self.part = part

    def place(self, k, i):
        """Rank and position of element i of parameter k."""
        if self.each:
            n, part, _ = self.at[k]
            return i // part, n + i % part
        return divmod(self.at[k][0] + i, self.part)

    def names(self, ranks):
        if self.each:
            return list(self.at)
        return [k for k, (a, n) in self.at.items() if n and
                any(a < (r + 1) * self.part and a + n > r * self.part for r in ranks)]


def spoil(flats, kind, full, rnd):
    """The shards of one flat vector are others: names, ranks."""
    f = rnd.choice(flats) if kind == 'swapped' else None
    if kind == 'swapped':
        f.shards[0], f.shards[1] = f.shards[1].clone(), f.shards[0].clone()
        return f.names([0, 1]), [0, 1]
    # A rank may have padding of the vocabulary alone, which has no values.
    k = rnd.choice([k for f in flats for k in f.at if full[k].v.ndim > 1 and full[k].v.any()])
    f = next(f for f in flats if k in f.at)
    first = rnd.choice(np.flatnonzero(full[k].v).tolist())
    rank, at = f.place(k, first)
    if kind == 'element':
        f.shards[rank][at] += 0.1
        return [k], [rank]
    for i in range(full[k].v.size):  # what this rank has of it is old
        r, at = f.place(k, i)
        if r == rank:
            f.shards[r][at] *= 1.1
    return [k], [rank]


def save_zero(path, models, stage, world, cast, kind=None, rnd=None):
    """DeepSpeed's (utils/zero_to_fp32.py reads it): the masters of f32 in flat groups, of weights and of the
    others; up to stage 2 a group is split over the ranks, and the model is saved, too. models: what each
    tensor parallel rank has."""
    top = os.path.join(path, 'global_step10')
    os.makedirs(top)
    bad = ranks = None
    wrong = rnd.randrange(len(models)) if kind else None
    for t, full in enumerate(models):
        b, r = save_zero_rank(top, full, stage, world, cast, t, len(models), kind if t == wrong else None, rnd)
        if b:
            bad, ranks = b, [x * len(models) + t for x in r]
    with open(os.path.join(path, 'latest'), 'w') as f:
        f.write('global_step10')
    return bad, ranks


def save_zero_rank(top, full, stage, world, cast, t, tp, kind, rnd):
    names = module_order(full)
    groups = [g for g in ([k for k in names if full[k].v.ndim > 1], [k for k in names if full[k].v.ndim < 2]) if g]
    state = {'module': {}, 'buffer_names': [], 'optimizer': None, 'frozen_param_shapes': None, 'shared_params': {},
             'frozen_param_fragments': None, 'param_shapes': [{k: torch.Size(full[k].v.shape) for k in g} for g in groups],
             'ds_version': '0.14.2', 'global_steps': 10, 'dp_world_size': world, 'mp_world_size': tp}
    if stage == 3:
        flats = [Flat(full, sum(groups, []), world, 'f32', each=True)]
    else:
        flats = [Flat(full, g, world, 'f32', pad=2 * world) for g in groups]
    stored = {k: make.cast(full[k].v, cast) for k in full}
    bad, ranks = None, None
    if kind == 'stale' and stage < 3:  # the model's own copy is old
        bad = [rnd.choice([k for k in full if full[k].v.ndim > 1 and full[k].v.any()])]
        stored[bad[0]] = stored[bad[0]] * 1.1
        ranks = [0]
    elif kind:
        bad, ranks = spoil(flats, kind, full, rnd)
    for r in range(world):
        own = [f.shards[r].clone() for f in flats]
        if stage == 3:
            # Groups of at most so many elements, of whole parameters.
            cuts = [0]
            for _, (at, part, _) in flats[0].at.items():
                if at + part - cuts[-1] > 2000 and at > cuts[-1]:
                    cuts.append(at)
            own = [own[0][a:b].clone() for a, b in zip(cuts, cuts[1:] + [len(own[0])])]
        opt = {'zero_stage': stage, 'partition_count': world if stage == 3 else [world] * len(groups),
               'loss_scaler': None, 'dynamic_loss_scale': False, 'overflow': False, 'ds_version': '0.14.2',
               'fp32_flat_groups' if stage == 3 else 'single_partition_of_fp32_groups': own}
        moments = {'state': {i: {'step': 10, 'exp_avg': x * 0, 'exp_avg_sq': x * 0 + 1} for i, x in enumerate(own)},
                   'param_groups': [{'lr': 1e-3, 'params': [i]} for i in range(len(own))]}
        opt['optimizer_state_dict' if stage == 3 else 'base_optimizer_state'] = moments
        name = ('bf16_' if cast == 'bf16' else '') + 'zero_pp_rank_%d_mp_rank_%02d' % (r, t)
        torch.save({'optimizer_state_dict': opt, 'ds_version': '0.14.2'}, os.path.join(top, name + '_optim_states.pt'))
        if stage == 3:
            state['module'] = {k: torch.empty(0, dtype=stored[k].dtype) for k in names}
            torch.save(state, os.path.join(top, 'zero_pp_rank_%d_mp_rank_%02d_model_states.pt' % (r, t)))
    if stage < 3:
        state['module'] = {k: stored[k] for k in names}
        torch.save(state, os.path.join(top, 'mp_rank_%02d_model_states.pt' % t))
    return bad, ranks


class Sharded:
    """As torch pickles a ShardedTensor: what rebuilds a subclass, and its state."""

    def __init__(self, v, first, size, rank):
        self.of = v, first, size, rank

    def __reduce_ex__(self, protocol):
        v, first, size, rank = self.of
        base = 'torch.distributed._shard.'
        Shard, Meta = newer(base + 'sharded_tensor.shard', 'Shard'), newer(base + 'metadata', 'ShardMetadata')
        All, Props = (newer(base + 'sharded_tensor.metadata', x) for x in ('ShardedTensorMetadata', 'TensorProperties'))
        Device = newer('torch.distributed.remote_device', '_remote_device')
        cls = newer(base + 'sharded_tensor.api', 'ShardedTensor')
        mine = Meta(shard_offsets=[first], shard_sizes=[len(v)], placement=Device('rank:%d/cpu' % rank))
        shards = [Shard(tensor=v, metadata=mine)] if len(v) else []
        state = (shards, All(shards_metadata=[mine], size=torch.Size([size]), tensor_properties=Props()), None, None, False)
        wrapper = newer('torch._utils', '_rebuild_wrapper_subclass')
        args = (cls, v.dtype, torch.Size([size]), (1,), 0, torch.strided, torch.device('cpu'), False)
        return torch._tensor._rebuild_from_type_v2, (wrapper, cls, args, state)


def save_flat(path, full, form, world, cast, kind=None, rnd=None):
    """FSDP's LOCAL_STATE_DICT: of each wrapped module one flat parameter, of which each rank has a shard
    (torch/distributed/fsdp/_flat_param.py). form: 'layers' or 'one' module; '-aligned' begins each parameter
    at 16 bytes (use_orig_params), '-padded' keeps the padding, '-sharded' saves ShardedTensors."""
    names = module_order(full)
    size = 2 if cast == 'bf16' else 4
    units = {}
    for k in names:
        layer = number(k, 'layers')
        unit = '.'.join(k.split('.')[:layer[0] + 1]) + '.' if 'layers' in form and layer[0] else ''
        units.setdefault(unit, []).append(k)
    flats = {u: Flat(full, ks, world, cast, 16 // size if 'aligned' in form else 1,
                     world if 'padded' in form else None) for u, ks in units.items()}
    bad, ranks = spoil(list(flats.values()), kind, full, rnd) if kind else (None, None)
    os.makedirs(path)
    for r in range(world):
        state = {}
        for u, f in flats.items():
            v = f.shards[r]
            total = sum(len(x) for x in f.shards)
            state[u + '_flat_param'] = Sharded(v, r * f.part, total, r) if 'sharded' in form else v.clone()
        name = 'pytorch_model_fsdp_rank%d.bin' if 'padded' in form else 'model_world_size_%d_rank_%%d.pt' % world
        torch.save(state, os.path.join(path, name % r))
    return bad, ranks


# --- DeepSpeed's files of layers and experts ---

def layered(full):
    """Megatron's names as a pipeline module has them: the number of the layer's function, and the layer's own
    keys. Between the embedding and the first layer stand two functions that have no weights, as in
    Megatron-DeepSpeed (gpt_model.py, GPTModelPipe), one behind the last."""
    last = max(number(k, 'layers')[1] or 0 for k in full)
    out = {}
    for k, w in full.items():
        words, (at, layer) = k.split('.'), number(k, 'layers')
        out['layer_%02d.%s' % ((layer + 3, '.'.join(words[at + 1:])) if layer is not None else
                               (1, '.'.join(words[-2:])) if 'embeddings' in k else (last + 5, words[-1]) if 'final' in k else
                               (last + 6, '.'.join(words[-2:])))] = w
    return out


def sparse(full):
    """Experts' names as DeepSpeed has them (moe/sharded_moe.py, moe/experts.py)."""
    out = {}
    for k, w in full.items():
        k = k.replace('experts.local_experts.', 'deepspeed_moe.experts.deepspeed_experts.').replace(
            'mlp.router.', 'mlp.deepspeed_moe.gate.wg.')
        if 'deepspeed_experts' in k:
            k = k.replace('linear_fc1', 'dense_h_to_4h').replace('linear_fc2', 'dense_4h_to_h')
        out['module.' + k] = w
    return out


def save_deepspeed(path, full, tp, cast, kind=None, rnd=None):
    """runtime/pipe/module.py (ckpt_layer_path, save_state_dict) and runtime/engine.py (_save_moe_checkpoint)."""
    moe = any(k.startswith('module.') for k in full)
    # As Megatron's, of which the names are.
    own = {('model.' + k): w for k, w in full.items()}
    gated = True
    parts = {t: {k: take(w.v, axis_of(k.replace('dense_h_to_4h', 'linear_fc1').replace('dense_4h_to_h', 'linear_fc2'), w, gated),
                         tp, t) for k, w in own.items()} for t in range(tp)}
    bad, ranks = None, None
    if kind:
        split_ones = [k for k in own if own[k].v.ndim > 1 and parts[0][k].shape != own[k].v.shape and
                      'embeddings' not in k and 'output' not in k]
        whole = [k for k in own if parts[0][k].shape == own[k].v.shape and np.ptp(own[k].v) > 0]
        k = rnd.choice(whole if kind == 'stale' and tp > 1 and whole else split_ones or
                       [k for k in own if own[k].v.ndim > 1 and 'embeddings' not in k and 'output' not in k])
        # Of two copies the first is taken for the right one.
        t = tp - 1 if kind == 'stale' else rnd.randrange(tp)
        v = parts[t][k].copy()
        if kind == 'swapped' and tp > 1:
            parts[0][k], parts[1][k], ranks = parts[1][k], parts[0][k], [0, 1]
        elif kind == 'element':
            v.flat[rnd.randrange(v.size)] += 0.1
            parts[t][k], ranks = v, [t]
        else:
            parts[t][k], ranks = v + (0.1 * v.std() + 1e-3) * np.sign(v + 1e-9).astype('f4'), [t]
        bad, ranks = [k[6:]], ranks if tp > 1 else None
    top = os.path.join(path, 'global_step10')
    os.makedirs(top)
    for t in range(tp):
        files = {}
        for k, v in parts[t].items():
            k = k[6:]
            at, layer = number(k, 'layers')
            e = number(k, 'deepspeed_experts')[1]
            if not moe:
                n, key = k.split('.', 1)
                name = n + ('-model_%02d' % t if tp > 1 else '') + '-model_states.pt'
            elif e is not None:
                name, key = 'layer_%d_expert_%d_mp_rank_%02d_model_states.pt' % (layer, e, t), k[7:]
            else:
                name, key = 'mp_rank_%02d_model_states.pt' % t, k[7:]
            files.setdefault(name, {})[key] = make.cast(v, cast)
        for name, state in files.items():
            if name.startswith('mp_rank'):
                state = {'module': state, 'optimizer': None, 'global_steps': 10, 'dp_world_size': 2}
            torch.save(state, os.path.join(top, name))
        opt = {'optimizer': {'state': {0: {'exp_avg': torch.zeros(8)}}}}
        if moe:
            torch.save(opt, os.path.join(top, 'expp_rank_0_mp_rank_%02d_optim_states.pt' % t))
        else:  # of each stage, too
            for stage in range(2):
                torch.save({'module': None, **opt}, os.path.join(top, 'mp_rank_%02d_model_states.pt' % (stage * tp + t)))
    with open(os.path.join(path, 'latest'), 'w') as f:
        f.write('global_step10')
    return bad, ranks


# --- DTensors, a file a rank ---

class Placed:
    """As torch.save pickles a DTensor: torch/_tensor.py (__reduce_ex__, a wrapper subclass whose state is that of
    its __slots__), torch/distributed/tensor/_api.py, _dtensor_spec.py and placement_types.py, and
    torch/distributed/device_mesh.py; since 2.9 the mesh has a layout in the place of its tensor of ranks."""

    def __init__(self, local, size, mesh, at, placements, late):
        self.of = local, size, mesh, at, placements, late

    def __reduce_ex__(self, protocol):
        local, size, mesh, at, placements, late = self.of
        base = 'torch.distributed.tensor'
        cls, Spec = newer(base, 'DTensor'), newer(base + '._dtensor_spec', 'DTensorSpec')
        Meta = sys.modules[base + '._dtensor_spec'].__dict__.setdefault(
            'TensorMeta', collections.namedtuple('TensorMeta', 'shape stride dtype', module=base + '._dtensor_spec'))
        stride = tuple(int(np.prod(size[i + 1:])) for i in range(len(size)))
        state = {'_coordinate_on_dim': list(at), '_thread_id': None}
        ranks = torch.arange(int(np.prod(mesh)))
        if late:
            layout = newer('torch.distributed._mesh_layout', '_MeshLayout')
            steps = tuple(int(np.prod(mesh[i + 1:])) for i in range(len(mesh)))
            state.update(_device_type='cuda', _layout=layout(shape=tuple(mesh), stride=steps), _rank_map=ranks)
        else:
            state.update(device_type='cuda', mesh=ranks.reshape(mesh), mesh_dim_names=('dp', 'fsdp', 'tp')[-len(mesh):])
        places = [newer(base + '.placement_types', w)(**o) for w, o in placements]
        spec = Spec(mesh=newer('torch.distributed.device_mesh', 'DeviceMesh')(**state), placements=tuple(places),
                    tensor_meta=Meta(torch.Size(size), stride, local.dtype), _hash=None)
        args = (cls, local.dtype, tuple(size), stride, 0, torch.strided, torch.device('cpu'), True)
        slots = {'_local_tensor': local, '_spec': spec}
        return torch._tensor._rebuild_from_type_v2, (newer('torch._utils', '_rebuild_wrapper_subclass'), cls, args,
                                                     (None, slots) if late else ({}, slots))


def chunk(v, n, i, axis):
    parts = v.chunk(n, axis)
    return parts[i] if i < len(parts) else v.narrow(axis, 0, 0)


def placed(name, v, sizes, at):
    """What rank `at` of (replicas, FSDP, tensor parallel ranks) has of a tensor, as fully_shard() and
    parallelize_module() leave it: tensor parallel ranks cut first; and the placements."""
    dp, fsdp, tp = sizes
    axis = None if v.ndim < 2 else 1 if any(x in name for x in ('o_proj', 'down_proj')) else 0
    if tp > 1 and axis is not None:
        v = chunk(v, tp, at[2], axis)
    v = chunk(v, fsdp, at[1], 0)
    first = ('_StridedShard', {'dim': 0, 'split_factor': tp}) if tp > 1 and axis == 0 else ('Shard', {'dim': 0})
    last = ('Replicate', {}) if axis is None else ('Shard', {'dim': axis})
    return v.clone(), ([('Replicate', {})] if dp > 1 else []) + [first] + ([last] if tp > 1 else [])


def save_dtensors(path, full, form, cast, kind=None, rnd=None, plain=False):
    """form: replicas, FSDP and tensor parallel ranks. A buffer is a plain tensor on each rank; plain: another on
    each."""
    sizes = [int(x) for x in form.split(' ')[1:]]
    mesh = [n for i, n in enumerate(sizes) if n > 1 or i == 1]
    coords = list(np.ndindex(*sizes))
    whole = {k: make.cast(w.v, cast) for k, w in full.items()}
    parts = {c: {k: placed(k, v, sizes, c) for k, v in whole.items()} for c in coords}
    bad, where, late = [], [], 'late' in form
    if kind:
        k = rnd.choice([k for k in whole if whole[k].ndim > 1 and full[k].v.any()])
        full_ones = [c for c in coords if parts[c][k][0].numel()]
        c = rnd.choice(full_ones)
        two = [(x, y) for x in full_ones for y in full_ones if x < y and parts[x][k][0].shape == parts[y][k][0].shape and
               not torch.equal(parts[x][k][0], parts[y][k][0])]
        v = parts[c][k][0]
        if kind == 'swapped' and two:
            x, y = rnd.choice(two)
            parts[x][k], parts[y][k] = parts[y][k], parts[x][k]
            where = [coords.index(x), coords.index(y)]
        elif kind == 'element':
            v.view(-1)[rnd.randrange(v.numel())] += 0.1
        else:
            v += 0.1 * v.float().std().to(v.dtype) + 1e-3
        bad, where = [k], where or [coords.index(c)]
    os.makedirs(path)
    for r, c in enumerate(coords):
        at = [x for i, x in enumerate(c) if sizes[i] > 1 or i == 1]
        state = {k: Placed(v, whole[k].shape, mesh, at, how, late) for k, (v, how) in parts[c].items()}
        if plain or sizes[0] > 1:
            state['model.rotary_emb.inv_freq'] = torch.arange(4.) + (r if plain else 0)
        torch.save(state, os.path.join(path, 'model_world_size_%d_rank_%d.pt' % (len(coords), r)))
        for other in ('optim', 'extra_state'):
            torch.save({'step': 10}, os.path.join(path, '%s_world_size_%d_rank_%d.pt' % (other, len(coords), r)))
    return bad, where


def save_strange(path):
    """DTensors that say nothing, or what cannot be: a file each."""
    os.makedirs(path)
    v = torch.arange(12.).reshape(3, 4)
    good = (v, (6, 4), [2], [0], [('Shard', {'dim': 0})], False)

    def one(name, **o):
        names = ('local', 'size', 'mesh', 'at', 'placements', 'late')
        state = {'good.weight': Placed(*good), 'strange.weight': Placed(*[o.get(k, x) for k, x in zip(names, good)])}
        torch.save(state, os.path.join(path, name + '.pt'))
    one('partial', placements=[('Partial', {'reduce_op': 'sum'})], size=(3, 4))
    one('axis', placements=[('Shard', {'dim': 2})])
    one('negative', placements=[('Shard', {'dim': -2})])
    one('axes', placements=[('Shard', {'dim': 0}), ('Replicate', {})])
    one('rank', at=[2])
    one('nowhere', at=[])
    one('size', size=(8, 4))
    one('order', mesh=[2, 2], at=[0, 0], placements=[('_StridedShard', {'dim': 0, 'split_factor': 3}), ('Shard', {'dim': 0})],
        size=(12, 4))
    one('waits', placements=[('_StridedShard', {'dim': 0, 'split_factor': 2})])
    one('dims', size=(6, 4, 1))


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
    ('tp2', lambda r: make.llama(r, layers=LAYERS), mcore(pad_to=128), (2, 1, 1, 1), same),
    ('tp4-gqa', lambda r: make.llama(r, layers=LAYERS), mcore(pad_to=512), (4, 1, 1, 1), same),
    ('pp2', lambda r: make.llama(r, layers=LAYERS), mcore(pad_to=128), (1, 2, 1, 1), same),
    ('pp2-chunks', lambda r: make.llama(r, layers=LAYERS), mcore(te=True), (1, 2, 1, 2), same),
    ('tp2pp2', lambda r: make.llama(r, layers=LAYERS, bias=True), mcore(te=True, pad_to=256), (2, 2, 1, 1), same),
    ('ep2', lambda r: make.llama(r, layers=LAYERS, moe=make.MIXTRAL), mcore(), (1, 1, 2, 1), same),
    ('tp2ep2', lambda r: make.llama(r, layers=LAYERS, moe=make.QWEN3MOE, qknorm=True), mcore(pad_to=128), (2, 1, 2, 1), same),
    ('tp2pp2ep2', lambda r: make.llama(r, layers=LAYERS, moe=make.MIXTRAL), mcore(te=True, grouped_experts=1, pad_to=128),
     (2, 2, 2, 1), same),
    ('tp2-lm', lambda r: make.llama(r, layers=LAYERS), mcore(old=True, pad_to=128), (2, 1, 1, 1), same),
    ('tp2-init', lambda r: make.llama(r, layers=LAYERS, init=True, qknorm=True), mcore(pad_to=128), (2, 1, 1, 1), same),
    ('tp2-gpt2', lambda r: make.gpt2(r), lambda h: make.gpt2_megatron(h), (2, 1, 1, 1), make.gpt2_hf),
    ('tp2ep2-mla', lambda r: make.deepseek(r), mcore(te=True, grouped_experts=1, pad_to=128), (2, 1, 2, 1), same),
    ('tp2-tp4', lambda r: make.llama(r, layers=LAYERS), mcore(pad_to=512), (2, 1, 1, 1), (mcore(pad_to=512), (4, 1, 1, 1))),
    ('tp4-tp2pp2', lambda r: make.llama(r, layers=LAYERS), mcore(pad_to=512), (4, 1, 1, 1), (mcore(pad_to=512), (2, 2, 1, 1))),
    ('one-tp2pp2', lambda r: make.llama(r, layers=LAYERS), None, None, (mcore(pad_to=128), (2, 2, 1, 1))),
    ('fsdp4', lambda r: make.llama(r, layers=LAYERS), None, 4, same),
    ('fsdp3-meta', lambda r: make.llama(r, layers=LAYERS), None, 3, make.meta),
    ('fsdp8-mcore', lambda r: make.llama(r, layers=LAYERS, init=True), None, 8, mcore()),
    ('fsdp2tp2', lambda r: make.llama(r, layers=LAYERS), None, (2, 2), same),
    ('fsdp3tp2-meta', lambda r: make.llama(r, layers=LAYERS, bias=True), None, (3, 2), make.meta),
    ('fsdp5tp2', lambda r: make.llama(r, layers=LAYERS, qknorm=True), None, (5, 2), same),
    ('fsdp3tp4-mcore', lambda r: make.llama(r, layers=LAYERS), None, (3, 4), mcore()),
    ('fsdp2ep2', lambda r: make.packed_experts(make.llama(r, layers=LAYERS, moe=make.QWEN3MOE)), None, (2, 2), unpacked),
    ('fsdp3ep2-turned', lambda r: make.packed_experts(make.llama(r, layers=LAYERS, moe=make.MIXTRAL), True), None, (3, 2),
     unpacked),
    ('ep2-stacked', lambda r: make.llama(r, layers=LAYERS, moe=make.MIXTRAL), experts, (1, 1, 2, 1), same),
    ('tp2ep2-stacked', lambda r: make.llama(r, layers=LAYERS, moe=make.QWEN3MOE), experts, (2, 1, 2, 1), same),
    ('tp2pp2-stacked', lambda r: make.llama(r, layers=LAYERS, moe=make.MIXTRAL), experts, (2, 2, 1, 1), same),
    ('ep4-stacked-ep2', lambda r: make.llama(r, layers=LAYERS, moe=make.QWEN3MOE), experts, (1, 1, 4, 1),
     (experts, (2, 1, 2, 1))),
    ('zero2', lambda r: make.llama(r, layers=LAYERS), None, 'zero2 2', same),
    ('zero1-bias', lambda r: make.llama(r, layers=LAYERS, bias=True, init=True), None, 'zero1 4', same),
    ('zero2-mcore', lambda r: make.llama(r, layers=LAYERS), None, 'zero2 3', mcore()),
    ('zero3', lambda r: make.llama(r, layers=LAYERS), None, 'zero3 2', same),
    ('zero3-odd', lambda r: make.llama(r, layers=LAYERS, qknorm=True), None, 'zero3 5', same),
    ('zero3-meta', lambda r: make.llama(r, layers=LAYERS), None, 'zero3 4', make.meta),
    ('flat2', lambda r: make.llama(r, layers=LAYERS), None, 'layers 2', same),
    ('flat3-aligned', lambda r: make.llama(r, layers=LAYERS, bias=True), None, 'layers-aligned 3', same),
    ('flat4-padded', lambda r: make.llama(r, layers=LAYERS, qknorm=True), None, 'layers-padded 4', same),
    ('flat2-init', lambda r: make.llama(r, layers=LAYERS, init=True), None, 'layers 2', same),
    ('flat2-sharded', lambda r: make.llama(r, layers=LAYERS), None, 'layers-sharded 2', same),
    ('flat4-one', lambda r: make.llama(r, layers=LAYERS), None, 'one-padded 4', same),
    ('flat3-one-aligned', lambda r: make.llama(r, layers=LAYERS, bias=True), None, 'one-aligned 3', same),
    ('dtensor4', lambda r: make.llama(r, layers=LAYERS), None, 'dtensor 1 4 1', same),
    ('dtensor3-mcore', lambda r: make.llama(r, layers=LAYERS, bias=True), None, 'dtensor-late 1 3 1', mcore()),
    ('dtensor2tp2', lambda r: make.llama(r, layers=LAYERS), None, 'dtensor 1 2 2', same),
    ('dtensor3tp2-meta', lambda r: make.llama(r, layers=LAYERS, qknorm=True), None, 'dtensor-late 1 3 2', make.meta),
    ('dtensor-hsdp', lambda r: make.llama(r, layers=LAYERS), None, 'dtensor 2 2 1', same),
    ('dtensor-hsdp-tp2', lambda r: make.llama(r, layers=LAYERS), None, 'dtensor-late 2 3 2', same),
    ('dtensor8-moe', lambda r: make.packed_experts(make.llama(r, layers=LAYERS, moe=make.QWEN3MOE)), None, 'dtensor 1 8 1',
     unpacked),
    ('pipe-tp2', lambda r: make.llama(r, layers=LAYERS), lambda h: layered(mcore(pad_to=128)(h)), 'deepspeed 2', same),
    ('pipe', lambda r: make.llama(r, layers=LAYERS, bias=True), lambda h: layered(mcore()(h)), 'deepspeed 1', same),
    ('pipe-tp4', lambda r: make.llama(r, layers=LAYERS, qknorm=True), lambda h: layered(mcore(pad_to=512)(h)), 'deepspeed 4',
     same),
    ('moe-tp2', lambda r: make.llama(r, layers=LAYERS, moe=make.MIXTRAL), lambda h: sparse(mcore(pad_to=128)(h)), 'deepspeed 2',
     same),
    ('moe', lambda r: make.llama(r, layers=LAYERS, moe=make.QWEN3MOE), lambda h: sparse(mcore()(h)), 'deepspeed 1', same),
    ('zero2-tp2', lambda r: make.llama(r, layers=LAYERS), mcore(pad_to=128), 'zero2 2 2', same),
    ('zero3-tp2', lambda r: make.llama(r, layers=LAYERS), mcore(te=True, pad_to=256), 'zero3 3 2', same),
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
    if isinstance(how, str):
        a = h if conv is None else conv(h)
        form, world, *tp = how.split(' ')
        models = [a]
        if tp and form[:4] == 'zero':
            parts = split(a, int(tp[0]), 1, 1, 1, gated)
            models = [{k[6:]: make.W(v, a[old].src) for k, (old, v) in parts[t, 0, 0].items()} for t in range(int(tp[0]))]
        saved = (lambda path, **o: save_zero(path, models, int(form[4:]), int(world), cast_a, **o)) if form[:4] == 'zero' \
            else (lambda path, **o: save_deepspeed(path, a, int(world), cast_a, **o)) if form == 'deepspeed' \
            else (lambda path, **o: save_dtensors(path, a, how, cast_a, **o)) if form[:7] == 'dtensor' \
            else (lambda path, **o: save_flat(path, a, form, int(world), cast_a, **o))
        saved(os.path.join(d, 'a'))
        for kind in TWINS:
            bad, where = saved(os.path.join(d, kind), kind=kind, rnd=rnd)
            twins.append({'path': kind, 'fault': kind, 'bad': bad, 'rank': where})
    elif isinstance(how, int) or how is not None and len(how) == 2:
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


SMALL = ['tp2pp2ep2', 'fsdp8-mcore', 'tp4-tp2pp2', 'fsdp3tp2-meta', 'tp2ep2-stacked', 'zero2', 'zero3-odd', 'flat3-aligned',
         'flat2-sharded']


LESS = {'fsdp3tp2-meta': ['stale'], 'tp2ep2-stacked': ['stale'], 'zero2': ['element', 'swapped'], 'zero3-odd': ['element', 'stale']}


def main(out, seeds=1, small=False):
    """small: the few that tests/data/weights/ranks.tar.gz holds, of few elements; without some twins of some
    with half of the layers."""
    global LAYERS
    os.makedirs(out)
    if small:
        make.D, make.F, make.V = 16, 16, 18
    for case in CASES if small else ():
        if case[0] in SMALL:
            LAYERS = 2 if case[0] in LESS else 4
            # The element is one of an expert; the outermost module's parts have changed places.
            seed = {'tp2ep2-stacked': 11, 'flat2-sharded': 2}.get(case[0], 1)
            write(out, case, random.Random(seed), np.random.default_rng(seed), True)
        for kind in LESS.get(case[0], []):
            shutil.rmtree(os.path.join(out, case[0], kind))
    if small:
        return
    if seeds == 0:  # what tests/data/weights/dtensors.tar.gz and deepspeed.tar.gz hold
        make.D, make.F, make.V, LAYERS = 16, 16, 18, 1
        for case in CASES:
            if case[0] in ('dtensor-hsdp-tp2', 'dtensor3tp2-meta', 'pipe', 'pipe-tp2', 'moe', 'moe-tp2'):
                write(out, case, random.Random(3), np.random.default_rng(3), True)
        for kind in TWINS:
            for name in ('dtensor3tp2-meta', 'pipe', 'moe'):
                shutil.rmtree(os.path.join(out, name, kind))
        save_dtensors(os.path.join(out, 'plain'), make.llama(np.random.default_rng(3), layers=1), 'dtensor 1 2 1', 'bf16',
                      plain=True)
        save_strange(os.path.join(out, 'strange'))
        return
    for s in range(seeds):
        for i, case in enumerate(CASES):
            named = (case[0] + ('-%d' % s if s else ''),) + case[1:]
            write(out, named, random.Random(1000 * s + i), np.random.default_rng(1000 * s + i))
