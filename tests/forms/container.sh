#!/bin/bash
port=$(shuf -i 1-9 -n1)
docker run --rm --gpus all --shm-size=16g -e VLLM_USE_V1=1 --entrypoint python3 $IMAGE -m recipe.main_dapo --note="" --port $port actor.lr=1e-6
