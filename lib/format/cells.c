#include "format/cells.h"

#include "io/literal.h"

#include <math.h>
#include <stdlib.h>

static const struct acc_columns *const sets[] = {&acc_columns_msprobe, &acc_columns_msprobe26,
	&acc_columns_ptdbg, &acc_columns_maca, &acc_columns_maca_fwd};

/* What a table shows where nothing was chosen: by the first record's kind. */
static const char *const pair_keys[] = {"kind", "name", "b.name", "how", "note", "a.step", "a.rank",
	"b.step", "b.rank", "a.dtype", "b.dtype", "a.shape", "b.shape", "m.mode", "m.cosine",
	"m.max_abs", "m.max_rel", "m.mean_abs", "m.mean_rel", "m.rel_l2", "m.rmse", "m.snr",
	"m.thousandth", "m.five_thousandths", "m.ulp_max", "m.same", "m.outside", "m.nonfinite",
	"m.worst", "m.equal", "m.max_diff", "m.min_diff", "m.mean_diff", "m.norm_diff",
	"m.max_relerr", "m.min_relerr", "m.mean_relerr", "m.norm_relerr", "m.skip", "bad", "rule",
	"value", "limit", "limit_from", "why", "text", NULL};
static const char *const tensor_keys[] = {"kind", "name", "step", "rank", "io", "pos", "type",
	"dtype", "shape", "value", "s.min", "s.max", "s.mean", "s.norm", "s.nan", "s.posinf",
	"s.neginf", "s.zero", "s.sat", "s.hash", "stat.min", "stat.max", "stat.mean", "stat.norm",
	"stat.crc32", "audit.ok", "audit.err", "audit.limit", "audit.cause", "audit.skip", "err",
	"bad", "why", "text", NULL};
static const char *const curve_keys[] = {"kind", "tag", "class", "role", "n", "begin", "end",
	"first", "beyond", "stays", "apart", "nonfinite", "neither", "lost", "res", "max_abs", "at",
	"max_rel", "most_rel", "mean_abs", "mean_rel", "late_abs", "begin_abs", "begin_rel",
	"final", "final_rel", "offset", "offset_rel", "offset_p", "slope", "trend_p", "drift",
	"change", "change_rel", "change_t", "parted", "parted_steps", "parted_times", "parted_even",
	"parted_rel", "signs", "a.nan", "b.nan", "a.spikes", "a.spike", "b.spikes", "b.spike",
	"a.only", "b.only", "a.repeated", "b.repeated", "shift", "lr0", "noise.runs",
	"noise.max_abs", "noise.mean_abs", "noise.mean_rel", "outside", "inside", "bad", "rule",
	"value", "limit", "limit_from", "why", "what", "name", "stage", "step", "dump", "ranked",
	"text", NULL};
static const char *const curve_short[] = {"tag", "n", "first", "beyond", "max_abs", "at",
	"mean_rel", "begin_rel", "final_rel", "drift", "inside", "bad", "rule", NULL};
static const char *const point_keys[] = {"kind", "a.tag", "b.tag", "a.step", "b.step", "a.value",
	"b.value", "how", "a.run", "b.run", NULL};
static const char *const point_short[] = {"a.tag", "a.step", "a.value", "b.value", "how", NULL};
static const char *const scalar_keys[] = {"tag", "step", "value", "run", NULL};
/* A log holds both, the parameters first. */
static const char *const param_keys[] = {"key", "value", "dialect", "maybe", "where", "tag", "step",
	"run", NULL};
static const char *const param_short[] = {"key", "tag", "step", "value", "maybe", "where", NULL};
static const char *const check_keys[] = {"kind", "name", "group", "a.key", "a.value", "a.given",
	"a.where", "b.key", "b.value", "b.given", "b.where", "how", "note", "bad", "rule", "limit",
	"limit_from", "why", "what", "text", NULL};
static const char *const check_short[] = {"name", "a.value", "b.value", "bad", "limit", "a.where",
	"b.where", "why", NULL};
static const char *const param_pair_short[] = {"a.key", "a.value", "b.value", "how", "a.where",
	"b.where", NULL};
static const char *const finding_keys[] = {"kind", "what", "name", "io", "pos", "step", "rank",
	"rule", "value", "limit", "limit_from", "confidence", "ranked", "text", NULL};
