import ml_collections


def get_config():
  config = ml_collections.ConfigDict()
  config.batch_size = 4096
  config.optimizer = ml_collections.ConfigDict()
  config.optimizer.lr = 3e-4
  return config
