from easydict import EasyDict as edict

config = edict()
config.batch_size = 128
config.lr = 0.2
_C = edict()
_C.SOLVER.BASE_LR = 3e-4
config.val_targets = ['lfw', "agedb_30"]
