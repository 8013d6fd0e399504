import os
from dataclasses import dataclass


@dataclass
class TrainConfig:
    """What is trained."""
    lr: float = 3e-4
    betas: tuple = (0.9, 0.95)

    def steps(self):
        n = 5
        return n


class Model:
    def __init__(self):
        self.layers = 12
        self.path = os.path.join("a", "b")


SEED = 7
