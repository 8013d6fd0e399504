"""Flax (linen): record(model, variables, folder, *inputs) by capture_intermediates: what each module gives, by its name.

Layers in nn.scan are in it if its variable_axes has intermediates (flax-scan-drops-intermediates)."""
import flax
import jax
import numpy as np

from . import Recording


def record(model, variables, folder, *inputs, **kwargs):
    y, state = model.apply(variables, *inputs, capture_intermediates=True, mutable=["intermediates"], **kwargs)
    with Recording(folder, "jax %s, flax %s" % (jax.__version__, flax.__version__)) as r:
        for path, v in jax.tree_util.tree_flatten_with_path(state["intermediates"])[0]:
            words = [str(getattr(p, "key", getattr(p, "idx", p))) for p in path]
            r.array(".".join(w for w in words[:-1] if w != "__call__") + (words[-1] != "0") * ("." + words[-1]) or "end", np.asarray(v))
    return y
