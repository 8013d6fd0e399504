/* The filter: records in, the same records with s.* and m.* out, in the same order.
 *
 * What needs no payload is done at once. What does is handed to the meter, whose threads work
 * on several tensors at a time; meanwhile the record waits in a ring of bounded size, and so
 * does every record behind it. */
#include "metric/inlined.h"

#include <math.h>
#include <stdlib.h>

enum { RING = 256, MAX_HELD = 8 << 20, KEEP_HELD = 32 << 10, MAX_SECOND = 4 };

struct slot {
	struct acc_rec rec;
	size_t held;
	bool done;
	bool gradient; /* an incoming gradient of the backward call `call` */
	uint64_t call;
	struct side a, b; /* a alone in a tensor record */
};

struct acc_gauge {
	struct acc_roots *roots;
	struct acc_meter *meter;
	struct acc_gauge_opt opt;
	acc_gauge_fn *emit;
	acc_gauge_trouble_fn *trouble;
	void *arg;

	bool *chosen;               /* per row of acc_metrics */
	const struct acc_second *second[MAX_SECOND]; /* those that the chosen ones need */
	void *state[MAX_SECOND];
	int nsecond;

	struct slot slot[RING];
	size_t head, n, held;
	struct slot now;            /* the record that was put; its rec is borrowed */

	struct acc_map source;      /* id of a source: its task, and MINDSPORE */
	bool seen_payload, seen_md5;
	struct inlined *inlined;    /* once a tensor's payload may come in the stream */

	struct {                    /* of the latest backward call */
		uint64_t call, n;
		double rms;
	} gradient;

	struct acc_reading reading; /* large, therefore here */
	struct acc_subject subject;
	uint64_t bytes;
};

enum { MINDSPORE = 16 };

static int
choose(struct acc_gauge *m, struct acc_err *e)
{
	bool acu = m->opt.preset == ACC_PRESET_MSACCUCMP;
	for (size_t i = 0; i < acc_nmetrics; i++) {
		const struct acc_metric *row = acc_metrics[i];
		bool yes = acu ? row->second != NULL && strncmp(row->name, "m.acu.", 6) == 0
			       : m->opt.n == 0 && row->second == NULL;
		for (size_t k = 0; k < m->opt.n; k++)
			yes |= m->opt.metrics[k] == row;
		m->chosen[i] = yes;
		bool known = row->second == NULL;
		for (int k = 0; k < m->nsecond; k++)
			known |= m->second[k] == row->second;
		if (!yes || known)
			continue;
		if (m->nsecond == MAX_SECOND)
			return acc_fail(e, ACC_ELIMIT, "too many metrics with a second pass");
		m->second[m->nsecond] = row->second;
		m->state[m->nsecond] = calloc(1, row->second->size);
		if (m->state[m->nsecond++] == NULL)
			return acc_fail(e, ACC_ENOMEM, "out of memory");
	}
	return 0;
}

struct acc_gauge *
acc_gauge_open(struct acc_roots *roots, const struct acc_gauge_opt *opt,
	acc_gauge_fn *emit, acc_gauge_trouble_fn *trouble, void *arg, struct acc_err *e)
{
	struct acc_gauge *m = calloc(1, sizeof *m);
	if (m == NULL || (m->chosen = calloc(acc_nmetrics, sizeof *m->chosen)) == NULL) {
		acc_fail(e, ACC_ENOMEM, "out of memory");
		free(m);
		return NULL;
	}
	m->roots = roots;
	m->opt = *opt;
	m->emit = emit;
	m->trouble = trouble;
	m->arg = arg;
	struct acc_meter_opt mo = {.threads = opt->threads, .no_check = opt->no_check,
		.rtol = opt->rtol, .atol = opt->atol};
	if (choose(m, e) == 0)
		m->meter = acc_meter_open(roots, &mo, e);
	if (m->meter == NULL) {
		acc_gauge_close(m);
		return NULL;
	}
	return m;
}

