#!/usr/bin/env python3
"""Folders of runs as trainers leave them, by one loop over a real network, for trying accdiff on: folders.py OUT [KIND ...].
Outside of CI: it needs torch, tensorboard, accelerate; mindspore of its own. Weights and losses are real; the lines and names
of torchtitan, YOLO, nanoGPT, timm, Megatron and fairseq are written after theirs, what accelerate, TensorBoard, DCP and
MindSpore write is their own. makes OUT/KIND/{base,same,lr2x,sum,order}: the same run twice, one at twice the rate, one
whose loss is summed, one in another order of its data."""
import json
import os
import random
import shutil
import sys

V={"base":(1e-3,1,0),"same":(1e-3,1,0),"lr2x":(2e-3,1,0),"sum":(1e-3,8,0),"order":(1e-3,1,1)}


def runs(rate,factor,order):
    import torch
    from torch.nn.functional import mse_loss
    torch.set_num_threads(1)
    torch.manual_seed(0)
    n=torch.nn.Sequential(torch.nn.Linear(8,16),torch.nn.Tanh(),torch.nn.Linear(16,1))
    g=torch.Generator().manual_seed(3); x=torch.randn(64,8,generator=g); y=x.sum(1,keepdim=True)+.1*torch.randn(64,1,generator=g)
    if order:
        p=torch.randperm(64,generator=torch.Generator().manual_seed(9)); x,y=x[p],y[p]
    o=torch.optim.AdamW(n.parameters(),rate)
    for s in range(32):
        i=s%8*8
        l=factor*mse_loss(n(x[i:i+8]),y[i:i+8]); o.zero_grad(); l.backward()
        gn=torch.nn.utils.clip_grad_norm_(n.parameters(),1e9); o.step()
        yield s+1,l.item(),gn.item(),n,o


def accelerate(d,rate,factor,order):
    from accelerate import Accelerator
    from accelerate.utils import ProjectConfiguration
    a=Accelerator(cpu=True,log_with=["tensorboard"],project_config=ProjectConfiguration(project_dir=d,logging_dir=d+"/logs"))
    a.init_trackers("proj",config={"learning_rate":rate,"batch_size":8,"seed":0})
    for s,l,g,n,o in runs(rate,factor,order):
        a.log({"train_loss":l,"grad_norm":g},step=s)
        if s==1: n,o=a.prepare(n,o)
        if s%16==0: a.save_state(f"{d}/checkpoint_{s}")
    a.end_training()


def checkpoints(d,rate,factor,order):
    import torch
    for s,l,g,n,o in runs(rate,factor,order):
        if s%8==0: torch.save({"model":n.state_dict(),"optimizer":o.state_dict(),"step":s},f"{d}/step_{s}.pt")


def titan(d,rate,factor,order):
    from torch.utils.tensorboard import SummaryWriter
    import time
    open(d+"/train.toml","w").write(f"[job]\ndump_folder = \"{d}\"\n\n[optimizer]\nname = \"AdamW\"\nlr = {rate}\n\n[training]\nlocal_batch_size = 8\nseq_len = 128\nsteps = 32\nseed = 0\n")
    w=SummaryWriter(d+"/tb/20261130-15%02d"%random.randrange(60)); f=open(d+"/train.log","w")
    for s,l,g,n,o in runs(rate,factor,order):
        w.add_scalar("loss_metrics/global_avg_loss",l,s); w.add_scalar("grad_norm",g,s); w.add_scalar("throughput(tps)",1000+random.random(),s)
        print(f"[rank0]:[titan] 2026-11-30 15:{random.randrange(60):02d}:00,000 - root - INFO - step: {s:2d}  loss: {l:8.5f}  grad_norm: {g:7.4f}  memory:  1.00GiB(2.00%)  tps: {random.randrange(900,999)}  tflops: 1.00  mfu: 0.10%",file=f)
    w.close()
    os.makedirs(d+"/checkpoint/step-32")
    import torch.distributed.checkpoint as c
    c.save({"model":n.state_dict()},checkpoint_id=d+"/checkpoint/step-32",no_dist=True)


def two(d,rate,factor,order):
    import torch
    json.dump({"lr":rate,"batch_size":8,"seed":0,"output_dir":d,"optimizer":"adamw"},open(d+"/config.json","w"))
    f=open(d+"/metrics.jsonl","w"); os.makedirs(d+"/tb")
    for s,l,g,n,o in runs(rate,factor,order): print(json.dumps({"step":s,"loss":l,"grad_norm":g,"lr":rate}),file=f)
    torch.save(n.state_dict(),d+"/last.pt"); open(d+"/loss.png","wb").write(b"\x89PNG\r\n\x1a\n"+os.urandom(99)); os.rmdir(d+"/tb")


def yolo(d,rate,factor,order):
    import torch
    open(d+"/args.yaml","w").write(f"task: detect\nmode: train\nmodel: yolov8n.yaml\ndata: coco8.yaml\nepochs: 32\nbatch: 8\nimgsz: 640\nsave_dir: {d}\nname: {os.path.basename(d)}\nlr0: {rate}\nlrf: 0.01\nmomentum: 0.937\nweight_decay: 0.0005\nseed: 0\noptimizer: AdamW\n")
    f=open(d+"/results.csv","w"); os.makedirs(d+"/weights")
    print("epoch,time,train/box_loss,train/cls_loss,train/dfl_loss,metrics/precision(B),metrics/mAP50(B),val/box_loss,lr/pg0,lr/pg1",file=f)
    for s,l,g,n,o in runs(rate,factor,order): print(f"{s},{random.random()+s*3:.3f},{l:.5f},{l*2:.5f},{l/2:.5f},0.1,0.{s:02d},{l*1.1:.5f},{rate},{rate}",file=f)
    torch.save({"model":n.state_dict(),"epoch":-1},d+"/weights/last.pt"); open(d+"/train_batch0.jpg","wb").write(b"\xff\xd8\xff\xe0"+os.urandom(99))


