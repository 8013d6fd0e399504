python3 tools/train.py --config_file a.yml -lr 0.1 MODEL.DEVICE_ID "('3')" OUTPUT_DIR out
