#!/usr/bin/env python3
"""Makes the files here and `table`: a small file of each form of log, and of configuration, that is read.

A row of the table: file, format, form, writer and version, where its layout is from, and what is right: of curves
TAG N STEP VALUE STEP VALUE (how many points, the first and the last; no TAG: none is called so), of parameters KEY=VALUE. The numbers are those
of the formulas below, not of a reader. accdump-read --list prints the forms.
"""
import os

HERE = os.path.dirname(os.path.abspath(__file__))
ROWS = []


def form(file, fmt, name, writer, source, right, text, enc="utf-8"):
    with open(os.path.join(HERE, file), "wb") as f:
        f.write(text.encode(enc))
    ROWS.append((file, fmt, name, writer, source, right))


def lines(f, r):
    return "".join(f(i) + "\n" for i in r)


form("keras2.log", "log", "Keras' console, a line an epoch", "Keras 3.15", "a run, verbose=2",
     "loss 3 1 4.1557 3 2.1557; eval_loss 3 1 3.2 3 1.2",
     "".join(f"Epoch {e}/3\n8/8 - 1s - 130ms/step - accuracy: 0.{e}250 - loss: {5 - e}.1557 - val_accuracy: 0.2 - "
             f"val_loss: {4 - e}.2000\n" for e in (1, 2, 3)).replace("loss: 4.1557", "loss: 4.1557"))
form("keras1.log", "log", "Keras' bars", "Keras 3.15", "a run, verbose=1; the bar's last mean stands there twice",
     "loss 6 1 4.1 3 3; eval_loss 3 1 4.1 3 3.1",
     "".join(f"Epoch {e}/3\n" + "".join(
         f"\r\x1b[1m{b}/4\x1b[0m \x1b[32m━━━━━\x1b[0m\x1b[37m━━━\x1b[0m \x1b[1m0s\x1b[0m 14ms/step - loss: "
         f"{5 - e * .5 - b * .1:.4f}" for b in (1, 2, 3, 4)) +
             f"\r\x1b[1m4/4\x1b[0m \x1b[32m━━━━\x1b[0m\x1b[37m\x1b[0m \x1b[1m1s\x1b[0m 20ms/step - loss: "
             f"{4.5 - e * .5:.4f} - val_loss: {4.6 - e * .5:.4f}\n" for e in (1, 2, 3)))
form("lightning.log", "log", "Lightning's bar", "Lightning 2.6", "TQDMProgressBar",
     "train_loss_step 4 8 1 32 0.7; eval_loss 4 8 1.1 32 0.8",
     lines(lambda e: f"Epoch {e}: 100%|██████████| 8/8 [00:00<00:00, 52.10it/s, v_num=0, train_loss_step="
           f"{1 - e * .1:.3f}, val_loss={1.1 - e * .1:.3f}, train_loss_epoch={1.2 - e * .1:.3f}]", range(4)))
form("skorch.log", "log", "skorch's table", "skorch 1.3", "PrintLog",
     "train_loss 3 1 0.6905 3 0.6305; eval_loss 3 1 0.6704 3 0.6504",
     "  epoch    train_loss    valid_acc    valid_loss     dur\n-------  ------------  -----------  ------------  "
     "------\n" + lines(lambda e: f"      {e}        \x1b[36m{.7105 - .02 * e if e == 1 else .6705 - .02 * (e - 1):.4f}"
                        f"\x1b[0m       \x1b[32m0.6{e}00\x1b[0m        \x1b[35m{.6804 - e * .01:.4f}\x1b[0m  0.0123",
                        (1, 2, 3)))
form("skorch2.log", "log", "skorch's table without validation", "skorch 1.3", "a run, train_split=None",
     "train_loss 3 1 8.9 3 6.9",
     "  epoch    train_loss     dur\n-------  ------------  ------\n" +
     lines(lambda e: f"      {e}        \x1b[36m{9.9 - e:.4f}\x1b[0m  0.0123", (1, 2, 3)))
form("fastai.log", "log", "fastai's table", "fastai 2.8", "Recorder",
     "train_loss 3 0 0.512345 2 0.312345; eval_loss 3 0 0.412345 2 0.212345",
     "epoch     train_loss  valid_loss  accuracy  time    \n" +
     lines(lambda e: f"{e}         0.{5 - e}12345    0.{4 - e}12345    0.9{e}      00:10     ", range(3)))
form("spacy.log", "log", "spaCy's table", "spaCy 3.8", "console_logger",
     "LOSS_NER 3 0 45.2 400 845.2",
     "============================= Training pipeline =============================\n"
     "E    #       LOSS TOK2VEC  LOSS NER  ENTS_F  SCORE \n---  ------  ------------  --------  ------  ------\n"
     "  0       0          0.00     45.20    0.00    0.00\n  0     200        102.10   1045.20   50.00    0.50\n"
     "  1     400         92.10    845.20   60.00    0.60\n")
form("yolo.log", "log", "YOLO's console", "Ultralytics 8.3", "DetectionTrainer.progress_string",
     "box_loss 3 1 1.4 3 1.2; cls_loss 3 1 2.4 3 2.2",
     "Ultralytics 8.3.0 Python-3.10 torch-2.1 CPU\n" + "".join(
         "\n      Epoch    GPU_mem   box_loss   cls_loss   dfl_loss  Instances       Size\n" + "".join(
             f"        {e}/3      2.1G      {1.5 - e * .1 + (b < 100):.4g}      {2.5 - e * .1:.4g}      1.19         23        "
             f"640: {b:3d}%|█████| 8/8 [00:02<00:00,  3.1it/s]" + ("\r" if b < 100 else "\n") for b in (12, 100)) +
         "                 Class     Images  Instances      Box(P          R      mAP50  mAP50-95): 100%|█| 4/4\n"
         "                   all        128        929      0.641      0.537      0.605      0.446\n" for e in (1, 2, 3)))
form("notebook.txt", "log", "the Trainer's table of a notebook", "transformers 5.24", "NotebookProgressCallback",
     "loss 2 2 0.512 3 0.412; eval_loss 3 1 0.612 3 0.412",
     "Epoch\tTraining Loss\tValidation Loss\tAccuracy\n1\tNo log\t0.612\t0.7\n2\t0.512\t0.512\t0.8\n3\t0.412\t0.412\t0.9\n")
form("table.md", "log", "a table in Markdown", "anybody", "", "loss 3 1 2.5 3 2.3; learning_rate 3 1 0.001 3 0.001",
     "| step | loss | lr |\n|---|---|---|\n| 1 | 2.5 | 0.001 |\n| 2 | 2.4 | 0.001 |\n| 3 | 2.3 | 0.001 |\n")
form("xgboost.log", "log", "XGBoost's rounds", "xgboost 3.1", "EvaluationMonitor",
     "train_rmse 3 0 0.48 2 0.28; eval_rmse 3 0 0.49 2 0.29",
     "[10:11:12] INFO: learner.cc:1: x\n" +
     lines(lambda i: f"[{i}]\ttrain-rmse:0.{4 - i}8000\teval-rmse:0.{4 - i}9000", range(3)))
form("lightgbm.log", "log", "LightGBM's rounds", "lightgbm 4.6", "log_evaluation",
     "training's_l2 5 1 0.49 5 0.45; valid_1's_l2 5 1 0.54 5 0.5",
     "[LightGBM] [Info] Total Bins 2550\n" +
     lines(lambda i: f"[{i}]\ttraining's l2: {.5 - i * .01:.6f}\tvalid_1's l2: {.55 - i * .01:.6f}", range(1, 6)))
form("catboost.log", "log", "CatBoost's rounds", "catboost 1.2", "verbose",
     "learn 5 0 0.6 4 0.56; test 5 0 0.65 4 0.61",
     "Learning rate set to 0.03\n" + lines(
         lambda i: f"{i}:\tlearn: {.6 - i * .01:.7f}\ttest: {.65 - i * .01:.7f}\tbest: {.65 - i * .01:.7f} ({i})\ttotal: "
         f"10.{i}ms\tremaining: 1.2s", range(5)))
form("darknet.log", "log", "Darknet's iterations", "Darknet", "train_detector", "loss 6 1 2.2 6 1.7",
     lines(lambda i: f" {i}: {2.3 - i * .1:.6f}, {2.4 - i * .1:.6f} avg loss, 0.001000 rate, 1.234567 seconds, {i * 64} "
           "images, 10.1 hours left", range(1, 7)))
