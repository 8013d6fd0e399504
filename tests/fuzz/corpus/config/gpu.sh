#!/bin/bash
# The same model in Megatron-LM.
# shellcheck disable=all
export CUDA_DEVICE_MAX_CONNECTIONS=${CUDA_DEVICE_MAX_CONNECTIONS:-1}
export CUBLAS_WORKSPACE_CONFIG=:4096:8 NCCL_ALGO=Ring
OUT=${1:-"out"}
GPUS=8
NODES=1
WORLD=$(($GPUS * $NODES))
TP=1 PP=1
SIZE=small # or large
DTYPE="bf16"

case $SIZE in
small | tiny)
	LAYERS=2; HIDDEN=256 ;;
*)
	LAYERS=32 HIDDEN=4096
	;;
esac

MODEL_ARGS=(
    --num-layers $LAYERS
    --hidden-size $HIDDEN
    --ffn-hidden-size 704   # what multiple_of 64 gives
    --num-attention-heads 8
    --seq-length 512
    --max-position-embeddings 512
    --position-embedding-type rope
    --attention-dropout 0.0
    --hidden-dropout 0.0
    --swiglu
    --normalization RMSNorm
    --norm-epsilon 0.00001
    --untie-embeddings-and-output-weights
    --disable-bias-linear
    # --use-flash-attn
)

TRAINING_ARGS="
    --micro-batch-size 2 \
    --global-batch-size 64 \
    --lr 0.00001 --min-lr 0.0 \
    --lr-decay-style cosine \
    --adam-beta1 0.9 --adam-beta2 0.95 \
    --weight-decay 0.1 --clip-grad 1.0 \
    --seed 42 \
    --${DTYPE}
"
if [[ "$DTYPE" == "fp8" ]] && [ "$NODES" -gt 1 ]; then
	EXTRA+=("--fp8-format hybrid")
elif [ ! -z "$DTYPE" ]; then
	EXTRA+=("--grad-reduce-in-bf16" "--split '99,1,0'")
else
	EXTRA+=(--fp16)
fi
if [ -f env.sh ]; then
	EXTRA+=(--manual-gc)
fi
while [ $# -gt 0 ]; do
	LAYERS=$2
	shift 2
done
cat <<END >note.txt
torchrun wrong.py --num-layers 99
END

torchrun --nproc_per_node $GPUS --nnodes=$NODES \
    --master_addr "$(hostname -i)" \
    pretrain_gpt.py \
    "${MODEL_ARGS[@]}" \
    $TRAINING_ARGS \
    ${EXTRA[@]} \
    --vocab-size 32000 --tokenizer-type NullTokenizer \
    --tensor-model-parallel-size $TP --pipeline-model-parallel-size $PP \
    --save "$OUT/ckpt" --load $CHECKPOINT $MORE_ARGS $@ 2>&1 | tee log.txt
