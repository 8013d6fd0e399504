"""Trains. torch.manual_seed(1) stands in a text, and is none."""
import os, random
import numpy as np
import torch


def seed_all(seed=1234, mode=False):
    random.seed(seed)
    os.environ["PYTHONHASHSEED"] = str(seed)
    np.random.seed(seed)
    torch.manual_seed(seed)  # and torch.cuda.manual_seed(seed)
    torch.use_deterministic_algorithms(mode)
    torch.backends.cudnn.deterministic = True
    torch.backends.cudnn.benchmark=False
    if torch.backends.cudnn.enabled == True:
        print("torch.manual_seed(7)")


os.environ.setdefault('HCCL_DETERMINISTIC', 'true')
context.set_context(mode=0, deterministic="ON")
seed_all(seed=42, mode=True)
