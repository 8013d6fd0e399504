/* A data mapping: rows that belong together because the user says so; and what is to be said of
 * rules that did not do what they are for. */
#include "align/map.h"

static struct acc_str
key(const uint64_t *h)
{
	return (struct acc_str){(const char *)h, sizeof *h};
}

static struct rule *
rule_of(struct acc_maps *ru, const struct acc_map *m, uint64_t name)
{
	const uint64_t *at = acc_map_get(m, key(&name));
	return at == NULL ? NULL : &ru->v[*at];
}

/* The records of the bench that the mapping names, by rule. */
struct found {
	uint32_t op, item; /* + 1; 0: not there */
};

static int
find(struct acc_maps *ru, const struct acc_joined *j, struct acc_map *at, struct acc_err *e)
{
	for (uint32_t i = 0; i < j->nb; i++) {
		const struct acc_align_call *op = &j->b->op[j->bop[i]];
		for (uint32_t k = op->first; k < op->first + op->n; k++) {
			uint64_t name = j->b->item[k].name;
			if (rule_of(ru, &ru->to, name) != NULL &&
				acc_map_put(at, key(&name), (uint64_t)j->bop[i] << 32 | k) == NULL)
				return acc_nomem(e);
		}
	}
	return 0;
}

static void
part(struct acc_joined *j, struct acc_align_item *x, struct acc_align_item *other)
{
	(void)j;
	if (x->mate != ACC_NOMATE)
		other[x->mate].mate = ACC_NOMATE;
	x->mate = ACC_NOMATE;
}

static void
row(struct acc_joined *j, uint32_t aop, uint32_t item, uint64_t found, bool items)
{
	uint32_t bop = (uint32_t)(found >> 32), other = (uint32_t)found;
	if (j->a->op[aop].mate == ACC_NOMATE && j->b->op[bop].mate == ACC_NOMATE)
		acc_mate_ops(j, aop, bop, "rule", 1);
	if (!items)
		return;
	part(j, &j->a->item[item], j->b->item);
	part(j, &j->b->item[other], j->a->item);
	acc_mate_items(j, item, other);
	if (j->a->op[aop].how == NULL) {
		j->a->op[aop].how = "rule";
		j->a->op[aop].sure = 1;
	}
}

int
acc_maps_rows(struct acc_maps *ru, struct acc_joined *j, bool items, struct acc_err *e)
{
	struct acc_map at = {0};
	if (ru->row.n == 0)
		return 0;
	int rc = find(ru, j, &at, e);
	for (uint32_t i = 0; i < j->na && rc == 0; i++) {
		const struct acc_align_call *op = &j->a->op[j->aop[i]];
		for (uint32_t k = op->first; k < op->first + op->n; k++) {
			struct rule *r = rule_of(ru, &ru->row, j->a->item[k].name);
			if (r == NULL)
				continue;
			if (r->to == NULL) {
				r->hits = 1;
				part(j, &j->a->item[k], j->b->item);
				continue;
			}
			uint64_t name = acc_hash(r->to, strlen(r->to));
			const uint64_t *found = acc_map_get(&at, key(&name));
			if (found == NULL)
				continue;
			r->hits = 1;
			row(j, j->aop[i], k, *found, items);
		}
	}
	acc_map_release(&at);
	return rc;
}

int
acc_maps_report(const struct acc_maps *ru, acc_maps_fn *fn, void *arg)
{
	char text[600], where[300];
	int rc = 0;
	for (uint32_t i = 0; i < ru->n && rc >= 0; i++) {
		const struct rule *r = &ru->v[i];
		const char *what = r->twice       ? "names a row that another line names, too"
				   : r->hits == 0 ? "was never used"
				   : r->kind == RULE_CELL && r->hits > 1 ? "fits several names"
									 : NULL;
		if (what == NULL || (r->common && r->hits == 0))
			continue;
		where[0] = '\0';
		if (r->where != NULL)
			snprintf(where, sizeof where, "%s: line %u: ", r->where, r->line);
		snprintf(text, sizeof text, "%s'%s' to '%s' %s", where, r->from,
			r->to == NULL ? "" : r->to, what);
		rc = fn(arg, r->from, text);
	}
	return rc;
}
