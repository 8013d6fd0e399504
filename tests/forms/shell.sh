#!/bin/bash
export NCCL_DEBUG=WARN
apptainer exec --nv "${BINDS[@]}" --pwd "$PWD" "$IMG" \
  bash -lc '
    export PYTHONUNBUFFERED=1
    stdbuf -oL python -u -m pkg.train \
      --hidden_dim 512 \
    2>&1
  '
