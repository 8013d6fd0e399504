# pip: keras==3.15.0 jax==0.10.0 numpy==2.4.6 h5py==3.16.0
"""Keras 3 on JAX."""
import os

os.environ["KERAS_BACKEND"] = "jax"
import keras
import numpy as np

from tools import behaviour, main


@behaviour
def keras_two_gelus():
    x = np.array([1.5], dtype="f4")
    a, b = [float(np.asarray(f(x))[0]) for f in (keras.activations.gelu, keras.ops.gelu)]
    assert abs(a - 1.3997892) < 1e-6 and abs(b - 1.3995715) < 1e-6, (a, b)


@behaviour
def keras_two_leaky_relus():
    x = np.array([-1.0], dtype="f4")
    got = [float(np.asarray(f(x))[0]) for f in (keras.layers.LeakyReLU(), keras.ops.leaky_relu, keras.activations.leaky_relu)]
    assert np.allclose(got, [-0.3, -0.2, -0.2]), got


@behaviour
def keras_accumulation_counts():
    x, y = np.ones((8, 2), "f4"), np.ones((8, 1), "f4")

    class Asked(keras.optimizers.schedules.LearningRateSchedule):
        def __call__(self, step):
            return keras.ops.cast(step, "float32")

        def get_config(self):
            return {}
    o = keras.optimizers.SGD(Asked(), gradient_accumulation_steps=4)
    m = keras.Sequential([keras.Input((2,)), keras.layers.Dense(1)])
    m.compile(o, "mse")
    m.fit(x, y, batch_size=1, epochs=1, verbose=0)
    assert int(o.iterations) == 2 and float(o.learning_rate) == 8, (int(o.iterations), float(o.learning_rate))


@behaviour
def keras_weights_by_order():
    import tempfile

    def net(names, scale):
        m = keras.Sequential([keras.Input((2,))] + [keras.layers.Dense(2, name=n) for n in names])
        m.set_weights([np.full(w.shape, scale * (i + 1), "f4") for i, w in enumerate(m.get_weights())])
        return m
    with tempfile.TemporaryDirectory() as d:
        net(["up", "down"], 1).save_weights(d + "/a.weights.h5")
        other = net(["down", "up"], 0)
        other.load_weights(d + "/a.weights.h5")
        got = float(other.get_layer("down").get_weights()[0][0, 0])
    assert got == 1.0, got


if __name__ == "__main__":
    main()
