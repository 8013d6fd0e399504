#!/usr/bin/env python3
"""Operators of MindSpore on the CPU, a kernel or some each, as its Dump writes them: zoo.py FOLDER [OPERATOR...]

The folder's path has no dot. Then `accdump-read FOLDER/dump | accaudit | accfirstbad` accuses none, and says how many it audited."""
import json
import os
import re
import sys

folder = os.path.abspath(sys.argv[1])
dump = os.path.join(folder, "dump")
os.makedirs(folder, exist_ok=True)
settings = os.path.join(folder, "dump.json")
with open(settings, "w") as f:
    json.dump({"common_dump_settings": {"op_debug_mode": 0, "dump_mode": 0, "path": dump, "net_name": "Net", "iteration": "all",
                                        "saved_data": "tensor", "input_output": 0, "kernels": [], "support_device": list(range(8))},
               "e2e_dump_settings": {"enable": True, "trans_flag": True}}, f)
os.environ["MINDSPORE_DUMP_CONFIG"] = settings

import mindspore as ms  # noqa: E402
import numpy as np  # noqa: E402
from mindspore import nn, ops  # noqa: E402

ms.set_context(mode=ms.GRAPH_MODE, device_target="CPU", jit_config={"jit_level": "O0"})
ms.set_seed(3)
R = np.random.RandomState(7)


def t(*shape, dtype=np.float32, positive=False):
    x = R.randn(*shape)
    return ms.Tensor((np.abs(x) + 0.5 if positive else x).astype(dtype))