void
acc_gauge_close(struct acc_gauge *m)
{
	if (m == NULL)
		return;
	acc_meter_close(m->meter);
	for (size_t i = 0; i < RING; i++)
		acc_rec_release(&m->slot[i].rec);
	for (int i = 0; i < m->nsecond; i++)
		free(m->state[i]);
	acc_map_release(&m->source);
	inlined_close(m->inlined);
	free(m->chosen);
	free(m);
}

uint64_t
acc_gauge_bytes(const struct acc_gauge *m)
{
	return m->bytes;
}

/* --- what a record is --- */

static int
learn(struct acc_gauge *m, const struct acc_rec *r)
{
	struct acc_str task = acc_get_text(r, "", "task");
	uint64_t v = acc_str_is(task, "tensor")       ? TASK_TENSOR
		     : acc_str_is(task, "md5")        ? TASK_MD5
		     : acc_str_is(task, "statistics") ? TASK_STATS
						      : TASK_UNKNOWN;
	if (acc_str_is(acc_get_text(r, "", "framework"), "mindspore"))
		v |= MINDSPORE;
	struct acc_err e = {0};
	if (acc_roots_add(m->roots, r, &e) < 0)
		m->trouble(m->arg, &e);
	uint64_t *slot = acc_map_put(&m->source, acc_get_text(r, "", "id"), v);
	if (slot == NULL)
		return ACC_ENOMEM;
	*slot = v;
	return 0;
}

static enum side_kind
kind_of(struct acc_str kind)
{
	return kind.n == 0                   ? SIDE_ABSENT
	       : acc_str_is(kind, "tensor") ? SIDE_TENSOR
	       : acc_str_is(kind, "arg")    ? SIDE_ARG
					    : SIDE_OTHER;
}

static void
look_at(struct acc_gauge *m, const struct acc_rec *r, const char *prefix,
	enum side_kind kind, struct side *s)
{
	side_get(r, prefix, kind, s);
	const uint64_t *src = s->src.n == 0 ? NULL : acc_map_get(&m->source, s->src);
	if (src != NULL) {
		s->task = (enum side_task)(*src & ~(uint64_t)MINDSPORE);
		s->mindspore = (*src & MINDSPORE) != 0;
	}
	if (m->inlined != NULL && kind == SIDE_TENSOR && !s->payload && s->err.code == 0)
		inlined_refer(m->inlined, r, s);
	m->seen_payload |= s->payload;
	m->seen_md5 |= kind == SIDE_TENSOR && acc_get(r, prefix, "stat.crc32") != NULL;
}

static void
look(struct acc_gauge *m, const struct acc_rec *r, struct side *a, struct side *b)
{
	if (acc_rec_is(r, "tensor")) {
		look_at(m, r, "", SIDE_TENSOR, a);
		*b = (struct side){.prefix = "", .kind = SIDE_ABSENT};
		return;
	}
	look_at(m, r, "a.", kind_of(acc_get_text(r, "a.", "kind")), a);
	look_at(m, r, "b.", kind_of(acc_get_text(r, "b.", "kind")), b);
}

/* Forget what an earlier run has measured: m.*, and s.* of the sides that are measured now. */
static void
strip(struct acc_rec *r, const struct side *a, const struct side *b)
{
	uint32_t n = 0;
	for (uint32_t i = 0; i < r->n; i++) {
		struct acc_str k = r->f[i].key;
		bool old = acc_str_starts(k, "m.");
		for (int side = 0; side < 2 && !old; side++) {
			const struct side *s = side == 0 ? a : b;
			size_t np = strlen(s->prefix);
			old = s->payload && k.n > np + 2 &&
			      memcmp(k.p, s->prefix, np) == 0 &&
			      memcmp(k.p + np, "s.", 2) == 0;
		}
		if (!old)
			r->f[n++] = r->f[i];
	}
	r->n = n;
}

