/* What msprobe's graph_visualize writes for its page: a graph of one recording (build_*.vis.db), or of two that it
 * compared (compare_*.vis.db). A node is an op call or a module's, with its tensors in JSON under the names that the
 * compare table gives its columns:
 *
 *	input_data	{"Functional.linear.1.forward.input.0": {"dtype": ..., "Max": "1.5", "NormRelativeErr": "0.0%"}}
 *
 * A comparison becomes pairs with its figures, a recording the records of its tensors.
 */
#include "dump/op/compared.h"

#include <limits.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "dump/jtree.h"
#include "dump/place.h"
#include "dump/say.h"
#include "io/sqlite.h"

static const char query[] =
	"SELECT data_source, step, rank, node_name, up_node, matched_node_link, stack_id,"
	" input_data, output_data FROM tb_nodes";
enum { SOURCE, STEP, RANK, NAME, UP, LINK, STACK, INPUT, OUTPUT };
static const char columns[] =
	"data_source step rank node_name up_node matched_node_link stack_id input_data output_data";

/* A node of the bench, kept until the device's that is linked with it comes. */
struct node {
	int64_t step, rank;
	struct acc_str name, up, data[2];
	bool used;
};

struct graph {
	struct acc_dump_ctx *c;
	const char *path, *root;
	enum compared_mode mode;
	bool pairs;
	int text; /* a file in memory: what JSON is read from */
	struct acc_map bench, stacks;
	struct node *node;
	size_t n, cap;
	int64_t step, rank; /* of the source */
	bool begun;
	struct acc_arena mem, row;
	struct dump_said said;
};

static struct acc_str
text(struct acc_query *r, int column)
{
	struct acc_val v = acc_query_value(r, column);
	return v.type == ACC_V_TEXT ? v.s : acc_str("");
}

static int64_t
number(struct acc_query *r, int column)
{
	struct acc_val v = acc_query_value(r, column);
	return v.type == ACC_V_INT ? v.i : -1;
}

/* JSON as a tree in g->row. NULL: there is none, or it is said. */
static const struct jnode *
tree(struct graph *g, struct acc_str json, struct acc_str node)
{
	struct acc_err bad = {0};
	struct acc_json_tok t;
	struct jnode *root = NULL;
	if (json.n == 0)
		return NULL;
	int64_t at = 0;
	const int rc = acc_file_pwrite(g->text, json.p, json.n, &at, &bad);
	struct acc_json *j = rc < 0 ? NULL
				    : acc_json_open(
					      acc_bytes_part(g->text, g->path, 0, json.n, &bad),
					      false, &bad);
	if (j != NULL && acc_json_next(j, &t, &bad) > 0)
		acc_jtree_read(j, &t, &g->row, &root, &bad);
	acc_json_close(j);
	if (bad.code == 0)
		return root;
	bad.where[0] = '\0';
	acc_err_in(&bad, acc_arena_printf(&g->row, "%s: %.*s", g->path,
				 node.n < 100 ? (int)node.n : 100, node.p));
	acc_dump_say(&g->said, g->c, &bad);
	return NULL;
}

/* What a tensor's object says, into the cells of a side; of the device's also the figures. */
static void
fill(struct graph *g, const struct jnode *o, int side, struct acc_str name, struct acc_str *cell)
{
	static const struct {
		const char *key;
		int cell;
	} own[] = {{"dtype", CELL_DTYPE}, {"shape", CELL_SHAPE}, {"requires_grad", CELL_GRAD},
		{"Max", CELL_MAX}, {"Min", CELL_MIN}, {"Mean", CELL_MEAN}, {"Norm", CELL_NORM},
		{"md5", CELL_MD5}};
	cell[CELL_NAME + side] = name;
	for (size_t i = 0; i < sizeof own / sizeof *own; i++) {
		const struct jnode *n = jtree_get(o, own[i].key);
		if (n != NULL)
			cell[own[i].cell + side] = n->type == ACC_JSON_STRING
							   ? n->s
							   : acc_jtree_dump(n, &g->row);
	}
	/* "<class int>": it leaves the quotes out. */
	const struct acc_str type = acc_jtree_text(jtree_get(o, "type"));
	if (!acc_str_ends(type, "Tensor") && type.n > 0)
		cell[CELL_DTYPE + side] = acc_str(
			acc_arena_printf(&g->row, "<class '%.*s'>", ACC_PRS(type)));
	for (const struct jnode *n = side == 0 ? o->child : NULL; n != NULL; n = n->next) {
		const int i = acc_compared_column(n->key, g->mode);
		if (i >= 0 && n->type == ACC_JSON_STRING)
			cell[i] = n->s;
	}
}