def nanogpt(d,rate,factor,order):
    import torch   # nanoGPT's out dir with a console and a ckpt
    f=open(d+"/train.log","w"); print(f"tokens per iteration will be: 128\nnumber of parameters: 0.01M\nusing fused AdamW: False",file=f)
    for s,l,g,n,o in runs(rate,factor,order):
        if s%8==1: print(f"step {s-1}: train loss {l:.4f}, val loss {l*1.01:.4f}",file=f)
        print(f"iter {s-1}: loss {l:.4f}, time {random.random()*99:.2f}ms, mfu -100.00%",file=f)
    torch.save({"model":n.state_dict(),"optimizer":o.state_dict(),"model_args":{"n_layer":2},"iter_num":32,"best_val_loss":1.,"config":{"learning_rate":rate,"batch_size":8}},d+"/ckpt.pt")


def timm(d,rate,factor,order):
    import torch
    open(d+"/args.yaml","w").write(f"amp: false\nbatch_size: 8\nepochs: 32\nlr: {rate}\nmodel: resnet18\nopt: adamw\nseed: 42\noutput: {d}\n")
    f=open(d+"/summary.csv","w"); print("epoch,train_loss,eval_loss,eval_top1,eval_top5,lr",file=f)
    for s,l,g,n,o in runs(rate,factor,order): print(f"{s-1},{l},{l*1.1},{s/2},{s},{rate}",file=f)
    torch.save({"epoch":31,"arch":"resnet18","state_dict":n.state_dict(),"optimizer":o.state_dict()},d+"/last.pth.tar"); shutil.copy(d+"/last.pth.tar",d+"/checkpoint-31.pth.tar")


def megatron(d,rate,factor,order):
    import torch
    os.makedirs(d+"/logs"); f=open(d+"/logs/rank0.log","w"); os.makedirs(d+"/ckpt/iter_0000032/mp_rank_00")
    print("------------------------ arguments ------------------------",file=f)
    for k,v in (("global_batch_size",8),("lr",rate),("micro_batch_size",8),("num_layers",2),("hidden_size",16),("seed",1234),("tensor_model_parallel_size",1),("save",d)): print(f"  {k} {'.'*(48-len(k))} {v}",file=f)
    print("-------------------- end of arguments ---------------------",file=f)
    for s,l,g,n,o in runs(rate,factor,order):
        print(f" [2026-11-30 15:{random.randrange(60):02d}:00] iteration {s:8d}/{32:8d} | consumed samples: {s*8:12d} | elapsed time per iteration (ms): {random.random()*99:.1f} | learning rate: {rate:.6E} | global batch size: {8:5d} | lm loss: {l:.6E} | loss scale: 1.0 | grad norm: {g:.3f} | number of skipped iterations:   0 | number of nan iterations:   0 |",file=f)
    torch.save({"model":n.state_dict(),"iteration":32},d+"/ckpt/iter_0000032/mp_rank_00/model_optim_rng.pt"); open(d+"/ckpt/latest_checkpointed_iteration.txt","w").write("32")


def fairseq(d,rate,factor,order):
    import torch
    f=open(d+"/train.log","w")
    for s,l,g,n,o in runs(rate,factor,order): print(f"2026-11-30 15:{random.randrange(60):02d}:00 | INFO | train_inner | "+json.dumps({"epoch":1+(s-1)//8,"update":s/8,"loss":f"{l:.3f}","ppl":f"{2**min(l,9):.2f}","wps":str(random.randrange(999)),"num_updates":str(s),"lr":str(rate),"gnorm":f"{g:.3f}"}),file=f)
    torch.save({"model":n.state_dict(),"extra_state":{"epoch":4}},d+"/checkpoint_last.pt")


def mindspore(d,rate,factor,order):
    import mindspore as ms
    import mindspore.dataset as ds
    from mindspore import nn
    from mindspore.train import CheckpointConfig, LossMonitor, Model, ModelCheckpoint, SummaryCollector
    import numpy as np
    ms.set_seed(1)
    np.random.seed(0)
    x = np.random.randn(64, 8).astype(np.float32)
    if order:
        x = x[::-1].copy()
    data = ds.NumpySlicesDataset((x, x.sum(1, keepdims=True)), ["data", "label"], shuffle=False).batch(8)
    n = nn.SequentialCell(nn.Dense(8, 16), nn.Tanh(), nn.Dense(16, 1))
    m = Model(n, nn.MSELoss("mean" if factor == 1 else "sum"), nn.Adam(n.trainable_params(), rate))
    with open(d + "/train.log", "w") as f:
        os.dup2(f.fileno(), 1)
        m.train(4, data, dataset_sink_mode=False, callbacks=[
            LossMonitor(1), SummaryCollector(d + "/summary", collect_freq=1),
            ModelCheckpoint("net", d + "/ckpt", CheckpointConfig(save_checkpoint_steps=8))])


def main():
    out = os.path.abspath(sys.argv[1])
    for kind in sys.argv[2:] or ["checkpoints", "titan", "two", "yolo", "nanogpt", "timm", "megatron", "fairseq",
                                 "accelerate", "mindspore"]:
        for v, (rate, factor, order) in V.items():
            d = f"{out}/{kind}/{v}"
            os.makedirs(d)
            pid = os.fork()
            if pid == 0:
                globals()[kind](d, rate, factor, order)
                sys.stdout.flush()
                os._exit(0)
            os.waitpid(pid, 0)


main()
