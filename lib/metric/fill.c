/* What is written into a record: the fields of a side, of a pair, or why there are none. */
#include "acc/say.h"
#include "metric/measurer.h"

#include <math.h>
#include <stdio.h>

extern const struct acc_metric acc_metric_max_abs, acc_metric_max_rel;

/* The shape of a record of this one and one more key, which stands where no other does: many records get the same ones,
 * and are not looked at again. */
static uint64_t
shape_with(uint64_t shape, const char *key)
{
	const uint64_t h = (shape + (uintptr_t)key) * UINT64_C(0x9e3779b97f4a7c15);
	return shape == 0 ? 0 : h ^ h >> 29;
}

/* A field that is not there yet. Names of metrics last. */
static int
add(struct acc_rec *r, const char *prefix, const char *key, const struct acc_val *v)
{
	const uint64_t shape = r->shape;
	if (prefix[0] != '\0' || v->type > ACC_V_F64)
		return acc_add(r, prefix, key, *v);
	/* Member by member: the whole would have to wait for what has just been written. */
	int rc = acc_rec_push(r, &(struct acc_field){.key = acc_str(key),
					 .v = {.type = v->type, .n = v->n, .u = v->u}});
	r->shape = shape_with(shape, key);
	return rc;
}

static int
put_all(struct acc_measurer *m, struct acc_rec *r, const char *prefix, enum acc_metric_of of,
	const struct second *second)
{
	bool text = m->opt.preset == ACC_PRESET_MSACCUCMP && of == ACC_OF_PAIR;
	int rc = 0;
	for (size_t i = 0; i < m->rows[of].n && rc == 0; i++) {
		const struct acc_metric *row = m->rows[of].v[i];
		for (int k = 0; second != NULL && k < m->nsecond; k++)
			if (m->second[k] == row->second)
				m->subject.second = second->state[k];
		struct acc_val v = row->value(&m->subject);
		char buf[352];
		if (text && v.type == ACC_V_F64) {
			snprintf(buf, sizeof buf, "%.6f", v.f);
			v = acc_ctext(buf);
		} else if (text && v.type == ACC_V_NIL) {
			v = acc_ctext("NaN");
		}
		if (v.type != ACC_V_NIL)
			rc = add(r, prefix, row->name, &v);
		if (rc == 0 && v.type == ACC_V_TEXT && row->said != NULL) {
			snprintf(buf, sizeof buf, "%s.msg", row->name);
			v = row->said(&m->subject);
			rc = add(r, prefix, buf, &v);
		}
	}
	return rc;
}

static int
put_mode(struct acc_rec *r, const char *mode)
{
	static const char key[] = "m.mode";
	const uint64_t shape = r->shape;
	int rc = acc_rec_push(r, &(struct acc_field){.key = ACC_STR(key), .v = acc_ctext(mode)});
	r->shape = shape_with(shape, key);
	return rc;
}

static int
put_skip(struct acc_rec *r, const char *why)
{
	return acc_add(r, "", "m.skip", acc_ctext(why));
}

static int
put_err(struct acc_measurer *m, struct acc_rec *r, const struct side *s, struct acc_err *e)
{
	if (e->code == 0)
		return 0;
	if (e->where[0] == '\0') {
		struct acc_str name = acc_get_text(r, s->prefix, "name");
		snprintf(e->where, sizeof e->where, "%.*s", ACC_PRS(name));
	}
	/* Both sides may have a file of this name. */
	struct acc_err said = *e;
	if (s->prefix[0] != '\0')
		snprintf(said.where, sizeof said.where, "%s's %.240s",
			s->prefix[0] == 'a' ? "device" : "bench", e->where);
	m->trouble(m->arg, &said);
	return acc_put_err(r, s->prefix, e);
}

static int
put_one(struct acc_measurer *m, struct acc_rec *r, const struct side *s, const struct acc_one *one,
	uint64_t hash)
{
	m->subject = (struct acc_subject){.one = one, .hash = hash};
	return put_all(m, r, s->prefix, ACC_OF_TENSOR, NULL);
}

