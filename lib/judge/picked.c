/* What the judges read of every record. */
#include "judge/picked.h"

/* Side A, the record itself, side B: so that one that is no pair has the first of them. */
enum { OWN = NSIDE, B = NSIDE + NOWN, N = 2 * NSIDE + NOWN, ALONE = NSIDE + A_KIND };

#define X(name, key) {key, sizeof(key) - 1},
static const struct acc_str alone_keys[] = {PICKED_SIDE(X) PICKED_OWN(X)};
#undef X
#define OWN_KEY(name, key) {key, sizeof(key) - 1},
#define A_KEY(name, key) {"a." key, sizeof("a." key) - 1},
#define B_KEY(name, key) {"b." key, sizeof("b." key) - 1},
static const struct acc_str pair_keys[N] = {
	PICKED_SIDE(A_KEY) PICKED_OWN(OWN_KEY) PICKED_SIDE(B_KEY)};

static bool
is_tensor(const struct acc_val *kind)
{
	return kind != NULL && kind->type == ACC_V_TEXT && acc_str_is(kind->s, "tensor");
}

int
acc_picked_get(struct acc_picked *s, const struct acc_rec *r)
{
	s->pair.key = pair_keys;
	s->pair.n = N;
	s->alone.key = alone_keys;
	s->alone.n = ALONE;
	s->side[ACC_A] = s->v;
	s->own = s->v + OWN;
	s->side[ACC_B] = s->v + B;
	s->is_pair = acc_rec_is(r, "pair");
	if (s->is_pair) {
		int rc = acc_pick_get(&s->pair, r, s->v);
		for (int i = 0; i < 2; i++) {
			s->has[i] = s->own[A_KIND + i] != NULL;
			s->tensor[i] = is_tensor(s->own[A_KIND + i]);
		}
		return rc;
	}
	for (int i = ALONE; i < N; i++)
		s->v[i] = NULL;
	s->has[ACC_A] = true;
	s->tensor[ACC_A] = acc_rec_is(r, "tensor");
	s->has[ACC_B] = s->tensor[ACC_B] = false;
	return acc_pick_get(&s->alone, r, s->v);
}

void
acc_picked_release(struct acc_picked *s)
{
	acc_pick_release(&s->pair);
	acc_pick_release(&s->alone);
}

uint64_t
acc_picked_count(const struct acc_val *shape)
{
	uint64_t n = 0;
	if (shape == NULL || shape->type != ACC_V_INTS || !acc_count(shape->ints, shape->n, &n))
		return 0;
	return n;
}