/* --- writing into a record --- */

static int
put_all(struct acc_gauge *m, struct acc_rec *r, const char *prefix, enum acc_metric_of of)
{
	bool text = m->opt.preset == ACC_PRESET_MSACCUCMP && of == ACC_OF_PAIR;
	int rc = 0;
	for (size_t i = 0; i < acc_nmetrics && rc == 0; i++) {
		const struct acc_metric *row = acc_metrics[i];
		if (row->of != of || !(m->chosen[i] || of == ACC_OF_TENSOR))
			continue;
		for (int k = 0; k < m->nsecond; k++)
			if (m->second[k] == row->second)
				m->subject.second = m->state[k];
		struct acc_val v = row->value(&m->subject);
		char buf[352];
		if (text && v.type == ACC_V_F64) {
			snprintf(buf, sizeof buf, "%.6f", v.f);
			v = acc_ctext(buf);
		} else if (text && v.type == ACC_V_NIL) {
			v = acc_ctext("NaN");
		}
		if (v.type != ACC_V_NIL)
			rc = acc_add(r, prefix, row->name, v);
	}
	return rc;
}

static int
put_mode(struct acc_rec *r, const char *mode)
{
	return acc_add(r, "", "m.mode", acc_ctext(mode));
}

static int
put_skip(struct acc_rec *r, const char *why)
{
	return acc_add(r, "", "m.skip", acc_ctext(why));
}

static int
put_err(struct acc_gauge *m, struct acc_rec *r, const struct side *s, struct acc_err *e)
{
	char text[640];
	if (e->code == 0)
		return 0;
	if (e->where[0] == '\0') {
		struct acc_str name = acc_get_text(r, s->prefix, "name");
		snprintf(e->where, sizeof e->where, "%.*s", ACC_PRS(name));
	}
	acc_err_text(e, text, sizeof text);
	/* Both sides may have a file of this name. */
	struct acc_err said = *e;
	if (s->prefix[0] != '\0')
		snprintf(said.where, sizeof said.where, "%s's %.240s",
			s->prefix[0] == 'a' ? "device" : "bench", e->where);
	m->trouble(m->arg, &said);
	return acc_put(r, s->prefix, "err", acc_ctext(text));
}

static int
put_one(struct acc_gauge *m, struct acc_rec *r, const struct side *s,
	const struct acc_one *one, uint64_t hash)
{
	m->subject = (struct acc_subject){.one = one, .hash = hash};
	m->bytes += one->n * acc_dtypes[s->ref.dtype].size;
	return put_all(m, r, s->prefix, ACC_OF_TENSOR);
}

/* --- pairs without two payloads --- */

static int
put_values(struct acc_gauge *m, struct acc_rec *r)
{
	const struct acc_val *va = acc_get(r, "a.", "value"), *vb = acc_get(r, "b.", "value");
	const struct acc_val none = acc_nil();
	double a, b;
	m->subject = (struct acc_subject){
		.equal = acc_val_eq(va == NULL ? &none : va, vb == NULL ? &none : vb)};
	int rc = put_mode(r, "value");
	if (rc == 0)
		rc = put_all(m, r, "", ACC_OF_VALUE);
	if (rc < 0 || !acc_as_f64(va, &a) || !acc_as_f64(vb, &b))
		return rc;
	/* A NaN or an infinity on one side only is as far off as can be. */
	double d = m->subject.equal ? 0 : isfinite(a) && isfinite(b) ? fabs(a - b) : INFINITY;
	double rel = m->subject.equal ? 0 : isfinite(d) ? d / fabs(b) : INFINITY;
	for (size_t i = 0; i < acc_nmetrics && rc == 0; i++) {
		const char *name = acc_metrics[i]->name;
		if (m->chosen[i] && strcmp(name, "m.max_abs") == 0)
			rc = acc_add(r, "", name, acc_f64(d));
		if (m->chosen[i] && strcmp(name, "m.max_rel") == 0)
			rc = acc_add(r, "", name, acc_f64(rel));
	}
	return rc;
}

