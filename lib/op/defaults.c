#include "acc/default.h"

#include <math.h>
#include <stdlib.h>

#define TORCH "pytorch", "torch", "2.15"
#define MINDSPORE "mindspore", "MindSpore", "2.10.0"
#define JAX "jax", "JAX", "0.10.2"
#define FLAX "jax", "flax", "0.12.8"
#define OPTAX "jax", "optax", "0.2.8"
#define KERAS "jax", "Keras", "3.15.1" /* whatever runs it */
#define ONNX "onnx", "ONNX", "1.23.2"
#define PADDLE "paddle", "Paddle", "3.3.1"
#define GGML "ggml", "ggml", "2026.10" /* as xllamacpp 2026.10.11549 has it */

#define STD "std var std_mean var_mean"

static const struct acc_default rows[] = {
	{TORCH, "nn.GELU", "gelu", "approximate", "none"},
	{TORCH, "nn.LayerNorm", "layer_norm batch_norm1d batch_norm group_norm", "eps", "1e-05"},
	{TORCH, "nn.BatchNorm2d", "batch_norm", "momentum", "0.1"},
	{TORCH, "nn.LeakyReLU", "leaky_relu", "negative_slope", "0.01"},
	{TORCH, "nn.ELU", "elu celu", "alpha", "1.0"},
	{TORCH, "nn.Hardshrink", "hardshrink softshrink", "lambd", "0.5"},
	{TORCH, "nn.Softplus", "softplus", "beta", "1.0"},
	{TORCH, "nn.LocalResponseNorm", "local_response_norm", "alpha", "0.0001"},
	{TORCH, "nn.LocalResponseNorm", "local_response_norm", "beta", "0.75"},
	{TORCH, "std", STD, "unbiased", "True"},
	{TORCH, "nn.SmoothL1Loss", "smooth_l1_loss", "beta", "1.0"},
	{TORCH, "nn.HuberLoss", "huber_loss", "delta", "1.0"},
	{TORCH, "nn.MSELoss",
		"smooth_l1_loss binary_cross_entropy cross_entropy nll_loss mse_loss l1_loss huber_loss",
		"reduction", "mean"},
	{TORCH, "nn.CrossEntropyLoss", "cross_entropy nll_loss", "ignore_index", "-100"},
	{TORCH, "nn.CrossEntropyLoss", "cross_entropy", "label_smoothing", "0.0"},
	{TORCH, "nn.functional.interpolate", "interpolate", "align_corners", "False"},
	{TORCH, "nn.AvgPool2d", "avg_pool2d", "count_include_pad", "True"},
	{TORCH, "nn.Conv2d", "conv1d conv", "padding", "0"},
	{TORCH, "cdist", "cdist", "p", "2.0"},
	{TORCH, "linalg.vector_norm", "norm", "p", "2.0"},
	{TORCH, "triu", "triu tril", "diagonal", "0"},
	{TORCH, "optim.Adam", "adam adamw adagrad", "lr", "0.001"},
	{TORCH, "optim.Adam", "adam adamw", "eps", "1e-08"},
	{TORCH, "optim.AdamW", "adamw", "weight_decay", "0.01"},
	{TORCH, "optim.Adagrad", "adagrad", "eps", "1e-10"},
	{TORCH, "optim.RMSprop", "rmsprop", "alpha", "0.99"},
	{TORCH, "optim.RMSprop", "rmsprop", "eps", "1e-08"},
	{TORCH, "optim.Adadelta", "adadelta", "rho", "0.9"},

	{MINDSPORE, "nn.GELU", "gelu", "approximate", "tanh"},
	{MINDSPORE, "nn.LayerNorm", "layer_norm", "eps", "1e-07"},
	{MINDSPORE, "nn.LeakyReLU", "leaky_relu", "negative_slope", "0.2"},
	{MINDSPORE, "ops.std", STD, "unbiased", "False"},
	{MINDSPORE, "nn.SmoothL1Loss", "smooth_l1_loss", "reduction", "none"},
	{MINDSPORE, "nn.Conv2d", "conv1d conv", "padding", "same"},
	/* torch's is the size of the window. */
	{MINDSPORE, "nn.MaxPool2d", "max_pool2d", "stride", "1"},
	{MINDSPORE, "nn.AvgPool2d", "avg_pool2d", "stride", "1"},
	/* Its epsilon, 1e-4, is of the square. */
	{MINDSPORE, "ops.L2Normalize", "normalize", "eps", "0.01"},
	{MINDSPORE, "ops.ResizeBilinearV2", "interpolate", "half_pixel_centers", "False"},
	{MINDSPORE, "ops.LRN", "local_response_norm", "beta", "0.5"},
	{MINDSPORE, "nn.AdamWeightDecay", "adam adamw", "eps", "1e-06"},
	{MINDSPORE, "nn.AdamWeightDecay", "adamw", "weight_decay", "0.0"},
	{MINDSPORE, "nn.Adagrad", "adagrad", "initial_accumulator_value", "0.1"},
	{MINDSPORE, "nn.RMSProp", "rmsprop", "alpha", "0.9"},
	{MINDSPORE, "nn.RMSProp", "rmsprop", "eps", "1e-10"},

	{JAX, "nn.gelu", "gelu", "approximate", "tanh"},
	{JAX, "numpy.std", STD, "unbiased", "False"},
	{FLAX, "linen.LayerNorm", "layer_norm group_norm rms_norm", "eps", "1e-06"},
	{FLAX, "linen.BatchNorm", "batch_norm", "momentum", "0.01"},
	{FLAX, "linen.Conv", "conv1d conv", "padding", "same"},
	{OPTAX, "adamw", "adamw", "weight_decay", "0.0001"},
	{OPTAX, "adagrad", "adagrad", "eps", "1e-07"},
	{OPTAX, "adagrad", "adagrad", "initial_accumulator_value", "0.1"},
	{OPTAX, "rmsprop", "rmsprop", "alpha", "0.9"},

	{KERAS, "ops.gelu", "gelu", "approximate", "tanh"},
	{KERAS, "ops.std", STD, "unbiased", "False"},
	{KERAS, "layers.LayerNormalization", "layer_norm batch_norm group_norm", "eps", "0.001"},
	{KERAS, "layers.BatchNormalization", "batch_norm", "momentum", "0.01"},
	{KERAS, "layers.LeakyReLU", "leaky_relu", "negative_slope", "0.3"},
	{KERAS, "activations.leaky_relu", "leaky_relu", "negative_slope", "0.2"},
	{KERAS, "layers.Conv2D", "conv1d conv", "padding", "valid"},
	{KERAS, "optimizers.Adam", "adam adamw adagrad rmsprop", "eps", "1e-07"},
	{KERAS, "optimizers.AdamW", "adamw", "weight_decay", "0.004"},
	{KERAS, "optimizers.Adagrad", "adagrad", "initial_accumulator_value", "0.1"},
	{KERAS, "optimizers.RMSprop", "rmsprop", "alpha", "0.9"},

	{ONNX, "AveragePool", "avg_pool2d", "count_include_pad", "False"},
	{ONNX, "Adam", "adam adagrad", "eps", "1e-06"},

	{PADDLE, "nn.AvgPool2D", "avg_pool2d", "count_include_pad", "False"},
	{PADDLE, "optimizer.Adagrad", "adagrad", "eps", "1e-06"},
	{PADDLE, "optimizer.RMSProp", "rmsprop", "alpha", "0.95"},
	{PADDLE, "optimizer.RMSProp", "rmsprop", "eps", "1e-06"},
	{PADDLE, "optimizer.Adadelta", "adadelta", "rho", "0.95"},

	{GGML, "ggml_gelu", "gelu", "approximate", "tanh"},
	{GGML, "ggml_opt_step_adamw", "adamw", "weight_decay", "0.0"},
};

