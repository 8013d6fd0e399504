#!/usr/bin/env python3
"""Short runs of real trainers, as their folders lie there, for trying accdiff on. Outside of CI: it needs torch
and the trainers (pip install transformers trl lightning keras mlflow wandb swanlab tensorboard skorch xgboost lightgbm
stable-baselines3).

    make.py OUT [TRAINER ...]

makes OUT/TRAINER/{base,same,lr2x,sum}: the same run twice, one at twice the rate, one whose loss is summed.
"""
import os
import random
import sys

os.environ.update(WANDB_MODE="offline", WANDB_SILENT="true", KERAS_BACKEND="torch",
                  MLFLOW_ALLOW_FILE_STORE="true", HF_HUB_OFFLINE="1", TOKENIZERS_PARALLELISM="false",
                  SWANLAB_MODE="offline")
import numpy as np
import torch

torch.set_num_threads(1)
VARIANTS = {"base": (1e-3, 1), "same": (1e-3, 1), "lr2x": (2e-3, 1), "sum": (1e-3, 8)}


IMPORTS = {"hf": ("transformers",), "lightning": ("lightning",), "keras": ("keras",), "keras_bar": ("keras",),
           "trl": ("trl", "datasets"), "skorch": ("skorch",), "lightgbm": ("lightgbm",), "xgboost": ("xgboost",),
           "mlflow": ("mlflow",), "mlflow_db": ("mlflow",), "swanlab": ("swanlab",)}


def seed():
    random.seed(0)
    np.random.seed(0)
    torch.manual_seed(0)


def words():
    g = torch.Generator().manual_seed(3)
    return [{"input_ids": r, "labels": r} for r in torch.randint(0, 64, (64, 16), generator=g).tolist()]


def net():
    return torch.nn.Sequential(torch.nn.Linear(8, 16), torch.nn.Tanh(), torch.nn.Linear(16, 1))


def data():
    g = torch.Generator().manual_seed(3)
    x = torch.randn(64, 8, generator=g)
    return x, (x.sum(1, keepdim=True) + 0.1 * torch.randn(64, 1, generator=g))


def llama():
    from transformers import LlamaConfig, LlamaForCausalLM
    return LlamaForCausalLM(LlamaConfig(vocab_size=64, hidden_size=32, intermediate_size=64, num_hidden_layers=2,
                                        num_attention_heads=2, max_position_embeddings=64))


def hf(out, rate, factor):
    from transformers import Trainer, TrainingArguments

    class Summed(Trainer):
        def compute_loss(self, *a, **k):
            r = super().compute_loss(*a, **k)
            return (r[0] * factor, r[1]) if isinstance(r, tuple) else r * factor
    args = TrainingArguments(out, learning_rate=rate, max_steps=30, logging_steps=1, save_steps=10,
                             eval_strategy="steps", eval_steps=10, per_device_train_batch_size=8, use_cpu=True,
                             report_to=["tensorboard"], disable_tqdm=True, seed=1)
    t = (Trainer if factor == 1 else Summed)(model=llama(), args=args, train_dataset=words(), eval_dataset=words()[:8])
    t.train()
    t.save_model()
    t.save_state()


def lightning(out, rate, factor):
    import lightning as L
    from lightning.pytorch.callbacks import LearningRateMonitor
    from lightning.pytorch.loggers import CSVLogger, TensorBoardLogger

    class Module(L.LightningModule):
        def __init__(self, lr):
            super().__init__()
            self.save_hyperparameters()
            self.net = net()

        def training_step(self, b, i):
            loss = factor * torch.nn.functional.mse_loss(self.net(b[0]), b[1])
            self.log("train_loss", loss, on_step=True, on_epoch=True)
            return loss

        def validation_step(self, b, i):
            self.log("val_loss", torch.nn.functional.mse_loss(self.net(b[0]), b[1]))

        def configure_optimizers(self):
            return torch.optim.AdamW(self.parameters(), self.hparams.lr)
    load = torch.utils.data.DataLoader(torch.utils.data.TensorDataset(*data()), batch_size=8)
    L.Trainer(default_root_dir=out, max_epochs=4, log_every_n_steps=1, enable_progress_bar=False,
              enable_model_summary=False, accelerator="cpu", callbacks=[LearningRateMonitor()],
              logger=[CSVLogger(out), TensorBoardLogger(out)]).fit(Module(rate), load, load)


def keras(out, rate, factor):
    import keras
    keras.utils.set_random_seed(0)
    m = keras.Sequential([keras.layers.Dense(16, activation="tanh"), keras.layers.Dense(1)])
    m.compile(keras.optimizers.Adam(rate), loss=lambda y, p: factor * keras.ops.mean((y - p) ** 2))
    x, y = (t.numpy() for t in data())
    os.makedirs(out)
    with open(out + "/console.txt", "w") as f:
        old, sys.stdout = sys.stdout, f
        m.fit(x, y, batch_size=8, epochs=6, shuffle=False, validation_data=(x, y), verbose=2,
              callbacks=[keras.callbacks.CSVLogger(out + "/training.csv")])
        sys.stdout = old
    m.save_weights(out + "/m.weights.h5")
    m.save(out + "/m.keras")


def loop(rate, factor):
    n, (x, y) = net(), data()
    o = torch.optim.AdamW(n.parameters(), rate)
    for step in range(30):
        loss = factor * torch.nn.functional.mse_loss(n(x), y)
        o.zero_grad()
        loss.backward()
        norm = torch.nn.utils.clip_grad_norm_(n.parameters(), 1e9)
        o.step()
        yield step, loss.item(), norm.item()