/* May two checksums be compared? NULL, or why not. */
static const char *
incomparable(const struct acc_rec *r, const struct side *a, const struct side *b,
	const char *ka, const char *kb)
{
	struct acc_str da = acc_get_text(r, "a.", "dtype"), db = acc_get_text(r, "b.", "dtype");
	if (strcmp(ka, kb) != 0)
		return "checksums of different kinds";
	if (da.n > 0 && db.n > 0 && !acc_str_eq(da, db))
		return "checksums of different dtypes";
	/* MindSpore, and PyTorch before August 2025, take bf16 as float32 before hashing. */
	if (a->mindspore != b->mindspore && acc_dtype_find(da) == ACC_BF16)
		return "checksums of bf16 by recorders that hash it differently";
	return NULL;
}

/* Statistics where both have some, checksums where both have one of a kind. */
static int
put_recorded(struct acc_gauge *m, struct acc_rec *r, const struct side *a,
	const struct side *b, const struct acc_reading *got)
{
	const struct side *side[2] = {a, b};
	struct acc_stats st[2];
	struct acc_str sum[2];
	const char *kind[2], *why = NULL;
	char buf[2][9];
	int n[2], nulls[2], common = 0, rc = 0;
	for (int i = 0; i < 2; i++) {
		n[i] = side_stats(r, side[i], &st[i], &nulls[i]);
		kind[i] = side_checksum(r, side[i], &sum[i], buf[i]);
		if (n[i] == 0 && nulls[i] == 0 && got != NULL && (i == 0 ? got->has_a : got->has_b)) {
			side_stats_of(i == 0 ? &got->a : &got->b, &side[i]->ref, &st[i]);
			n[i] = ACC_NSTAT;
		}
	}
	for (int i = 0; i < ACC_NSTAT; i++)
		common += st[0].has[i] && st[1].has[i];
	bool sums = kind[0] != NULL && kind[1] != NULL;
	if (sums)
		why = incomparable(r, a, b, kind[0], kind[1]);
	m->subject = (struct acc_subject){.sa = &st[0], .sb = &st[1],
		.equal = sums && acc_str_eq(sum[0], sum[1])};
	if (common > 0 || (sums && why == NULL))
		rc = put_mode(r, common > 0 ? "statistics" : "md5");
	if (rc == 0 && common > 0)
		rc = put_all(m, r, "", ACC_OF_STATS);
	if (rc == 0 && sums && why == NULL)
		rc = put_all(m, r, "", ACC_OF_VALUE);
	if (rc < 0 || common > 0 || (sums && why == NULL))
		return rc;
	if (acc_get(r, "a.", "err") != NULL)
		why = "the device's tensor could not be read";
	else if (acc_get(r, "b.", "err") != NULL)
		why = "the bench's tensor could not be read";
	else if (why == NULL && (nulls[0] > 0 || nulls[1] > 0))
		why = "the recorded statistics are null";
	else if (why == NULL)
		why = n[0] == 0 && kind[0] == NULL
			      ? "of the device's tensor neither data nor statistics were recorded"
		      : n[1] == 0 && kind[1] == NULL
			      ? "of the bench's tensor neither data nor statistics were recorded"
			      : "the two recorders left nothing that can be compared";
	return put_skip(r, why);
}

/* --- pairs of two payloads --- */

static void
second_chunk(void *arg, const double *a, const double *b, size_t n)
{
	struct acc_gauge *m = arg;
	for (int i = 0; i < m->nsecond; i++)
		m->second[i]->chunk(m->state[i], a, b, n);
}

