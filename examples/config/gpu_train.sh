#!/bin/bash
# The same model in Megatron-LM: but is it?
export CUBLAS_WORKSPACE_CONFIG=:4096:8
GPUS=8
MODEL_ARGS=(
	--num-layers 2
	--hidden-size 256
	--ffn-hidden-size 704
	--num-attention-heads 8
	--seq-length 512
	--max-position-embeddings 512
	--position-embedding-type rope
	--swiglu
	--normalization RMSNorm
	--norm-epsilon 0.00001
	--untie-embeddings-and-output-weights
	--disable-bias-linear
	--vocab-size 32000
)
TRAINING_ARGS=(
	--micro-batch-size 2
	--global-batch-size 64
	--lr 0.00001
	--lr-decay-style cosine
	--adam-beta1 0.9
	--weight-decay 0.1
	--clip-grad 1.0
	--seed 42
	--bf16
	--deterministic-mode
	--load /data/init
)
torchrun --nproc_per_node "$GPUS" pretrain_gpt.py "${MODEL_ARGS[@]}" "${TRAINING_ARGS[@]}"