/* A device's tensor is called as its node, and its mate as the bench's node. */
static const struct jnode *
mate_of(struct graph *g, const struct jnode *tensors, struct acc_str name, struct acc_str node,
	const struct node *b, struct acc_str *out)
{
	const struct acc_str own = {node.p, node.n};
	if (tensors == NULL || tensors->type != ACC_JSON_OBJECT || name.n < own.n ||
		memcmp(name.p, own.p, own.n) != 0)
		return NULL;
	*out = acc_str(acc_arena_printf(&g->row, "%.*s%.*s", ACC_PRS(b->name),
		(int)(name.n - own.n), name.p + own.n));
	return out->p == NULL ? NULL : acc_jtree_find(tensors, out->p, out->n);
}

static struct acc_str
scope_of(struct acc_str up)
{
	return acc_str_starts(up, "Module.") || acc_str_starts(up, "Cell.") ? up : acc_str("");
}

/* The tensors that only the bench's node has. */
static int
put_bench(struct graph *g, const struct node *b, int io, const struct jnode *device,
	struct acc_str node, struct acc_err *e)
{
	const struct acc_str scope[2] = {{"", 0}, scope_of(b->up)};
	const struct jnode *o = tree(g, b->data[io], b->name);
	int rc = 0;
	for (o = o != NULL && o->type == ACC_JSON_OBJECT ? o->child : NULL; o != NULL && rc == 0;
		o = o->next) {
		struct acc_str cell[CELL_N] = {{NULL, 0}}, name;
		const struct node self = {.name = node};
		if (o->type != ACC_JSON_OBJECT ||
			mate_of(g, device, o->key, b->name, &self, &name) != NULL)
			continue;
		fill(g, o, 1, o->key, cell);
		rc = acc_compared_put(g->c, cell, g->mode, scope, &g->row, e);
	}
	return rc;
}

/* The inputs, or outputs, of a node of the device. */
static int
put_node(struct graph *g, struct acc_query *r, int io, struct node *b, struct acc_err *e)
{
	const struct acc_str node = text(r, NAME),
			     scope[2] = {scope_of(text(r, UP)),
				     b != NULL ? scope_of(b->up) : acc_str("")};
	const struct jnode *all = tree(g, text(r, INPUT + io), node);
	const struct jnode *mates = b == NULL ? NULL : tree(g, b->data[io], b->name);
	const uint64_t *stack = acc_map_get(&g->stacks, text(r, STACK));
	int rc = 0;
	for (const struct jnode *o = all != NULL && all->type == ACC_JSON_OBJECT ? all->child
										 : NULL;
		o != NULL && rc == 0; o = o->next) {
		struct acc_str cell[CELL_N] = {{NULL, 0}}, name = {"", 0};
		if (o->type != ACC_JSON_OBJECT)
			continue;
		fill(g, o, 0, o->key, cell);
		const struct jnode *mate = b == NULL ? NULL
						     : mate_of(g, mates, o->key, node, b, &name);
		if (mate != NULL && mate->type == ACC_JSON_OBJECT)
			fill(g, mate, 1, name, cell);
		if (stack != NULL)
			cell[CELL_STACK] = acc_str((const char *)(uintptr_t)*stack);
		rc = g->pairs ? acc_compared_put(g->c, cell, g->mode, scope, &g->row, e)
			      : acc_compared_put_one(g->c, cell, 0, scope[0], &g->row, e);
	}
	return rc == 0 && b != NULL ? put_bench(g, b, io, all, node, e) : rc;
}

