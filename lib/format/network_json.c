#include "format/network.h"
int acc_network_json(const struct acc_network *n, FILE *out, struct acc_err *e){(void)n;(void)out;(void)e;return 0;}
