"""What the networks of sound.py share: how ops are recorded, and collectives that autograd knows."""
import torch
import torch.distributed as dist
import torch.nn.functional as F

import afresh_copies
import fresh
import recorder
from fresh import OPS

MORE = {
    "Functional": (F, "conv1d conv_transpose2d max_pool2d avg_pool2d group_norm interpolate pad normalize log_softmax "
                   "nll_loss kl_div binary_cross_entropy_with_logits leaky_relu softplus elu one_hot logsigmoid glu "
                   "ctc_loss cosine_similarity l1_loss huber_loss smooth_l1_loss embedding_bag dropout hardtanh selu"),
    "Torch": (torch, "addmm bmm baddbmm sqrt abs clamp where index_select cumsum topk sort argmax norm var logsumexp "
              "outer multinomial flatten unsqueeze squeeze maximum minimum split mv dot sin cos pow sign triu any "
              "isinf isfinite permute chunk sub div full_like cdist softmax relu reciprocal"),
    "Tensor": (torch.Tensor, "__getitem__ __rmul__ __radd__ __rsub__ __rtruediv__ __pow__ __matmul__ __neg__ __iadd__ "
               "__imul__ __eq__ __ne__ __lt__ __and__ view permute unsqueeze squeeze expand sum mean pow exp log sqrt "
               "rsqrt abs clamp t flatten repeat sub_ copy_ zero_ addcmul_ addcdiv_ lerp_ index_add gather softmax "
               "log_softmax argmax topk norm contiguous type_as unbind max float half bfloat16 double tanh sigmoid "
               "cumsum matmul bmm any all clamp_ sqrt_"),
    "Distributed": (dist, "reduce all_to_all_single scatter gather"),
}
for family, (space, names) in MORE.items():
    OPS[family] = (space, " ".join(dict.fromkeys((OPS[family][1] + " " + names).split())))
recorder.NOISY |= set("conv1d conv_transpose2d group_norm interpolate normalize log_softmax nll_loss kl_div addmm bmm "
                      "binary_cross_entropy_with_logits softplus elu logsigmoid ctc_loss huber_loss baddbmm logsumexp "
                      "embedding_bag norm var outer mv dot __matmul__".split())
LOW = {"half": torch.half, "bfloat16": torch.bfloat16}   # of few bits; double where gradients are checked
AVG = dist.ReduceOp.AVG


def all_reduce(x, op=dist.ReduceOp.SUM, group=None):
    """Averages, too, which this backend does not."""
    if op != AVG:
        return fresh.REAL["all_reduce"](x, op=op, group=group)
    fresh.REAL["all_reduce"](x, group=group)
    return x.copy_(torch.div(x, dist.get_world_size(group)))


def reduce_scatter_tensor(out, x, op=dist.ReduceOp.SUM, group=None):
    n = dist.get_world_size(group)
    whole = x.clone()
    fresh.REAL["all_reduce"](whole, group=group)
    out.copy_(whole.chunk(n)[dist.get_rank(group)])
    if op == AVG:
        out.copy_(torch.div(out, n))


dist.all_reduce, dist.reduce_scatter_tensor = all_reduce, reduce_scatter_tensor


class Net(afresh_copies.Net):
    """After step(s), w.grad are derivatives of SHARE times the sum of all ranks' losses; update(s) has what follows.

    INSIDE: the update is recorded, too. CHECKED: the steps whose gradients --check compares; none where each rank's are
    its own. PART: what was the same on some ranks parts, as it should."""
    SHARE, INSIDE, STEPS, CHECKED = None, False, 2, (0, 1)

    def __init__(self, fault, seed):
        torch.manual_seed(seed)   # nn's weights; the same on all ranks
        self.losses, self.moments = [], {}
        super().__init__(fault, seed)

    def counted(self, name):
        """The losses of which w[name].grad is the derivative."""
        return self.losses

    def graded(self):
        """Gradients as the optimizer has them."""
        return {k: w.grad for k, w in self.w.items() if w.grad is not None}

    def of(self, model):
        self.w |= dict(model.named_parameters())
        return model

    def each(self, op=dist.ReduceOp.SUM, group=None, names=None):
        """One collective for each gradient, zeros where there is none."""
        for k in names or list(self.w):
            w = self.w[k]
            if w.grad is None:
                w.grad = torch.zeros(w.shape, dtype=w.dtype)
            dist.all_reduce(w.grad, op=op, group=group)

    def bucket(self, names=None, op=AVG, group=None):
        """One collective for all."""
        names = names or list(self.w)
        flat = torch.cat([self.w[k].grad.view(-1) for k in names])
        dist.all_reduce(flat, op=op, group=group)
        at = 0
        for k in names:
            n = self.w[k].numel()
            self.w[k].grad.copy_(flat[at:at + n].view(self.w[k].shape))
            at += n

    def adam(self, s, names=None, decay=0.0, low=0.9, high=0.99):
        for k in names or list(self.w):
            w, g = self.w[k], self.w[k].grad
            if k not in self.moments:
                self.moments[k] = [torch.zeros(w.shape, dtype=w.dtype), torch.zeros(w.shape, dtype=w.dtype), 0]
            m, v, t = self.moments[k]
            self.moments[k][2] = t = t + 1
            m.mul_(low).add_(g, alpha=1 - low)
            v.mul_(high).addcmul_(g, g, value=1 - high)
            if decay:
                w.mul_(1 - self.rate * decay)
            w.addcdiv_(m, (v / (1 - high ** t)).sqrt_().add_(1e-8), value=-0.1 * self.rate / (1 - low ** t))

    def momentum(self, names=None, by=0.9):
        for k in names or list(self.w):
            if k not in self.moments:
                self.moments[k] = torch.zeros(self.w[k].shape, dtype=self.w[k].dtype)
            self.moments[k].mul_(by).add_(self.w[k].grad)
            self.w[k].sub_(self.moments[k], alpha=self.rate)