static int
put_pair(struct acc_gauge *m, struct slot *s, struct acc_reading *got)
{
	struct acc_rec *r = &s->rec;
	for (int i = 0; i < m->nsecond; i++)
		m->second[i]->begin(m->state[i], got, &s->a.ref, &s->b.ref);
	if (m->nsecond > 0 && side_walk(m->roots, &s->a, &s->b, second_chunk, m, &got->err_a,
				      &got->err_b) < 0) {
		int rc = put_err(m, r, &s->a, &got->err_a);
		if (rc == 0)
			rc = put_err(m, r, &s->b, &got->err_b);
		return rc == 0 ? put_skip(r, "a tensor could not be read again") : rc;
	}
	m->subject = (struct acc_subject){.r = got, .shape = &s->a.ref};
	int rc = put_mode(r, "tensor");
	return rc == 0 ? put_all(m, r, "", ACC_OF_PAIR) : rc;
}

static int
put_tensors(struct acc_gauge *m, struct slot *s, struct acc_reading *got)
{
	struct acc_rec *r = &s->rec;
	uint64_t na = 0, nb = 0;
	char why[80];
	bool known = side_count(r, &s->a, &na) && side_count(r, &s->b, &nb);
	if (known && na != nb) {
		snprintf(why, sizeof why, "element counts differ: %llu and %llu",
			(unsigned long long)na, (unsigned long long)nb);
		return put_skip(r, why);
	}
	if (known && na == 0)
		return put_skip(r, "no elements");
	if (got != NULL && got->has_two)
		return put_pair(m, s, got);
	return put_recorded(m, r, &s->a, &s->b, got);
}

/* Everything is known: fill in the record. got is NULL where nothing had to be read. */
static int
fill(struct acc_gauge *m, struct slot *s, struct acc_reading *got)
{
	struct acc_rec *r = &s->rec;
	/* What was wrong with a reference, else what went wrong in reading. */
	struct acc_err *ea = &s->a.err, *eb = &s->b.err;
	if (got != NULL && ea->code == 0)
		ea = &got->err_a;
	if (got != NULL && eb->code == 0)
		eb = &got->err_b;
	int rc = put_err(m, r, &s->a, ea);
	if (rc == 0)
		rc = put_err(m, r, &s->b, eb);
	if (rc == 0 && got != NULL && got->has_a)
		rc = put_one(m, r, &s->a, &got->a, got->hash_a);
	if (rc == 0 && got != NULL && got->has_b)
		rc = put_one(m, r, &s->b, &got->b, got->hash_b);
	if (rc < 0 || s->a.kind == SIDE_ABSENT || s->b.kind == SIDE_ABSENT)
		return rc;
	if (s->a.kind == SIDE_TENSOR && s->b.kind == SIDE_TENSOR)
		return put_tensors(m, s, got);
	if (s->a.kind == SIDE_ARG && s->b.kind == SIDE_ARG)
		return put_values(m, r);
	if (s->a.kind == SIDE_OTHER || s->b.kind == SIDE_OTHER)
		return 0;
	return put_skip(r, "a tensor on one side, a value on the other");
}

/* --- the ring --- */

static int
emit_done(struct acc_gauge *m)
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

/* One result, if there is one: 1, 0 or < 0. */
static int
take(struct acc_gauge *m, bool wait)
{
	if (acc_meter_take(m->meter, wait, &m->reading) == 0)
		return 0;
	struct slot *s = m->reading.tag;
	const struct acc_one *b = &m->reading.b;
	if (s->gradient && m->reading.has_b) {
		if (m->gradient.call != s->call)
			m->gradient.rms = 0;
		m->gradient.call = s->call;
		m->gradient.n = b->n;
		double rms = b->n == 0 ? 0 : sqrt(acc_sum_value(&b->sumsq) / (double)b->n);
		if (rms > m->gradient.rms)
			m->gradient.rms = rms;
	}
	int rc = fill(m, s, &m->reading);
	s->done = true;
	if (rc == 0)
		rc = emit_done(m);
	return rc < 0 ? rc : 1;
}

