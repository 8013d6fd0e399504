/* same.h - content that was recorded before in this step, so that it is written once
 *
 * An output is the next op call's input, and often that of several. Two tables of the same places: who
 * records keeps what stands there, and tells the writer only the place; the writer keeps where that lies.
 * Messages come in order, so that both mean the same. What has lost its place to something else is
 * written again. */
#ifndef REC_SAME_H
#define REC_SAME_H

#include <stdbool.h>
#include <stdint.h>
#include <xxhash.h>

enum { SAME_PLACES = 1 << 14, SAME_LEAST = 512 /* bytes that are worth it */ };

struct same {
	struct same_place {
		XXH128_hash_t hash;
		uint64_t bytes; /* 0: nothing stands here */
	} * place;
	XXH3_state_t *state; /* of a tensor that is hashed in pieces */
	/* The writer's: where in the file of the step, and in how many bytes. */
	struct same_stored {
		uint64_t off, len;
		uint32_t crc; /* of what it was before it was compressed */
	} * stored;
};

/* 0 or -1: no memory. */
int acc_same_open(struct same *s);
void acc_same_release(struct same *s);
/* A step begins: its file is empty. */
void acc_same_forget(struct same *s);
/* The place of this content. *before: it stood there already. */
uint32_t acc_same_place(struct same *s, XXH128_hash_t hash, uint64_t bytes, bool *before);

#endif
