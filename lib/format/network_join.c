/* The slots of all ranks become one tree: see network.h. */
#include "format/network.h"

#include "acc/say.h"

#include <stdlib.h>

/* Modules within modules, and frames of a stack. */
enum { DEEPEST = 64 };
/* What a node is found by again; a and b depend on it. */
enum by { BY_STAGE, BY_KEY, BY_BENCH, BY_PASS, BY_LINE, BY_STACK, BY_PART };

/* --- nodes */

/* A new child stands behind the one that this rank came by last, else at the end. */
static int
add(struct acc_network *n, uint32_t parent, uint32_t rank, uint32_t *out, struct acc_err *e)
{
	if (!ACC_ROOM(n->node, n->nodes_cap, n->nnodes + 1, e))
		return ACC_ENOMEM;
	struct acc_net_node *p = n->node;
	const uint32_t me = (uint32_t)n->nnodes++;
	p[me] = (struct acc_net_node){.parent = parent, .visitor = ACC_NOID};
	*out = me;
	if (me == 0)
		return 0;
	struct acc_net_node *up = &p[parent];
	const uint32_t before = up->cursor != 0 && up->cursor_rank == rank ? up->cursor : up->last;
	if (before == 0) {
		up->first = up->last = me;
	} else {
		p[me].next = p[before].next;
		p[before].next = me;
		if (up->last == before)
			up->last = me;
	}
	return 0;
}

/* The node that is found by this, made beneath its parent where there is none; *new tells. */
static int
node_of(struct acc_network *n, enum by by, uint32_t a, uint32_t b, uint32_t parent, uint32_t rank,
	uint32_t *out, bool *new, struct acc_err *e)
{
	const uint32_t of[3] = {by, a, b};
	const uint64_t id = acc_hash(of, sizeof of);
	int rc = 0;
	*out = acc_ids_get(&n->node_ids, id);
	*new = *out == ACC_NOID;
	if (*new) {
		rc = add(n, parent, rank, out, e);
		rc = rc < 0 ? rc : acc_ids_put(&n->node_ids, id, *out, false, e);
	}
	if (rc == 0 && n->node[*out].visitor != rank) {
		struct acc_net_node *up = &n->node[n->node[*out].parent];
		n->node[*out].visitor = rank;
		up->cursor = *out;
		up->cursor_rank = rank;
	}
	return rc;
}

/* Of "Module.layers.0.mlp.fc1.Linear.forward.0" beneath "Module.layers.0.mlp.MLP.forward.0": "fc1
 * Linear"; of another call of it "fc1 Linear (1)"; other names as they are. */
static struct acc_str
label_of(struct acc_network *n, struct acc_str key, struct acc_str scope)
{
	static const char *const roots[] = {"Module.", "Cell."};
	for (int i = 0; i < 2; i++) {
		const uint32_t root = (uint32_t)strlen(roots[i]);
		if (!acc_str_starts(key, roots[i]))
			continue;
		const struct acc_str path = {key.p + root, key.n - root};
		const char *pass = memmem(path.p, path.n, ".forward", 8), *end = key.p + key.n;
		const bool back = pass == NULL;
		if (back)
			pass = memmem(path.p, path.n, ".backward", 9);
		if (pass == NULL) /* as of parameters_grad */
			return key;
		const char *cls = pass, *call = pass + (back ? 9 : 8);
		while (cls > path.p && cls[-1] != '.')
			cls--;
		if (cls - path.p < 2)
			return key;
		/* What the scope's name begins with, up to its class. */
		uint32_t same = root, k = root;
		for (; k < key.n && k < scope.n && key.p[k] == scope.p[k]; k++)
			if (key.p[k] == '.')
				same = k + 1;
		const char *from = key.p + same < cls ? key.p + same : path.p;
		const bool again = end - call > 1 && !(end - call == 2 && call[1] == '0');
		char *label = acc_arena_printf(&n->mem, "%.*s %.*s%s%.*s%s%s",
			(int)(cls - 1 - from), from, (int)(pass - cls), cls, again ? " (" : "",
			again ? (int)(end - call - 1) : 0, again ? call + 1 : "", again ? ")" : "",
			back ? " backward" : "");
		return label == NULL ? key : acc_str(label);
	}
	return key;
}