form("clu.log", "log", "JAX's CLU", "clu 0.0.12", "LoggingWriter", "loss 5 100 2.9 500 2.5; learning_rate 5 100 0.001 500 0.001",
     lines(lambda i: f"I0601 10:00:00.123 140 logging_writer.py:48] [{i * 100}] accuracy=0.{i}, learning_rate=0.001, loss="
           f"{3 - i * .1:.5f}, steps_per_second=10.2", range(1, 6)))
form("sb3.log", "log", "stable-baselines3's boxes", "stable-baselines3 2.7", "HumanOutputFormat",
     "rollout/ep_rew_mean 4 2048 21.3 8192 24.3; loss 3 4096 8.3 8192 6.3",
     "Using cpu device\n" + lines(
         lambda i: "------------------------------------------\n| rollout/                |              |\n"
         f"|    ep_rew_mean          | 2{i}.3         |\n| time/                   |              |\n"
         f"|    iterations           | {i}            |\n|    total_timesteps      | {2048 * i}         |\n" +
         ("| train/                  |              |\n|    approx_kl            | 0.00%d        |\n"
          "|    loss                 | %d.3          |\n" % (i, 10 - i) if i > 1 else "") +
         "------------------------------------------", range(1, 5)))
form("olmo.log", "log", "OLMo's console, a metric a line", "OLMo-core 2", "ConsoleLoggerCallback",
     "train/CE_loss 5 10 9.9 50 9.5; train/PPL 5 10 1234 50 1234",
     lines(lambda i: f"2024-11-01 10:00:00.123\thost:0\tolmo_core.train.callbacks.console_logger:84\tINFO\t[step={i * 10}"
           f"/1000,epoch=1]\n    optim/total grad norm={5 - i * .1:.4f}\n    train/CE loss={10 - i * .1:.3f}\n"
           "    train/PPL=1,234\n    throughput/device/TPS=7,245", range(1, 6)))
form("composer.log", "log", "Composer's console", "composer 0.32", "ConsoleLogger",
     "loss/train/total 5 10 10.9 50 10.5",
     lines(lambda i: f"[batch={i * 10}/100]:\n\t Train time/batch: {i * 10 - 1}\n\t Train loss/train/total: "
           f"{11 - i * .1:.4f}\n\t Train lr-DecoupledAdamW/group0: 0.0001", range(1, 6)))
form("coqui.log", "log", "Coqui's console", "coqui-tts 0.27", "ConsoleLogger", "loss 5 0 0.9 100 0.5",
     lines(lambda i: f"   --> TIME: 2021-06-01 10:00:00 -- STEP: {i * 25}/406 -- GLOBAL_STEP: {i * 25}\n     | > loss: "
           f"{.9 - i * .1:.5f}  ({.95 - i * .1:.5f})\n     | > grad_norm: 0.5", range(5)))
form("espnet.log", "log", "ESPnet's console", "ESPnet 202412", "Reporter.log_message",
     "loss 6 100 45 600 40; grad_norm 6 100 20.1 600 20.1",
     lines(lambda i: f"[host:0/1] 2023-01-01 10:00:00,123 (trainer:762) INFO: {i // 3 + 1}epoch:train:{i % 3 * 100 + 1}-"
           f"{i % 3 * 100 + 100}batch: iter_time=0.01, loss_ctc={50 - i:.3f}, loss={45 - i:.3f}, grad_norm=20.1, "
           "optim0_lr0=1.000e-05, train_time=1.0", range(6)) +
     "[host] 2023-01-01 10:00:00,123 (trainer:338) INFO: 2epoch results: [train] iter_time=0.01, loss=1.0, [valid] loss=2.0\n")
form("marian.log", "log", "Marian's console", "Marian 1.12", "Scheduler", "loss 5 100 8.9 500 8.5",
     lines(lambda i: f"[2021-06-01 10:00:00] Ep. 1 : Up. {i * 100} : Sen. {i},000 : Cost {9 - i * .1:.8f} : Time 10.2s : "
           "1000.1 words/s : gNorm 1.2", range(1, 6)))
form("monai.log", "log", "MONAI's tutorials", "MONAI 1.5", "spleen_segmentation_3d",
     "train_loss 9 1 0.89 9 0.67; average_loss 3 1 0.9 3 0.7",
     "".join(f"----------\nepoch {e}/3\n" + "".join(f"{b}/3, train_loss: {1 - e * .1 - b * .01:.4f}\n" for b in (1, 2, 3)) +
             f"epoch {e} average loss: {1 - e * .1:.4f}\n" for e in (1, 2, 3)))
form("fairseq.log", "log", "fairseq's JSON", "fairseq 0.12", "JsonProgressBar",
     "loss 6 100 7.6 600 7.1; eval_loss 1 600 5.1 600 5.1; mean/train_loss 1 600 7.4 600 7.4",
     lines(lambda i: "2023-01-01 10:00:00 | INFO | train_inner | " + '{"epoch": 1, "update": 0.%d, "loss": "%.3f", '
           '"wps": "72384", "num_updates": "%d", "lr": "0.0001"}' % (i, 7.7 - i * .1, i * 100), range(1, 7)) +
     '2023-01-01 10:00:00 | INFO | valid | {"epoch": 1, "valid_loss": "5.1", "valid_num_updates": "600"}\n'
     '2023-01-01 10:00:00 | INFO | train | {"epoch": 1, "train_loss": "7.4", "train_num_updates": "600"}\n')
form("swift.log", "log", "ms-swift's console", "ms-swift 3.10", "ProgressCallbackNew: its step is printed",
     "loss 5 5 2.9 25 2.5",
     lines(lambda i: "{'loss': %.5f, 'grad_norm': 1.2, 'learning_rate': 5e-05, 'memory(GiB)': 12.1, "
           "'train_speed(iter/s)': 0.5, 'epoch': 0.%d, 'global_step/max_steps': '%d/100', 'percentage': '%d%%'}" %
           (3 - i * .1, i, i * 5, i * 5), range(1, 6)))
form("numpy.log", "log", "scalars as numpy and torch print them", "anybody", "repr of np.float64, of a tensor",
     "loss 5 1 2.9 5 2.5; learning_rate 5 1 0.001 5 0.001",
     lines(lambda i: f"step {i} loss=np.float64({3 - i * .1:.4f}) lr=tensor(0.001) acc=tensor(0.5{i}, device='cuda:0', "
           "grad_fn=<NllLossBackward0>)", range(1, 6)))
form("utf16.log", "log", "a log in UTF-16", "PowerShell", "what > writes", "loss 5 1 2.9 5 2.5",
     "\ufeff" + lines(lambda i: f"step {i} loss {3 - i * .1:.4f}", range(1, 6)).replace("\n", "\r\n"), "utf-16-le")
form("utf16.csv", "csv", "a table in UTF-16", "PowerShell", "Export-Csv -Encoding Unicode", "loss 3 1 2.5 3 2.3",
     "\ufeffstep,loss\r\n1,2.5\r\n2,2.4\r\n3,2.3\r\n", "utf-16-le")
form("commas.log", "log", "decimal commas", "a locale", "", "loss 5 1 2.9 5 2.5",
     lines(lambda i: f"Step {i}: loss {3 - i * .1:.4f}".replace(".", ","), range(1, 6)))
form("commas.csv", "csv", "semicolons and decimal commas", "a spreadsheet", "",
     "loss 3 1 2.5123 3 2.3123; learning_rate 3 1 0.001 3 0.001",
     "step;loss;lr\n1;2,5123;0,001\n2;2,4123;0,001\n3;2,3123;0,001\n")
form("keras.csv", "csv", "Keras' CSVLogger", "Keras 3.15", "a run", "loss 3 0 4.1 2 2.1; eval_loss 3 0 3.9 2 1.9",
     "epoch,accuracy,loss,val_accuracy,val_loss\n0,0.1,4.1,0.2,3.9\n1,0.2,3.1,0.3,2.9\n2,0.3,2.1,0.4,1.9\n")
form("yolo.csv", "csv", "YOLO's results.csv", "Ultralytics 8.3", "save_metrics",
     "train/box_loss 3 1 1.2 3 1; lr/pg0 3 1 0.001 3 0.003",
     "                  epoch,         time,  train/box_loss,  lr/pg0\n1,10.2,1.2,0.001\n2,20.2,1.1,0.002\n3,30.2,1.0,0.003\n")