def mlflow(out, rate, factor):
    import mlflow as m
    os.makedirs(out)
    m.set_tracking_uri("file://" + os.path.abspath(out) + "/mlruns")
    m.set_experiment("e")
    with m.start_run():
        m.log_params({"learning_rate": rate, "batch_size": 64, "seed": 0})
        for step, loss, norm in loop(rate, factor):
            m.log_metrics({"train/loss": loss, "train/grad_norm": norm}, step=step)


def mlflow_db(out, rate, factor):
    import mlflow as m
    os.makedirs(out)
    m.set_tracking_uri("sqlite:///" + os.path.abspath(out) + "/mlflow.db")
    m.set_experiment("e")
    with m.start_run():
        m.log_params({"learning_rate": rate, "batch_size": 64, "seed": 0})
        for step, loss, norm in loop(rate, factor):
            m.log_metrics({"train/loss": loss, "train/grad_norm": norm}, step=step)


def console(out, run):
    """What run() prints, as people leave it."""
    os.makedirs(out)
    with open(out + "/console.txt", "w") as f:
        old, sys.stdout = sys.stdout, f
        run()
        sys.stdout = old


def skorch(out, rate, factor):
    import skorch as s
    x, y = data()

    class Loss(torch.nn.MSELoss):
        def forward(self, *a):
            return factor * super().forward(*a)
    console(out, lambda: s.NeuralNetRegressor(net, max_epochs=10, lr=rate, criterion=Loss, train_split=None,
                                              iterator_train__shuffle=False).fit(x, y))


def xgboost(out, rate, factor):
    import xgboost as x
    a, b = (t.numpy() for t in data())
    d = x.DMatrix(a, b)
    console(out, lambda: x.train({"eta": rate * 100 * factor}, d, 10, evals=[(d, "train")]))


def lightgbm(out, rate, factor):
    import lightgbm as g
    a, b = (t.numpy() for t in data())
    d = g.Dataset(a, b[:, 0])
    console(out, lambda: g.train({"learning_rate": rate * 100 * factor, "min_data_in_leaf": 2, "metric": "l2"}, d, 10, [d],
                                 callbacks=[g.log_evaluation(1)]))


def sb3(out, rate, factor):
    from stable_baselines3 import PPO
    from stable_baselines3.common.logger import configure
    m = PPO("MlpPolicy", "CartPole-v1", n_steps=64, learning_rate=rate, vf_coef=.5 * factor, seed=0, device="cpu")

    def run():
        m.set_logger(configure(out, ["stdout", "csv", "json"]))
        m.learn(512)
    console(out, run)


def keras_bar(out, rate, factor):
    import keras
    keras.utils.set_random_seed(0)
    m = keras.Sequential([keras.layers.Dense(16, activation="tanh"), keras.layers.Dense(1)])
    m.compile(keras.optimizers.Adam(rate), loss=lambda y, p: factor * keras.ops.mean((y - p) ** 2))
    x, y = (t.numpy() for t in data())
    console(out, lambda: m.fit(x, y, batch_size=8, epochs=6, shuffle=False, validation_data=(x, y), verbose=1))


def wandb(out, rate, factor):
    import wandb as w
    os.makedirs(out)
    r = w.init(project="p", dir=out, config={"learning_rate": rate, "batch_size": 64, "seed": 0})
    for step, loss, norm in loop(rate, factor):
        r.log({"train/loss": loss, "train/grad_norm": norm}, step=step)
    r.finish()


def swanlab(out, rate, factor):
    import swanlab as s
    os.makedirs(out)
    s.init(project="p", logdir=out, mode="offline", config={"learning_rate": rate, "batch_size": 64})
    for step, loss, norm in loop(rate, factor):
        s.log({"train/loss": loss, "train/grad_norm": norm}, step=step)
    s.finish()


def tensorboard(out, rate, factor):
    from torch.utils.tensorboard import SummaryWriter
    os.makedirs(out)
    os.chdir(out)
    w = SummaryWriter()
    for step, loss, norm in loop(rate, factor):
        w.add_scalar("Loss/train", loss, step)
        w.add_scalar("grad_norm", norm, step)
    w.close()
    torch.save(net().state_dict(), "model.pt")


def trl(out, rate, factor):
    from datasets import Dataset
    from tokenizers import Tokenizer, models, pre_tokenizers
    from transformers import PreTrainedTokenizerFast
    from trl import SFTConfig, SFTTrainer
    k = Tokenizer(models.WordLevel({str(i): i for i in range(64)}, unk_token="0"))
    k.pre_tokenizer = pre_tokenizers.Whitespace()
    tok = PreTrainedTokenizerFast(tokenizer_object=k, pad_token="0", eos_token="1")
    rows = Dataset.from_list([{"text": " ".join(map(str, r["input_ids"]))} for r in words()])
    t = SFTTrainer(llama(), SFTConfig(out, learning_rate=rate, max_steps=20, logging_steps=1, save_steps=10,
                                      per_device_train_batch_size=8, use_cpu=True, report_to=[], disable_tqdm=True),
                   train_dataset=rows, processing_class=tok)
    t.train()
    t.save_model()
    t.save_state()


def main():
    out = os.path.abspath(sys.argv[1])
    for name in sys.argv[2:] or ["hf", "trl", "lightning", "keras", "mlflow", "wandb", "swanlab", "tensorboard",
                                 "mlflow_db", "skorch", "xgboost", "lightgbm", "sb3", "keras_bar"]:
        for module in IMPORTS.get(name, ()):  # once, not in each run
            __import__(module)
        for kind, (rate, factor) in VARIANTS.items():
            pid = os.fork()
            if pid == 0:
                seed()
                globals()[name](f"{out}/{name}/{kind}", rate, factor)
                sys.stdout.flush()
                os._exit(0)
            os.waitpid(pid, 0)


main()
