/* Applying what the user says of names. Each text is renamed once, however often it occurs. */
#include "align/map.h"

#include <stdlib.h>

/* --- modules and parameters --- */

static int
put(struct acc_buf *out, const char *p, size_t n, struct acc_err *e)
{
	return acc_buf_add(out, p, n) < 0 ? acc_nomem(e) : 0;
}

static struct acc_str
bytes(const struct acc_buf *b)
{
	return (struct acc_str){(const char *)b->p, (uint32_t)b->n};
}

/* The replacement, with \1 to \9 and & as sed has them. */
static int
expand(struct acc_buf *out, const struct rule *r, struct acc_str s, struct acc_err *e)
{
	int rc = 0;
	for (const char *to = r->to; *to != '\0' && rc == 0; to++) {
		int k = *to == '&'                                    ? 0
			: *to == '\\' && to[1] >= '0' && to[1] <= '9' ? *++to - '0'
								      : -1;
		if (k < 0) {
			rc = put(out, *to == '\\' && to[1] != '\0' ? ++to : to, 1, e);
			continue;
		}
		struct acc_str group = acc_regex_number(r->re, s, (uint32_t)k);
		if (group.p != NULL)
			rc = put(out, group.p, group.n, e);
	}
	return rc;
}

static int
cannot(const struct rule *r, struct acc_str s, const struct acc_err *bad, struct acc_err *e)
{
	char why[128];
	acc_err_text(bad, why, sizeof why);
	return acc_fail(e, bad->code, "s/%.60s/ on '%.*s': %s", r->from, (int)(s.n < 80 ? s.n : 80),
		s.p, why);
}

/* s with the first or every match replaced, into out. 1: there was one. */
static int
substitute(const struct rule *r, struct acc_str s, struct acc_buf *out, struct acc_err *e)
{
	bool any = false;
	uint32_t at = 0;
	int rc = 0;
	while (rc == 0 && at <= s.n && (!any || r->everywhere)) {
		struct acc_err bad = {0};
		rc = acc_regex_find_from(r->re, s, at, &bad);
		if (rc < 0)
			return cannot(r, s, &bad, e);
		if (rc == 0)
			break;
		any = true;
		struct acc_str whole = acc_regex_number(r->re, s, 0);
		uint32_t from = (uint32_t)(whole.p - s.p), to = from + whole.n;
		rc = put(out, s.p + at, from - at, e);
		if (rc == 0)
			rc = expand(out, r, s, e);
		/* An empty match: go on behind the next character. */
		if (rc == 0 && whole.n == 0 && to < s.n)
			rc = put(out, s.p + to, 1, e);
		at = to + (whole.n == 0);
	}
	if (rc == 0 && at < s.n)
		rc = put(out, s.p + at, s.n - at, e);
	return rc < 0 ? rc : any;
}

/* A cell mapping names path and class, or a part of it. */
static int
cell(const struct rule *r, const char *s, struct acc_buf *out, struct acc_err *e)
{
	const char *at = strstr(s, r->from);
	if (at == NULL)
		return 0;
	int rc = put(out, s, (size_t)(at - s), e);
	if (rc == 0)
		rc = put(out, r->to, strlen(r->to), e);
	at += strlen(r->from);
	if (rc == 0)
		rc = put(out, at, strlen(at), e);
	return rc < 0 ? rc : 1;
}

static int
prefix(const struct rule *r, const char *s, struct acc_buf *out, struct acc_err *e)
{
	size_t n = strlen(r->from);
	if (strncmp(s, r->from, n) != 0)
		return 0;
	int rc = put(out, r->to, strlen(r->to), e);
	if (rc == 0)
		rc = put(out, s + n, strlen(s + n), e);
	return rc < 0 ? rc : 1;
}

/* `text` under every rule that fits, in order, into *now; `Module.` or `Cell.` before it stays out
 * of it and becomes Module. 1: something has changed. */