form("sb3.csv", "csv", "stable-baselines3's progress.csv", "stable-baselines3 2.7", "CSVOutputFormat",
     "rollout/ep_rew_mean 3 2048 21.3 6144 29.3; loss 2 4096 8.3 6144 7.3",
     "time/iterations,rollout/ep_rew_mean,time/total_timesteps,train/loss\n1,21.3,2048,\n2,25.3,4096,8.3\n3,29.3,6144,7.3\n")
form("sb3.jsonl", "log", "stable-baselines3's progress.json", "stable-baselines3 2.7", "JSONOutputFormat",
     "rollout/ep_rew_mean 3 64 28 192 30; loss 2 128 42.5 192 41.5",
     lines(lambda i: '{"rollout/ep_rew_mean": %d.0, "time/iterations": %d, "time/fps": 121, "time/total_timesteps": %d' %
           (27 + i, i, 64 * i) + (', "train/loss": %.1f, "train/learning_rate": 0.0003' % (44.5 - i) if i > 1 else "") + "}",
           (1, 2, 3)))
form("timm.csv", "csv", "timm's summary.csv", "timm 1.0", "update_summary",
     "train_loss 3 0 6.9 2 6.5; eval_loss 3 0 6.8 2 6.4",
     "epoch,train_loss,eval_loss,eval_top1,lr\n0,6.9,6.8,0.1,1e-06\n1,6.7,6.6,0.2,0.2\n2,6.5,6.4,0.3,0.4\n")
form("mlflow.txt", "log", "a metric of MLflow's store in files", "MLflow 3.17", "FileStore.log_metric", "mlflow.txt 3 0 4.18 2 4.08",
     "".join(f"{1795874370660 + i} {4.18 - i * .05:.2f} {i}\n" for i in range(3)))
form("paddle.log", "log", "PaddleDetection's console", "PaddleDetection 2.8", "LogPrinter", "loss 6 0 5 100 4.5",
     lines(lambda i: f"[01/10 12:00:00] ppdet.engine INFO: Epoch: [{i // 3}] [{i % 3 * 20:2d}/60] learning_rate: 0.0001 "
           f"loss_cls: 2.1 loss: {5 - i * .1:.6f} eta: 0:01:00 batch_cost: 0.5 data_cost: 0.1 ips: 8.0 images/s", range(6)))
form("hapi.log", "log", "Paddle's high-level console", "paddlepaddle 3.2", "paddle.callbacks.ProgBarLogger", "loss 8 10 2.4 80 1.6",
     "".join(f"Epoch {e}/2\n" + "".join(f"step {s:2d}/40 [=====>........] - loss: {3 - e * .5 - s * .01:.4f} - acc: 0.{s} - "
                                        "ETA: 1s - 10ms/step\n" for s in (10, 20, 30, 40)) for e in (1, 2)))
form("mindcv.log", "log", "MindCV's console", "mindcv 0.5", "StateMonitor", "loss 6 100 5 600 4.5",
     lines(lambda i: f"[2023-06-01 10:00:00] mindcv.train INFO - Epoch: [{i // 3 + 1}/100], batch: [{i % 3 * 100 + 100}/300], "
           f"loss: {5 - i * .1:.6f}, lr: 0.001000, time: 10.2s", range(6)))
form("torchvision.log", "log", "torchvision's references", "torchvision 0.26", "MetricLogger", "loss 6 0 6.9 500 6.4",
     lines(lambda i: f"Epoch: [{i // 3}]  [{i % 3 * 100:3d}/300]  eta: 0:10:00  lr: 0.02  img/s: 100.1  loss: {6.9 - i * .1:.4f} "
           f"({6.95 - i * .1:.4f})  acc1: 0.0000 (0.0000)  time: 0.3  data: 0.1  max mem: 1000", range(6)))
form("maxtext.log", "log", "MaxText's console", "MaxText 2026", "metric_logger", "loss 6 0 10 5 9.5",
     lines(lambda i: f"completed step: {i}, seconds: 0.500, TFLOP/s/device: 100.1, Tokens/s/device: 1000.1, total_weights: "
           f"8192, loss: {10 - i * .1:.3f}", range(6)))
form("torchtitan.toml", "toml", "TOML", "torchtitan 0.2", "train_configs/", "training.seq_len=8192; optimizer.lr=3e-4; "
     "training.dims=[1, 2, 3]; data.1.path=b; model.name=llama3",
     "# torchtitan\n[model]\nname = \"llama3\"\n[training]\nseq_len = 8_192\ndims = [1, 2,\n  3,]\n[optimizer]\nlr = 3e-4\n"
     "[[data]]\npath = \"a\"\n[[data]]\npath = \"b\"\n")
form("mmengine.py", "toml", "assignments in Python", "MMEngine 0.10", "Config", "lr=0.02; model.backbone.depth=50; "
     "train_pipeline.1.keep_ratio=True; optim_wrapper.optimizer.weight_decay=1e-4; img_scale=[1333, 800]",
     "_base_ = ['../_base_/default.py']\nmodel = dict(\n    type='FasterRCNN',\n    backbone=dict(depth=50, norm_cfg=dict("
     "type='BN')),\n)\nlr = 0.02  # of 16\nimg_scale = (1333, 800)\ntrain_pipeline = [\n    dict(type='Load'),\n    dict(type="
     "'Resize', scale=img_scale, keep_ratio=True),\n]\noptim_wrapper = dict(optimizer=dict(type='SGD', lr=lr, weight_decay=1e-4))\n")

# Kinds that public repositories have, each written anew.
form("batches.csv", "csv", "batches that each epoch counts anew", "anybody", "-",
     "Gen_Loss 6 0 0.9 5 0.4; Disc_Loss 6 0 1.9 5 1.4",
     "Epoch,Batch,Gen Loss,Disc Loss\n" + lines(lambda i: f"{i // 3},{i % 3},{.9 - i * .1:.1f},{1.9 - i * .1:.1f}", range(6)))
form("counted.log", "log", "lines that name their epoch alone", "anybody", "counted",
     "Batch_loss 12 1 9 12 7.9; Average_Train_Loss 2 6 8.7 12 8.1; Val_BLEU_2 2 6 70 12 71",
     "".join(f"2025-03-02 05:16:2{e} - INFO - ##### Epoch {e} #####\n"
             + lines(lambda i: f"2025-03-02 05:16:21 - INFO - Epoch {e} - Batch loss: {9 - (6 * e - 6 + i) * .1:.1f}", range(6))
             + f"INFO - Epoch {e} - Average Train Loss: {9.3 - e * .6:.1f}\nINFO - Epoch {e} - Val BLEU-2: {69 + e}\n"
             for e in (1, 2)))
form("behind.log", "log", "a message behind another program's bar", "tqdm", "stderr and stdout in one file",
     "train_loss 3 0 2.4 2 2.2; top_1_acc 3 0 0.1 2 0.3; top_5_acc 3 0 0.5 2 0.7",
     lines(lambda e: f"\r100%|██████████| 68/68 [00:24<00:00, 63.8it/s]epoch   {e} | train_loss: {2.4 - e * .1:.1f} | "
           f"top 1 acc: 0.{e + 1} | top 5 acc: 0.{e + 5}", range(3)))
form("steps.log", "log", "steps beside epochs, of a run that went on from a checkpoint", "anybody", "the last counts",
     "loss 8 0 3 240 2.5",
     lines(lambda i: f"Train: STEP {i * 40} - EPOCH {i}/10 | loss: {3 - i * .1 if i < 5 else 2.5:.1f}", range(5))
     + lines(lambda i: f"Train: STEP {i * 40} - EPOCH {i}/10 | loss: 2.5", (4, 5, 6)))
form("ids.log", "log", "PaddleRec's console", "PaddleRec", "its mean of an epoch is a line of its own",
     "loss 6 0 0.9 1250 0.4; mean/loss 2 500 0.65 1250 0.35",
     "".join(lines(lambda b: f"2022-04-12 19:36:09,623 - INFO - epoch: {e}, batch_id: {b * 250}, AUC:0.9, "
                   f"loss:{.9 - .3 * e - .1 * b:.1f}, ips: 1848.8 ins/s", range(3))
             + f"2022-04-12 19:50:00,000 - INFO - epoch: {e} done, AUC: 0.9,loss:{.65 - .3 * e:.2f}, epoch time: 9.8 s\n"
             for e in (0, 1)))
