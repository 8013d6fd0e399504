_base_ = ['../_base_/default.py']
model = dict(
    type='FasterRCNN',
    backbone=dict(depth=50, norm_cfg=dict(type='BN')),
)
lr = 0.02  # of 16
img_scale = (1333, 800)
train_pipeline = [
    dict(type='Load'),
    dict(type='Resize', scale=img_scale, keep_ratio=True),
]
optim_wrapper = dict(optimizer=dict(type='SGD', lr=lr, weight_decay=1e-4))