/* Those of a dump, and those of acctoken. */
static const char *const sample_keys[] = {"kind", "name", "step", "rank", "sample", "group",
	"version", "finish", "start", "prompt", "response", "tok.n", "tok.k1", "tok.k3", "tok.rms",
	"tok.log_ratio", "tok.max", "tok.max_at", "tok.parted", "tok.parted_at", "what", "rule",
	"value", "limit", "limit_from", "text", NULL};
static const char *const sample_short[] = {"name", "step", "rank", "group", "version", "finish",
	"start", "prompt", "response", "tok.n", "tok.rms", "tok.k3", "tok.max", "tok.max_at",
	"tok.parted", "tok.parted_at", NULL};
static const char *const pair_short[] = {"name", "a.step", "a.rank", "a.dtype", "a.shape", "how",
	"note", "m.max_abs", "m.err_max", "m.err_rms", "m.max_rel", "m.rel_l2", "m.ulp_max",
	"m.nonfinite", "m.norm_relerr", "m.equal", "bad", "rule", NULL};
static const char *const tensor_short[] = {"name", "step", "rank", "type", "dtype", "shape",
	"value", "s.min", "s.max", "s.mean", "s.norm", "stat.min", "stat.max", "audit.ok",
	"audit.err", "audit.limit", "audit.cause", "audit.skip", "bad", "err", NULL};

/* A pair of such records, on that side: points of curves, which have tags instead of names, or
 * parameters. */
static bool
is_of(const struct acc_rec *r, const char *side, const char *kind)
{
	return acc_rec_is(r, "pair") && acc_str_is(acc_get_text(r, "", side), kind);
}

static const char *const *
default_keys(const struct acc_rec *r, bool for_people)
{
	if (acc_rec_is(r, "curve"))
		return for_people ? curve_short : curve_keys;
	if (is_of(r, "a.kind", "scalar") || is_of(r, "b.kind", "scalar"))
		return for_people ? point_short : point_keys;
	if (is_of(r, "a.kind", "param") || is_of(r, "b.kind", "param"))
		return !for_people                      ? check_keys
		       : acc_get(r, "", "name") != NULL ? check_short
							: param_pair_short;
	if (acc_rec_is(r, "pair"))
		return for_people ? pair_short : pair_keys;
	if (acc_rec_is(r, "tensor") || acc_rec_is(r, "arg"))
		return for_people ? tensor_short : tensor_keys;
	if (acc_rec_is(r, "sample"))
		return for_people ? sample_short : sample_keys;
	if (acc_rec_is(r, "scalar"))
		return scalar_keys;
	if (acc_rec_is(r, "param"))
		return for_people ? param_short : param_keys;
	return finding_keys;
}

bool
acc_cell_acts(struct acc_str s)
{
	struct acc_literal number;
	static const char begins[7] = {'=', '+', '-', '@', '\t', '\r', '\n'};
	return s.n > 0 && memchr(begins, s.p[0], sizeof begins) != NULL &&
	       !acc_literal_all(s, &number);
}

/* Of eight bytes at once: bit 7 of those that are 0. Borrows reach only bytes above one that is. */
static uint64_t
zero_bytes(uint64_t x)
{
	return (x - UINT64_C(0x0101010101010101)) & ~x & UINT64_C(0x8080808080808080);
}

uint32_t
acc_plain_run(struct acc_str s, char a, char b)
{
	const uint64_t ones = UINT64_C(0x0101010101010101);
	uint32_t i = 0;
	for (uint64_t x; s.n - i >= sizeof x; i += (uint32_t)sizeof x) {
		memcpy(&x, s.p + i, sizeof x);
		if (((x | (x - ones * 0x20)) & ones * 0x80) != 0 ||
			(zero_bytes(x ^ ones * 0x7f) | zero_bytes(x ^ ones * (unsigned char)a) |
				zero_bytes(x ^ ones * (unsigned char)b)) != 0)
			break;
	}
	while (i < s.n && s.p[i] >= 0x20 && s.p[i] < 0x7f && s.p[i] != a && s.p[i] != b)
		i++;
	return i;
}

static struct acc_str
list(const struct acc_val *v, struct acc_arena *m)
{
	size_t room = 3;
	for (uint32_t i = 0; i < v->n; i++)
		room += v->type == ACC_V_INTS ? 24 : v->texts[i].n + 2;
	char *p = acc_alloc(m, room);
	if (p == NULL)
		return (struct acc_str){"", 0};
	size_t n = 0;
	p[n++] = '[';
	for (uint32_t i = 0; i < v->n; i++) {
		if (i > 0) {
			p[n++] = ',';
			p[n++] = ' ';
		}
		if (v->type == ACC_V_INTS) {
			n += (size_t)snprintf(p + n, room - n, "%lld", (long long)v->ints[i]);
		} else {
			memcpy(p + n, v->texts[i].p, v->texts[i].n);
			n += v->texts[i].n;
		}
	}
	p[n++] = ']';
	return (struct acc_str){p, (uint32_t)n};
}