form("score.log", "log", "Deeplearning4j's scores", "Deeplearning4j 1.0", "ScoreIterationListener",
     "loss 4 0 1.6 300 1.3",
     lines(lambda i: f"06:36:5{i}.403 [main] INFO org.deeplearning4j.optimize.listeners.ScoreIterationListener - "
           f"Score at iteration {i * 100} is {1.6 - i * .1:.1f}", range(4)))
form("detr.jsonl", "log", "DETR's JSON without an epoch", "DETR", "counted",
     "train_loss 12 1 26 12 20.5; test_loss 12 1 27 12 21.5",
     lines(lambda i: f'{{"train_lr": 0.0001, "train_loss": {26 - i * .5}, "test_loss": {27 - i * .5}, "n_parameters": 41}}',
           range(12)))
form("settings.log", "log", "settings as a dict, epochs of training and evaluation", "ST-GCN", "its console",
     "mean_loss 3 1 5 3 4; val/mean_loss 1 2 6.5 2 6.5",
     "[03.24.23|09:56:11] Parameters:\n{'phase': 'train', 'debug': False, 'step': [20, 30], 'base_lr': 0.1, 'num_epoch': 50}\n"
     + "".join(f"[03.24.23|09:58:1{e}] Training epoch: {e}\n[03.24.23|09:58:13] \tmean_loss: {5.5 - e * .5:.1f}\n"
               + (f"[03.24.23|09:58:14] Eval epoch: {e}\n[03.24.23|09:58:15] \tmean_loss: 6.5\n" if e == 2 else "")
               for e in (1, 2, 3)))
form("attributes.py", "toml", "attributes in Python", "yacs, EasyDict", "config/",
     "batch_size=128; lr=0.2; SOLVER.BASE_LR=3e-4; val_targets=[lfw, agedb_30]",
     "from easydict import EasyDict as edict\n\nconfig = edict()\nconfig.batch_size = 128\nconfig.lr = 0.2\n"
     "_C = edict()\n_C.SOLVER.BASE_LR = 3e-4\nconfig.val_targets = ['lfw', \"agedb_30\"]\n")
form("get_config.py", "toml", "a function that makes the configuration", "ml_collections", "get_config",
     "batch_size=4096; optimizer.lr=3e-4",
     "import ml_collections\n\n\ndef get_config():\n  config = ml_collections.ConfigDict()\n  config.batch_size = 4096\n"
     "  config.optimizer = ml_collections.ConfigDict()\n  config.optimizer.lr = 3e-4\n  return config\n")
form("yacs.sh", "shell", "names in capitals, each before its value", "yacs, Detectron2", "tools/train.py",
     "config_file=a.yml; lr=0.1; MODEL.DEVICE_ID=('3'); OUTPUT_DIR=out",
     "python3 tools/train.py --config_file a.yml -lr 0.1 MODEL.DEVICE_ID \"('3')\" OUTPUT_DIR out\n")
form("batches.log", "log", "a count before its unit", "PyTorch's word_language_model", "main.py",
     "loss 6 100 6.9 600 6.4; eval_loss 2 1 4.5 2 4.4",
     "".join(lines(lambda b: f"| epoch   {e} |   {b * 100 + 100}/  300 batches | lr 20.00 | ms/batch 181.56 | "
                   f"loss  {7.2 - e * .3 - b * .1:.2f} | ppl  1009.16", range(3))
             + "-" * 89 + f"\n| end of epoch   {e} | time: 665.71s | valid loss  {4.6 - e * .1:.2f} | valid ppl    76.16\n"
             + "-" * 89 + "\n" for e in (1, 2)))
form("front.log", "log", "a count in brackets in front", "anybody", "-", "batch_loss 5 0 6.3 400 5.9; avg_loss 5 0 6.4 400 6",
     lines(lambda i: f"[{i * 100}/100000] batch loss : {6.3 - i * .1:.1f} | avg loss so far is {6.4 - i * .1:.1f} | time : 0.16s",
           range(5)))
form("cut.log", "log", "a log that was cut while it was written", "logrotate", "copytruncate",
     "loss 5 100 2.9 500 2.5", "\0" * 300 + lines(lambda i: f"step {i * 100} | loss {3 - i * .1:.1f} | lr 0.001", range(1, 6)))
form("late.log", "log", "losses that Python kept back while the bar ran on", "transformers 4.51", "nohup without -u",
     "loss 6 1 2.5 6 2; learning_rate 6 1 0.0006 6 0.0001",
     "".join(f"\r {b * 10:2d}%|###   | {b}/60 [00:0{b % 10}<00:09,  5.00it/s]" for b in range(0, 40)) +
     lines(lambda i: f"{{'loss': {2.6 - i * .1:.4f}, 'learning_rate': {7e-4 - i * 1e-4:.1e}, 'epoch': 0.{i}}}", range(1, 5)) +
     "".join(f"\r {b * 10:2d}%|###   | {b}/60 [00:0{b % 10}<00:09,  5.00it/s]" for b in range(40, 61)) +
     lines(lambda i: f"{{'loss': {2.6 - i * .1:.4f}, 'learning_rate': {7e-4 - i * 1e-4:.1e}, 'epoch': 0.{i}}}", (5, 6)))
form("arrows.log", "log", "numbers below their step, behind arrows", "DSFD.pytorch", "train.py",
     "loss 4 0 26.5 30 23.5; pal1_conf_loss 4 0 11.5 30 8.5; learning_rate 4 0 0.0005 30 0.0005",
     lines(lambda i: f"Timer: 0.66{i}\nepoch:0 || iter:{i * 10} || Loss:{26.5 - i:.4f}\n->> pal1 conf loss:"
           f"{11.5 - i:.4f} || pal1 loc loss:{4.5 - i * .1:.4f}\n->>lr:0.0005", range(4)))
form("boxes.log", "log", "boxes with their step", "improved-diffusion", "logger.HumanOutputFormat; 1.01e+03 is that of ten",
     "loss 4 1 16.5 4 13.5; grad_norm 4 1 82 4 79",
     lines(lambda i: f"{'-' * 24}\n| grad_norm | {82 - i}       |\n| loss      | {16.5 - i}     |\n| step      | "
           f"{('0', '10', '1.01e+03', '1.01e+03')[i]:8} |\n{'-' * 24}", range(4)))
form("timesteps.csv", "csv", "a column of total timesteps", "baselines", "logger",
     "loss 3 1024 2.5 3072 2.3", "Progress,total timesteps,loss\n" +
     lines(lambda i: f"{i}.5%,{(i + 1) * 1024},{2.5 - i * .1:.2f}", range(3)))
form("overrides.yaml", "yaml", "Hydra's overrides", "hydra-core 1.3", ".hydra/overrides.yaml",
     "experiment=tt; lr=0.1", "- experiment=tt\n- +lr=0.1\n")
form("joined.log", "log", "an evaluation by a joined word", "anybody", "-",
     "loss 3 1 0.5 3 0.3; eval_loss 3 1 0.7 3 0.5",
     lines(lambda e: f"[Train] Epoch 00{e}: loss = {.6 - e * .1:.4f}\n[Diff-Val(Test-Normal)] Epoch 00{e} (Deterministic): "
           f"loss = {.8 - e * .1:.4f}", (1, 2, 3)))
form("stepless.log", "log", "boxes without a step", "baselines", "logger", "loss 3 1 2.5 3 2.3; kl 3 1 0.5 3 0.3",
     lines(lambda i: f"{'-' * 20}\n| loss  | {2.5 - i * .1:.2f} |\n| kl    | {.5 - i * .1:.2f} |\n{'-' * 20}", range(3)))
form("stepless.csv", "csv", "losses without a column of steps", "pandas", "to_csv(index=False)",
     "loss 3 1 0.5 3 0.3; eval_loss 3 1 0.6 3 0.4",
     "loss,val_loss\n" + lines(lambda i: f"{.5 - i * .1:.2f},{.6 - i * .1:.2f}", range(3)))
form("losses.json", "trainer_state", "lists under names within names", "anybody", "json.dump",
     "generator_losses 3 0 3.5 2 3.3; validation/PSNR 3 0 14 2 16",
     '{"generator_losses": [3.5, 3.4, 3.3], "validation": {"PSNR": [14.0, 15.0, 16.0]}}')
