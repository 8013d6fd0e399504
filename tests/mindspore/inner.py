"""Which of torch's functions are several nodes of autograd: what a module's hook gets back is at the last."""
import torch, torch.nn.functional as F
x=torch.randn(4,6,8,8,requires_grad=True); v=torch.randn(4,7,requires_grad=True); w=torch.randn(4,7,requires_grad=True); t=torch.randint(0,7,(4,))
c={"cross_entropy":lambda:F.cross_entropy(v,t),"nll_loss":lambda:F.nll_loss(v,t),"l1_loss":lambda:F.l1_loss(v,w),"mse_loss":lambda:F.mse_loss(v,w),"smooth_l1_loss":lambda:F.smooth_l1_loss(v,w),"huber_loss":lambda:F.huber_loss(v,w),
"kl_div":lambda:F.kl_div(v,w.detach().abs()),"bce":lambda:F.binary_cross_entropy(v.sigmoid(),w.detach().sigmoid()),"bcel":lambda:F.binary_cross_entropy_with_logits(v,w.detach().sigmoid()),"normalize":lambda:F.normalize(v),"cosine_similarity":lambda:F.cosine_similarity(v,w),
"triplet_margin_loss":lambda:F.triplet_margin_loss(v,w,v*2),"cosine_embedding_loss":lambda:F.cosine_embedding_loss(v,w,t.sign()),"margin_ranking_loss":lambda:F.margin_ranking_loss(v,w,w.detach().sign()),"hinge_embedding_loss":lambda:F.hinge_embedding_loss(v,w.detach().sign()),
"instance_norm":lambda:F.instance_norm(x),"soft_margin_loss":lambda:F.soft_margin_loss(v,w.detach().sign()),"poisson_nll_loss":lambda:F.poisson_nll_loss(v,w.detach().abs()),"gaussian_nll_loss":lambda:F.gaussian_nll_loss(v,w,w.detach().abs()),"pixel_shuffle":lambda:F.pixel_shuffle(torch.randn(1,4,2,2,requires_grad=True),2),
"linear3d":lambda:F.linear(torch.randn(2,3,7,requires_grad=True),torch.randn(5,7,requires_grad=True),torch.randn(5)),"sdpa":lambda:F.scaled_dot_product_attention(x,x,x),"silu":lambda:F.silu(v),"selu":lambda:F.selu(v),"celu":lambda:F.celu(v),"softmin":lambda:F.softmin(v,-1),"interp":lambda:F.interpolate(x,scale_factor=2),"glu":lambda:F.glu(x,1),"relu6":lambda:F.relu6(v),"hardsigmoid":lambda:F.hardsigmoid(v),"softsign":lambda:F.softsign(v),"tanhshrink":lambda:F.tanhshrink(v),"logsigmoid":lambda:F.logsigmoid(v),"matmul3":lambda:torch.matmul(torch.randn(2,3,4,requires_grad=True),torch.randn(4,5,requires_grad=True)),"einsum":lambda:torch.einsum("ij,kj->ik",v,w),"std":lambda:v.std(),"local_response_norm":lambda:F.local_response_norm(x,3)}
for k,f in c.items():
    o=f(); n=set();
    def walk(g):
        if g is None or g in n or "Accumulate" in g.name(): return
        n.add(g); [walk(h) for h,_ in g.next_functions]
    walk(o.grad_fn); print(k,len(n), sorted(g.name() for g in n)[:6])