/* A free slot with a copy of the record. */
static int
enter(struct acc_gauge *m, const struct acc_rec *r, struct slot **out)
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
	s->done = s->gradient = false;
	m->held += s->held;
	m->n++;
	*out = s;
	return 0;
}

/* Hand on a record with which nothing is left to do. */
static int
pass(struct acc_gauge *m, struct acc_rec *r)
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
	return key.n == 0 ? 0 : acc_hash(key.p, key.n) ^ acc_hash(src.p, src.n) * 31 ^
					(uint64_t)step;
}

/* Gradients that are zero in exact arithmetic (the bias of a key projection under softmax)
 * are rounding noise on both sides. What a backward call sums up into a scalar or a vector is
 * therefore also measured against the gradient that came in. */
static int
least_scale(struct acc_gauge *m, struct slot *s, double *out)
{
	*out = 0;
	struct acc_str io = acc_get_text(&s->rec, "b.", "io");
	if (!acc_str_is(acc_get_text(&s->rec, "b.", "pass"), "backward") || !s->b.payload)
		return 0;
	s->call = call_of(&s->rec);
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
	if (m->gradient.call == s->call && side_count(&s->rec, &s->b, &n) && n < m->gradient.n)
		*out = 0.03 * m->gradient.rms;
	return 0;
}

static int
queue(struct acc_gauge *m, const struct acc_rec *r, struct acc_err *e)
{
	struct slot *s;
	double scale;
	int rc = enter(m, r, &s);
	if (rc < 0)
		return rc;
	look(m, &s->rec, &s->a, &s->b);
	rc = least_scale(m, s, &scale);
	struct acc_operand a = {s->a.src, s->a.payload ? &s->a.ref : NULL};
	struct acc_operand b = {s->b.src, s->b.payload ? &s->b.ref : NULL};
	while (rc >= 0 && (rc = acc_meter_add(m->meter, s, a, b, scale, e)) == 1)
		rc = take(m, true);
	while (rc >= 0 && (rc = take(m, false)) == 1)
		;
	return rc;
}

/* --- presets that follow another tool --- */

static enum side_task
mode_of(const struct acc_gauge *m, const struct side *a, const struct side *b)
{
	enum side_task t = a->task != TASK_UNKNOWN ? a->task : b->task;
	if (t == TASK_STATS && m->seen_md5)
		return TASK_MD5;
	if (t != TASK_UNKNOWN)
		return t;
	return m->seen_payload ? TASK_TENSOR : m->seen_md5 ? TASK_MD5 : TASK_STATS;
}

/* m.equal goes with every preset: of checksums where these are the mode, and of arguments. */
static int
preset_equal(struct acc_rec *r, const struct side *a, const struct side *b, enum side_task mode)
{
	struct acc_str sa, sb;
	char buf[2][9];
	const struct acc_val *va = acc_get(r, "a.", "value"), *vb = acc_get(r, "b.", "value");
	if (mode == TASK_MD5) {
		const char *ka = side_checksum(r, a, &sa, buf[0]);
		const char *kb = side_checksum(r, b, &sb, buf[1]);
		return ka == NULL || kb == NULL
			? 0 : acc_add(r, "", "m.equal", acc_bool(acc_str_eq(sa, sb)));
	}
	if (a->kind != SIDE_ARG || b->kind != SIDE_ARG || va == NULL || vb == NULL)
		return 0;
	return acc_add(r, "", "m.equal", acc_bool(acc_val_eq(va, vb)));
}