form("estimator.log", "log", "TensorFlow's estimators", "TensorFlow 1", "LoggingTensorHook",
     "loss 3 0 1 200 0.8; eval_loss 1 201 0.7 201 0.7",
     lines(lambda i: f"INFO:tensorflow:loss = {1 - i * .1:.1f}, step = {i * 100} (9.1 sec)", range(3))
     + "INFO:tensorflow:Saving dict for global step 201: accuracy = 0.85, global_step = 201, loss = 0.7\n")
form("train_config.py", "toml", "classes of settings", "dataclasses", "config.py",
     "TrainConfig.lr=3e-4; TrainConfig.betas=[0.9, 0.95]; Model.layers=12; SEED=7",
     "import os\nfrom dataclasses import dataclass\n\n\n@dataclass\nclass TrainConfig:\n    \"\"\"What is trained.\"\"\"\n"
     "    lr: float = 3e-4\n    betas: tuple = (0.9, 0.95)\n\n    def steps(self):\n        n = 5\n        return n\n\n\n"
     "class Model:\n    def __init__(self):\n        self.layers = 12\n        self.path = os.path.join(\"a\", \"b\")\n\n\n"
     "SEED = 7\n")
form("args.txt", "toml", "names and values in lines", "INI, printed arguments", "-",
     "seed=1; model.name=efficientnet-b3; model.prob_th=0.5; model.ckpt=None",
     "# arguments\nseed = 1\n[model]\nname = efficientnet-b3  ; a comment\nprob_th = 0.5\nckpt = None\n")
form("episodes.log", "log", "episodes", "anybody", "-", "Avg_Reward 5 0 5 40 9; Win_Rate 5 0 1 40 5",
     lines(lambda i: f"INFO:root:Episode {i * 10} | Avg Reward: {5 + i}.00 | Epsilon: 1.000 | Win Rate: {i + 1}.00%", range(5)))
form("header.log", "log", "a step in a line of its own", "anybody", "-", "loss 3 1000 0.26 3000 0.24; Loss_u 3 1000 0.5 3000 0.5",
     lines(lambda i: "-" * 40 + f"Iteration: {i * 1000}" + "-" * 40 + f"\nLoss: {.27 - i * .01:.5e} Loss_u: 5e-1", (1, 2, 3)))

form("means.log", "log", "means of training and of a test", "DETR, MAE", "MetricLogger",
     "loss 4 0 0.9 3 0.6; mean/loss 2 1 0.85 3 0.65; test/loss 2 1 1.9 3 1.7; test/mean/loss 2 1 1.95 3 1.75; "
     "PU_Loss 2 0 0.5 1 0.4",
     "".join(lines(lambda b: f"Epoch: [{e}]  [{b}/2]  eta: 0:00:10  lr: 0.001  loss: {.9 - .2 * e - .1 * b:.4f} "
                   f"({.9 - .2 * e:.4f})  time: 0.5  max mem: 1000", range(2))
             + f"Epoch: [{e}] Total time: 0:00:10 (0.5000 s / it)\nAveraged stats: lr: 0.001  loss: {.85 - .2 * e:.4f} "
             f"({.8 - .2 * e:.4f})\nTest:  [0/1]  eta: 0:00:00  loss: {1.9 - .2 * e:.4f} (1.9)  time: 0.1\n"
             f"Test: Total time: 0:00:00 (0.1 s / it)\nAveraged stats: loss: {1.95 - .2 * e:.4f} (1.9)\n"
             f"[Epoch {e}] PU Loss: {.5 - .1 * e:.2f}\n" for e in (0, 1)))
form("below.log", "log", "numbers below their step", "anybody", "-",
     "recon_loss 4 1 5.9 32 5.3; kl_obj 4 1 0.5 32 0.5; val/test_acc 2 12 40.4 32 44.4",
     "".join(lines(lambda i: f"epoch: {e}, {1 + i * 11}/20 8.8%, 2.9s per iter, lr: 0.0003, tr: 1.00\n    recon loss: "
                   f"{5.9 - .4 * (e - 1) - .2 * i:.1f}  ppl:340.38, style loss: 1.1\n    kl obj: 0.5\n", range(2))
             + f"==== evaluation at epoch: {e} iteration: 20 ====\ntest acc: {40.4 + 4 * (e - 1):.1f}%, spent: 206.1 s\n"
             for e in (1, 2)))
form("announced.log", "log", "an evaluation that a line announces", "anybody", "-",
     "loss 4 0 2.5 3 1; eval_loss 4 0 2.7 3 1.2",
     "".join(f"epoch: {e},  loss is: {2.5 - .5 * e:.12f}, acc is: 0.{e}5\ntesting in eval mode……\nepoch: {e},  loss is: "
             f"{2.7 - .5 * e:.12f}, acc is: 0.{e}4\nNow continue training……\n" for e in range(4)))
form("index.log", "log", "an index of batches", "loguru", "-", "loss 5 64 10.9 320 10.5",
     lines(lambda i: f"2024-10-26 01:01:4{i}.115 | INFO     | __main__:train:58 - [0.0{i}%] batch_index={i * 64} "
           f"loss={11 - i * .1:.4f}", range(1, 6)))
form("beside.jsonl", "log", "objects without a loss beside others", "anybody", "-; its last line has no end",
     "loss 3 1 0.9 3 0.7; accuracy 2 0 0.5 3 0.7",
     '{"iteration": 0, "accuracy": 0.5, "n": 150}\n'
     + lines(lambda i: f'{{"iteration": {i}, "loss": {1 - i * .1:.1f}, "lr": 0.1}}', range(1, 4))
     + '{"iteration": 3, "accuracy": 0.7, "n": 150}')
form("commands.sh", "shell", "several commands", "anybody", "-",
     "lr=1e-4; epochs=5; command1.lr=3e-4; machine.num_devices=2",
     "python prepare.py --lr 3e-4\nCUDA_VISIBLE_DEVICES=0 nohup ns-train splatfacto --lr 1e-4 \\\n"
     "    --epochs 5 --machine.num-devices 2 > log 2>&1 &\n")
form("components.cfg", "toml", "INI with values in JSON", "spaCy 3.8", "config.cfg",
     'system.seed=0; model.@architectures="spacy.Tagger.v2"; optimizer.learn_rate=0.001',
     "[system]\nseed = 0\ngpu_allocator = null\n\n[model]\n@architectures = \"spacy.Tagger.v2\"\nnO = null\n\n[optimizer]\n"
     "learn_rate = 0.001\n")
form("hps_config.py", "toml", "calls with names", "namedtuple", "config.py", "yelp.batch_size=128; yelp.lr=8e-4",
     "from collections import namedtuple\n\nH = namedtuple('H', 'batch_size, lr')\n\nyelp = H(\n    batch_size=128, lr=8e-4)"
     "  # a comment\n")
form("arguments.py", "python", "defaults of argparse", "argparse", "-", "lr=0.1; dataset=cifar10; use_amp=False",
     "import argparse\n\nparser = argparse.ArgumentParser()\nparser.add_argument('--lr', type=float, default=0.1)\n"
     "parser.add_argument('--dataset', help='cifar10, or cifar100',\n                    default='cifar10')\n"
     "parser.add_argument('-a', '--use-amp', action='store_true')\nparser.add_argument('--dir', default=os.getcwd())\n")
form("smi.txt", "pip", "nvidia-smi", "driver 576.88", "-", "nvidia_driver=576.88; cuda=12.9; gpu=NVIDIA GeForce RTX 5060",
     "\ufeffWed Aug  5 14:56:56 2026\n+------------------------------+\n| NVIDIA-SMI 576.88      Driver Version: 576.88      "
     "CUDA Version: 12.9     |\n|   0  NVIDIA GeForce RTX 5060      WDDM  |   00000000:01:00.0  On |     N/A |\n"
     "|  0%   45C    P0     32W /  145W |    2590MiB /   8151MiB |      1%      Default |\n")
form("noted.txt", "pip", "versions as people note them", "anybody", "-",
     "python=3.8.20; torch=2.0.1+cu118; cuda_runtime=11.8; gpu=NVIDIA A100",
     "Python: 3.8.20 (default, Oct  3 2024)\nOS: Linux\nPyTorch: 2.0.1+cu118\nCUDA runtime: 11.8\nGPU: NVIDIA A100\n")
