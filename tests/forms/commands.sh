python prepare.py --lr 3e-4
CUDA_VISIBLE_DEVICES=0 nohup ns-train splatfacto --lr 1e-4 \
    --epochs 5 --machine.num-devices 2 > log 2>&1 &
