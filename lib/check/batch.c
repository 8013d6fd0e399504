/* A batch by itself: whether labels are the tokens one further, or the tokens, and whether padding is left out of the
 * loss. What is the loss's is where labels are not the ignored one and the mask is not 0. */
#include "check/check.h"
#include "acc/say.h"

#include <math.h>
#include <stdlib.h>

enum {
	MOST = 1 << 26, /* elements of a tensor that are read */
	SHIFTS = 4,     /* so far labels are looked for */
	RUN = 4         /* so many equal tokens at the end of a row are padding */
};

static const char *const side_name[2] = {"device", "bench"};

struct batch {
	struct acc_check *ck;
	struct acc_err *e;
	const struct tokens *t[NROLES]; /* NULL: it has none */
	int64_t *v[NROLES];
	int64_t rows, cols, pad, ignored;
	bool has_pad;
	int shift; /* of labels against tokens, where that was told; else SHIFTS + 1 */
};

static int
tell(struct batch *b, bool bad, const char *rule, const char *text)
{
	struct remark *m = text == NULL ? NULL
					: acc_check_say(b->ck, bad ? "rule" : "warning", b->e);
	if (m == NULL)
		return acc_nomem(b->e);
	m->name = b->t[b->t[LABELS] != NULL ? LABELS : TOKENS]->name;
	m->rule = rule;
	m->text = text;
	b->ck->status |= bad;
	return 0;
}

/* All elements as whole numbers; of a mask 1 where it is not 0. */
static int
load(struct batch *b, int role)
{
	const struct tokens *t = b->t[role];
	const uint64_t n = (uint64_t)(b->rows * b->cols);
	const size_t size = acc_dtype_of(t->ref.dtype)->size;
	struct acc_pay *pay = acc_pay_open(b->ck->opt.roots, acc_str(t->src), &t->ref, b->e);
	void *scratch = malloc((size_t)ACC_CHUNK * size);
	const void *chunk;
	int rc = pay == NULL ? -1 : 0;
	b->v[role] = malloc(n * sizeof *b->v[role]);
	if (rc == 0 && (scratch == NULL || b->v[role] == NULL))
		rc = acc_nomem(b->e);
	for (uint64_t at = 0; at < n && rc == 0;) {
		const size_t k = n - at < ACC_CHUNK ? (size_t)(n - at) : ACC_CHUNK;
		rc = acc_pay_read(pay, at, k, scratch, &chunk, b->e);
		for (size_t i = 0; i < k && rc >= 0; i++) {
			double x = acc_load_f64(t->ref.dtype, (const char *)chunk + i * size);
			b->v[role][at + i] = role >= LOSS_MASK ? x != 0 : (int64_t)x;
		}
		rc = rc < 0 ? rc : 0;
		at += k;
	}
	acc_pay_close(pay);
	free(scratch);
	struct tokens *own = &b->ck->tokens[t - b->ck->tokens];
	for (uint64_t i = 0; i < n && rc == 0 && !t->measured; i++) {
		const double x = (double)b->v[role][i];
		own->min = i == 0 ? x : fmin(own->min, x);
		own->max = i == 0 ? x : fmax(own->max, x);
	}
	own->measured = own->measured || rc == 0;
	if (rc < 0 && b->e->code != ACC_ENOMEM)
		acc_err_in(b->e, t->name);
	return rc;
}

static bool
counts(const struct batch *b, int64_t i)
{
	return (b->v[LABELS] == NULL || b->v[LABELS][i] != b->ignored) &&
	       (b->v[LOSS_MASK] == NULL || b->v[LOSS_MASK][i] != 0);
}

/* Of the labels that count, how many are the tokens `shift` further; *n: of how many; *first: the first that is not. */
static int64_t
agree(const struct batch *b, int shift, int64_t *n, int64_t *first)
{
	int64_t same = 0;
	*n = 0;
	*first = -1;
	for (int64_t i = 0; i < b->rows * b->cols; i++) {
		const int64_t at = i % b->cols + shift;
		if (at < 0 || at >= b->cols || !counts(b, i))
			continue;
		++*n;
		if (b->v[LABELS][i] == b->v[TOKENS][i + shift])
			same++;
		else if (*first < 0)
			*first = i;
	}
	return same;
}