form("percent.log", "log", "a step and its share, then the loss", "PyTorch's tutorials", "timeSince",
     "loss 4 5000 3.5 20000 2.9",
     lines(lambda i: f"{i}m 24s ({i * 5000} {i * 6}%) {3.7 - i * .2:.4f}", range(1, 5)))
form("chinese.log", "log", "names in Chinese", "anybody", "-",
     "loss 4 10 4.6 40 4.3; train_loss 2 1 4.5 2 4.3; eval_loss 2 1 6 2 5.9",
     "".join(lines(lambda b: f"Epoch: {e} | Batch: {b * 10}/ 20 | LR: 2.97e-04 |Loss: {4.9 - e * .2 - b * .1:.4f}", (1, 2))
             + f"Epoch {e} 完成 | 训练损失: {4.7 - e * .2:.4f} | 验证损失：{6.1 - e * .1:.4f} | 时间: 385.8s\n" for e in (1, 2)))
form("history.json", "trainer_state", "lists of losses", "Keras 3.15", "json.dump(history.history)",
     "loss 4 0 0.5 3 0.2; eval_loss 4 0 0.6 3 0.3; accuracy 4 0 0.7 3 0.7",
     '{"accuracy": [0.7, 0.7, 0.7, 0.7],\n "loss": [0.5, 0.4, 0.3, 0.2], "val_loss": [0.6, 0.5, 0.4, 0.3]}\n')
form("episode.csv", "csv", "a row an episode", "anybody", "-", "Total_Reward 3 1 -24 3 27",
     "Episode,Total_Reward,Epsilon,Timestamp\n" + lines(lambda i: f"{i},{-24 + (i - 1) * 25.5},0.{9 - i},2025-11-18 03:10:47",
                                                      (1, 2, 3)))
form("ordinals.log", "log", "0th epoch, 1th batch", "anybody", "-", "lsd 6 0 70 5 65",
     "".join(lines(lambda b: f"{e}th epoch, {b}th mini-batch, lsd is {70 - e * 3 - b}.5, lreg is 5.3".replace(".5,", ".0,"),
                   range(3)) for e in (0, 1)))
form("named.log", "log", "metrics of an epoch, a line each", "anybody", "-",
     "Loss1 4 0 0.5 300 0.2; Event_level_F1 2 100 41 300 42; Segment_level_Type@Avg._F1 2 100 40.5 300 41.5",
     "".join(lines(lambda b: f"Train Epoch: {e} [{b * 100}/200 (0%)]\tLoss1: {.7 - e * .2 - b * .1:.3f}", (0, 1))
             + f"Audio-Visual Event Detection Event-level F1: {40 + e}.0\nSegment-level Type@Avg. F1: {39.5 + e}\n"
             for e in (1, 2)).replace("Audio-Visual Event Detection Event", "Event"))
form("explicit.txt", "pip", "conda list --explicit", "conda 24", "-", "bzip2=1.0.6; caffe2_cuda8.0_cudnn7=0.8.dev",
     "# platform: linux-64\n@EXPLICIT\nhttps://conda.anaconda.org/main/linux-64/bzip2-1.0.6-h9a117a8_4.tar.bz2\n"
     "https://conda.anaconda.org/caffe2/linux-64/caffe2-cuda8.0-cudnn7-0.8.dev-py36_2018.05.14.tar.bz2\n")
form("within.log", "log", "steps within an episode", "anybody", "-", "reward 6 1 3 6 -2; allyHP 6 1 160 6 110",
     "train start...\n" + "".join(lines(lambda b: f"episode: {e}, step: {b}, reward: {4 - b - 3 * e:.1f}, done: False, allyHP: "
                                       f"{170 - b * 10 - e * 30}.0", (1, 2, 3)) for e in (0, 1)))
form("lengths.log", "log", "episodes and how long they were", "anybody", "-", "reward 4 1 11 4 14",
     lines(lambda i: f"episode: {i}, step: {(186, 43, 161, 90)[i - 1]}, reward: {10 + i}.5, done: True".replace(".5,", ".0,"),
           range(1, 5)))

form("tested.log", "log", "evaluations alone", "anybody", "a loss once in a while, epochs in each line",
     "val/accuracy 3 1 0.91 3 0.93; test/accuracy 3 1 0.81 3 0.83; loss 2 1 0.3 2 0.2",
     "".join(f"2020-11-08 16:35:15,207 - DEBUG - Training Epoch: {e}, Loss: 0.{4 - e}.\n" * (e < 3) +
             f"2020-11-08 16:35:15,207 - INFO - Validating Epoch: {e}, accuracy: 0.9{e}, Pk: 0.33{e} . \n"
             f"2020-11-08 16:37:36,838 - INFO - Testing Epoch: {e}, accuracy: 0.8{e}, Pk: 0.35{e} . \n" for e in (1, 2, 3)))
form("selfplay.log", "log", "a batch's index, numbers below", "AlphaZero_Gomoku", "train.py",
     "episode_len 4 1 28 4 31; loss 3 2 4.9 4 4.7; kl 3 2 0.012 4 0.014",
     "".join(f"2025-06-04 19:53:31, batch i:{i}, episode_len:{27 + i}\n" +
             f"kl:0.01{i},lr_multiplier:1.000,loss:{5.1 - i * .1:.1f},entropy:4.{i},explained_var_old:0.0{i}\n" * (i > 1)
             for i in (1, 2, 3, 4)))
form("hyphen.log", "log", "an epoch's number before its word", "Mugs", "MetricLogger",
     "total_loss 4 4 11.1 19 11.4; group_sup 4 4 10.1 19 10.4",
     lines(lambda i: f"INFO:0-epoch ({i * 5 - 1}/20): total loss 11.{i}, group-sup.: 10.{i},, lr {i}e-9, wd 4.0e-02", (1, 2, 3, 4)))
form("begun.log", "log", "evaluations that a line begins", "Paddle 2.1", "hapi, verbose=2",
     "loss 8 10 2.3 80 1.6; eval_loss 4 40 2.1 80 1.2",
     "".join(f"Epoch {e}/2\n" + lines(lambda k: f"step {k * 10}/40 - loss: {2.8 - e * .4 - k * .1:.1f} - acc: 0.{k}", (1, 2, 3, 4)) +
             "Eval begin...\n" + lines(lambda k: f"step {k * 4}/8 - loss: {3 - e * .8 - k * .1:.1f} - acc: 0.{k}", (1, 2)) +
             "Eval samples: 64\n" for e in (1, 2)))
form("ranged.log", "log", "batches from one to another", "MXNet 1.9", "Speedometer(auto_reset=False)",
     "RPNAcc 6 20 0.91 120 0.96",
     "".join(f"INFO - Epoch[{e}] Batch [0-{b}]\tSpeed: 25.77 samples/sec\tRPNAcc=0.9{e * 3 + b // 20:d}0000\tL1Loss=0.1\n"
             for e in (0, 1) for b in (20, 40, 60)))
form("boxed.log", "log", "boxes with an epoch alone", "OpenAI baselines", "her/experiment/train.py",
     "test/success_rate 3 0 0.1 2 0.3; train/episode 3 0 100 2 300",
     "".join("-----------------------------\n" + f"| epoch              | {e}    |\n| test/success_rate  | 0.{e + 1}  |\n"
             f"| train/episode      | {e * 100 + 100}.0 |\n-----------------------------\n" for e in range(3)))
form("looked.log", "log", "an epoch that was", "anybody", "no place of the numbers behind it",
     "train_loss 3 1 2.5 3 2.3; eval_loss 3 1 3.5 3 3.3",
     lines(lambda e: f"Epoch #{e}: train_loss={2.6 - e * .1:.1f}, val_loss={3.6 - e * .1:.1f}", (1, 2, 3)) +
     "Loaded best model from epoch 2 (val_loss=9.9)\nEarly stopping triggered at epoch 3\ntrain_loss: 7.5\n")
form("slashed.csv", "csv", "a column of steps behind a slash", "OpenAI baselines", "logger.CSVOutputFormat",
     "rollout/return 3 2000 -9.5 6000 -7.5",
     "rollout/return,train/loss_actor,total/episodes,total/steps,rollout/episode_steps\n" +
     lines(lambda i: f"{i - 10.5},{3 - i * .1:.1f},{i * 30}.0,{i * 2000},59.5", (1, 2, 3)))
