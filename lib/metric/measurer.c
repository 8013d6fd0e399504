/* The filter: records in, the same records with s.* and m.* out, in the same order.
 *
 * What needs no payload is done at once. What does is handed to the pool, whose threads work
 * on several tensors at a time; meanwhile the record waits in a ring of bounded size, and so
 * does every record behind it. */
#include "metric/measurer.h"
#include "metric/inlined.h"

#include <math.h>
#include <stdlib.h>

static int
choose(struct acc_measurer *m, struct acc_err *e)
{
	bool acu = m->opt.preset == ACC_PRESET_MSACCUCMP;
	for (size_t i = 0; i < acc_nmetrics; i++) {
		const struct acc_metric *row = acc_metrics[i];
		bool yes = acu ? row->second != NULL && strncmp(row->name, "m.acu.", 6) == 0
			       : (m->opt.n == 0 || m->opt.also) && row->second == NULL;
		for (size_t k = 0; k < m->opt.n; k++)
			yes |= m->opt.metrics[k] == row;
		if (yes || row->of == ACC_OF_TENSOR)
			m->rows[row->of].v[m->rows[row->of].n++] = row;
		bool known = row->second == NULL;
		for (int k = 0; k < m->nsecond; k++)
			known |= m->second[k] == row->second;
		if (!yes || known)
			continue;
		if (m->nsecond == MAX_SECOND)
			return acc_fail(e, ACC_ELIMIT, "too many metrics with a second pass");
		m->second[m->nsecond++] = row->second;
	}
	return 0;
}

/* Is nothing chosen for which the longer half of the work must be done? */
static bool
plain(const struct acc_measurer *m)
{
	for (size_t i = 0; i < m->rows[ACC_OF_PAIR].n; i++)
		if (!m->rows[ACC_OF_PAIR].v[i]->plain)
			return false;
	return true;
}

struct acc_measurer *
acc_measurer_open(struct acc_roots *roots, const struct acc_measurer_opt *opt,
	acc_measurer_fn *emit, acc_measurer_trouble_fn *trouble, void *arg, struct acc_err *e)
{
	struct acc_measurer *m = calloc(1, sizeof *m);
	const struct acc_metric **rows = calloc((ACC_OF_VALUE + 1) * acc_nmetrics, sizeof *rows);
	if (m == NULL || rows == NULL) {
		acc_nomem(e);
		free((void *)rows);
		free(m);
		return NULL;
	}
	for (size_t i = 0; i < (ACC_OF_VALUE + 1); i++)
		m->rows[i].v = rows + i * acc_nmetrics;
	m->roots = roots;
	m->opt = *opt;
	m->emit = emit;
	m->trouble = trouble;
	m->arg = arg;
	int rc = choose(m, e);
	m->plain = rc == 0 && plain(m);
	struct acc_pool_opt mo = {.threads = opt->threads,
		.map = true,
		.no_check = opt->no_check,
		.rtol = opt->rtol,
		.atol = opt->atol,
		.plain = m->plain};
	if (rc == 0)
		m->pool = acc_pool_open(roots, &mo, e);
	if (m->pool == NULL) {
		acc_measurer_close(m);
		return NULL;
	}
	return m;
}

void
acc_measurer_close(struct acc_measurer *m)
{
	if (m == NULL)
		return;
	acc_pool_close(m->pool);
	for (size_t i = 0; i < RING; i++) {
		acc_rec_release(&m->slot[i].rec);
		free(m->slot[i].direct);
		acc_second_end(&m->slot[i]);
	}
	acc_side_keys_release(&m->keys);
	acc_ids_release(&m->clean);
	acc_map_release(&m->source);
	acc_inlined_close(m->inlined);
	free((void *)m->rows[0].v);
	free(m);
}

uint64_t
acc_measurer_bytes(struct acc_measurer *m, uint64_t *waiting)
{
	uint64_t n = m->bytes + acc_pool_bytes(m->pool);
	if (n > m->queued) /* views that are larger than their storage */
		n = m->queued;
	*waiting = m->queued - n;
	return n;
}

/* --- the ring --- */