/* The branch that a rank's op calls stand in. */
static int
top_of(struct acc_network *n, uint32_t rank, uint32_t *out, struct acc_err *e)
{
	bool new;
	*out = 0;
	if (n->nstages < 2)
		return 0;
	const uint32_t stage = n->stage[rank];
	int rc = node_of(n, BY_STAGE, stage, 0, 0, rank, out, &new, e);
	if (rc == 0 && new)
		n->node[*out].label = acc_str(
			acc_arena_printf(&n->mem, "stage %u", (unsigned)stage));
	return rc;
}

/* What one side calls a module is it with the device, if anything tells. */
static uint32_t
with_device(const struct acc_network *n, uint32_t text, bool bench, bool *alone)
{
	*alone = false;
	if (!bench)
		return text;
	if (n->text[text].device != 0)
		return n->text[text].device;
	*alone = !n->text[text].module[0];
	return text;
}

/* The node of a module, beneath that of its own scope. */
static int
module(struct acc_network *n, uint32_t text, bool bench, uint32_t rank, int depth, uint32_t *out,
	struct acc_err *e)
{
	bool alone, new;
	const uint32_t key = with_device(n, text, bench, &alone);
	const uint32_t scope = n->text[key].scope[alone];
	uint32_t parent = 0;
	int rc = scope != 0 && scope != key && depth < DEEPEST / 2
			 ? module(n, scope, alone, rank, depth + 1, &parent, e)
			 : top_of(n, rank, &parent, e);
	rc = rc < 0 ? rc
		    : node_of(n, alone ? BY_BENCH : BY_KEY, n->stage[rank], key, parent, rank, out,
			      &new, e);
	if (rc < 0 || !new)
		return rc;
	struct acc_net_node *p = &n->node[*out];
	p->key = key;
	p->sides = alone ? ACC_BENCH : 0;
	p->label = label_of(n, n->text[key].s, acc_network_text(n, scope));
	return 0;
}

static int
pass_of(struct acc_network *n, const struct acc_net_slot *s, uint32_t *out, struct acc_err *e)
{
	uint32_t top;
	bool new;
	int rc = top_of(n, s->rank, &top, e);
	rc = rc < 0 ? rc : node_of(n, BY_PASS, top, s->pass, top, s->rank, out, &new, e);
	if (rc == 0 && new) {
		n->node[*out].label = s->pass != 0 ? n->text[s->pass].s : ACC_STR("op calls");
		n->node[*out].pass = true;
	}
	return rc;
}

static struct acc_str
base_of(struct acc_str file)
{
	const char *slash = memrchr(file.p, '/', file.n);
	return slash == NULL ? file
			     : (struct acc_str){slash + 1, file.n - (uint32_t)(slash + 1 - file.p)};
}

/* The node of the line of code that calls it, beneath those that call that. */
static int
line_of(struct acc_network *n, const struct acc_net_slot *s, uint32_t *out, struct acc_err *e)
{
	struct acc_frame frame[DEEPEST];
	size_t depth = 0;
	bool new = false;
	uint32_t at;
	int rc = pass_of(n, s, &at, e);
	struct acc_str rest = s->stack == 0 ? (struct acc_str){"", 0}
					    : acc_stacks_get(&n->stacks, n->text[s->stack].s);
	while (depth < DEEPEST && acc_frame_next(&rest, &frame[depth]))
		depth++;
	for (size_t i = depth; rc == 0 && i-- > 0;) {
		const struct acc_frame *f = &frame[i];
		const struct acc_str file = base_of(f->file);
		const char *label = acc_arena_printf(&n->mem, "%.*s:%.*s %.*s", ACC_PRS(file),
			ACC_PRS(f->line), ACC_PRS(f->code));
		if (label == NULL)
			return acc_nomem(e);
		const uint64_t id = acc_hash(label, strlen(label));
		rc = node_of(n, BY_LINE, at ^ (uint32_t)(id >> 32), (uint32_t)id, at, s->rank, &at,
			&new, e);
		if (rc == 0 && new)
			n->node[at].label = acc_str(label);
	}
	*out = at;
	return rc;
}

