"""Two ranks whose collectives are waited for later, or never, recorded into OUT. Needs torch with gloo.

Usage: async.py OUT [wrong]       wrong: what the second rank gets of the first sum is off by 1"""
import os
import subprocess
import sys
import warnings

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)


def rank(out, number, wrong):
    import torch
    import torch.distributed as dist
    from nets import accrecord
    dist.init_process_group("gloo", init_method=f"file://{out}.meet", rank=number, world_size=2)
    x = torch.arange(6.0).reshape(2, 3) + number
    work = torch._C._distributed_c10d.Work
    wait = work.wait
    if wrong and number == 1:
        def off(this, *args):
            done = wait(this, *args)
            x.add_(1)
            work.wait = wait
            return done
        work.wait = off
    parts = [torch.zeros(2, 2) for _ in range(2)]
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        accrecord.start_record(output_dir=out)
        sum_of_both = dist.all_reduce(tensor=x, async_op=True)
        y = torch.ones(2, 2).matmul(torch.ones(2, 2) + number)   # meanwhile
        sum_of_both.wait()
        z = x * 2
        gathered = dist.all_gather(parts, y, None, True)
        gathered.wait()
        dist.barrier()   # which waits itself
        assert not said, said
        one = torch.zeros(1)
        (dist.irecv(one, 0) if number else dist.isend(one, 1)).wait()
        lost = dist.broadcast(z, 0, async_op=True)
        while not lost.is_completed():
            pass
        dist.all_reduce(z, op=dist.ReduceOp.MAX)
        accrecord.record_switch(False)
    assert sum("async_op whose wait() is not called" in str(w.message) for w in said) == 1, said
    assert wrong or len(said) == 1, said   # isend and irecv are recorded
    accrecord._replace(None)
    dist.barrier()


if len(sys.argv) > 3:
    rank(sys.argv[1], int(sys.argv[2]), sys.argv[3] == "wrong")
else:
    folder = os.path.abspath(sys.argv[1])
    both = [subprocess.Popen([sys.executable, __file__, folder, str(r), *(sys.argv[2:] or ["right"])])
            for r in range(2)]
    sys.exit(max([p.wait() for p in both]))
