"""The families of networks that make.py records as two programs, and what can be wrong of the device's."""
from cells import ACCUM_BUGS, RNN_BUGS, accum, rnn
from decoder import LLAMA_BUGS, MOE_BUGS, llama, moe
from parts import Case
from planes import RESNET_BUGS, TCN_BUGS, UNET_BUGS, resnet, tcn, unet
from rows import BERT_BUGS, VIT_BUGS, bert, vit

FAMILIES = {"resnet": (resnet, RESNET_BUGS), "unet": (unet, UNET_BUGS), "tcn": (tcn, TCN_BUGS), "vit": (vit, VIT_BUGS),
            "bert": (bert, BERT_BUGS), "llama": (llama, LLAMA_BUGS), "moe": (moe, MOE_BUGS), "rnn": (rnn, RNN_BUGS),
            "accum": (accum, ACCUM_BUGS)}


def built(family, seed, side, bug):
    """The case and the program of a side."""
    c = Case(family, seed, bug)
    bench, device = FAMILIES[family][0](c)
    return c, (bench if side == "bench" else device)(c)
