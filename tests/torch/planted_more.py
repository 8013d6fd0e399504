"""More wrong kernels, of other operators, dtypes and kinds, for tests/torch/planted --more."""
import torch
import torch.nn.functional as F

bf16, f16, f32, f64 = torch.bfloat16, torch.float16, torch.float32, torch.float64
inf = float("inf")


def rand(*shape, dtype=f32):
    return torch.randn(shape, dtype=f64).to(dtype)


def with_all(plant, steps):
    def call(kind, f, args, wrong):
        """wrong(arguments, what is right) stands in the place of f(arguments)."""
        def make():
            a = args()
            y = f(*a)
            z = wrong(a, y.clone())
            return f, a, z.to(y.dtype)
        plant(kind, make)

    def graded(kind, f, args, wrong):
        """wrong(arguments, gradient) in the place of the first gradient."""
        kept = []

        def make():
            kept[:] = args()
            kept[0].requires_grad_()
            return f, list(kept), None
        plant(kind, make, lambda g: wrong([a.detach() if isinstance(a, torch.Tensor) else a for a in kept], g.clone()))

    conv = lambda dt: lambda: [rand(2, 16, 10, 9, dtype=dt), rand(8, 16, 3, 3, dtype=dt), rand(8, dtype=dt)]
    conv2d = lambda x, w, b: F.conv2d(x, w, b, padding=1)
    for dt in (f32, bf16):
        call(f"conv2d: the last input channel is missing, {dt}", conv2d, conv(dt),
             lambda a, y: F.conv2d(a[0].double()[:, :15], a[1].double()[:, :15], a[2].double(), padding=1))
        call(f"conv2d: the border is repeated, {dt}", conv2d, conv(dt), lambda a, y: F.conv2d(
            F.pad(a[0].double(), (1, 1, 1, 1), mode="replicate"), a[1].double(), a[2].double()))
        call(f"conv2d: the bias of another channel, {dt}", conv2d, conv(dt), lambda a, y: F.conv2d(
            a[0].double(), a[1].double(), a[2].double().roll(1), padding=1))

    def by_channel(a, y):
        out = None
        for c in range(16):
            part = F.conv2d(a[0].double()[:, c:c + 1], a[1].double()[:, c:c + 1], padding=1)
            out = part.to(bf16) if out is None else (out.double() + part).to(bf16)
        return out.double() + a[2].double()[:, None, None]
    call("conv2d: summed in bf16 by channel", conv2d, conv(bf16), by_channel)
    image = lambda dt=f32: lambda: [rand(2, 4, 9, 8, dtype=dt)]
    call("avg_pool2d: borders count less", lambda x: F.avg_pool2d(x, 3, 2, 1), image(),
         lambda a, y: F.avg_pool2d(a[0], 3, 2, 1, count_include_pad=False))
    call("max_pool2d: a column is passed over", lambda x: F.max_pool2d(x, 3, 2), image(), lambda a, y: torch.cat(
        [y[..., :-1], F.max_pool2d(a[0][..., 4:6], (3, 2), 2)], -1))
    call("interpolate: corners aligned", lambda x: F.interpolate(x, size=(13, 11), mode="bilinear"), image(),
         lambda a, y: F.interpolate(a[0], size=(13, 11), mode="bilinear", align_corners=True))
    call("interpolate: nearest takes the one before, bf16", lambda x: F.interpolate(x, size=(13, 11)), image(bf16),
         lambda a, y: y.roll(1, -1))
    call("group_norm: groups of half the size", lambda x: F.group_norm(x, 2), image(), lambda a, y: F.group_norm(a[0], 4))
    call("batch_norm: n - 1 for n", lambda x: F.batch_norm(x, None, None, None, None, True), lambda: [rand(4, 3, 5)],
         lambda a, y: (a[0] - a[0].mean((0, 2), True)) / (a[0].var((0, 2), keepdim=True) + 1e-5).sqrt())
    call("rms_norm: the mean is taken off", lambda x: F.rms_norm(x, (64,), None, 1e-6), lambda: [rand(8, 64) + 0.05],
         lambda a, y: F.rms_norm(a[0] - a[0].mean(-1, True), (64,), None, 1e-6))
    call("rms_norm f16: squares overflow", lambda x: F.rms_norm(x, (64,), None, 1e-6), lambda: [rand(8, 64, dtype=f16) * 400],
         lambda a, y: torch.where(((a[0] * a[0]).isinf()).any(-1, True), torch.zeros_like(y), y))
    scores = lambda dt: lambda: [rand(12, 40, dtype=dt) * 3]
    call("log_softmax f16: exponentials overflow", lambda x: F.log_softmax(x, -1), lambda: [rand(12, 40, dtype=f16) * 8],
         lambda a, y: a[0] - a[0].exp().sum(-1, True).log())
    call("softmax: over the other dimension", lambda x: F.softmax(x, -1), scores(f32), lambda a, y: F.softmax(a[0], 0))
    call("softmax bf16: the last of a row in no sum", lambda x: F.softmax(x, -1), scores(bf16),
         lambda a, y: (e := a[0].double().exp()) / e[:, :-1].sum(-1, True))
    call("smooth_l1: another beta", lambda x, y: F.smooth_l1_loss(x, y), lambda: [rand(9, 9), rand(9, 9)],
         lambda a, y: F.smooth_l1_loss(*a, beta=0.9))
    call("bce_with_logits: no pos_weight", lambda x, y, w: F.binary_cross_entropy_with_logits(x, y, pos_weight=w),
         lambda: [rand(9, 9), torch.rand(9, 9), torch.rand(9) + 0.5],
         lambda a, y: F.binary_cross_entropy_with_logits(a[0], a[1]))
    call("kl_div: by elements for by rows", lambda x, y: F.kl_div(x, y, reduction="batchmean"),
         lambda: [F.log_softmax(rand(9, 7), -1), F.softmax(rand(9, 7), -1)], lambda a, y: F.kl_div(*a, reduction="mean"))
    call("cross_entropy: ignored rows count", lambda x, y: F.cross_entropy(x, y, ignore_index=0),
         lambda: [rand(40, 7), torch.randint(0, 7, (40,))],
         lambda a, y: F.cross_entropy(*a, ignore_index=0, reduction="sum") / 40)
    call("cross_entropy: no label smoothing", lambda x, y: F.cross_entropy(x, y, label_smoothing=0.1),
         lambda: [rand(40, 7), torch.randint(0, 7, (40,))], lambda a, y: F.cross_entropy(*a))
    call("topk: two exchanged", lambda x: torch.topk(x, 5, -1)[0], lambda: [rand(9, 40)], lambda a, y: y[:, [1, 0, 2, 3, 4]])
    call("argsort: one wrong", lambda x: torch.argsort(x, -1), lambda: [rand(9, 40)], lambda a, y: y.index_copy(
        1, torch.tensor([3, 4]), y[:, [4, 3]]))
    call("scatter_add: an update is lost", lambda x, i, s: torch.scatter_add(x, 1, i, s),
         lambda: [torch.zeros(4, 5), torch.randint(0, 5, (4, 30)), rand(4, 30)],
         lambda a, y: torch.scatter_add(a[0], 1, a[1][:, 1:], a[2][:, 1:]))
    call("embedding_bag: a mean of one less", lambda w, i: F.embedding_bag(i, w, mode="mean"),
         lambda: [rand(20, 8), torch.randint(0, 20, (6, 5))], lambda a, y: y * 5 / 4)
    call("cumprod: exclusive", lambda x: torch.cumprod(x, -1), lambda: [rand(5, 9)], lambda a, y: torch.cat(
        [torch.ones(5, 1), y[:, :-1]], -1))
    call("bmm: two batches exchanged", torch.bmm, lambda: [rand(4, 5, 6), rand(4, 6, 7)], lambda a, y: y[[1, 0, 2, 3]])
    call("addmm: beta is 1", lambda c, a, b: torch.addmm(c, a, b, beta=0.5), lambda: [rand(5, 7), rand(5, 6), rand(6, 7)],
         lambda a, y: torch.addmm(*a))
    call("matmul f64: in f32", torch.matmul, lambda: [rand(9, 40, dtype=f64), rand(40, 7, dtype=f64)],
         lambda a, y: (a[0].float() @ a[1].float()).double())
    call("sum f64: in f32", lambda x: torch.sum(x, -1), lambda: [rand(9, 400, dtype=f64)], lambda a, y: a[0].float().sum(-1).double())
    call("exp f64: in f32", torch.exp, lambda: [rand(9, 40, dtype=f64)], lambda a, y: a[0].float().exp().double())
    call("matmul int32: 8 bits a factor", torch.matmul, lambda: [torch.randint(-300, 300, (5, 9)).int(), torch.randint(
        -300, 300, (9, 4)).int()], lambda a, y: a[0].to(torch.int8).int() @ a[1].to(torch.int8).int())
    call("add int8: saturates", torch.add, lambda: [torch.full((9,), 100, dtype=torch.int8), torch.arange(
        9, dtype=torch.int8) * 5], lambda a, y: (a[0].int() + a[1].int()).clamp(-128, 127))
    call("pow f16: by logarithms in f16", lambda x: torch.pow(x, 3.0), lambda: [rand(9, 40, dtype=f16).abs() + 0.5],
         lambda a, y: torch.exp((a[0].log() * 3)))
    call("sqrt: 12 bits", torch.sqrt, lambda: [rand(9, 40).abs()], lambda a, y: y * (1 + 2.0**-12 * torch.sin(9 * a[0])))
    call("reciprocal: 11 bits, f32", torch.reciprocal, lambda: [rand(9, 40).abs() + 0.1],
         lambda a, y: y * (1 + 2.0**-11 * torch.sin(9 * a[0])))
    call("tanh: rational", torch.tanh, lambda: [rand(9, 40)], lambda a, y: a[0] * (27 + a[0]**2) / (27 + 9 * a[0]**2))
    call("silu f16: hard sigmoid", F.silu, lambda: [rand(9, 40, dtype=f16)], lambda a, y: a[0] * F.hardsigmoid(a[0]))
    call("softplus: linear from 2 on", F.softplus, lambda: [rand(9, 40) * 2], lambda a, y: torch.where(a[0] > 2, a[0], y))
    call("where: a row by the other side", torch.where, lambda: [rand(9, 9) > 0, rand(9, 9), rand(9, 9)],
         lambda a, y: torch.where(a[0] ^ (torch.arange(9) == 4)[:, None], a[1], a[2]))
    call("triu: one diagonal further", torch.triu, lambda: [rand(9, 9)], lambda a, y: torch.triu(a[0], 1))
    call("roll: one too far", lambda x: torch.roll(x, 2, -1), lambda: [rand(9, 9, dtype=bf16)], lambda a, y: y.roll(1, -1))
    call("cat: parts exchanged", lambda x, y: torch.cat([x, y]), lambda: [rand(3, 5), rand(3, 5)], lambda a, y: y.roll(3, 0))
    call("var: one pass at 30, f32", lambda x: torch.var(x, -1), lambda: [rand(9, 200) + 30],
         lambda a, y: ((a[0] * a[0]).sum(-1) - a[0].sum(-1)**2 / 200) / 199)
    call("attention: of the next head", F.scaled_dot_product_attention, lambda: [rand(2, 4, 9, 8) for _ in range(3)],
         lambda a, y: y.roll(1, 1))
    call("attention bf16: the last key is missing", F.scaled_dot_product_attention,
         lambda: [rand(2, 4, 40, 8, dtype=bf16) for _ in range(3)],
         lambda a, y: F.scaled_dot_product_attention(a[0], a[1][:, :, :-1], a[2][:, :, :-1]))
    graded("gradient: softmax without its sum", lambda x: F.softmax(x * 1, -1).square(), lambda: [rand(9, 9)],
           lambda a, g: g * 1.05)
    graded("gradient: linear's input, an output is missing", F.linear, lambda: [rand(9, 7), rand(5, 7)],
           lambda a, g: torch.ones(9, 4) @ a[1][:4])
    graded("gradient: conv2d's input, one row", lambda x, w, b: F.conv2d(x, w, b, padding=1), conv(f32),
           lambda a, g: g.index_fill(2, torch.tensor(4), 0))
    graded("gradient: gelu's tanh form", F.gelu, lambda: [rand(9, 9)], lambda a, g: g + 5e-4 * torch.sin(9 * a[0]))
    graded("gradient: index_select counts one of equal ones", lambda w, i: torch.index_select(w, 0, i),
           lambda: [rand(5, 4), torch.tensor([0, 1, 1, 2, 2, 2])], lambda a, g: g.clamp(max=1))
    graded("gradient: bf16 div off by four places", torch.div, lambda: [rand(9, 40, dtype=bf16), rand(9, 40, dtype=bf16)],
           lambda a, g: (g.view(torch.int16) + 4).view(bf16))