def take(x, group=None):
    parts = [torch.zeros(x.shape, dtype=x.dtype) for _ in range(dist.get_world_size(group))]
    dist.all_gather(parts, x.contiguous(), group=group)
    return parts


class Gather(torch.autograd.Function):
    """All ranks' parts along an axis; each rank has another use of them."""

    @staticmethod
    def forward(ctx, x, axis=0, group=None):
        ctx.at = axis, group
        return torch.cat(take(x, group), axis)

    @staticmethod
    def backward(ctx, g):
        axis, group = ctx.at
        g = g.clone(memory_format=torch.contiguous_format)
        dist.all_reduce(g, group=group)
        return g.chunk(dist.get_world_size(group), axis)[dist.get_rank(group)].contiguous(), None, None


class Join(Gather):
    """All ranks' parts along an axis; what follows is the same on all."""

    @staticmethod
    def backward(ctx, g):
        axis, group = ctx.at
        return g.chunk(dist.get_world_size(group), axis)[dist.get_rank(group)].contiguous(), None, None


class Cut(torch.autograd.Function):
    """A rank's part along an axis of what all have."""

    @staticmethod
    def forward(ctx, x, axis=0, group=None):
        ctx.at = axis, group
        return x.chunk(dist.get_world_size(group), axis)[dist.get_rank(group)].clone()

    @staticmethod
    def backward(ctx, g):
        axis, group = ctx.at
        return torch.cat(take(g, group), axis), None, None


class Deal(torch.autograd.Function):
    """A rank's rows of the sum."""

    @staticmethod
    def forward(ctx, x, group=None):
        ctx.group = group
        n = dist.get_world_size(group)
        out = torch.zeros((x.shape[0] // n,) + x.shape[1:], dtype=x.dtype)
        dist.reduce_scatter_tensor(out, x.contiguous(), group=group)
        return out

    @staticmethod
    def backward(ctx, g):
        out = torch.zeros((g.shape[0] * dist.get_world_size(ctx.group),) + g.shape[1:], dtype=g.dtype)
        dist.all_gather_into_tensor(out, g.contiguous(), group=ctx.group)
        return out, None


class Fetch(torch.autograd.Function):
    """All ranks' rows; gradients are summed, and dealt out."""

    @staticmethod
    def forward(ctx, x, group=None):
        return Deal.backward(ctx_of(ctx, group), x)[0]

    @staticmethod
    def backward(ctx, g):
        return Deal.forward(ctx, g, ctx.group), None


def ctx_of(ctx, group):
    ctx.group = group
    return ctx


class Sum(torch.autograd.Function):
    """The sum of parts; what follows is the same on all ranks."""

    @staticmethod
    def forward(ctx, x, group=None):
        x = x.clone()
        dist.all_reduce(x, group=group)
        return x

    @staticmethod
    def backward(ctx, g):
        return g, None


class Same(torch.autograd.Function):
    """What all ranks have alike, and use for their parts."""

    @staticmethod
    def forward(ctx, x, group=None):
        ctx.group = group
        return x.view_as(x)

    @staticmethod
    def backward(ctx, g):
        g = g.clone(memory_format=torch.contiguous_format)
        dist.all_reduce(g, group=ctx.group)
        return g, None


class Total(torch.autograd.Function):
    """The sum of all ranks, of which each has another use."""

    @staticmethod
    def forward(ctx, x):
        x = x.clone(memory_format=torch.contiguous_format)
        dist.all_reduce(x)
        return x

    @staticmethod
    def backward(ctx, g):
        return Total.forward(ctx, g)