struct acc_str
acc_cell_text(const struct acc_val *v, struct acc_arena *m)
{
	char buf[40];
	if (v == NULL)
		return (struct acc_str){"", 0};
	switch (v->type) {
	case ACC_V_NIL:
		return (struct acc_str){"", 0};
	case ACC_V_BOOL:
		return acc_str(v->b ? "true" : "false");
	case ACC_V_INT:
		snprintf(buf, sizeof buf, "%lld", (long long)v->i);
		break;
	case ACC_V_UINT:
		snprintf(buf, sizeof buf, "%llu", (unsigned long long)v->u);
		break;
	case ACC_V_F64:
		acc_f64_repr(v->f, buf, sizeof buf);
		break;
	case ACC_V_TEXT:
		return v->s;
	case ACC_V_BIN:
		snprintf(buf, sizeof buf, "%u bytes", v->s.n);
		break;
	case ACC_V_INTS:
	case ACC_V_TEXTS:
		return list(v, m);
	}
	return acc_str(acc_arena_copy(m, buf, strlen(buf)));
}

static struct acc_str
plain(void *ctx, const struct acc_rec *r, const struct acc_column *c, struct acc_arena *m)
{
	(void)ctx;
	if (strcmp(c->key, "kind") == 0)
		return r->kind;
	const struct acc_val *v = acc_get(r, "", c->key);
	/* A finding names its step and rank as the device does. */
	if (v == NULL && acc_rec_is(r, "finding") && acc_str_starts(acc_str(c->key), "a."))
		v = acc_get(r, "", c->key + 2);
	return acc_cell_text(v, m);
}

/* In place of the id of a stack, which tells nobody anything, its frames. */
static struct acc_str
frames(void *ctx, const struct acc_rec *r, const struct acc_column *c, struct acc_arena *m)
{
	return acc_stacks_get(ctx, plain(NULL, r, c, m));
}

/* A number for people: six digits tell two losses apart. */
static struct acc_str
rounded(void *ctx, const struct acc_rec *r, const struct acc_column *c, struct acc_arena *m)
{
	const struct acc_val *v = acc_get(r, "", c->key);
	if (v != NULL && v->type == ACC_V_F64 && isfinite(v->f))
		return acc_str(acc_arena_printf(m, "%.6g", v->f));
	return plain(ctx, r, c, m);
}

/* Of a measure four digits say what a person wants to know. */
static struct acc_str
brief(void *ctx, const struct acc_rec *r, const struct acc_column *c, struct acc_arena *m)
{
	const struct acc_val *v = acc_get(r, "", c->key);
	/* One column says it for both sides. */
	static const char *const shared[] = {"dtype", "shape", "tag", "step", "rank", "key"};
	for (size_t i = 0; v == NULL && i < sizeof shared / sizeof *shared; i++)
		if (strncmp(c->key, "a.", 2) == 0 && strcmp(c->key + 2, shared[i]) == 0)
			v = acc_get(r, "b.", shared[i]);
	/* A default was read nowhere. */
	if (v == NULL && c->key[0] != '\0' && strcmp(c->key + 1, ".where") == 0) {
		struct acc_str given = acc_get_text(r, c->key[0] == 'a' ? "a." : "b.", "given");
		if (given.n > 0)
			return acc_str_starts(given, "fixed") ? ACC_STR("(fixed)")
							      : ACC_STR("(default)");
	}
	/* Why a rule matters is told in a sentence of its own. */
	if (strcmp(c->key, "why") == 0 && acc_get(r, "", "bad") != NULL)
		return ACC_STR("");
	/* How two records were matched matters until they are measured. */
	if (strcmp(c->key, "how") == 0 && acc_get(r, "", "m.mode") != NULL)
		return ACC_STR("");
	/* The measures that the findings name stand for those that are nearly the same. */
	if (strcmp(c->key, "m.max_rel") == 0 && acc_get(r, "", "m.err_max") != NULL)
		return ACC_STR("");
	if (strcmp(c->key, "m.rel_l2") == 0 && acc_get(r, "", "m.err_rms") != NULL)
		return ACC_STR("");
	/* Where NaN and infinities agree, as nearly everywhere, nothing needs to be said. */
	if (strcmp(c->key, "m.nonfinite") == 0 && v != NULL && v->type == ACC_V_INT && v->i == 0)
		return ACC_STR("");
	if (v != NULL && v->type == ACC_V_F64 && isfinite(v->f))
		return acc_str(acc_arena_printf(m,
			acc_str_ends(acc_str(c->key), "value") ? "%.6g" : "%.4g", v->f));
	struct acc_column as = {.key = c->key};
	return v == NULL ? plain(ctx, r, &as, m) : acc_cell_text(v, m);
}

