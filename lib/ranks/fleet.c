/* The op calls of all ranks of a side, and what is said of their records. */
#include "ranks/fleet.h"
#include "acc/file.h"
#include "acc/say.h"
#include "base/order.h"

#include <stdlib.h>

int
acc_fleet_open(struct acc_fleet *f, struct acc_roots *roots, acc_fleet_get_fn *get, void *arg,
	struct acc_err *e)
{
	*f = (struct acc_fleet){.roots = roots, .get = get, .arg = arg, .strange.line = SIZE_MAX};
	f->scratch = malloc((size_t)ACC_CHUNK * 16);
	return f->scratch == NULL ? acc_nomem(e) : 0;
}

void
acc_fleet_close(struct acc_fleet *f)
{
	free(f->call);
	free(f->rank);
	free(f->verdict);
	free(f->doubt);
	free(f->list);
	acc_ids_release(&f->listed);
	free(f->scratch);
	acc_ids_release(&f->at);
	acc_ids_release(&f->dropped);
	acc_arena_release(&f->mem);
}

/* Where it is, or belongs. */
static size_t
place_of(const struct acc_fleet *f, int64_t rank)
{
	size_t lo = 0;
	ACC_LOWER(lo, f->nrank, f->rank[lo] < rank);
	return lo;
}

size_t
acc_fleet_index(const struct acc_fleet *f, int64_t rank)
{
	const size_t i = place_of(f, rank);
	return i < f->nrank && f->rank[i] == rank ? i : f->nrank;
}

static int
add_rank(struct acc_fleet *f, int64_t rank, struct acc_err *e)
{
	const size_t lo = place_of(f, rank);
	if (lo < f->nrank && f->rank[lo] == rank)
		return 0;
	if (!ACC_ROOM(f->rank, f->cap_rank, f->nrank + 1, e))
		return ACC_ENOMEM;
	int64_t *p = f->rank;
	memmove(p + lo + 1, p + lo, (f->nrank++ - lo) * sizeof *p);
	p[lo] = rank;
	return 0;
}

int
acc_fleet_add(struct acc_fleet *f, size_t line, size_t n, bool backward, struct acc_err *e)
{
	struct acc_rec *r;
	int rc = f->get(f->arg, line, &r, e);
	if (rc < 0)
		return rc;
	struct acc_fleet_call k = {.line = line,
		.n = n,
		.step = acc_get_int(r, "", "step", 0),
		.rank = acc_get_int(r, "", "rank", INT64_MIN),
		.backward = backward};
	if (k.rank < 0)
		return 0;
	struct acc_str op = acc_get_text(r, "", "op");
	k.op = acc_hash(op.p, op.n);
	uint64_t id[3] = {k.op, (uint64_t)acc_get_int(r, "", "call", -1), backward};
	k.key = acc_hash(id, sizeof id);
	id[2] = !backward;
	k.twin = acc_hash(id, sizeof id);
	k.talks = !backward && acc_op_talks(op);
	if (!ACC_ROOM(f->call, f->cap_call, f->ncall + 1, e))
		return ACC_ENOMEM;
	f->call[f->ncall++] = k;
	return add_rank(f, k.rank, e);
}

const struct acc_fleet_verdict *
acc_fleet_at(const struct acc_fleet *f, size_t line)
{
	uint32_t i = acc_ids_get(&f->at, acc_mix(line));
	return i == ACC_NOID ? NULL : &f->verdict[i];
}

static enum acc_rank_rule_id
speaking(const struct acc_fleet *f)
{
	const size_t last = sizeof f->rule - 1, at = f->nrule > last ? last : f->nrule - 1;
	return f->nrule == 0 ? ACC_RULE_collective : (enum acc_rank_rule_id)f->rule[at];
}

/* A record of which a rule that is off has spoken: counted once. */
static int
dropped(struct acc_fleet *f, enum acc_rank_rule_id id, size_t line, struct acc_err *e)
{
	const uint64_t key = acc_mix(line * ACC_RANK_NRULES + id);
	if (acc_ids_get(&f->dropped, key) != ACC_NOID)
		return 0;
	f->silent[id]++;
	return acc_ids_put(&f->dropped, key, 1, false, e);
}

int
acc_fleet_say(struct acc_fleet *f, const struct acc_fleet_verdict *v, struct acc_err *e)
{
	const enum acc_rank_rule_id id = speaking(f);
	const enum acc_rule_use use = v->said == NULL ? ACC_RULE_AS_IS : acc_rule_use(f, id);
	if (use == ACC_RULE_OFF)
		return dropped(f, id, v->line, e);
	const bool demoted = use == ACC_RULE_DOUBTS;
	if (demoted || (v->said != NULL && acc_rank_rules[id].level == ACC_DOUBTS)) {
		f->demoted[id] += demoted;
		return acc_fleet_doubts(f, v->line, v->said, e);
	}
	uint32_t was = acc_ids_get(&f->at, acc_mix(v->line));
	if (was != ACC_NOID) {
		if (f->verdict[was].said == NULL && v->said != NULL) {
			f->verdict[was] = *v;
			f->verdict[was].rule = id;
		}
		return 0;
	}
	void *p = acc_grow(f->verdict, &f->cap_verdict, f->nverdict + 1, sizeof *f->verdict, e);
	if (p == NULL || f->nverdict >= UINT32_MAX - 1)
		return acc_nomem(e);
	f->verdict = p;
	f->verdict[f->nverdict] = *v;
	f->verdict[f->nverdict].rule = id;
	return acc_ids_put(&f->at, acc_mix(v->line), (uint32_t)f->nverdict++, false, e);
}

