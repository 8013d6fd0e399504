#!/usr/bin/env python3
"""Folders of runs as MLflow's store in files has them: what MLflow 3.17 writes, with numbers of our own."""
import os
import sys

HERE = os.path.dirname(os.path.abspath(sys.argv[0]))


def put(path, text):
    path = os.path.join(HERE, "mlflow", path)
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "w") as f:
        f.write(text)


put("meta.yaml", "artifact_uri: file:///runs/1/ab/artifacts\nend_time: 1795874370802\nexperiment_id: '1'\n"
    "run_id: ab\nrun_name: awesome-hog-977\nstart_time: 1795874370600\nstatus: 3\nuser_id: me\n")
put("metrics/train/loss", "".join(f"{1795874370660 + i} {4 / (i + 1)!r} {10 * i}\n" for i in range(8)))
put("metrics/val_loss", "1795874370650 nan 0\n1795874370700 3.5 40\n1795874370701 3.25 70\n")
for k, v in {"learning_rate": "0.003", "batch_size": "8", "model": "{'hidden': 32}"}.items():
    put(f"params/{k}", v)