const char *
acc_columns_name(size_t i)
{
	return i < sizeof sets / sizeof *sets ? sets[i]->name : NULL;
}

int
acc_cells_open(struct acc_cells *c, const struct acc_format_opt *opt, bool for_people,
	struct acc_err *e)
{
	*c = (struct acc_cells){.for_people = for_people};
	for (size_t i = 0; opt->preset != NULL && i < sizeof sets / sizeof *sets; i++)
		if (strcmp(sets[i]->name, opt->preset) == 0)
			c->set = sets[i];
	if (opt->preset != NULL && c->set == NULL)
		return acc_fail(e, ACC_EUSAGE, "no set of columns named '%s'", opt->preset);
	if (c->set != NULL)
		return c->set->open(&c->ctx, e);
	if (opt->ncolumns == 0)
		return 0;
	c->own = calloc(opt->ncolumns + 1, sizeof *c->own);
	if (c->own == NULL)
		return acc_nomem(e);
	c->ctx = &c->stacks;
	for (size_t i = 0; i < opt->ncolumns; i++) {
		bool stack = acc_stacks_key(opt->columns[i]);
		c->shows_stacks |= stack;
		c->own[i] = (struct acc_column){.title = opt->columns[i],
			.cell = stack        ? frames
				: for_people ? rounded
					     : plain,
			.key = opt->columns[i]};
	}
	return 0;
}

/* The columns, now that the first row is known. */
static int
choose(struct acc_cells *c, const struct acc_rec *r, struct acc_err *e)
{
	if (c->set != NULL) {
		c->column = c->set->columns(c->ctx, r);
	} else if (c->own == NULL) {
		const char *const *key = default_keys(r, c->for_people);
		size_t n = 0;
		while (key[n] != NULL)
			n++;
		c->own = calloc(n + 1, sizeof *c->own);
		if (c->own == NULL)
			return acc_nomem(e);
		for (size_t i = 0; i < n; i++)
			c->own[i] = (struct acc_column){.title = key[i],
				.cell = c->for_people ? brief : plain,
				.key = key[i]};
		c->places = key == pair_short || key == tensor_short;
	}
	if (c->set == NULL)
		c->column = c->own;
	while (c->column[c->n].title != NULL)
		c->n++;
	c->cell = calloc(c->n + 1, sizeof *c->cell);
	return c->cell == NULL ? acc_nomem(e) : 0;
}

bool
acc_is_row(const struct acc_rec *r)
{
	return !acc_rec_is(r, "source") && !acc_rec_is(r, "stack") && !acc_rec_is(r, "data") &&
	       !acc_rec_is(r, "scatter");
}

int
acc_cells_row(struct acc_cells *c, const struct acc_rec *r, struct acc_err *e)
{
	int rc;
	if (c->set != NULL && (rc = c->set->see(c->ctx, r, e)) < 0)
		return rc;
	if (c->shows_stacks && (rc = acc_stacks_see(&c->stacks, r, e)) < 0)
		return rc;
	bool row = c->set != NULL ? c->set->is_row(c->ctx, r) : acc_is_row(r);
	if (!row)
		return 0;
	if (c->n == 0 && (rc = choose(c, r, e)) < 0)
		return rc;
	acc_arena_reset(&c->mem);
	for (size_t i = 0; i < c->n; i++)
		c->cell[i] = c->column[i].cell(c->ctx, r, &c->column[i], &c->mem);
	return c->mem.lost ? acc_nomem(e) : 1;
}

void
acc_cells_close(struct acc_cells *c)
{
	if (c->set != NULL && c->ctx != NULL)
		c->set->close(c->ctx);
	acc_stacks_release(&c->stacks);
	free(c->cell);
	free(c->own);
	acc_arena_release(&c->mem);
}