static int
emit_done(struct acc_measurer *m)
{
	int rc = 0;
	while (rc == 0 && m->n > 0 && m->slot[m->head].done) {
		struct slot *s = &m->slot[m->head];
		rc = m->emit(m->arg, &s->rec);
		m->held -= s->held;
		if (s->rec.mem.held > KEEP_HELD) {
			acc_rec_release(&s->rec);
			s->rec = (struct acc_rec){0};
		}
		m->head = (m->head + 1) % RING;
		m->n--;
	}
	return rc < 0 ? rc : 0;
}

/* The payload of a record that came in the stream is needed no more. */
static void
release(struct acc_measurer *m, const struct acc_rec *r, const struct side *a, const struct side *b)
{
	if (m->inlined == NULL)
		return;
	acc_inlined_done(m->inlined, r, a);
	acc_inlined_done(m->inlined, r, b);
}

/* Hand a slot's tensors to the pool. */
static int
hand(struct acc_measurer *m, struct slot *s, double scale, struct acc_err *e)
{
	struct acc_operand a = {.src = s->a.src, .ref = s->a.payload ? &s->a.ref : NULL};
	struct acc_operand b = {.src = s->b.src, .ref = s->b.payload ? &s->b.ref : NULL};
	s->scale = scale;
	a.chunks = m->opt.measured && acc_rec_is(&s->rec, "tensor") && acc_measured_weight(&s->a);
	if (s->hashing != '\0') {
		a = s->hashing == 'a' ? a : b;
		a.hash_only = true;
		a.no_check = s->checked;
		b.ref = NULL;
	}
	return acc_pool_add(m->pool, s, a, b, scale, e);
}

/* --- layouts --- */

/* View one side in the layout in which the content agrees, if there is one. */
static bool
lay(struct acc_measurer *m, struct slot *s)
{
	struct acc_ref view;
	if (acc_layout_find(m->roots, &s->a, &s->b, &s->layout, &view) <= 0)
		return false;
	*(s->layout.side == 'a' ? &s->a.ref : &s->b.ref) = view;
	s->laid = true;
	return true;
}

/* Back to the shapes of the record. */
static void
unlay(struct acc_measurer *m, struct slot *s)
{
	s->laid = false;
	(void)acc_measurer_read(m, &s->rec, &s->a, &s->b); /* its places are known by now */
}

/* A result in row-major order that is so bad that the order may be wrong: is it so in another?
 * 1: that is measured now, too. */
static int
measure_again(struct acc_measurer *m, struct slot *s)
{
	struct acc_err e = {0};
	if (m->opt.preset != ACC_PRESET_NONE || s->direct != NULL || !m->reading.has_two ||
		acc_layout_right(acc_layout_far(&m->reading)) || !lay(m, s))
		return 0;
	s->direct = malloc(sizeof *s->direct);
	if (s->direct == NULL)
		return ACC_ENOMEM;
	*s->direct = m->reading;
	int rc = hand(m, s, s->scale, &e);
	return rc < 0 ? rc : 1;
}

/* The result in another layout, confirmed by all of the content or given up. 1: row-major order
 * is still to be measured. */
static int
confirm(struct acc_measurer *m, struct slot *s)
{
	struct acc_err e = {0};
	double direct = s->direct != NULL ? acc_layout_far(s->direct) : INFINITY;
	bool is = m->reading.has_two &&
		  acc_layout_is(acc_layout_far(&m->reading), direct, m->reading.two.n);
	if (!is)
		unlay(m, s);
	if (s->direct == NULL)
		return is ? 0 : hand(m, s, s->scale, &e) < 0 ? ACC_ENOMEM : 1;
	/* Each tensor alone stays as it is: its hash is that of its own order. */
	if (is) {
		s->direct->two = m->reading.two;
		s->direct->scale = m->reading.scale;
	}
	m->reading = *s->direct;
	free(s->direct);
	s->direct = NULL;
	return 0;
}

/* The content of one side was hashed. 1: it is another, and both are measured now. */
static int
compare_hashes(struct acc_measurer *m, struct slot *s)
{
	struct acc_err e = {0};
	acc_measured_hashed(s, &m->reading);
	if (!s->equal)
		return hand(m, s, s->scale, &e) < 0 ? ACC_ENOMEM : 1;
	acc_measured_reading(m, s, &m->reading);
	return 0;
}

