/* What a record is that comes to be measured. */
#include "metric/measurer.h"
#include "metric/inlined.h"

int
acc_measurer_learn(struct acc_measurer *m, const struct acc_rec *r)
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
	return kind.n == 0                  ? SIDE_ABSENT
	       : acc_str_is(kind, "tensor") ? SIDE_TENSOR
	       : acc_str_is(kind, "arg")    ? SIDE_ARG
					    : SIDE_OTHER;
}

static void
look_at(struct acc_measurer *m, const struct acc_rec *r, const char *prefix, enum side_kind kind,
	struct side *s)
{
	acc_side_get(&m->keys, r, prefix, kind, s);
	const uint64_t *src = s->src.n == 0 ? NULL : acc_map_get(&m->source, s->src);
	if (src != NULL) {
		s->task = (enum side_task)(*src & ~(uint64_t)MINDSPORE);
		s->mindspore = (*src & MINDSPORE) != 0;
	}
	if (m->inlined != NULL && kind == SIDE_TENSOR && !s->payload && s->err.code == 0)
		acc_inlined_refer(m->inlined, r, s);
	m->seen_payload |= s->payload;
	m->seen_md5 |= kind == SIDE_TENSOR && s->has_crc32;
}

int
acc_measurer_read(struct acc_measurer *m, const struct acc_rec *r, struct side *a, struct side *b)
{
	if (acc_rec_is(r, "tensor")) {
		look_at(m, r, "", SIDE_TENSOR, a);
		*b = (struct side){.prefix = "", .kind = SIDE_ABSENT};
		return a->err.code == ACC_ENOMEM ? ACC_ENOMEM : 0;
	}
	look_at(m, r, "a.", kind_of(acc_get_text(r, "a.", "kind")), a);
	look_at(m, r, "b.", kind_of(acc_get_text(r, "b.", "kind")), b);
	return a->err.code == ACC_ENOMEM || b->err.code == ACC_ENOMEM ? ACC_ENOMEM : 0;
}

/* Was it measured, of a side, or the pair? */
static bool
measured(struct acc_str k)
{
	if (acc_is_shared(k))
		k = (struct acc_str){k.p + 3, k.n - 3};
	else if (k.n > 4 && k.p[1] == '.' && (k.p[0] == 'a' || k.p[0] == 'b'))
		k = (struct acc_str){k.p + 2, k.n - 2};
	return k.n >= 2 && (k.p[0] == 'm' || k.p[0] == 's') && k.p[1] == '.';
}

/* Is it one of this side's s.*, which are measured now? */
static bool
of_side(struct acc_str k, const struct side *s)
{
	const size_t np = strlen(s->prefix);
	return s->payload && k.n > np + 2 && k.p[np] == 's' && k.p[np + 1] == '.' &&
	       acc_str_starts(k, s->prefix);
}

int
acc_measurer_strip(struct acc_measurer *m, struct acc_rec *r, const struct side *a,
	const struct side *b)
{
	uint32_t n = 0;
	bool any = false;
	if (r->shape != 0 && acc_ids_get(&m->clean, r->shape) != ACC_NOID)
		return 0;
	for (uint32_t i = 0; i < r->n; i++)
		if (acc_is_shared(r->f[i].key) && measured(r->f[i].key)) {
			int rc = acc_rec_split(r);
			if (rc < 0)
				return rc;
			break;
		}
	for (uint32_t i = 0; i < r->n; i++) {
		struct acc_str k = r->f[i].key;
		any |= measured(k);
		if ((k.n >= 2 && k.p[0] == 'm' && k.p[1] == '.') || of_side(k, a) || of_side(k, b))
			continue;
		if (n < i)
			r->f[n] = r->f[i];
		n++;
	}
	r->n = n;
	if (any)
		r->shape = 0;
	return r->shape == 0 || m->clean.n == 4096
		       ? 0
		       : acc_ids_put(&m->clean, r->shape, 0, true, NULL);
}