static int
source(struct graph *g, int64_t step, int64_t rank, struct acc_err *e)
{
	static const char *const tasks[] = {"tensor", "statistics", "md5"};
	const struct acc_source s = {.root = g->root,
		.format = "vis.db",
		.task = tasks[g->mode],
		.step = step,
		.rank = rank,
		.proc = -1};
	if (g->begun && g->step == step && g->rank == rank)
		return 0;
	g->begun = true;
	g->step = step;
	g->rank = rank;
	return acc_dump_source(g->c, &s, e);
}

static struct acc_str
key_of(struct graph *g, int64_t step, int64_t rank, struct acc_str name)
{
	return acc_str(acc_arena_printf(&g->row, "%lld %lld %.*s", (long long)step, (long long)rank,
		ACC_PRS(name)));
}

static int
keep_bench(struct graph *g, struct acc_query *r, struct acc_err *e)
{
	if (!ACC_ROOM(g->node, g->cap, g->n + 1, e))
		return ACC_ENOMEM;
	struct node *p = g->node;
	p += g->n;
	*p = (struct node){.step = number(r, STEP),
		.rank = number(r, RANK),
		.name = acc_arena_str(&g->mem, text(r, NAME)),
		.up = acc_arena_str(&g->mem, text(r, UP)),
		.data = {acc_arena_str(&g->mem, text(r, INPUT)),
			acc_arena_str(&g->mem, text(r, OUTPUT))}};
	const struct acc_str key = key_of(g, p->step, p->rank, p->name);
	if (g->mem.lost || key.n == 0 || acc_map_put(&g->bench, key, g->n) == NULL)
		return acc_nomem(e);
	g->n++;
	return 0;
}

/* The bench's node that the last of the links names: ["DefaultModel", ..., "Functional.linear.1.forward"]. */
static struct node *
linked(struct graph *g, struct acc_query *r)
{
	const struct jnode *n = tree(g, text(r, LINK), text(r, NAME));
	n = n != NULL && n->type == ACC_JSON_ARRAY ? n->child : NULL;
	while (n != NULL && n->next != NULL)
		n = n->next;
	const struct acc_str name = acc_jtree_text(n);
	const uint64_t *at = name.n == 0 ? NULL
					 : acc_map_get(&g->bench, key_of(g, number(r, STEP),
									  number(r, RANK), name));
	return at == NULL ? NULL : &g->node[*at];
}

/* All nodes of one side, in their order. */
static int
each(struct graph *g, struct acc_sqlite *db, const char *side,
	int (*fn)(struct graph *, struct acc_query *, struct acc_err *), struct acc_err *e)
{
	int rc;
	struct acc_query *r = acc_sqlite_query(db, query, e);
	if (r == NULL)
		return e != NULL ? e->code : ACC_EFORMAT;
	while ((rc = acc_query_next(r, e)) > 0) {
		acc_arena_reset(&g->row);
		if (acc_str_is(text(r, SOURCE), side) &&
			acc_dump_wants(g->c, number(r, STEP), number(r, RANK)) &&
			(rc = fn(g, r, e)) < 0)
			break;
		if (g->row.lost) {
			rc = acc_nomem(e);
			break;
		}
	}
	acc_query_close(r);
	return rc;
}

static int
device(struct graph *g, struct acc_query *r, struct acc_err *e)
{
	struct node *b = linked(g, r);
	int rc = source(g, number(r, STEP), number(r, RANK), e);
	if (b != NULL)
		b->used = true;
	for (int io = 0; io < 2 && rc == 0; io++)
		rc = put_node(g, r, io, b, e);
	return rc;
}

static int
stack_rows(struct graph *g, struct acc_sqlite *db, struct acc_err *e)
{
	int rc;
	struct acc_query *r = acc_sqlite_query(db, "SELECT id, stack_info FROM tb_stack", e);
	if (r == NULL)
		return e != NULL ? e->code : ACC_EFORMAT;
	while ((rc = acc_query_next(r, e)) > 0) {
		const struct acc_str id = text(r, 0), s = text(r, 1);
		const char *copy = acc_arena_copy(&g->mem, s.p, s.n);
		if (copy == NULL || acc_map_put(&g->stacks, id, (uintptr_t)copy) == NULL) {
			rc = acc_nomem(e);
			break;
		}
	}
	acc_query_close(r);
	return rc;
}