/* One result, if there is one: 1, 0 or < 0. */
static int
take(struct acc_measurer *m, bool wait)
{
	while (wait && m->opt.idle != NULL && !acc_pool_wait(m->pool, 0.25))
		m->opt.idle(m->arg);
	if (acc_pool_take(m->pool, wait, &m->reading) == 0)
		return 0;
	struct slot *s = m->reading.tag;
	const struct acc_one *b = &m->reading.b;
	int again = 0;
	if (s->second != NULL) {
		m->reading = s->second->got;
	} else if (s->hashing != '\0') {
		again = compare_hashes(m, s);
	} else if (!s->preset) {
		again = s->laid ? confirm(m, s) : measure_again(m, s);
		again = again == 0 ? acc_second_begin(m, s) : again;
	}
	if (again != 0)
		return again;
	if (s->gradient && m->reading.has_b) {
		if (m->gradient.call != s->call)
			m->gradient.rms = 0;
		m->gradient.call = s->call;
		m->gradient.n = b->n;
		double rms = b->n == 0 ? 0 : acc_sum_rms(&b->sumsq, b->n);
		if (rms > m->gradient.rms)
			m->gradient.rms = rms;
	}
	int rc = s->preset ? acc_measurer_preset_end(m, s) : acc_measurer_fill(m, s, &m->reading);
	acc_second_end(s);
	release(m, &s->rec, &s->a, &s->b);
	m->bytes += s->bytes;
	s->done = true;
	if (rc == 0)
		rc = emit_done(m);
	return rc < 0 ? rc : 1;
}

/* A free slot with a copy of the record. */
static int
enter(struct acc_measurer *m, const struct acc_rec *r, struct slot **out)
{
	while (m->n == RING || (m->n > 0 && m->held > MAX_HELD)) {
		int rc = take(m, true);
		if (rc < 0)
			return rc;
	}
	struct slot *s = &m->slot[(m->head + m->n) % RING];
	int rc = acc_rec_copy(&s->rec, r);
	if (rc < 0)
		return rc;
	s->held = s->rec.mem.held + s->rec.cap * sizeof *s->rec.f;
	s->done = s->gradient = s->few = s->laid = s->preset = s->equal = false;
	s->hashing = '\0';
	s->call = 0;
	s->reach.is = false;
	m->held += s->held;
	m->n++;
	*out = s;
	return 0;
}

/* Hand on a record with which nothing is left to do. */
static int
pass(struct acc_measurer *m, struct acc_rec *r)
{
	struct slot *s;
	if (m->n == 0) {
		int rc = m->emit(m->arg, r);
		return rc < 0 ? rc : 0;
	}
	int rc = enter(m, r, &s);
	if (rc < 0)
		return rc;
	s->done = true;
	return emit_done(m);
}

/* --- payload --- */

static uint64_t
call_of(const struct acc_rec *r)
{
	struct acc_str key = acc_get_text(r, "b.", "key"), src = acc_get_text(r, "b.", "src");
	int64_t step = acc_get_int(r, "b.", "step", -1);
	return key.n == 0 ? 0
			  : acc_hash(key.p, key.n) ^ acc_hash(src.p, src.n) * 31 ^ (uint64_t)step;
}

/* What backward calls take and make; and behind them, what is clipped and goes to the optimizer. Is
 * it of a backward call? */
static bool
may_be_gradient(struct acc_measurer *m, struct slot *s)
{
	int64_t step = acc_get_int(&s->rec, "b.", "step", -1);
	struct acc_str io = acc_get_text(&s->rec, "b.", "io");
	if (acc_str_is(acc_get_text(&s->rec, "b.", "pass"), "backward")) {
		m->back = true;
		m->back_step = step;
		return true;
	}
	s->few = m->back && m->back_step == step && !acc_str_is(io, "out");
	return false;
}

/* Gradients that are zero in exact arithmetic (the bias of a key projection under softmax)
 * are rounding noise on both sides. What a backward call sums up into a scalar or a vector is
 * therefore also measured against the gradient that came in. */
