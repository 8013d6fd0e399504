# MindSpore 2.10 on a CPU, plain values: written by tests/torch/profiles
cumsum	forward	f16	19.4	84.8	4
expm1	forward	f16	6.67	120	4
gelu	forward	f16	6.21	31.6	4
layer_norm	forward	f16	1.92	10.9	4
log	forward	f32	88.7	5.9e+03	4
log1p	forward	f16	8.39	119	4
log2	forward	f16	1.73	4.54	4
log2	forward	f32	210	2.25e+04	4
norm	forward	f16	1.82	2.8	3
rsqrt	forward	f16	1.24	3	4
selu	forward	f16	1.12	3.92	4
sigmoid	forward	f16	13.9	240	4
silu	forward	f16	112	1.67e+03	4
softmax	forward	f16	2.39	8.13	4
tanh	forward	f32	372	1.68e+03	4
var	forward	f16	2.44	4.1	4