static int
by_preset(struct acc_gauge *m, struct acc_rec *r, struct side *a, struct side *b)
{
	static const char *const mode[] = {"", "tensor", "statistics", "md5"};
	struct preset_in in = {.roots = m->roots, .r = r, .a = a, .b = b,
		.mode = mode_of(m, a, b), .err_a = &a->err, .err_b = &b->err};
	if (a->kind == SIDE_ABSENT || a->kind == SIDE_OTHER || b->kind == SIDE_OTHER)
		return 0;
	int rc = put_mode(r, mode[in.mode]);
	if (rc == 0)
		rc = m->opt.preset == ACC_PRESET_PTDBG ? preset_ptdbg(&in)
			: preset_msprobe(&in, m->opt.preset == ACC_PRESET_MSPROBE83);
	if (rc == 0)
		rc = preset_equal(r, a, b, in.mode);
	if (rc == 0)
		rc = put_err(m, r, a, &a->err);
	if (rc == 0)
		rc = put_err(m, r, b, &b->err);
	return rc;
}

/* --- the filter --- */

/* The ring's slots hold records; here is one whose sides are known already. */
static int
measure(struct acc_gauge *m, struct acc_rec *r, struct slot *s, struct acc_err *e)
{
	static const enum acc_metric_preset ours[] = {ACC_PRESET_NONE, ACC_PRESET_MSACCUCMP};
	int rc;
	strip(r, &s->a, &s->b);
	if (acc_rec_is(r, "pair") && m->opt.preset != ours[0] && m->opt.preset != ours[1]) {
		rc = by_preset(m, r, &s->a, &s->b);
	} else if (s->a.payload || s->b.payload) {
		return queue(m, r, e);
	} else { /* nothing to read: done at once, in the record itself */
		s->rec = *r;
		rc = fill(m, s, NULL);
		*r = s->rec;
	}
	return rc < 0 ? rc : pass(m, r);
}

static bool
measurable(const struct acc_rec *r)
{
	return acc_rec_is(r, "pair") || acc_rec_is(r, "tensor");
}

static int
put_now(struct acc_gauge *m, struct acc_rec *r, struct slot *s, struct acc_err *e)
{
	int rc = measurable(r) ? measure(m, r, s, e) : pass(m, r);
	if (rc < 0)
		acc_fail(e, rc, rc == ACC_ELIMIT ? "a record has too many fields"
						 : "out of memory");
	return rc < 0 ? rc : 0;
}

/* Will the payload of this record come in the stream? Then it, and all behind it, must wait. */
static int
expect(struct acc_gauge *m, const struct acc_rec *r, const struct side *s, struct acc_err *e)
{
	if (!inlined_expected(r, s))
		return 0;
	if (m->inlined == NULL && (m->inlined = inlined_open(m->opt.tmpdir, e)) == NULL)
		return ACC_EIO;
	return inlined_expect(m->inlined, r, s, e);
}

int
acc_gauge_put(struct acc_gauge *m, struct acc_rec *r, struct acc_err *e)
{
	struct slot *s = &m->now;
	int rc = acc_rec_is(r, "source") ? learn(m, r) : 0;
	if (rc == 0 && measurable(r)) {
		look(m, r, &s->a, &s->b);
		rc = expect(m, r, &s->a, e);
		if (rc == 0)
			rc = expect(m, r, &s->b, e);
	}
	if (rc < 0)
		return acc_fail(e, rc, "out of memory");
	return m->inlined != NULL ? inlined_keep(m->inlined, r, e) : put_now(m, r, s, e);
}

int
acc_gauge_end(struct acc_gauge *m, struct acc_err *e)
{
	struct acc_rec *r;
	int rc = m->inlined == NULL ? 0 : inlined_ready(m->inlined, m->roots, e);
	while (rc == 0 && m->inlined != NULL && (rc = inlined_next(m->inlined, &r, e)) > 0) {
		if (measurable(r))
			look(m, r, &m->now.a, &m->now.b);
		rc = put_now(m, r, &m->now, e);
	}
	while (rc == 0 && m->n > 0) {
		rc = take(m, true);
		rc = rc > 0 ? 0 : rc;
	}
	return rc < 0 ? acc_fail(e, rc, "out of memory") : 0;
}