static int
least_scale(struct acc_measurer *m, struct slot *s, double *out)
{
	*out = 0;
	struct acc_str io = acc_get_text(&s->rec, "b.", "io");
	if (!s->b.payload || !may_be_gradient(m, s))
		return 0;
	s->call = call_of(&s->rec);
	s->few = s->call != 0;
	s->gradient = s->call != 0 && acc_str_is(io, "in");
	if (s->call == 0 || !acc_str_is(io, "out") || s->b.ref.ndim > 1)
		return 0;
	for (;;) { /* until no incoming gradient of this call waits for its result */
		bool waits = false;
		for (size_t i = 0; i < m->n; i++) {
			const struct slot *t = &m->slot[(m->head + i) % RING];
			waits |= !t->done && t->gradient && t->call == s->call;
		}
		if (!waits)
			break;
		int rc = take(m, true);
		if (rc <= 0)
			return rc;
	}
	uint64_t n;
	if (m->gradient.call == s->call && acc_side_count(&s->b, &n) && n < m->gradient.n)
		*out = 0.03 * m->gradient.rms;
	return 0;
}

/* A slot of its own for a record that the pool's threads work on. */
static int
enter_payload(struct acc_measurer *m, const struct acc_rec *r, struct slot **out)
{
	int rc = enter(m, r, out);
	if (rc < 0)
		return rc;
	struct slot *s = *out;
	rc = acc_measurer_read(m, &s->rec, &s->a, &s->b);
	if (rc < 0)
		return rc;
	s->bytes = (s->a.payload ? s->a.ref.len : 0) + (s->b.payload ? s->b.ref.len : 0);
	m->queued += s->bytes;
	return 0;
}

/* Nothing has to be read. */
static int
settled(struct acc_measurer *m, struct slot *s)
{
	acc_measured_reading(m, s, &m->reading);
	int rc = acc_measurer_fill(m, s, &m->reading);
	m->bytes += s->bytes;
	s->done = true;
	return rc < 0 ? rc : emit_done(m);
}

static int
queue(struct acc_measurer *m, const struct acc_rec *r, const struct known known[2],
	struct acc_err *e)
{
	struct slot *s;
	double scale;
	int rc = enter_payload(m, r, &s);
	if (rc < 0)
		return rc;
	rc = least_scale(m, s, &scale);
	if (rc >= 0 && m->opt.preset == ACC_PRESET_NONE && s->a.payload && s->b.payload &&
		acc_measurer_unequal(s))
		lay(m, s);
	if (rc >= 0)
		acc_measured_settle(m, s, known);
	if (s->equal)
		return rc < 0 ? rc : settled(m, s);
	while (rc >= 0 && (rc = hand(m, s, scale, e)) == 1)
		rc = take(m, true);
	while (rc >= 0 && (rc = take(m, false)) == 1)
		;
	return rc;
}

/* As another tool does: two tensors by one of the pool's threads, */
static int
queue_preset(struct acc_measurer *m, const struct acc_rec *r, struct acc_err *e)
{
	struct slot *s;
	int rc = enter_payload(m, r, &s);
	if (rc < 0)
		return rc;
	s->preset = true;
	rc = acc_measurer_preset_begin(m, s);
	while (rc >= 0 && (rc = acc_pool_add_task(m->pool, acc_measurer_preset_run, s, e)) == 1)
		rc = take(m, true);
	while (rc >= 0 && (rc = take(m, false)) == 1)
		;
	return rc;
}

/* anything else at once, in the record itself. */
static int
preset_now(struct acc_measurer *m, struct acc_rec *r, struct slot *s)
{
	s->rec = *r;
	int rc = acc_measurer_preset_begin(m, s);
	if (rc > 0) {
		acc_measurer_preset_run(s);
		rc = acc_measurer_preset_end(m, s);
	}
	*r = s->rec;
	release(m, r, &s->a, &s->b);
	return rc < 0 ? rc : pass(m, r);
}

/* --- the filter --- */

/* The ring's slots hold records; here is one whose sides are known already. */
static int
measure(struct acc_measurer *m, struct acc_rec *r, struct slot *s, struct acc_err *e)
{
	static const enum acc_metric_preset ours[] = {ACC_PRESET_NONE, ACC_PRESET_MSACCUCMP};
	struct known known[2];
	acc_measured_read(m, r, &s->a, &s->b, known);
	int rc = acc_measurer_strip(m, r, &s->a, &s->b);
	if (rc < 0)
		return rc;
	if (acc_rec_is(r, "pair") && m->opt.preset != ours[0] && m->opt.preset != ours[1])
		return s->a.payload && s->b.payload ? queue_preset(m, r, e) : preset_now(m, r, s);
	if (s->a.payload || s->b.payload)
		return queue(m, r, known, e);
	/* Nothing to read: done at once, in the record itself. */
	s->rec = *r;
	rc = acc_measurer_fill(m, s, NULL);
	*r = s->rec;
	return rc < 0 ? rc : pass(m, r);
}

