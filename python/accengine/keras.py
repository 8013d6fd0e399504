"""Keras: record(model, inputs, folder) of any model, on any of its backends: what each layer gives, with what went in."""
import keras
import numpy as np

from . import Recording


def record(model, inputs, folder):
    array = lambda x: np.asarray(keras.ops.convert_to_numpy(x))
    plain = keras.layers.Layer.__call__

    def tensors(x):
        return [t for t in keras.tree.flatten(x) if keras.ops.is_tensor(t) or isinstance(t, np.ndarray)]

    def watch(layer, *args, **kwargs):
        y = plain(layer, *args, **kwargs)
        out = tensors(y)
        path = (getattr(layer, "path", None) or layer.name).replace("/", ".")
        r.node(type(layer).__name__, {path + (".%d" % i if i else ""): array(t) for i, t in enumerate(out)},
               [(r.name(t), array(t)) for t in tensors((args, kwargs))],
               {k: v for k, v in layer.get_config().items() if isinstance(v, (bool, int, float, str))} if layer.built else None)
        for i, t in enumerate(out):
            r.name(t, path + (".%d" % i if i else ""))
        return y

    with Recording(folder, "keras %s" % keras.__version__) as r:
        keras.layers.Layer.__call__ = watch
        try:
            return model(inputs, training=False)
        finally:
            keras.layers.Layer.__call__ = plain