/* Where tokens are hidden to be guessed, one token stands at most places that count. */
static bool
hides(const struct batch *b)
{
	int64_t n = 0, counted = 0, best = 0, at = -1;
	/* The token of more than half, if there is one. */
	for (int64_t i = 0; i < b->rows * b->cols; i++)
		if (counts(b, i)) {
			if (n == 0)
				at = b->v[TOKENS][i];
			n += b->v[TOKENS][i] == at ? 1 : -1;
			counted++;
		}
	for (int64_t i = 0; i < b->rows * b->cols; i++)
		best += counts(b, i) && b->v[TOKENS][i] == at;
	return counted > 0 && 2 * best > counted;
}

static int
judge_shift(struct batch *b)
{
	int64_t n, first, best = -1, of = 0, miss = -1, all;
	int shift = 0;
	static const int order[] = {1, 0, 2, -1, 3, -2, 4, -3, -4};
	agree(b, 0, &all, &first);
	for (size_t k = 0; k < sizeof order / sizeof *order; k++) {
		const int64_t same = agree(b, order[k], &n, &first);
		if (n > 0 && 2 * n >= all && same * (of > 0 ? of : 1) > best * n) {
			best = same, of = n, miss = first;
			shift = order[k];
		}
	}
	const char *label = b->t[LABELS]->name, *side = side_name[b->t[LABELS]->side];
	if (of < 2 || hides(b))
		return 0;
	if (2 * best < of)
		return tell(b, false, "shift",
			acc_say(&b->ck->mem,
				"%s of the %s are not the tokens, and not those one further: of %lld"
				" that count %lld are: are they of this batch?",
				label, side, (long long)of, (long long)best));
	if (best < of)
		return tell(b, true, "shift",
			acc_say(&b->ck->mem,
				"%s of the %s are the tokens %d further at %lld of %lld"
				" places that count; not at row %lld, place %lld"
				": the label is %lld, that token %lld",
				label, side, shift, (long long)best, (long long)of,
				(long long)(miss / b->cols), (long long)(miss % b->cols),
				(long long)b->v[LABELS][miss],
				(long long)b->v[TOKENS][miss + shift]));
	b->shift = shift;
	if (shift != 0 && shift != 1)
		return tell(b, true, "shift",
			acc_say(&b->ck->mem,
				"%s of the %s are the tokens %d further, where a model learns the one behind: were"
				" they shifted twice, or the wrong way?",
				label, side, shift));
	return 0;
}

/* Tokens that are equal at the end of a row. */
static int64_t
run_at(const struct batch *b, int64_t row)
{
	const int64_t *t = b->v[TOKENS] + row * b->cols;
	int64_t n = 1;
	while (n < b->cols && t[b->cols - 1 - n] == t[b->cols - 1])
		n++;
	return n;
}

static int
judge_padding(struct batch *b)
{
	int64_t counted = 0, all = 0, other = 0, seen = 0, token = 0, first = -1;
	for (int64_t row = 0; row < b->rows; row++) {
		const int64_t run = run_at(b, row), last = b->v[TOKENS][(row + 1) * b->cols - 1];
		const bool pad = b->has_pad && last == b->pad;
		if (run < RUN && !pad)
			continue;
		if (b->has_pad && !pad) {
			token = other++ == 0 ? last : token;
			continue;
		}
		/* What is at the first place of padding ends the text. */
		for (int64_t i = (row + 1) * b->cols - run + 1;
			i < (row + 1) * b->cols && b->v[LABELS] != NULL; i++) {
			all++;
			if (b->v[LABELS][i] == last && counts(b, i) && counted++ == 0)
				first = i;
		}
		seen = last;
	}
	const char *name = b->t[TOKENS]->name, *side = side_name[b->t[TOKENS]->side];
	if (counted > 0 &&
		tell(b, b->has_pad, "padding",
			acc_say(&b->ck->mem,
				"%s of the %s: of %lld places of padding (token %lld"
				") %lld count in the loss, the first in row %lld"
				", place %lld: labels there should be %lld"
				", or the mask 0%s",
				name, side, (long long)all, (long long)seen, (long long)counted,
				(long long)(first / b->cols), (long long)(first % b->cols),
				(long long)b->ignored,
				b->has_pad ? "" : "; no pad_token_id was given: is it padding?")) <
			0)
		return b->e->code;
	if (other > 0)
		return tell(b, false, "padding",
			acc_say(&b->ck->mem,
				"%s of the %s: %lld rows end in token %lld"
				" again and again, and pad_token_id is %lld"
				": is padding another token than the"
				" data were made with?",
				name, side, (long long)other, (long long)token, (long long)b->pad));
	return 0;
}