const char *
acc_fleet_left_out(struct acc_fleet *f, struct acc_err *e)
{
	const char *text = acc_rules_said(&f->mem, acc_rank_rules, acc_nrank_rules, f->use,
		f->silent, f->demoted);
	uint8_t strange[ACC_RANK_NRULES] = {0};
	bool any = false;
	for (int i = 0; i < ACC_RANK_NRULES; i++)
		if (f->silent[i] > 0 && (f->use == NULL || f->use[i] != ACC_RULE_OFF))
			strange[i] = ACC_RULE_OFF, any = true;
	const char *groups = acc_rule_list(&f->mem, strange, ACC_RULE_OFF, f->silent);
	if (text != NULL && groups != NULL && f->strange.line != SIZE_MAX)
		text = acc_say(&f->mem,
			"groups as recorded contradict the ranks, for rank %lld is in none of those that it"
			" recorded: rules that need groups were left out%s%s%s%s",
			(long long)f->strange.rank, any ? ": " : "", groups,
			text[0] == '\0' ? "" : "; ", text);
	if (text == NULL || groups == NULL) {
		acc_nomem(e);
		return NULL;
	}
	return text;
}

const struct acc_fleet_doubt *
acc_fleet_doubted(const struct acc_fleet *f, size_t line)
{
	for (size_t i = 0; i < f->ndoubt; i++)
		if (f->doubt[i].line == line)
			return &f->doubt[i];
	return NULL;
}

int
acc_fleet_doubts(struct acc_fleet *f, size_t line, const char *said, struct acc_err *e)
{
	const enum acc_rank_rule_id id = speaking(f);
	if (said == NULL || acc_fleet_doubted(f, line) != NULL)
		return said == NULL ? acc_nomem(e) : 0;
	if (acc_rule_use(f, id) == ACC_RULE_OFF)
		return dropped(f, id, line, e);
	if (!ACC_ROOM(f->doubt, f->cap_doubt, f->ndoubt + 1, e))
		return ACC_ENOMEM;
	f->doubt[f->ndoubt++] = (struct acc_fleet_doubt){line, said, id};
	return 0;
}

const char *
acc_fleet_ranks(struct acc_fleet *f, const int64_t *rank, size_t n)
{
	enum { MOST = 8 };
	const char *text = "";
	unsigned ranges = 0;
	for (size_t i = 0, end; i < n && text != NULL; i = end) {
		for (end = i + 1; end < n && rank[end] == rank[end - 1] + 1; end++)
			;
		const char *comma = ranges == 0 ? "" : ", ";
		if (++ranges > MOST)
			return acc_arena_printf(&f->mem, "%s, ...", text);
		text = end - i == 1 ? acc_arena_printf(&f->mem, "%s%s%lld", text, comma,
					      (long long)rank[i])
				    : acc_arena_printf(&f->mem, "%s%s%lld-%lld", text, comma,
					      (long long)rank[i], (long long)rank[end - 1]);
	}
	return text;
}

int
acc_fleet_tensor(const struct acc_rec *r, size_t line, struct acc_fleet_tensor *t)
{
	struct acc_ref ref = {.dtype = ACC_NODTYPE};
	struct acc_err e = {0};
	if (!acc_rec_is(r, "tensor"))
		return 0;
	int rc = acc_ref_get(r, "", &ref, &e);
	if (rc == ACC_ENOMEM)
		return rc;
	*t = (struct acc_fleet_tensor){.line = line, .dtype = ref.dtype, .data = rc == 1};
	return rc >= 0 && ref.dtype != ACC_NODTYPE && acc_dtype_of(ref.dtype)->cls != 'C' &&
	       acc_get(r, "", "shape") != NULL && acc_count(ref.shape, ref.ndim, &t->n);
}

/* Where the machine failed, *e says so and < 0; what is not there, or not as it was, is not read: 0. */
static int
unread(const struct acc_err *why, struct acc_err *e)
{
	if (why->code != ACC_ENOMEM && (why->sys == 0 || acc_file_absent(why->sys)))
		return 0;
	if (e != NULL)
		*e = *why;
	return why->code;
}

static int
read_at(struct acc_fleet *f, struct acc_pay *p, enum acc_dtype t, uint64_t first, size_t n,
	double *out, struct acc_err *e)
{
	struct acc_err bad = {0};
	const void *got;
	/* What is compressed is read from its beginning. */
	for (uint64_t at = acc_pay_random(p) ? first : 0; at < first;) {
		size_t k = first - at < ACC_CHUNK ? (size_t)(first - at) : ACC_CHUNK;
		if (acc_pay_read(p, at, k, f->scratch, &got, &bad) < 0)
			return unread(&bad, e);
		at += k;
	}
	for (size_t at = 0; at < n;) {
		size_t k = n - at < ACC_CHUNK ? n - at : ACC_CHUNK;
		if (acc_pay_read(p, first + at, k, f->scratch, &got, &bad) < 0)
			return unread(&bad, e);
		acc_widen(t, got, k, out + at);
		at += k;
	}
	return 1;
}

int
acc_fleet_read(struct acc_fleet *f, const struct acc_fleet_tensor *t, uint64_t first, size_t n,
	double *out, struct acc_err *e)
{
	struct acc_rec *r;
	struct acc_ref ref;
	struct acc_err why = {0};
	int rc = f->get(f->arg, t->line, &r, e);
	if (rc < 0)
		return rc;
	if (!t->data || acc_ref_get(r, "", &ref, &why) != 1 || first > t->n || n > t->n - first)
		return 0;
	struct acc_pay *p = acc_pay_open(f->roots, acc_get_text(r, "", "src"), &ref, &why);
	rc = p == NULL                  ? unread(&why, e)
	     : acc_pay_count(p) != t->n ? 0
					: read_at(f, p, ref.dtype, first, n, out, e);
	acc_pay_close(p);
	return rc;
}