/* Of gradients, which may be sums of others: a few elements, little-endian. */
static int
put_few(struct acc_rec *r, const struct side *s, const float *few)
{
	uint8_t le[4 * ACC_NFEW];
	uint64_t n;
	if (!acc_side_count(s, &n) || acc_dtype_of(s->ref.dtype)->cls != 'F')
		return 0;
	if (n > ACC_NFEW)
		n = ACC_NFEW;
	for (uint32_t i = 0, bits; i < n; i++) {
		memcpy(&bits, &few[i], sizeof bits);
		for (int k = 0; k < 4; k++)
			le[4 * i + (unsigned)k] = (uint8_t)(bits >> 8 * k);
	}
	struct acc_val v = {.type = ACC_V_BIN, .s = {(char *)le, (uint32_t)(4 * n)}};
	return acc_add(r, s->prefix, "s.few", v);
}

/* --- pairs without two payloads --- */

static int
put_values(struct acc_measurer *m, struct acc_rec *r)
{
	const struct acc_val *va = acc_get(r, "a.", "value"), *vb = acc_get(r, "b.", "value");
	const struct acc_val none = acc_nil();
	double a, b;
	m->subject = (struct acc_subject){
		.equal = acc_val_eq(va == NULL ? &none : va, vb == NULL ? &none : vb)};
	int rc = put_mode(r, "value");
	if (rc == 0)
		rc = put_all(m, r, "", ACC_OF_VALUE, NULL);
	if (rc < 0 || !acc_as_f64(va, &a) || !acc_as_f64(vb, &b))
		return rc;
	/* A NaN or an infinity on one side only is as far off as can be; equal ones are equal (behaviour polygraphy-inf). */
	double d = m->subject.equal ? 0 : isfinite(a) && isfinite(b) ? fabs(a - b) : INFINITY;
	double rel = m->subject.equal ? 0 : isfinite(d) ? d / fabs(b) : INFINITY;
	const struct acc_val vd = acc_f64(d), vrel = acc_f64(rel);
	for (size_t i = 0; i < m->rows[ACC_OF_PAIR].n && rc == 0; i++) {
		const struct acc_metric *row = m->rows[ACC_OF_PAIR].v[i];
		if (row == &acc_metric_max_abs)
			rc = add(r, "", row->name, &vd);
		if (row == &acc_metric_max_rel)
			rc = add(r, "", row->name, &vrel);
	}
	return rc;
}

/* May two checksums be compared? NULL, or why not. */
static const char *
incomparable(const struct acc_rec *r, const struct side *a, const struct side *b, const char *ka,
	const char *kb)
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

/* Did accfold find no layout of its parts? */
static bool
is_unlaid(const struct acc_rec *r, const char *side)
{
	return acc_str_is(acc_get_text(r, side, "fold"), "Unknown()");
}

/* Are its parts summands, whose statistics are not those of the sum? */
static bool
is_summed(const struct acc_rec *r, const char *side)
{
	return acc_glob("*Partial(sum)*", acc_get_text(r, side, "fold"));
}

