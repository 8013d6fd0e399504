/* together.h - byte shuffles that move the lanes of 32 bits that a mask of 4 names together */
#ifndef ACC_KERNEL_TOGETHER_H
#define ACC_KERNEL_TOGETHER_H

#include <stdint.h>

enum { Z = 0x80 }; /* a zero */
static const _Alignas(16) uint8_t acc_together[16][16] = {
	{Z, Z, Z, Z, Z, Z, Z, Z, Z, Z, Z, Z, Z, Z, Z, Z},
	{0, 1, 2, 3, Z, Z, Z, Z, Z, Z, Z, Z, Z, Z, Z, Z},
	{4, 5, 6, 7, Z, Z, Z, Z, Z, Z, Z, Z, Z, Z, Z, Z},
	{0, 1, 2, 3, 4, 5, 6, 7, Z, Z, Z, Z, Z, Z, Z, Z},
	{8, 9, 10, 11, Z, Z, Z, Z, Z, Z, Z, Z, Z, Z, Z, Z},
	{0, 1, 2, 3, 8, 9, 10, 11, Z, Z, Z, Z, Z, Z, Z, Z},
	{4, 5, 6, 7, 8, 9, 10, 11, Z, Z, Z, Z, Z, Z, Z, Z},
	{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, Z, Z, Z, Z},
	{12, 13, 14, 15, Z, Z, Z, Z, Z, Z, Z, Z, Z, Z, Z, Z},
	{0, 1, 2, 3, 12, 13, 14, 15, Z, Z, Z, Z, Z, Z, Z, Z},
	{4, 5, 6, 7, 12, 13, 14, 15, Z, Z, Z, Z, Z, Z, Z, Z},
	{0, 1, 2, 3, 4, 5, 6, 7, 12, 13, 14, 15, Z, Z, Z, Z},
	{8, 9, 10, 11, 12, 13, 14, 15, Z, Z, Z, Z, Z, Z, Z, Z},
	{0, 1, 2, 3, 8, 9, 10, 11, 12, 13, 14, 15, Z, Z, Z, Z},
	{4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, Z, Z, Z, Z},
	{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15},
};

#endif