static int
rename_text(struct acc_maps *ru, struct acc_str text, struct acc_buf *now, struct acc_buf *next,
	struct acc_err *e)
{
	int changed = acc_str_starts(text, "Cell."), rc;
	uint32_t skip = changed ? 5 : acc_str_starts(text, "Module.") ? 7 : 0;
	uint64_t module = acc_path_hash(text);
	now->n = 0;
	rc = put(now, text.p + skip, text.n - skip, e);
	for (uint32_t i = 0; i < ru->n && rc >= 0; i++) {
		struct rule *r = &ru->v[i];
		if (r->kind != RULE_CELL && r->kind != RULE_PREFIX && r->kind != RULE_REGEX)
			continue;
		next->n = 0;
		if (put(now, "", 1, e) < 0)
			return ACC_ENOMEM;
		now->n--;
		const char *s = (const char *)now->p;
		rc = r->kind == RULE_CELL     ? cell(r, s, next, e)
		     : r->kind == RULE_PREFIX ? prefix(r, s, next, e)
					      : substitute(r, bytes(now), next, e);
		if (rc <= 0)
			continue;
		struct acc_buf swap = *now;
		*now = *next;
		*next = swap;
		r->hits += r->hits == 0 || (r->hits == 1 && r->last != module);
		r->last = module;
		changed = 1;
	}
	if (rc < 0 || skip == 0)
		return rc < 0 ? rc : changed;
	next->n = 0;
	rc = put(next, "Module.", 7, e);
	if (rc == 0)
		rc = put(next, (char *)now->p, now->n, e);
	struct acc_buf swap = *now;
	*now = *next;
	*next = swap;
	return rc < 0 ? rc : changed;
}

int
acc_maps_path(struct acc_maps *ru, struct acc_str *text, struct acc_arena *mem, struct acc_err *e)
{
	struct acc_buf now = {0}, next = {0};
	int rc = rename_text(ru, *text, &now, &next, e);
	char *p = rc <= 0 ? NULL : acc_arena_copy(mem, now.p, now.n);
	if (rc > 0 && p == NULL)
		rc = acc_nomem(e);
	if (rc > 0)
		*text = (struct acc_str){p, (uint32_t)now.n};
	acc_buf_release(&now);
	acc_buf_release(&next);
	return rc;
}

static int
put_tag(struct acc_rec *r, struct acc_str tag, struct acc_str now)
{
	int rc = 0;
	if (acc_get(r, "", "tag.raw") == NULL)
		rc = acc_put(r, "", "tag.raw", acc_text(tag));
	return rc < 0 ? rc : acc_put(r, "", "tag", acc_text(now));
}

/* A curve that is of no parameter: its whole name, by what this user says of it alone. */
static int
rename_curve(struct acc_maps *ru, struct acc_rec *r, struct acc_str tag, struct acc_err *e)
{
	struct acc_buf out = {0};
	struct acc_str now = tag;
	int rc = 0;
	for (uint32_t i = 0; i < ru->n && rc >= 0; i++) {
		struct rule *x = &ru->v[i];
		out.n = 0;
		if (x->common)
			continue;
		if (x->kind == RULE_PREFIX && acc_str_is(now, x->from))
			rc = put(&out, x->to, strlen(x->to), e) < 0 ? ACC_ENOMEM : 1;
		else
			rc = x->kind == RULE_REGEX ? substitute(x, now, &out, e) : 0;
		if (rc <= 0)
			continue;
		now = bytes(&out);
		now.p = acc_arena_copy(&r->mem, now.p, now.n);
		rc = now.p == NULL ? acc_nomem(e) : 1;
		x->hits = 1;
	}
	if (rc >= 0 && !acc_str_eq(now, tag)) {
		rc = put_tag(r, tag, now);
		rc = rc < 0 ? acc_rec_fail(e, rc) : 1;
	}
	acc_buf_release(&out);
	return rc;
}

int
acc_maps_tag(struct acc_maps *ru, struct acc_rec *r, struct acc_err *e)
{
	struct acc_str tag = acc_get_text(r, "", "tag"), name = tag, column = {NULL, 0};
	const char *slash = tag.n == 0 ? NULL : memchr(tag.p, '/', tag.n);
	if (slash == NULL || !acc_word_in("metric monitor", acc_get_text(r, "", "class")))
		return tag.n == 0 ? 0 : rename_curve(ru, r, tag, e);
	name = (struct acc_str){slash + 1, tag.n - (uint32_t)(slash + 1 - tag.p)};
	const char *last = name.n == 0 ? NULL : memrchr(name.p, '/', name.n);
	if (last != NULL) {
		column = (struct acc_str){last, name.n - (uint32_t)(last - name.p)};
		name.n = (uint32_t)(last - name.p);
	}
	int rc = acc_maps_path(ru, &name, &r->mem, e);
	if (rc <= 0)
		return rc;
	const char *now = acc_arena_printf(&r->mem, "%.*s/%.*s%.*s", (int)(slash - tag.p), tag.p,
		ACC_PRS(name), ACC_PRS(column));
	rc = now == NULL ? ACC_ENOMEM : put_tag(r, tag, acc_str(now));
	return rc < 0 ? acc_rec_fail(e, rc) : 1;
}

