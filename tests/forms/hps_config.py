from collections import namedtuple

H = namedtuple('H', 'batch_size, lr')

yelp = H(
    batch_size=128, lr=8e-4)  # a comment