static bool
is_table(const struct tokens *t)
{
	return t->read && t->ref.ndim >= 1 && t->ref.ndim <= 2;
}

/* One batch: those of the same side, step, rank and place. */
static int
judge_one(struct batch *b)
{
	const struct acc_ref *ref = &b->t[TOKENS]->ref;
	int rc = 0;
	b->cols = ref->shape[ref->ndim - 1];
	b->rows = ref->ndim == 2 ? ref->shape[0] : 1;
	b->shift = SHIFTS + 1;
	if (b->cols < 2 || b->rows < 1 || b->rows > MOST / b->cols)
		return 0;
	for (int r = 0; r < NROLES && rc == 0; r++) {
		if (b->t[r] != NULL && (!is_table(b->t[r]) || b->t[r]->ref.ndim != ref->ndim ||
					       memcmp(b->t[r]->ref.shape, ref->shape,
						       ref->ndim * sizeof *ref->shape) != 0))
			b->t[r] = NULL;
		if (b->t[r] != NULL)
			rc = load(b, r);
	}
	if (rc == 0 && b->t[LABELS] != NULL)
		rc = judge_shift(b);
	if (rc == 0)
		rc = judge_padding(b);
	b->ck->batches++;
	return rc;
}

static bool
together(const struct tokens *x, const struct tokens *y)
{
	return x->side == y->side && x->step == y->step && x->rank == y->rank &&
	       strcmp(x->place, y->place) == 0;
}

/* Labels that are shifted on one side alone. */
static int
say_sides(struct acc_check *ck, const int shift[2], const char *name, struct acc_err *e)
{
	if (shift[0] == shift[1] || shift[0] > SHIFTS || shift[1] > SHIFTS)
		return 0;
	struct remark *m = acc_check_say(ck, "warning", e);
	if (m == NULL)
		return ACC_ENOMEM;
	m->name = name;
	m->rule = "shift";
	m->text = acc_say(&ck->mem,
		"labels of the device are the tokens %d further, those of the bench %d: a model that shifts them itself"
		" must not be given shifted ones",
		shift[0], shift[1]);
	return m->text == NULL ? acc_nomem(e) : 0;
}

int
acc_check_batches(struct acc_check *ck, struct acc_err *e)
{
	int shift[2] = {SHIFTS + 1, SHIFTS + 1}, rc = 0;
	const char *name = NULL;
	for (size_t i = 0; i < ck->ntokens && ck->opt.roots != NULL && rc == 0; i++) {
		const struct tokens *t = &ck->tokens[i];
		if (t->role != TOKENS || !is_table(t))
			continue;
		struct batch b = {.ck = ck, .e = e};
		for (size_t k = 0; k < ck->ntokens; k++)
			if (b.t[ck->tokens[k].role] == NULL && together(t, &ck->tokens[k]))
				b.t[ck->tokens[k].role] = k == i || ck->tokens[k].role != TOKENS
								  ? &ck->tokens[k]
								  : NULL;
		b.t[TOKENS] = t;
		const double pad = acc_check_known(ck, t->side, "pad_token_id", NAN);
		b.has_pad = pad >= 0;
		b.pad = b.has_pad ? (int64_t)pad : -1;
		b.ignored = (int64_t)acc_check_known(ck, t->side, "ignore_token_id", -100);
		rc = judge_one(&b);
		shift[t->side] = b.shift <= SHIFTS ? b.shift : shift[t->side];
		name = t->name;
		for (int r = 0; r < NROLES; r++)
			free(b.v[r]);
	}
	return rc < 0 ? rc : say_sides(ck, shift, name, e);
}