form("container.sh", "shell", "a command within a container", "docker, singularity", "what the container is told is no setting",
     "VLLM_USE_V1=1; actor.lr=1e-6; note=; port=$(shuf -i 1-9 -n1)",
     "#!/bin/bash\nport=$(shuf -i 1-9 -n1)\ndocker run --rm --gpus all --shm-size=16g -e VLLM_USE_V1=1 --entrypoint python3 $IMAGE "
     "-m recipe.main_dapo --note=\"\" --port $port actor.lr=1e-6\n")
form("rounds.log", "log", "a step within an iteration", "bert-as-service's heirs", "iteration:1 step:100/400",
     "NER_loss 4 200 3.9 800 3.6",
     "".join(lines(lambda b: f"log - INFO - iteration:{e} step:{b * 200}/400, NER loss:{4.2 - e * .2 - b * .1:.6f}", (1, 2)) for e in (1, 2)))
form("ranked.log", "log", "each rank's line", "anybody", "[Rank 0] Step 5", "loss 8 0 9 3 7.6",
     "".join(lines(lambda i: f"[Rank {r}] Step {i}: loss={9 - i * .5 + r * .1:.1f}, time=0.105s, peak_mem=2.02 GB" , [i])
             for i in range(4) for r in (0, 1)))
form("spread.log", "log", "a mean and its spread", "anybody", "below its epoch", "Dice 3 1 0.61 3 0.63; Neg_Jac 3 1 0.1 3 0.3",
     "".join(f"  Epoch 000{e} : models\\000{e}.pt\n           Dice = 0.6{e} ± 0.0759  |  Neg-Jac = 0.{e}%\n" for e in (1, 2, 3)))
form("paddlevideo.log", "log", "steps of an epoch behind it", "PaddleVideo 2.2", "tasks/train.py",
     "loss 4 0 4.9 300 4.5",
     "".join(lines(lambda b: f"[12/25 14:22:40] epoch:[  {e}/2  ] train step:{b * 100:<4d} loss: {5.1 - e * .2 - b * .2:.5f} lr: 0.010000 "
                   "batch_cost: 7.44212 sec, ips: 8.5997 instance/sec.", (0, 1)) for e in (1, 2)))
form("kept.log", "log", "lines that Python kept back", "transformers 5.24", "stdout and stderr in one file, losses of 0",
     "loss 3 1 0 3 0; reward 3 1 0 3 0",
     "".join(f"\r {k * 33:3d}%|###| {k}/3 [05:01<4:05:54, 301.10s/it]" for k in (1, 2, 3)) + "\n" +
     lines(lambda i: "{'loss': '0', 'grad_norm': '0', 'learning_rate': '%de-06', 'reward': '0', 'epoch': '0.0%d'}" % (4 - i, i), (1, 2, 3)))
form("placeless.log", "log", "losses without a step", "loguru", "logger.info",
     "loss 12 1 1.4 12 0.3",
     lines(lambda i: f"2021-11-11 00:01:30.834 | INFO     | __main__:train:35 - loss: {1.5 - i * .1:.4f}", range(1, 13)) +
     "2021-11-11 00:01:30.834 | INFO     | __main__:train:35 - validation acc: 0.5000\nbest loss: 0.1\n")
form("chinese16.log", "log", "UTF-16 that begins in Chinese", "PowerShell 5", "Tee-Object",
     "loss 3 1 2.4 3 2.2", "\ufeff开始训练\n" + lines(lambda i: f"step {i}: loss {2.5 - i * .1:.1f}", (1, 2, 3)), "utf-16-le")
form("barred.log", "log", "a bar of an evaluation", "tqdm", "set_postfix(loss=...)", "loss 8 1 3.9 8 3.2; eval_loss 4 4 2.9 8 2.7",
     "".join("".join(f"\rEpoch {e}:  {b * 25:d}%|##| {b}/4 [00:01<00:04,  1.0it/s, loss={4 - e * .4 - b * .1:.1f}]" for b in (1, 2, 3, 4)) +
             "".join(f"\rvalidating...:  {b * 50:d}%|##| {b}/2 [00:01<00:04,  1.0it/s, loss={3 - e * .1 - b * .1:.1f}]" for b in (1, 2)) + "\n"
             for e in (0, 1)))
form("headed.log", "log", "steps behind an epoch's own line", "anybody", "no total", "train_loss 9 20 3.3 180 2.5",
     "".join(f"[2022-06-27 12:54:52,646]Epoch: 000{e}\n" + lines(
         lambda b: f"[2022-06-27 12:55:01,248]iter:00{b * 20} loss_train: {3.7 - e * .3 - b * .1:.4f} time: 0.1974s", (1, 2, 3))
         for e in (1, 2, 3)))
form("remarked.log", "log", "a remark behind a name", "anybody", "brackets", "Avg_reward 3 1000 -13.5 3000 -11.5",
     lines(lambda i: f"INFO | Episode   {i}000 | Avg reward (last 1000): {-14.5 + i:.2f} | Steps: {200 - i}", (1, 2, 3)))
form("blanks.csv", "log", "names with blanks", "anybody", "a table whose steps have a name that is not known",
     "Top_Fitness 3 1 14 3 16; Mean_Fitness 3 1 1.5 3 3.5",
     "Generation,Top Fitness,Mean Fitness\n" + lines(lambda i: f"{i},{13 + i},{i + .5}", (1, 2, 3)))
form("howlong.csv", "csv", "episodes and how long each was", "anybody", "-", "reward 5 6001 -10.5 7 -6.5",
     "episode,reward,steps,win\n" + lines(lambda i: f"{(6001, 6002, 6003, 6, 7)[i - 1]},{i - 11.5},{(3602, 1126, 2072, 391, 7)[i - 1]},0", range(1, 6)))
form("variable.sh", "shell", "a script in a variable", "anybody", "-", "alpha=0.5", "#!/bin/bash\nfor s in *.py; do\n  python3 $s --alpha 0.5\ndone\n")
form("prose.log", "log", "texts that are printed between its lines", "anybody", "an answer's steps, an amount",
     "grpo_loss 12 1 -0.25 12 0.5; and_kl 12 1 0.01 12 0.12",
     "=== Epoch 1/2 ===\n" + "".join(
         ("=== Epoch 2/2 ===\n**Step 3:**\n" if i == 6 else "") +
         f"grpo_loss is {(-.25, '-0.0', '-0.0', .5)[i % 4]} and kl is {(i + 1) * .01:.2f}\n" +
         {1: "**Step 1:** Find how many pens she buys: 45 pens / 5 pens = 9\n**Answer:** She drives 62.5 km\n",
          3: "slow: 40.0s, steps=138\n", 8: "Step 2: The price of the first 3 is 4 and of the others 5\n"}.get(i, "")
         for i in range(12)))
form("saved.log", "log", "lines that tell what was saved", "anybody", "no points of a curve",
     "D_Loss 3 1 1.5 3 1; G_Loss 3 1 0.5 3 0.75; Val_G_Loss 3 1 0.75 3 0.5; no eval_loss",
     "".join(f"[GAN] Epoch {e}/3 D Loss: {d} G Loss: {g} | Val G Loss: {v}\n" +
             (f"Saved the best generator at epoch {e} with val G loss {v}\n" if e != 2 else "")
             for e, d, g, v in ((1, 1.5, .5, .75), (2, 1.25, .625, .875), (3, 1.0, .75, .5))))
form("onmt.log", "log", "evaluations behind steps without a loss", "OpenNMT-py 2", "report_manager",
     "xent 4 50 3.29 200 2.81; Validation_perplexity 2 100 5.5 200 4.5; Validation_accuracy 2 100 44.5 200 48.5",
     "".join(f"[2026-05-08 04:06:17,722 INFO] Step {i * 50}/100000; acc:  1{i}.00; ppl: 2{5 - i}.87; xent: {x}; lr: 1.00000;"
             f" 1127{i}/8704 tok/s;      {i * 5 - 1} sec\n" +
             (f"[2026-05-08 04:06:28,463 INFO] Validation perplexity: {6.5 - i / 2}\n"
              f"[2026-05-08 04:06:28,463 INFO] Validation accuracy: {40.5 + 2 * i}\n" if i % 2 == 0 else "")
             for i, x in ((1, 3.29), (2, 3.01), (3, 2.91), (4, 2.81))))