/* --- layers --- */

/* The class of each module that any text names, by the hash of its path. */
static int
classes(const struct acc_names *names, struct acc_map *class, struct acc_err *e)
{
	for (uint32_t i = 0; i < names->n; i++) {
		struct acc_str c, path, text = names->v[i].text;
		if (!acc_str_starts(text, "Module.") && !acc_str_starts(text, "Cell."))
			continue;
		path = acc_module_split(text, &c);
		if (acc_map_put(class, path, acc_hash(c.p, c.n)) == NULL)
			return acc_nomem(e);
	}
	return 0;
}

/* The longest rule for what stands at s[at] in a module of the given class. */
static struct rule *
layer_rule(struct acc_maps *ru, uint64_t class, bool top, struct acc_str s, uint32_t at)
{
	struct rule *best = NULL;
	for (uint32_t i = 0; i < ru->n; i++) {
		struct rule *r = &ru->v[i];
		size_t n = r->kind == RULE_LAYER ? strlen(r->from) : 0;
		if (n == 0 || n > s.n - at || memcmp(s.p + at, r->from, n) != 0 ||
			(at + n < s.n && s.p[at + n] != '.') ||
			(best != NULL && strlen(best->from) >= n))
			continue;
		if (top ? r->class[0] == '\0' : class == acc_hash(r->class, strlen(r->class)))
			best = r;
	}
	return best;
}

/* The path `s` (the last part may be an operator) as the other side calls it. 1: changed. */
static int
layer(struct acc_maps *ru, const struct acc_map *class, struct acc_str s, struct acc_buf *out,
	struct acc_err *e)
{
	int changed = 0, rc = 0;
	out->n = 0;
	for (uint32_t at = 0; at < s.n && rc == 0;) {
		const uint64_t *c = acc_map_get(class, (struct acc_str){s.p, at == 0 ? 0 : at - 1});
		struct rule *r = at == 0 || c != NULL
					 ? layer_rule(ru, c == NULL ? 0 : *c, at == 0, s, at)
					 : NULL;
		uint32_t n = r != NULL ? (uint32_t)strlen(r->from) : 0;
		while (r == NULL && at + n < s.n && s.p[at + n] != '.')
			n++;
		if (at > 0)
			rc = put(out, ".", 1, e);
		if (rc == 0)
			rc = r != NULL ? put(out, r->to, strlen(r->to), e)
				       : put(out, s.p + at, n, e);
		if (r != NULL) {
			r->hits++;
			changed = 1;
		}
		at += n + 1;
	}
	return rc < 0 ? rc : changed;
}

/* --- op calls --- */

struct apply {
	struct acc_maps *ru;
	struct acc_half *h;
	struct acc_map class;
	struct acc_buf now, next, path;
	uint64_t *renamed, *scope; /* of each text: its hash, its path's; 0: as it was */
	bool *use;                 /* of each text: it names a module or parameter */
	bool layers;
	struct acc_err *e;
};

static int
rename_all(struct apply *ap)
{
	for (uint32_t i = 0; i < ap->h->names.n; i++) {
		struct acc_str s = ap->h->names.v[i].text;
		if (!ap->use[i])
			continue;
		int rc = rename_text(ap->ru, s, &ap->now, &ap->next, ap->e);
		if (rc < 0)
			return rc;
		s = bytes(&ap->now);
		if (rc == 0)
			continue;
		ap->renamed[i] = acc_hash(s.p, s.n);
		ap->scope[i] = acc_path_hash(s);
	}
	return 0;
}

