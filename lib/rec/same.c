#include "rec/same.h"

#include <stdlib.h>
#include <string.h>

int
acc_same_open(struct same *s)
{
	s->place = calloc(SAME_PLACES, sizeof *s->place);
	s->stored = calloc(SAME_PLACES, sizeof *s->stored);
	s->state = XXH3_createState();
	return s->place == NULL || s->stored == NULL || s->state == NULL ? -1 : 0;
}

void
acc_same_release(struct same *s)
{
	free(s->place);
	free(s->stored);
	XXH3_freeState(s->state);
}

void
acc_same_forget(struct same *s)
{
	memset(s->place, 0, SAME_PLACES * sizeof *s->place);
}

uint32_t
acc_same_place(struct same *s, XXH128_hash_t hash, uint64_t bytes, bool *before)
{
	const uint32_t i = (uint32_t)(hash.low64 % SAME_PLACES);
	struct same_place *p = &s->place[i];
	*before = p->bytes == bytes && XXH128_isEqual(p->hash, hash);
	*p = (struct same_place){hash, bytes};
	return i;
}