/* What it was made of: task is summary, md5, all, or empty for one recording. */
static int
config(struct graph *g, struct acc_sqlite *db, struct acc_err *e)
{
	struct acc_query *r = acc_sqlite_query(db, "SELECT graph_type, task FROM tb_config", e);
	int rc = r == NULL ? (e != NULL ? e->code : ACC_EFORMAT) : acc_query_next(r, e);
	if (rc > 0) {
		g->pairs = acc_str_is(text(r, 0), "compare");
		g->mode = acc_str_is(text(r, 1), "md5")   ? COMPARED_MD5
			  : acc_str_is(text(r, 1), "all") ? COMPARED_TENSOR
							  : COMPARED_STATISTICS;
	}
	acc_query_close(r);
	return rc < 0 ? rc : 0;
}

static int
read_graph(struct graph *g, struct acc_sqlite *db, struct acc_err *e)
{
	int has = acc_sqlite_has(db, "tb_nodes", columns, e);
	if (has <= 0)
		return has < 0 ? has
			       : acc_fail(e, ACC_EFORMAT,
					 "no graph of msprobe: its tb_nodes lacks columns");
	int rc = config(g, db, e);
	if (rc == 0)
		rc = stack_rows(g, db, e);
	if (rc == 0 && g->pairs)
		rc = each(g, db, "Bench", keep_bench, e);
	if (rc == 0)
		rc = each(g, db, "NPU", device, e);
	for (size_t i = 0; i < g->n && rc == 0; i++) {
		acc_arena_reset(&g->row);
		if (g->node[i].used)
			continue;
		rc = source(g, g->node[i].step, g->node[i].rank, e);
		for (int io = 0; io < 2 && rc == 0; io++)
			rc = put_bench(g, &g->node[i], io, NULL, acc_str(""), e);
	}
	return rc;
}

static int
read_db(struct acc_dump_ctx *c, const char *path, struct acc_err *e)
{
	char dir[PATH_MAX];
	const char *file;
	int dirfd = acc_dump_open_place(path, dir, &file, e);
	if (dirfd < 0)
		return dirfd;
	struct graph g = {.c = c,
		.path = path,
		.root = dir,
		.text = memfd_create("json", MFD_CLOEXEC)};
	int fd = file == NULL ? acc_fail(e, ACC_EFORMAT, "a folder is no database")
			      : acc_sqlite_file(dirfd, file, e);
	close(dirfd);
	int rc = fd < 0 ? fd : g.text < 0 ? acc_fail(e, ACC_EIO, "no file in memory:") : 0;
	struct acc_sqlite *db = rc < 0 ? NULL : acc_sqlite_open(fd, e);
	const uint64_t before = acc_dump_count(c);
	if (rc == 0)
		rc = db == NULL ? (e != NULL ? e->code : ACC_EFORMAT) : read_graph(&g, db, e);
	if (rc == 0 && acc_dump_count(c) == before)
		acc_dump_note(c, path,
			"the graph has no tensors: it is of a recording of the structure alone");
	acc_dump_say_rest(&g.said, c, path);
	acc_sqlite_close(db);
	if (fd >= 0)
		close(fd);
	if (g.text >= 0)
		close(g.text);
	free(g.node);
	acc_map_release(&g.bench);
	acc_map_release(&g.stacks);
	acc_arena_release(&g.mem);
	acc_arena_release(&g.row);
	return rc;
}

static int
probe(const struct acc_probe *p)
{
	return !p->is_dir && acc_is_sqlite(p->head, p->nhead) && acc_str_ends(p->base, ".vis.db")
		       ? 95
		       : 0;
}

const struct acc_dump acc_dump_vis_db = {
	.name = "vis.db",
	.help = "a graph that msprobe's graph_visualize wrote, of one recording or of two: *.vis.db",
	.probe = probe,
	.read = read_db,
};