static bool
measurable(const struct acc_rec *r)
{
	return acc_rec_is(r, "pair") || acc_rec_is(r, "tensor");
}

static int
put_now(struct acc_measurer *m, struct acc_rec *r, struct slot *s, struct acc_err *e)
{
	int rc = measurable(r) ? measure(m, r, s, e) : pass(m, r);
	return rc < 0 ? acc_rec_fail(e, rc) : 0;
}

/* Will the payload of this record come in the stream? Then it, and all behind it, must wait. */
static int
expect(struct acc_measurer *m, const struct acc_rec *r, const struct side *s, struct acc_err *e)
{
	if (!acc_inlined_expected(s))
		return 0;
	if (m->inlined == NULL &&
		(m->inlined = acc_inlined_open(m->opt.tmpdir, m->roots, e)) == NULL)
		return ACC_EIO;
	return acc_inlined_expect(m->inlined, r, s, e);
}

/* Measure the records that were kept, the oldest first, as long as their payload is there; all
 * of them if no more will come. */
static int
advance(struct acc_measurer *m, bool last, struct acc_err *e)
{
	struct slot *s = &m->now;
	struct acc_rec *r;
	int rc;
	while ((rc = acc_inlined_peek(m->inlined, &r, e)) > 0) {
		if (measurable(r)) {
			rc = acc_measurer_read(m, r, &s->a, &s->b);
			if (rc < 0)
				return acc_rec_fail(e, rc);
			if (!last && (acc_inlined_waits(m->inlined, r, &s->a) ||
					     acc_inlined_waits(m->inlined, r, &s->b)))
				return 0;
		}
		acc_inlined_pop(m->inlined);
		rc = put_now(m, r, s, e);
		if (rc < 0)
			return rc;
	}
	return rc;
}

/* A data record. Its bytes end here; what is not measured here is passed on. */
static int
data(struct acc_measurer *m, struct acc_rec *r, struct acc_err *e)
{
	struct acc_rd *rd = m->opt.in == NULL ? NULL : acc_in_rd(m->opt.in);
	bool known = false;
	int rc = m->inlined == NULL ? 0 : acc_inlined_store(m->inlined, r, rd, &known, e);
	if (rc == 0 && !known && rd != NULL)
		rc = acc_rd_whole(rd, &r, e);
	if (rc < 0)
		return rc;
	if (!known)
		return m->inlined == NULL ? pass(m, r) : acc_inlined_keep(m->inlined, r, e);
	if (rc > 0)
		rc = advance(m, false, e);
	while (rc == 0 && m->queued - m->bytes > MAX_WAITING && m->n > 0) {
		rc = take(m, true);
		rc = rc > 0 ? 0 : rc;
	}
	return rc;
}

int
acc_measurer_put(struct acc_measurer *m, struct acc_rec *r, struct acc_err *e)
{
	struct slot *s = &m->now;
	int rc = acc_rec_is(r, "source") ? acc_measurer_learn(m, r) : 0;
	if (rc == 0 && measurable(r)) {
		rc = acc_measurer_read(m, r, &s->a, &s->b);
		if (rc == 0)
			rc = expect(m, r, &s->a, e);
		if (rc == 0)
			rc = expect(m, r, &s->b, e);
	}
	if (rc == 0 && acc_rec_is(r, "data"))
		rc = data(m, r, e);
	else if (rc == 0)
		rc = m->inlined != NULL ? acc_inlined_keep(m->inlined, r, e) : put_now(m, r, s, e);
	return rc < 0 ? acc_rec_fail(e, rc) : 0;
}

int
acc_measurer_end(struct acc_measurer *m, struct acc_err *e)
{
	int rc = m->inlined == NULL ? 0 : advance(m, true, e);
	while (rc == 0 && m->n > 0) {
		rc = take(m, true);
		rc = rc > 0 ? 0 : rc;
	}
	return rc < 0 ? acc_rec_fail(e, rc) : 0;
}
