#!/usr/bin/env python3
"""mlflow.db: a store of MLflow in SQLite, as MLflow 3.17 makes its tables, of two runs; the columns and values were
compared with those of `mlflow.set_tracking_uri("sqlite:///mlflow.db")` and log_metric of 3.0, NaN, inf and -inf."""
import os
import sqlite3
import sys

db = os.path.join(os.path.dirname(os.path.abspath(__file__)), "mlflow.db")
if os.path.exists(db):
    os.remove(db)
c = sqlite3.connect(db)
c.execute("PRAGMA page_size=512")
c.executescript("""
CREATE TABLE experiments (experiment_id INTEGER NOT NULL, name VARCHAR(256) NOT NULL, lifecycle_stage VARCHAR(32),
 CONSTRAINT experiment_pk PRIMARY KEY (experiment_id));
CREATE TABLE runs (run_uuid VARCHAR(32) NOT NULL, name VARCHAR(250), status VARCHAR(9), start_time BIGINT,
 lifecycle_stage VARCHAR(20), experiment_id INTEGER, CONSTRAINT run_pk PRIMARY KEY (run_uuid));
CREATE TABLE metrics ("key" VARCHAR(250) NOT NULL, value FLOAT NOT NULL, timestamp BIGINT NOT NULL, run_uuid VARCHAR(32)
 NOT NULL, step BIGINT DEFAULT '0' NOT NULL, is_nan BOOLEAN DEFAULT '0' NOT NULL);
CREATE TABLE params ("key" VARCHAR(250) NOT NULL, value VARCHAR(8000) NOT NULL, run_uuid VARCHAR(32) NOT NULL,
 CONSTRAINT param_pk PRIMARY KEY ("key", run_uuid));
""")
c.execute("INSERT INTO experiments VALUES (1, 'e', 'active')")
RUNS = [("b" * 32, "fortunate-snail-394", 2000, "active"), ("a" * 32, "mine", 1000, "active"),
        ("c" * 32, "gone", 500, "deleted")]
for uuid, name, start, stage in RUNS:
    c.execute("INSERT INTO runs VALUES (?, ?, 'FINISHED', ?, ?, 1)", (uuid, name, start, stage))
    c.execute("INSERT INTO params VALUES ('learning_rate', '0.001', ?)", (uuid,))
    for step, (value, nan) in enumerate([(3.0, 0), (0.0, 1), (sys.float_info.max, 0), (-sys.float_info.max, 0)]):
        c.execute("INSERT INTO metrics VALUES ('train/loss', ?, ?, ?, ?, ?)", (value, start + step, uuid, step, nan))
c.commit()
c.execute("VACUUM")
c.close()