/* Statistics where both have some, checksums where both have one of a kind. */
static int
put_recorded(struct acc_measurer *m, struct acc_rec *r, const struct side *a, const struct side *b,
	const struct acc_reading *got)
{
	const struct side *side[2] = {a, b};
	struct acc_stats st[2] = {a->stats, b->stats};
	struct acc_str sum[2];
	const char *kind[2], *why = NULL;
	char buf[2][9];
	int n[2] = {a->nstats, b->nstats}, common = 0, rc = 0;
	for (int i = 0; i < 2; i++) {
		kind[i] = acc_side_checksum(side[i], &sum[i], buf[i]);
		if (n[i] == 0 && side[i]->nulls == 0 && got != NULL &&
			(i == 0 ? got->has_a : got->has_b)) {
			acc_side_stats_of(i == 0 ? &got->a : &got->b, &side[i]->ref, &st[i]);
			n[i] = ACC_NSTAT;
		}
	}
	for (int i = 0; i < ACC_NSTAT; i++)
		common += st[0].has[i] && st[1].has[i];
	bool sums = kind[0] != NULL && kind[1] != NULL;
	/* What a container keeps beside its bytes is for who reads them: two that differ say only that
	 * some bit does, which is no measure of anything; two that are equal say that all is, unless a
	 * side's bytes were read and are others. */
	if (sums && a->sum_key == NULL && b->sum_key == NULL)
		sums = common == 0 && acc_str_eq(sum[0], sum[1]) &&
		       acc_get(r, "a.", "err") == NULL && acc_get(r, "b.", "err") == NULL;
	if (sums)
		why = incomparable(r, a, b, kind[0], kind[1]);
	m->subject = (struct acc_subject){.sa = &st[0],
		.sb = &st[1],
		.equal = sums && acc_str_eq(sum[0], sum[1])};
	if (common > 0 || (sums && why == NULL))
		rc = put_mode(r, common > 0 ? "statistics" : "md5");
	if (rc == 0 && common > 0)
		rc = put_all(m, r, "", ACC_OF_STATS, NULL);
	if (rc == 0 && sums && why == NULL)
		rc = put_all(m, r, "", ACC_OF_VALUE, NULL);
	if (rc < 0 || common > 0 || (sums && why == NULL))
		return rc;
	if (acc_get(r, "a.", "err") != NULL)
		why = "the device's tensor could not be read";
	else if (acc_get(r, "b.", "err") != NULL)
		why = "the bench's tensor could not be read";
	else if (why == NULL && (is_unlaid(r, "a.") || is_unlaid(r, "b.")))
		why = "how its parts lie on the ranks is not known";
	else if (why == NULL &&
		 ((a->nulls > 0 && is_summed(r, "a.")) || (b->nulls > 0 && is_summed(r, "b."))))
		why = "the ranks have summands of it, and their sum was not recorded";
	else if (why == NULL && (a->nulls > 0 || b->nulls > 0))
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

/* The layout that was confirmed. A part of a packed tensor is what the record speaks of then. */
static int
put_layout(const struct acc_measurer *m, struct acc_rec *r, const struct slot *s,
	const struct acc_reading *got)
{
	const struct acc_ref *a = &s->a.ref, *b = &s->b.ref;
	const struct acc_ref *view = s->layout.side == 'a' ? a : b;
	const char *prefix = s->layout.side == 'a' ? "a." : "b.";
	char text[320] = "a.reshape";
	bool same = a->ndim == b->ndim &&
		    (a->ndim == 0 || memcmp(a->shape, b->shape, a->ndim * sizeof *a->shape) == 0);
	if (!s->laid && (m->opt.preset != ACC_PRESET_NONE || same ||
				!acc_layout_right(acc_layout_far(got))))
		return 0;
	if (s->laid)
		acc_layout_text(&s->layout, text, sizeof text);
	int rc = acc_add(r, "", "m.layout", acc_ctext(text));
	if (rc == 0 && s->laid && s->layout.padded != NULL)
		rc = acc_add(r, "", "m.padded", acc_ctext(s->layout.padded));
	if (rc < 0 || !s->laid || s->layout.part_dim < 0)
		return rc;
	/* How many elements the whole has, which its shape does not say any more. */
	const struct acc_val *whole = acc_get(r, prefix, "shape");
	uint64_t n;
	if (whole != NULL && whole->type == ACC_V_INTS && acc_count(whole->ints, whole->n, &n))
		rc = acc_add(r, "", "m.whole", acc_uint(n));
	if (rc < 0)
		return rc;
	rc = acc_put(r, prefix, "shape", acc_ints(view->shape, view->ndim));
	if (rc == 0)
		rc = acc_put(r, prefix, "stride", acc_ints(view->stride, view->ndim));
	const int64_t block[3] = {view->block.axis, view->block.n, view->block.stride};
	acc_del(r, prefix, "block");
	if (rc == 0 && view->block.n > 0)
		rc = acc_put(r, prefix, "block", acc_ints(block, 3));
	return rc < 0 ? rc : acc_put(r, prefix, "offset", acc_uint(view->first));
}

static int
put_pair(struct acc_measurer *m, struct slot *s, struct acc_reading *got)
{
	struct acc_rec *r = &s->rec;
	if (s->second != NULL && s->second->rc < 0) {
		int rc = put_err(m, r, &s->a, &got->err_a);
		if (rc == 0)
			rc = put_err(m, r, &s->b, &got->err_b);
		return rc == 0 ? put_skip(r, "a tensor could not be read again") : rc;
	}
	m->subject = (struct acc_subject){.r = got, .shape = &s->a.ref};
	int rc = put_mode(r, "tensor");
	if (rc == 0)
		rc = put_layout(m, r, s, got);
	rc = rc == 0 ? acc_measurer_part(m, s, got) : rc;
	rc = rc == 0 ? acc_reach_put(r, &s->reach) : rc;
	return rc == 0 ? put_all(m, r, "", ACC_OF_PAIR, s->second) : rc;
}

bool
acc_measurer_unequal(const struct slot *s)
{
	uint64_t na, nb;
	return acc_side_count(&s->a, &na) && acc_side_count(&s->b, &nb) && na != nb;
}

/* Is one side in a private format that the other is not in? Its elements are in another order. */
static bool
other_tiles(const struct slot *s)
{
	return !acc_str_eq(s->a.layout, s->b.layout) &&
	       (acc_layout_private(s->a.layout) || acc_layout_private(s->b.layout));
}

static int
put_tensors(struct acc_measurer *m, struct slot *s, struct acc_reading *got)
{
	struct acc_rec *r = &s->rec;
	uint64_t na = 0, nb = 0;
	bool known = acc_side_count(&s->a, &na) && acc_side_count(&s->b, &nb);
	if (got != NULL && got->has_two && !s->laid && other_tiles(s) &&
		!acc_layout_right(acc_layout_far(got)))
		return put_skip(r, "a tensor is in a device's private format, as stored");
	if (known && na != nb) {
		struct acc_arena mem = {0};
		const char *why = acc_say(&mem, "element counts differ: %llu and %llu",
			(unsigned long long)na, (unsigned long long)nb);
		const int rc = why == NULL ? ACC_ENOMEM : acc_put_said(r, "", "m.skip", &mem, why);
		acc_arena_release(&mem);
		return rc;
	}
	if (known && na == 0)
		return put_skip(r, "no elements");
	if (got != NULL && got->has_two)
		return put_pair(m, s, got);
	return put_recorded(m, r, &s->a, &s->b, got);
}

int
acc_measurer_fill(struct acc_measurer *m, struct slot *s, struct acc_reading *got)
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
		rc = s->equal ? acc_measured_put(r, "a.", &s->known)
			      : put_one(m, r, &s->a, &got->a, got->hash_a);
	if (rc == 0 && got != NULL && got->has_a && got->nchunks > 0)
		rc = acc_measured_put_chunks(r, got);
	if (rc == 0 && got != NULL && got->has_b)
		rc = s->equal ? acc_measured_put(r, "b.", &s->known)
			      : put_one(m, r, &s->b, &got->b, got->hash_b);
	if (rc == 0 && got != NULL && got->has_two && s->few) {
		rc = put_few(r, &s->a, got->few_a);
		if (rc == 0)
			rc = put_few(r, &s->b, got->few_b);
	}
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

/* --- presets that follow another tool --- */

static enum side_task
mode_of(const struct acc_measurer *m, const struct side *a, const struct side *b)
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
		const char *ka = acc_side_checksum(a, &sa, buf[0]);
		const char *kb = acc_side_checksum(b, &sb, buf[1]);
		return ka == NULL || kb == NULL
			       ? 0
			       : acc_add(r, "", "m.equal", acc_bool(acc_str_eq(sa, sb)));
	}
	if (a->kind != SIDE_ARG || b->kind != SIDE_ARG || va == NULL || vb == NULL)
		return 0;
	return acc_add(r, "", "m.equal", acc_bool(acc_val_eq(va, vb)));
}