form("shell.sh", "shell", "a script within a command", "bash -lc, sh -c", "within a container",
     "NCCL_DEBUG=WARN; PYTHONUNBUFFERED=1; hidden_dim=512",
     """#!/bin/bash
export NCCL_DEBUG=WARN
apptainer exec --nv "${BINDS[@]}" --pwd "$PWD" "$IMG" \\
  bash -lc '
    export PYTHONUNBUFFERED=1
    stdbuf -oL python -u -m pkg.train \\
      --hidden_dim 512 \\
    2>&1
  '
""")
form("headless.txt", "csv", "a table with tabs, called otherwise", "anybody", "no column of steps, a tab at the end",
     "total_loss 4 1 46.5 4 40.5; ctc_loss 4 1 9.5 4 8.25",
     "total loss\tscore loss\tctc loss\t\n" +
     "".join(f"{48.5 - 2 * i}\t0.{i}25\t{c}\t\n" for i, c in ((1, 9.5), (2, 9.25), (3, 8.5), (4, 8.25))))
form("decibel.log", "log", "a unit that sticks to its number", "anybody", "dB", "loss 3 1 0.375 3 0.25; Average_PSNR 3 1 18.25 3 19.5",
     "".join(f"<epoch: {i}, lr:1.000e-04> loss: {v}\n<epoch: {i}, Average PSNR : {q}dB>\n"
             for i, v, q in ((1, .375, 18.25), (2, .3125, 18.75), (3, .25, 19.5))))
form("again.log", "log", "two runs of a Trainer in one file", "transformers 4.30", "counted on, which is said", "loss 5 1 1.5 5 0.25",
     "".join(f"{{'loss': {v}, 'learning_rate': 1e-05, 'epoch': {e}}}\n" +
             ("{'train_runtime': 3.5, 'train_loss': 1.25, 'epoch': 1.5}\n" if e == 1.5 else "")
             for v, e in ((1.5, .5), (1.25, 1.0), (1.0, 1.5), (.5, .5), (.25, 1.0))))
form("before.log", "log", "numbers before their epoch's line", "anybody", "an evaluation, then the epoch",
     "train_loss 4 1 1.75 4 1; eval_loss 4 1 0.875 4 0.5; val_acc 4 1 0.55 4 0.7",
     "".join(f"val_loss: {1 - i / 8:.4f} val_acc: {.5 + .05 * i:.2f}\nEpoch {i}: train_loss {2 - i / 4:.4f}\n" for i in (1, 2, 3, 4)))
form("closed.log", "log", "an epoch's line that closes it", "anybody", "nothing else in it",
     "train_loss 4 1 1.75 4 1; eval_loss 4 1 0.875 4 0.5",
     "".join(f"train loss: {2 - i / 4:.4f}\nval loss: {1 - i / 8:.4f}\nEpoch {i}/4 finished\n" for i in (1, 2, 3, 4)))
form("loose.log", "log", "losses without a step beside such with one", "anybody", "of no epoch: not understood",
     "avg_loss 8 1 1.875 8 1; no policy_loss",
     "".join((f"=== Epoch {i // 4 + 1}/2 ===\n" if i % 4 == 0 else "") +
             f"of 8 samples: policy_loss: {.5 - i / 16}, clipped as {i} of them were\n[step {i + 1}] avg_loss={1.875 - i / 8}\n" for i in range(8)))
form("packages.json", "pip", "packages in JSON", "pip 25, conda 24", "pip list --format=json, pip inspect, conda list --json",
     "numpy=1.26.4; torch=2.5.1; rich=13.0", '[{"name": "numpy", "version": "1.26.4"}, {"name": "torch", "version": "2.5.1"}, '
     '{"name": "rich", "version": "13.0"}]\n')
form("exported.txt", "pip", "conda list --export", "conda 24", "-", "numpy=1.26.4; torch=2.5.1",
     "# This file may be used to create an environment using:\n# $ conda create --name <env> --file <this file>\n"
     "# platform: linux-64\nnumpy=1.26.4=py310_0\ntorch=2.5.1=pypi_0\n")
form("needs.txt", "pip", "requirements with options", "pip 25", "--index-url, hashes, markers", "numpy=1.26.4; torch=2.5.1",
     "--index-url https://x\nnumpy==1.26.4 ; python_version >= '3.9' \\\n    --hash=sha256:ab\ntorch==2.5.1 \\\n    --hash=sha256:cd\n")
form("show.txt", "pip", "pip show", "pip 25", "-", "numpy=1.26.4; torch=2.5.1",
     "---\n".join(f"Name: {n}\nVersion: {v}\nSummary: x\nLocation: /usr/lib\n" for n, v in (("numpy", "1.26.4"), ("torch", "2.5.1"))))
form("collected.txt", "pip", "collect_env of vLLM, with npu-smi and CANN", "vLLM 0.9, vllm-ascend 0.9", "the first of a name counts",
     "torch=2.5.1; numpy=1.26.4; HCCL_DETERMINISTIC=true; npu_driver=24.1.rc3; gpu=910B3; cann=8.0.0; no clang",
     "==============================\n        System Info\n==============================\n"
     "OS                           : Ubuntu 22.04.5 LTS (aarch64)\nClang version                : Could not collect\n\n"
     "PyTorch version              : 2.5.1\nCUDA used to build PyTorch   : None\n\n[pip3] numpy==1.26.4\n[pip3] torch==2.5.2\n\n"
     "ENV Variables:\nHCCL_DETERMINISTIC=true\n\nNPU:\n| npu-smi 24.1.rc3                 Version: 24.1.rc3                |\n"
     "| NPU   Name                | Health        | Power(W)    Temp(C)      |\n| 0     910B3               | OK            | 93.7        40           |\n"
     "| 0                         | 0000:C1:00.0  | 0           0    / 0     |\n\n"
     "CANN:\npackage_name=Ascend-cann-toolkit\nversion=8.0.0\narch=aarch64\n")
form("queried.txt", "pip", "nvidia-smi -q", "driver 550.54", "-", "nvidia_driver=550.54.15; cuda=12.4; gpu=NVIDIA A100-SXM4-80GB",
     "==============NVSMI LOG==============\n\nDriver Version                            : 550.54.15\n"
     "CUDA Version                              : 12.4\n\nGPU 00000000:07:00.0\n    Product Name                          : NVIDIA A100-SXM4-80GB\n")
form("probably.txt", "pip", "collect_env that is not sure", "torch 2.5", "cuDNN's file, what it could not collect",
     "torch=2.5.1+cu124; cudnn=9.1.0; gpu=NVIDIA H100 80GB HBM3; no cuda_runtime",
     "Collecting environment information...\nPyTorch version: 2.5.1+cu124\nCUDA runtime version: Could not collect\n"
     "GPU 0: NVIDIA H100 80GB HBM3\ncuDNN version: Probably one of the following:\n/usr/lib/x86_64-linux-gnu/libcudnn.so.9.1.0\n"
     "/usr/lib/x86_64-linux-gnu/libcudnn_ops.so.9.1.0\n[conda] torch                     2.5.0                    pypi_0    pypi\n")
form("wenet.log", "log", "WeNet's console", "WeNet 2", "executor.py; epoch/batch, a line of each rank", "loss 16 0 9.5 700 7.25; eval_loss 2 300 20.5 700 20.5",
     "".join("".join(f"2026-01-30 18:47:00,107 DEBUG TRAIN Batch {e}/{b * 100} loss {9.5 - e - b / 2 + r / 4:.6f} loss_att 10.92 lr 0.00032621 rank {r}\n"
                     for b in (0, 1, 2, 3) for r in (0, 1)) +
             f"2026-01-30 18:47:00,107 DEBUG CV Batch {e}/0 loss 20.5 loss_att 10.92 history loss 19.5 rank 0\n" for e in (0, 1)))
form("pointed.log", "log", "a point between an epoch and its number", "anybody", "Epoch.0", "per_event 3 0 4.5 2 3.5; val/per_event 3 0 2.75 2 2.25",
     "".join(f"2026-11-26 17:00:08,407 - trainer - INFO - ---Epoch.{e} Train Log-Loss per event: {4.5 - e / 2:.6f}. \n"
             f"2026-11-26 17:00:08,408 - trainer - INFO - ---Epoch.{e} Val Log-Loss per event: {2.75 - e / 4:.6f}; \n" for e in (0, 1, 2)))
with open(os.path.join(HERE, "table"), "w", encoding="utf-8") as f:
    for row in sorted(ROWS):
        f.write("\t".join(c or "-" for c in row) + "\n")
