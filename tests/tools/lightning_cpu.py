# pip: lightning==2.6.6 torch==2.15.0 numpy==2.4.6
"""Lightning's Trainer."""
import csv
import glob
import logging
import tempfile

import lightning
import torch
from lightning.pytorch.loggers import CSVLogger

from tools import behaviour, main

logging.getLogger("lightning.pytorch").setLevel(logging.ERROR)
STEPS = 4


class Net(lightning.LightningModule):
    """Its loss is the number of the batch."""

    def __init__(self):
        super().__init__()
        self.w, self.ends = torch.nn.Parameter(torch.zeros(1)), []

    def training_step(self, batch, i):
        loss = batch.mean() + 0 * self.w.sum()
        self.log("loss", loss)
        return loss

    def on_train_batch_end(self, outputs, batch, i):
        self.ends.append(outputs["loss"].item())

    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), lr=1.0)


def train():
    net = Net()
    with tempfile.TemporaryDirectory() as d:
        t = lightning.Trainer(accelerator="cpu", max_epochs=1, accumulate_grad_batches=STEPS, logger=CSVLogger(d), log_every_n_steps=1,
                              enable_progress_bar=False, enable_model_summary=False, enable_checkpointing=False)
        t.fit(net, torch.utils.data.DataLoader(torch.arange(10.0)))
        with open(glob.glob(d + "/**/metrics.csv", recursive=True)[0]) as f:
            return [float(r["loss"]) for r in csv.DictReader(f)], net.ends


@behaviour
def lightning_logs_last_micro_batch():
    assert train()[0] == [3, 7, 9], train()


@behaviour
def lightning_outputs_divided():
    assert train()[1] == [n / STEPS for n in range(10)], train()


if __name__ == "__main__":
    main()