/* Of a tag, "actv/layers.0.fc1/output/norm", or a weight's name a node for each part. */
static int
part_of(struct acc_network *n, const struct acc_net_slot *s, uint32_t *out, struct acc_err *e)
{
	const uint32_t key = s->key != 0 ? s->key : s->other;
	const struct acc_str tag = n->text[key].s;
	uint32_t at = 0, from = 0, depth = 0;
	bool new;
	int rc = 0;
	for (uint32_t i = 0; rc == 0 && i <= tag.n; i++) {
		if (i < tag.n && ((tag.p[i] != '/' && tag.p[i] != '.') || ++depth >= DEEPEST))
			continue;
		const uint64_t id = acc_hash(tag.p, i);
		/* One that only the bench has is not what the device may call so on another rank. */
		if (i == tag.n && s->key == 0)
			rc = node_of(n, BY_BENCH, n->stage[s->rank], key, at, s->rank, &at, &new,
				e);
		else
			rc = node_of(n, BY_PART, (uint32_t)(id >> 32), (uint32_t)id, at, s->rank,
				&at, &new, e);
		if (rc == 0 && new)
			n->node[at].label = (struct acc_str){tag.p + from, i - from};
		from = i + 1;
	}
	*out = at;
	return rc;
}

/* --- slots */

enum how { BY_MODULES, BY_CODE, BY_PASSES };

static int
own_node(struct acc_network *n, const struct acc_net_slot *s, enum how how, uint32_t *out,
	struct acc_err *e)
{
	const bool bench = s->key == 0;
	const uint32_t key = bench ? s->other : s->key;
	uint32_t parent;
	bool new;
	int rc;
	if (s->curve || s->weight)
		return part_of(n, s, out, e);
	if (how == BY_MODULES && n->text[key].module[bench])
		return module(n, key, bench, s->rank, 0, out, e);
	if (how == BY_MODULES && s->scope != 0)
		rc = module(n, s->scope, bench, s->rank, 0, &parent, e);
	else
		rc = how == BY_CODE ? line_of(n, s, &parent, e) : pass_of(n, s, &parent, e);
	/* One of the bench that belongs to another of the device elsewhere is its own, nevertheless. */
	rc = rc < 0 ? rc
		    : node_of(n, bench ? BY_BENCH : BY_KEY, n->stage[s->rank], key, parent, s->rank,
			      out, &new, e);
	if (rc == 0 && new)
		n->node[*out].label = label_of(n, n->text[key].s, acc_network_text(n, s->scope));
	return rc;
}

static int
place(struct acc_network *n, uint32_t i, enum how how, struct acc_err *e)
{
	uint32_t at;
	int rc = own_node(n, &n->slot[i], how, &at, e);
	if (rc < 0)
		return rc;
	struct acc_net_slot *s = &n->slot[i];
	struct acc_net_node *p = &n->node[at];
	s->node = at;
	s->next = p->slot;
	p->slot = i;
	if (p->key == 0)
		p->key = s->key != 0 ? s->key : s->other;
	if (p->other.n == 0 && s->key != 0 && s->other != 0 && s->other != s->key)
		p->other = label_of(n, n->text[s->other].s,
			acc_network_text(n, n->text[s->other].scope[1]));
	return 0;
}

/* The verdict on a curve holds from the step on at which it departs. */
static int
judge_curves(struct acc_network *n, struct acc_err *e)
{
	struct acc_ids at = {0};
	bool all = true;
	int rc = 0;
	/* Where some differ, and no rule is about them, equal ones are no more fine than these. */
	for (size_t i = 0; i < n->nverdicts; i++)
		all &= n->verdict[i].grade != ACC_UNJUDGED || n->verdict[i].equal;
	for (uint32_t i = 0; rc == 0 && i < n->nverdicts; i++) {
		if (all && n->verdict[i].grade == ACC_UNJUDGED)
			n->verdict[i].grade = ACC_FINE;
		const uint32_t rank = n->verdict[i].rank == INT64_MIN
					      ? ACC_NOID
					      : acc_network_rank(n, n->verdict[i].rank);
		rc = acc_ids_put(&at, (uint64_t)n->verdict[i].tag << 32 | rank, i, true, e);
	}
	for (size_t i = 1; rc == 0 && i < n->nslots; i++) {
		struct acc_net_slot *s = &n->slot[i];
		uint32_t k = acc_ids_get(&at, (uint64_t)s->key << 32 | s->rank);
		if (k == ACC_NOID)
			k = acc_ids_get(&at, (uint64_t)s->key << 32 | ACC_NOID);
		if (!s->curve || k == ACC_NOID)
			continue;
		const struct acc_net_verdict *v = &n->verdict[k];
		s->grade = v->grade;
		for (size_t c = 0; c < s->ncells; c++) {
			const uint8_t grade = n->step.v[c] < v->from && v->grade >= ACC_WARNING
						      ? ACC_FINE
						      : v->grade;
			if (s->cell[c] != 0)
				s->cell[c] = (uint8_t)(1 + grade * ACC_SIZES +
						       (s->cell[c] - 1) % ACC_SIZES);
			if (n->step.v[c] == v->from && s->cell[c] != 0) {
				s->worst = (uint32_t)c;
				s->departs = true;
			}
		}
	}
	acc_ids_release(&at);
	return rc;
}