/* The module of an op call, and in it the operator, under the rules for layers. */
static int
relayer(struct apply *ap, struct acc_align_call *op)
{
	struct acc_str class, api, path, name = ap->h->names.v[op->op_text].text;
	api = name;
	for (uint32_t i = name.n; i-- > 0;)
		if (name.p[i] == '.') {
			api = (struct acc_str){name.p + i + 1, name.n - i - 1};
			break;
		}
	uint32_t text = acc_op_is_named(op) ? op->op_text : op->scope_text;
	if (text == ACC_NOMATE)
		return 0;
	path = acc_module_split(ap->h->names.v[text].text, &class);
	ap->path.n = 0;
	int rc = put(&ap->path, path.p, path.n, ap->e);
	if (rc == 0 && !op->module && path.n > 0)
		rc = put(&ap->path, ".", 1, ap->e);
	if (rc == 0 && !op->module)
		rc = put(&ap->path, api.p, api.n, ap->e);
	if (rc == 0)
		rc = layer(ap->ru, &ap->class, bytes(&ap->path), &ap->now, ap->e);
	if (rc <= 0)
		return rc;
	struct acc_str now = bytes(&ap->now);
	if (!op->module) {
		uint32_t i = now.n;
		while (i > 0 && now.p[i - 1] != '.')
			i--;
		struct acc_str last = {now.p + i, now.n - i};
		if (!acc_str_eq(last, api))
			op->family = acc_op_family(last);
		now.n = i > 0 ? i - 1 : 0;
	}
	now = acc_module_strip(now);
	op->scope = acc_hash(now.p, now.n);
	return 0;
}

/* An operator under another name, with its arguments in other places. */
static void
reapi(const struct apply *ap, struct acc_align_call *op, const struct rule *r)
{
	struct acc_str to = acc_str(r->to);
	op->name = acc_hash(to.p, to.n);
	op->family = acc_op_family(to);
	for (uint32_t i = op->first; i < op->first + op->n; i++) {
		struct acc_align_item *it = &ap->h->ix.item[i];
		int io = it->io == ACC_IO_KW ? ACC_IO_IN : it->io;
		const struct rule_position *p = r->position[io];
		if (!r->listed[io])
			continue;
		while (p != NULL && p->from != it->position)
			p = p->next;
		it->position = p != NULL ? p->to : acc_hash_pair(it->position, 0);
	}
}

static int
apply_op(struct apply *ap, struct acc_align_call *op)
{
	bool named = acc_op_is_named(op);
	if (named && ap->renamed[op->op_text] != 0)
		op->name = ap->renamed[op->op_text];
	uint32_t text = named ? op->op_text : op->scope_text;
	if (text != ACC_NOMATE && ap->scope[text] != 0)
		op->scope = ap->scope[text];
	int rc = ap->layers ? relayer(ap, op) : 0;
	if (rc < 0)
		return rc;
	for (uint32_t i = 0; i < ap->ru->n && !named; i++) {
		struct rule *r = &ap->ru->v[i];
		if (r->kind != RULE_API || !acc_str_is(ap->h->names.v[op->op_text].text, r->from))
			continue;
		r->hits = 1;
		reapi(ap, op, r);
	}
	op->base = acc_hash_pair(op->name, op->pass_name);
	return 0;
}

int
acc_maps_names(struct acc_maps *ru, struct acc_half *a, struct acc_err *e)
{
	struct apply ap = {.ru = ru, .h = a, .e = e};
	for (uint32_t i = 0; i < ru->n; i++)
		ap.layers = ap.layers || ru->v[i].kind == RULE_LAYER;
	size_t n = (size_t)a->names.n + 1;
	ap.renamed = calloc(n, sizeof *ap.renamed);
	ap.scope = calloc(n, sizeof *ap.scope);
	ap.use = calloc(n, sizeof *ap.use);
	int rc = ap.renamed == NULL || ap.scope == NULL || ap.use == NULL ? acc_nomem(e) : 0;
	for (uint32_t i = 0; i < a->ix.nop && rc == 0; i++) {
		const struct acc_align_call *op = &a->ix.op[i];
		if (op->pass_name != 0 && acc_op_is_named(op))
			ap.use[op->op_text] = true;
		if (op->pass_name != 0 && op->scope_text != ACC_NOMATE)
			ap.use[op->scope_text] = true;
	}
	if (rc == 0)
		rc = rename_all(&ap);
	if (rc >= 0 && ap.layers)
		rc = classes(&a->names, &ap.class, e);
	for (uint32_t i = 0; i < a->ix.nop && rc >= 0; i++)
		if (a->ix.op[i].pass_name != 0)
			rc = apply_op(&ap, &a->ix.op[i]);
	acc_map_release(&ap.class);
	acc_buf_release(&ap.now);
	acc_buf_release(&ap.next);
	acc_buf_release(&ap.path);
	free(ap.renamed);
	free(ap.scope);
	free(ap.use);
	return rc < 0 ? rc : 0;
}
