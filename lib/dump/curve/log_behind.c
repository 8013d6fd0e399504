/* Numbers that are printed before the line that says of what epoch they are:
 *
 *	val_loss: 0.5
 *	Epoch 1: train_loss 0.7
 *	val_loss: 0.4
 *	Epoch 2: train_loss 0.6
 *
 * The first stand before any place, the last before the last, and each place has such before it. */
#include "dump/curve/limits.h"
#include "dump/curve/log_place.h"

void
acc_log_note_behind(struct log_behind *b, const struct log_pair *f, int n, bool found)
{
	if (b->on)
		return;
	b->named = b->named || found;
	for (int i = 0; i < b->n && found; i++) {
		b->early[i].closed += b->early[i].open;
		b->early[i].unclosed += !b->early[i].open;
		b->early[i].open = false;
	}
	for (int k = 0; k < n && !found; k++) {
		const uint64_t key = acc_hash(f[k].key.p, f[k].key.n);
		int i = 0;
		while (i < b->n && b->early[i].key != key)
			i++;
		if (i == b->n && !b->named && i < LOG_EARLY)
			b->early[b->n++].key = key;
		if (i < b->n)
			b->early[i].open = true;
	}
}

void
acc_log_end_behind(struct log_behind *b)
{
	int n = 0;
	for (int i = 0; i < b->n; i++)
		if (b->early[i].closed >= LOG_BEHIND_LEAST && b->early[i].unclosed == 0 &&
			!b->early[i].open)
			b->early[n++] = b->early[i];
	b->n = n;
	b->on = n > 0;
}

bool
acc_log_is_behind(const struct log_behind *b, const struct log_pair *f, int n)
{
	bool found = false;
	for (int i = 0; i < b->n && b->on && n > 0; i++)
		found = found || b->early[i].key == acc_hash(f[0].key.p, f[0].key.n);
	return found;
}

int
acc_log_hold_pairs(struct log_reader *g, const char *mode, const struct log_pair *f, int n,
	struct acc_err *e)
{
	int rc = 0;
	for (int i = 0; i < n && rc == 0; i++) {
		char buf[160];
		const struct acc_str tag = {buf,
			(uint32_t)snprintf(buf, sizeof buf, "%s%.*s", mode,
				f[i].key.n < 100 ? (int)f[i].key.n : 100, f[i].key.p)};
		rc = acc_log_hold(g, tag, &f[i].v, e);
	}
	return rc < 0 ? rc : 1;
}