/* Is the slot a worse than b? Of those that are bad the first is, of others the one that is further off. */
static bool
is_worse(const struct acc_net_slot *a, const struct acc_net_slot *b)
{
	if (a->named != b->named)
		return a->named;
	if (a->grade != b->grade)
		return a->grade > b->grade;
	if (a->grade < ACC_WARNING && a->error != b->error)
		return a->error > b->error;
	return a < b;
}

static void
sum_up(struct acc_network *n)
{
	struct acc_net_node *v = n->node;
	for (size_t i = n->nnodes; i-- > 0;) {
		struct acc_net_node *p = &v[i], *up = &v[p->parent];
		uint8_t grade = 0;
		for (uint32_t k = p->slot; k != 0; k = n->slot[k].next) {
			const struct acc_net_slot *s = &n->slot[k];
			grade = s->grade > grade ? s->grade : grade;
			p->sides |= s->sides;
			if (p->worst == 0 || is_worse(s, &n->slot[p->worst]))
				p->worst = k;
		}
		p->calls += p->slot != 0;
		p->bad += grade >= ACC_WARNING;
		p->grade = grade > p->grade ? grade : p->grade;
		if (i == 0)
			break;
		up->calls += p->calls;
		up->bad += p->bad;
		up->sides |= p->sides;
		up->grade = p->grade > up->grade ? p->grade : up->grade;
		if (p->worst != 0 &&
			(up->worst == 0 || is_worse(&n->slot[p->worst], &n->slot[up->worst])))
			up->worst = p->worst;
		for (size_t b = 0; b < n->on_bytes; b++)
			n->on[p->parent * n->on_bytes + b] |= n->on[i * n->on_bytes + b];
	}
}

static int
ranks_on(struct acc_network *n, struct acc_err *e)
{
	uint32_t *at = acc_alloc(&n->mem, (n->rank.n + 1) * sizeof *at);
	n->on_bytes = (n->rank.n + 7) / 8;
	n->on = acc_alloc(&n->mem, n->nnodes * n->on_bytes);
	if (at == NULL || n->on == NULL)
		return acc_nomem(e);
	memset(n->on, 0, n->nnodes * n->on_bytes);
	for (uint32_t i = 0; i < n->rank.n; i++)
		at[n->rank.sorted[i]] = i;
	for (size_t i = 1; i < n->nslots; i++) {
		const uint32_t k = at[n->slot[i].rank];
		n->on[n->slot[i].node * n->on_bytes + k / 8] |= (uint8_t)(1 << k % 8);
	}
	return 0;
}

/* Lines of code that call all there is of a pass say nothing. */
static void
hoist(struct acc_network *n, uint32_t pass)
{
	struct acc_net_node *v = n->node, *p = &v[pass];
	while (p->first != 0 && p->first == p->last && v[p->first].slot == 0) {
		const struct acc_net_node *only = &v[p->first];
		p->first = only->first;
		p->last = only->last;
		for (uint32_t k = p->first; k != 0; k = v[k].next)
			v[k].parent = pass;
	}
}

