from ptdbg_ascend import *
seed_all(seed=42, mode=True)
set_dump_path("./npu", dump_tag='all')
register_hook(model, acc_cmp_dump,
              rank=0)  # hooks
x.register_hook(lambda g: g)
set_dump_switch("ON", mode="list",
    scope=["Tensor_add_1_forward",  # first
           "Tensor_mul_2_backward"])
step()
set_dump_switch("OFF")
