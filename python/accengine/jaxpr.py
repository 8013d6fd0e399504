"""JAX: record(fn, folder, *args) runs the equations of fn's jaxpr one by one: one record an equation, with its line.

What jit, checkpoint and custom derivatives wrap is taken apart; loops and branches (scan, while, cond) are one record."""
import jax
import numpy as np
from jax.extend import core

from . import Recording

INSIDE = ("jaxpr", "call_jaxpr", "fun_jaxpr")
WHOLE = ("scan", "while", "cond")


def line(eqn):
    try:
        from jax._src import source_info_util
        f = source_info_util.user_frame(eqn.source_info.traceback)
        return [(f.file_name, f.start_line, f.function_name, "")] if f else []
    except Exception:   # it is no interface that JAX promises
        return []


def record(fn, folder, *args):
    closed, shape = jax.make_jaxpr(fn, return_shape=True)(*args)
    number = {}

    def run(r, jaxpr, consts, given):
        have = dict(zip(jaxpr.constvars, consts))
        have.update(zip(jaxpr.invars, given))
        read = lambda v: v.val if isinstance(v, core.Literal) else have[v]
        for eqn in jaxpr.eqns:
            v, p = [read(i) for i in eqn.invars], eqn.params
            inner = next((p[k] for k in INSIDE if k in p), None)
            if inner is not None and eqn.primitive.name not in WHOLE:
                closed = isinstance(inner, core.ClosedJaxpr)
                out = run(r, inner.jaxpr if closed else inner, inner.consts if closed else (), v)
            else:
                taken = list(dict.fromkeys(i for i in eqn.invars if not isinstance(i, core.Literal)))
                one = core.ClosedJaxpr(core.Jaxpr((), taken, eqn.outvars, [eqn]), ())
                out = core.jaxpr_as_fun(one)(*map(read, taken))
                op = eqn.primitive.name
                n = number[op] = number.get(op, -1) + 1
                made = {"%s_%d%s" % (op, n, ".%d" % i if i else ""): o for i, o in enumerate(out)}
                r.node(op, {k: np.asarray(o) for k, o in made.items()},
                       [(r.name(i), np.asarray(i)) for i in v], dict(p), at=line(eqn))
                for k, o in made.items():
                    r.name(o, k)
            have.update(zip(eqn.outvars, out))
        return [read(v) for v in jaxpr.outvars]

    with Recording(folder, "jax " + jax.__version__) as r:
        out = run(r, closed.jaxpr, closed.consts, jax.tree_util.tree_leaves(args))
    return jax.tree_util.tree_unflatten(jax.tree_util.tree_structure(shape), out)