/* A part of a tag with nothing beside what is beneath it is one with that: "layers.0". */
static void
absorb(struct acc_network *n, uint32_t part)
{
	struct acc_net_node *v = n->node, *p = &v[part];
	while (p->slot == 0 && p->first != 0 && p->first == p->last) {
		struct acc_net_node *only = &v[p->first];
		const char *label = acc_arena_printf(&n->mem, "%.*s%c%.*s", ACC_PRS(p->label),
			only->label.p[-1], ACC_PRS(only->label));
		p->label = label == NULL ? p->label : acc_str(label);
		p->first = only->first;
		p->last = only->last;
		p->slot = only->slot;
		p->key = only->key;
		p->other = only->other;
		only->slot = 0;
		for (uint32_t k = p->first; k != 0; k = v[k].next)
			v[k].parent = part;
		for (uint32_t k = p->slot; k != 0; k = n->slot[k].next)
			n->slot[k].node = part;
		if (label == NULL)
			return;
	}
}

/* Slots by stage and rank, those of a rank as they came: their numbers, from malloc. */
static uint32_t *
in_order(const struct acc_network *n, struct acc_err *e)
{
	uint32_t *order = malloc((n->nslots + 1) * sizeof *order);
	uint32_t *next = malloc((n->nslots + 1) * sizeof *next);
	uint32_t *head = calloc(2 * n->rank.n + 1, sizeof *head), at = 0;
	if (order == NULL || next == NULL || head == NULL) {
		acc_nomem(e);
		free(order);
		order = NULL;
		goto done;
	}
	uint32_t *tail = head + n->rank.n;
	for (uint32_t i = 1; i < n->nslots; i++) {
		const uint32_t r = n->slot[i].rank;
		next[i] = 0;
		if (head[r] == 0)
			head[r] = i;
		else
			next[tail[r]] = i;
		tail[r] = i;
	}
	for (uint32_t stage = 0; stage < n->nstages; stage++)
		for (size_t k = 0; k < n->rank.n; k++)
			if (n->stage[n->rank.sorted[k]] == stage)
				for (uint32_t i = head[n->rank.sorted[k]]; i != 0; i = next[i])
					order[at++] = i;
done:
	free(next);
	free(head);
	return order;
}

int
acc_network_join(struct acc_network *n, struct acc_err *e)
{
	enum how how = BY_PASSES;
	bool curves = n->nslots > 1;
	n->weights = n->nslots > 1;
	uint32_t root;
	for (size_t i = 1; i < n->nslots; i++) {
		const struct acc_net_slot *s = &n->slot[i];
		curves &= s->curve;
		n->weights &= s->weight;
		if (s->scope != 0)
			how = BY_MODULES;
		else if (how == BY_PASSES && s->stack != 0 &&
			 acc_map_get(&n->stacks.at, n->text[s->stack].s) != NULL)
			how = BY_CODE;
	}
	n->title = curves              ? "Curves"
		   : n->weights        ? "Tensors"
		   : how == BY_MODULES ? "Modules"
		   : how == BY_CODE    ? "Lines of code"
				       : "Op calls";
	int rc = acc_network_sort(&n->step, e);
	rc = rc < 0 ? rc : acc_network_sort(&n->rank, e);
	rc = rc < 0 ? rc : acc_network_stages(n, e);
	rc = rc < 0 ? rc : judge_curves(n, e);
	rc = rc < 0 ? rc : add(n, 0, 0, &root, e);
	uint32_t *order = rc < 0 ? NULL : in_order(n, e);
	rc = rc == 0 && order == NULL ? ACC_ENOMEM : rc;
	for (size_t i = 0; rc == 0 && i + 1 < n->nslots; i++)
		rc = place(n, order[i], how, e);
	free(order);
	for (uint32_t i = 1; rc == 0 && how == BY_CODE && i < n->nnodes; i++)
		if (n->node[i].pass)
			hoist(n, i);
	/* Those that were absorbed hang at what has them now, and are empty. */
	for (uint32_t i = 1; rc == 0 && (curves || n->weights) && i < n->nnodes; i++)
		if (n->node[i].slot != 0 || n->node[i].first != 0)
			absorb(n, i);
	rc = rc < 0 ? rc : ranks_on(n, e);
	if (rc < 0)
		return rc;
	sum_up(n);
	return n->mem.lost ? acc_nomem(e) : 0;
}