int
acc_measurer_preset_begin(struct acc_measurer *m, struct slot *s)
{
	static const char *const mode[] = {"", "tensor", "statistics", "md5"};
	struct side *a = &s->a, *b = &s->b;
	s->in = (struct preset_in){.roots = m->roots,
		.r = &s->rec,
		.a = a,
		.b = b,
		.preset = m->opt.preset,
		.mode = mode_of(m, a, b),
		.check = !m->opt.no_check,
		.err_a = &a->err,
		.err_b = &b->err};
	if (a->kind == SIDE_ABSENT || a->kind == SIDE_OTHER || b->kind == SIDE_OTHER)
		return 0;
	int rc = put_mode(&s->rec, mode[s->in.mode]);
	return rc < 0 ? rc : 1;
}

void
acc_measurer_preset_run(void *slot)
{
	struct preset_in *in = &((struct slot *)slot)->in;
	in->rc = in->preset == ACC_PRESET_PTDBG
			 ? acc_preset_ptdbg(in)
			 : acc_preset_msprobe(in, in->preset == ACC_PRESET_MSPROBE83);
}

int
acc_measurer_preset_end(struct acc_measurer *m, struct slot *s)
{
	struct side *a = &s->a, *b = &s->b;
	int rc = s->in.rc;
	if (rc == 0)
		rc = preset_equal(&s->rec, a, b, s->in.mode);
	if (rc == 0)
		rc = put_err(m, &s->rec, a, &a->err);
	if (rc == 0)
		rc = put_err(m, &s->rec, b, &b->err);
	return rc;
}