const struct acc_default *
acc_default_at(size_t i)
{
	return i < sizeof rows / sizeof *rows ? &rows[i] : NULL;
}

/* Is it a row of this operator's argument? */
static bool
is_of(const struct acc_default *d, struct acc_str op, struct acc_str name)
{
	const struct acc_op_info *o = acc_op_info_of(op);
	return o != NULL && acc_str_is(name, d->name) && acc_word_in(d->ops, acc_op_own_name(o));
}

bool
acc_default_is(const struct acc_val *v, struct acc_str text)
{
	char buf[24];
	char *end;
	double x = NAN;
	snprintf(buf, sizeof buf, "%.*s", ACC_PRS(text));
	const double y = strtod(buf, &end);
	if (v->type == ACC_V_BOOL && acc_word_in("True False", text))
		return v->b == acc_str_is(text, "True");
	if (v->type == ACC_V_TEXT) {
		if (acc_str_eq(v->s, text) || end == buf || *end != '\0')
			return acc_str_eq(v->s, text);
		snprintf(buf, sizeof buf, "%.*s", ACC_PRS(v->s));
		x = strtod(buf, &end);
		x = end == buf || *end != '\0' ? NAN : x;
	} else if (!acc_as_f64(v, &x)) {
		return false;
	}
	return fabs(x - y) <= 0x1p-23 * fabs(y);
}

struct acc_str
acc_op_default(struct acc_str op, struct acc_str name)
{
	for (const struct acc_default *d = rows; strcmp(d->framework, "pytorch") == 0; d++)
		if (is_of(d, op, name))
			return acc_str(d->value);
	return (struct acc_str){"", 0};
}

const struct acc_default *
acc_default_found(struct acc_str framework, struct acc_str op, struct acc_str name,
	const struct acc_val *value)
{
	const struct acc_str usual = acc_op_default(op, name);
	if (value == NULL || (usual.n > 0 && acc_default_is(value, usual)))
		return NULL;
	for (const struct acc_default *d = rows; d < rows + sizeof rows / sizeof *rows; d++)
		if (acc_str_is(framework, d->framework) && is_of(d, op, name) &&
			acc_default_is(value, acc_str(d->value)))
			return d;
	return NULL;
}