X, Y, P, IMG = t(4, 6, 10), t(4, 6, 10), t(4, 6, 10, positive=True), t(2, 4, 8, 8)
A, B, M = t(4, 6, 5), t(4, 5, 7), ms.Tensor(R.rand(4, 6, 10) > 0.5)
I = ms.Tensor(R.randint(0, 6, (3, 5)).astype(np.int32))
J = ms.Tensor(R.randint(0, 10, (4, 6, 3)).astype(np.int64))
L = ms.Tensor(R.randint(0, 10, 24).astype(np.int32))
F = ms.Tensor(R.randn(24, 10).astype(np.float32))
CLASSES = ms.Tensor(np.eye(10, dtype=np.float32)[R.randint(0, 10, 24)])
OPS = {
    'div': 'ops.div(X, P)', 'floor_div': 'ops.floor_div(X, P)', 'mod': 'ops.floor_mod(X, P)', 'pow': 'ops.pow(P, 2.5)', 'mul_scalar': 'X * 3.0',
    'fmod': 'ops.fmod(X, P)', 'lerp': 'ops.lerp(X, Y, 0.3)', 'clamp': 'ops.clamp(X, -0.5, 0.7)', 'addcmul': 'ops.addcmul(X, Y, P, 0.5)',
    'addcdiv': 'ops.addcdiv(X, Y, P, 0.5)', 'addn': 'ops.addn([X, Y, P])', 'gelu_tanh': "ops.gelu(X, 'tanh')", 'gelu': 'ops.gelu(X)',
    'leaky_relu': 'ops.leaky_relu(X, 0.1)', 'softplus': 'ops.softplus(X)', 'glu': 'ops.glu(X)', 'hardtanh': 'ops.hardtanh(X, -0.5, 0.5)',
    'prelu': 'ops.prelu(IMG, t(4))', 'softmax': 'ops.softmax(X, 1)', 'log_softmax': 'ops.log_softmax(X, -1)', 'logsumexp': 'ops.logsumexp(X, 2)',
    'sum': 'ops.sum(X, 1, True)', 'sum_all': 'X.sum()', 'mean': 'ops.mean(X, (0, 2))', 'prod': 'ops.prod(P, 1)', 'std': 'ops.std(X, 1, 1, True)',
    'var': 'ops.var(X, 2, 0)', 'amax': 'ops.amax(X, 1)', 'amin': 'ops.amin(X, 2, True)', 'max': 'ops.max(X, 1)', 'min': 'ops.min(X, 2)',
    'argmax': 'ops.argmax(X, 1)', 'argmin': 'ops.argmin(X, 2)', 'all': 'ops.all(M, 1)', 'any': 'ops.any(M, 2)', 'norm': 'ops.norm(X, dim=-1)',
    'cumsum': 'ops.cumsum(X, 1)', 'cumprod': 'ops.cumprod(P, 2)', 'topk': 'ops.topk(X, 3)', 'sort': 'ops.sort(X, 1)', 'matmul': 'ops.matmul(A, B)',
    'bmm': 'ops.bmm(A, B)', 'mm': 'ops.mm(F.T, F)', 'MatMul_turned': 'ops.MatMul(False, True)(F, F)',
    'BatchMatMul_turned': 'ops.BatchMatMul(True, False)(A, A)', 'einsum': "ops.einsum('bij,bjk->bik', A, B)", 'outer': 'ops.outer(t(5), t(6))',
    'baddbmm': 'ops.baddbmm(t(4, 6, 7), A, B)', 'dense': 'ops.dense(F, t(5, 10), t(5))', 'bias_add': 'ops.bias_add(F, t(10))',
    'bias_add_img': 'ops.bias_add(IMG, t(4))', 'transpose': 'ops.transpose(X, (2, 0, 1))', 'reshape': 'ops.reshape(X, (6, 40))',
    'flatten': 'ops.flatten(X)', 'expand_dims': 'ops.expand_dims(X, 1)', 'squeeze': 'ops.squeeze(t(4, 1, 5), 1)', 'concat': 'ops.concat([X, Y], 1)',
    'stack': 'ops.stack([X, Y], 1)', 'unstack': 'ops.unstack(X, 1)', 'split': 'ops.split(X, 2, 1)', 'chunk': 'ops.chunk(X, 2, -1)',
    'tile': 'ops.tile(X, (2, 1, 3))', 'broadcast': 'ops.broadcast_to(t(6, 1), (4, 6, 10))', 'slice': 'X[:, 1:5:2, -3:]', 'slice_one': 'X[:, -1]',
    'slice_none': 'X[:, None, 2]', 'narrow': 'ops.narrow(X, 1, 2, 3)', 'flip': 'ops.flip(X, (1,))', 'roll': 'ops.roll(X, 2, 1)',
    'pad': 'ops.pad(X, (1, 2))', 'gather': 'ops.gather(t(6, 8), I, 0)', 'gather_axis': 'ops.gather(X, I, 1)',
    'gather_d': 'ops.gather_elements(X, 2, J)', 'gather_nd': 'ops.gather_nd(X, ms.Tensor([[0, 1], [3, 2]], ms.int32))',
    'index_select': 'ops.index_select(X, 1, ms.Tensor([0, 2], ms.int32))', 'select': 'ops.where(M, X, Y)',
    'masked_fill': 'ops.masked_fill(X, M, -2.0)', 'tril': 'ops.tril(X, 1)', 'triu': 'ops.triu(X)', 'one_hot': 'ops.one_hot(L, 10)',
    'scatter': 'ops.tensor_scatter_elements(X, J, t(4, 6, 3), 2)', 'cast': 'X.astype(ms.float16)',
    'repeat_interleave': 'ops.repeat_interleave(X, 2, 1)', 'segment': 'ops.unsorted_segment_sum(F, L, 10)',
    'layer_norm': 'ops.layer_norm(X, (10,), ops.ones(10), ops.zeros(10), 0.001)',
    'layer_norm_two': 'ops.LayerNorm(1, 1, 1e-05)(X, ops.ones((6, 10)), ops.zeros((6, 10)))[0]',
    'batch_norm': 'ops.batch_norm(IMG, t(4), t(4, positive=True), t(4), t(4))',
    'rms_norm': 'X * ops.rsqrt(ops.mean(ops.square(X), -1, True) + 1e-06)', 'l2_normalize': 'ops.L2Normalize(1)(X)',
    'group_norm': 'ops.group_norm(IMG, 2)', 'conv2d': "ops.conv2d(IMG, t(5, 4, 3, 3), stride=2, pad_mode='pad', padding=1)",
    'conv2d_same': "ops.conv2d(IMG, t(5, 4, 3, 3), stride=2, pad_mode='same')",
    'conv2d_valid': 'ops.conv2d(IMG, t(6, 2, 3, 3), groups=2, dilation=2)', 'conv1d': 'ops.conv1d(X, t(5, 6, 3))',
    'max_pool': 'ops.max_pool2d(IMG, 2, 2)', 'MaxPool': "ops.MaxPool(3, 2, 'same')(IMG)", 'avg_pool': 'ops.avg_pool2d(IMG, 2, 2)',
    'AvgPool_same': "ops.AvgPool(3, 2, 'same')(IMG)", 'adaptive': 'ops.adaptive_avg_pool2d(IMG, 3)',
    'bilinear': "ops.interpolate(IMG, size=(12, 5), mode='bilinear', align_corners=True)",
    'bilinear_half': "ops.interpolate(IMG, size=(12, 5), mode='bilinear')", 'nearest': "ops.interpolate(IMG, size=(12, 5), mode='nearest')",
    'cross_entropy': 'ops.cross_entropy(F, L)', 'nll': 'ops.nll_loss(F, L)', 'mse': 'ops.mse_loss(X, Y)', 'l1': 'ops.l1_loss(X, Y)',
    'smooth_l1': 'ops.smooth_l1_loss(X, Y, 0.7)', 'smooth_l1_mean': "ops.smooth_l1_loss(X, Y, 1.0, 'mean')", 'huber': 'ops.huber_loss(X, Y)',
    'bce': 'ops.binary_cross_entropy(ops.sigmoid(X), ops.sigmoid(Y))',
    'bce_logits': 'ops.binary_cross_entropy_with_logits(X, ops.sigmoid(Y), ops.ones_like(X), ops.ones_like(X))',
    'kl_div': 'ops.kl_div(ops.log_softmax(X), ops.softmax(Y))', 'kl_div_sum': "ops.kl_div(ops.log_softmax(X), ops.softmax(Y), 'sum')",
    'softmax_ce': 'ops.SoftmaxCrossEntropyWithLogits()(F, CLASSES)', 'cosine': 'ops.cosine_similarity(X, Y, 2)', 'cdist': 'ops.cdist(A, A)',
    'meshgrid': 'ops.meshgrid(t(4), t(5))', 'logical_and': 'ops.logical_and(M, M)', 'logical_not': 'ops.logical_not(M)',
    'nan_to_num': 'ops.nan_to_num(X)', 'range': 'ops.range(1, 9, 2)',
    'fp16': 'ops.tanh(X.astype(ms.float16))',
    'fp16_matmul': 'ops.matmul(A.astype(ms.float16), B.astype(ms.float16))',
}
for names, form in (("abs exp sin cos tanh sigmoid erf erfc neg sign square floor ceil round relu relu6 elu silu mish selu softsign hardswish "
                     "hardsigmoid atan sinh cosh asinh expm1 trunc isnan isfinite logsigmoid zeros_like ones_like celu hardshrink softshrink",
                     "ops.%s(X)"),
                    ("log log1p sqrt rsqrt reciprocal log2 log10", "ops.%s(P)"),
                    ("add sub mul maximum minimum atan2 greater less greater_equal less_equal equal not_equal hypot xlogy squared_difference",
                     "ops.%s(X, Y)")):
    OPS.update({n: form % n for n in names.split() if hasattr(ops, n)})
NAMES = "X Y P IMG A B M I J L F CLASSES".split()
# MindSpore compiles a function from its file, and what is no argument is a constant that it folds.
OWN = re.compile(r"\bt\([^()]*\)")
with open(os.path.join(folder, "made.py"), "w") as f:
    f.write("import mindspore as ms\nfrom mindspore import nn, ops\n")
    for name, text in OPS.items():
        own = ["w%d" % i for i in range(len(OWN.findall(text)))]
        f.write("\n\ndef f_%s(%s):\n    return %s\n" % (name, ", ".join(NAMES + own), OWN.sub(lambda m: own.pop(0), text)))
sys.path.insert(0, folder)
import made  # noqa: E402

for name, text in OPS.items():
    if sys.argv[2:] and name not in sys.argv[2:]:
        continue
    try:
        ms.jit(getattr(made, "f_" + name))(*[globals()[n] for n in NAMES], *[eval(w) for w in OWN.findall(text)])
    except Exception as e:
        print("not run:", name, str(e).strip().split("\n")[0][:150])
