import argparse

parser = argparse.ArgumentParser()
parser.add_argument('--lr', type=float, default=0.1)
parser.add_argument('--dataset', help='cifar10, or cifar100',
                    default='cifar10')
parser.add_argument('-a', '--use-amp', action='store_true')
parser.add_argument('--dir', default=os.getcwd())
