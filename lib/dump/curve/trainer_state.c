/* trainer_state.json: what Hugging Face's Trainer saves with every checkpoint; and its log_history
 * alone, as json.dump writes it, or any list of objects with a loss and a step; and Keras' History, a list a name,
 * {"loss": [0.5, 0.4], "val_loss": [0.6, 0.5]}.
 *
 *	{"best_metric": null, "log_history": [
 *		{"epoch": 0.2, "grad_norm": NaN, "loss": 0.45, "step": 500},
 *		{"epoch": 1.0, "eval_loss": 0.28, "eval_runtime": 1672.9, "step": 2500}, ...
 */
#include "dump/curve/curve.h"
#include "dump/jtree.h"

static const char *const step_keys[] = {"step", "global_step", "iteration", "iter", "current_steps",
	"epoch"};

/* [{... "loss" ... "step" ...: a list of what was logged? */
static bool
is_list(const struct acc_probe *p, size_t at)
{
	const char *h = (const char *)p->head;
	char word[40];
	for (at++; at < p->nhead && h[at] != '\0' && strchr(" \t\r\n", h[at]) != NULL; at++)
		;
	const char *end = at == p->nhead || h[at] != '{' ? NULL
							 : memchr(h + at, '}', p->nhead - at);
	size_t n = end == NULL ? 0 : (size_t)(end - h) - at;
	if (n == 0 || memmem(h + at, n, "loss\":", 6) == NULL)
		return false;
	for (size_t i = 0; i < sizeof step_keys / sizeof *step_keys; i++) {
		int len = snprintf(word, sizeof word, "\"%s\":", step_keys[i]);
		if (memmem(h + at, n, word, (size_t)len) != NULL)
			return true;
	}
	return false;
}

/* {"loss": [0.5, 0.4, 0.3], ...: lists of numbers under names, a loss among them? */
static bool
is_columns(struct acc_str s)
{
	const char *p = s.p + 1, *end = s.p + s.n, *loss = memmem(s.p, s.n, "loss\":", 6);
	unsigned n = 0;
	if (loss == NULL && (loss = memmem(s.p, s.n, "losses\":", 8)) != NULL)
		loss += 2;
	while (p < end && *p != ':' && *p != '{' && *p != '[')
		p++;
	if (p == end || *p != ':' || loss == NULL)
		return false;
	for (p++; p < end && *p != ']' && strchr(" \t\r\n[,+-.eE0123456789NaInfity", *p) != NULL;
		p++) {
		if (*p == '[' && n++ > 0)
			return false;
		n += *p == ',' && n > 0;
	}
	for (loss += 6; loss < end && strchr(" \t\r\n", *loss) != NULL; loss++)
		;
	return n >= 3 && (p == end || *p == ']') && loss < end && *loss == '[';
}

static int
probe(const struct acc_probe *p)
{
	static const char word[] = "\"log_history\"";
	size_t i = 0;
	while (i < p->nhead && p->head[i] != '\0' && strchr(" \t\r\n", p->head[i]) != NULL)
		i++;
	if (p->is_dir || i == p->nhead)
		return 0;
	if (p->head[i] == '[')
		return is_list(p, i) ? 90 : 0;
	if (p->head[i] != '{')
		return 0;
	if (memmem(p->head, p->nhead, word, sizeof word - 1) != NULL)
		return 95;
	if (is_columns((struct acc_str){(const char *)p->head + i, (uint32_t)(p->nhead - i)}))
		return 85;
	return acc_str_is(p->base, "trainer_state.json") ? 90 : 0;
}

/* The Trainer rounds losses to four decimals (its newest versions do not), and Python shows
 * what remains without its zeros. */
static double
resolution(struct acc_str key, double v)
{
	char text[32];
	if (!acc_str_is(key, "loss") && !acc_str_is(key, "train_loss"))
		return 0;
	acc_f64_repr(v, text, sizeof text);
	const char *point = strchr(text, '.');
	return isfinite(v) && point != NULL && strlen(point) <= 5 && strchr(text, 'e') == NULL
		       ? 5e-5
		       : 0;
}

static int
put_entry(struct curves *cv, const struct jnode *entry, uint64_t at, struct acc_err *e)
{
	const struct jnode *step = NULL;
	for (size_t i = 0; i < sizeof step_keys / sizeof *step_keys && step == NULL; i++) {
		step = jtree_get(entry, step_keys[i]);
		step = step != NULL && step->type == ACC_JSON_INT ? step : NULL;
	}
	struct curve_point p = {.cls = CURVE_GUESS, .at = at, .has_step = step != NULL};
	if (p.has_step)
		p.step = step->i;
	p.epochs = step != NULL && step == jtree_get(entry, "epoch");
	for (const struct jnode *n = entry->child; n != NULL; n = n->next) {
		if (n == step || !acc_curve_number(n, &p.value))
			continue;
		p.tag = n->key;
		p.res = resolution(n->key, p.value);
		int rc = acc_curve_put(cv, &p, e);
		if (rc < 0)
			return rc;
	}
	return 0;
}

/* The elements of log_history. */
static int
history(struct curves *cv, struct acc_json *j, const char *path, struct acc_err *e)
{
	struct acc_arena m = {0};
	struct acc_json_tok t;
	uint64_t n = 0;
	int rc;
	while ((rc = acc_json_next(j, &t, e)) > 0 && t.type != ACC_JSON_ARRAY_END) {
		struct jnode *entry;
		acc_arena_reset(&m);
		rc = acc_jtree_read(j, &t, &m, &entry, e);
		if (rc < 0)
			break;
		n++;
		if (entry != NULL && entry->type == ACC_JSON_OBJECT) {
			rc = put_entry(cv, entry, n, e);
		} else {
			struct acc_err bad = {0};
			acc_fail_at(&bad, ACC_EFORMAT, t.pos,
				"record %llu of log_history is left "
				"out: it is no object, or too large",
				(unsigned long long)n);
			acc_err_in(&bad, path);
			acc_dump_trouble(cv->c, &bad);
		}
		if (rc < 0)
			break;
	}
	acc_arena_release(&m);
	return rc < 0 ? rc : 0;
}

/* A list of numbers, one an epoch, behind its bracket; what else is in it is left out. */
static int
column(struct curves *cv, struct acc_json *j, struct acc_str tag, struct acc_err *e)
{
	struct curve_point p = {.tag = tag, .cls = CURVE_GUESS, .has_step = true, .counted = true};
	struct acc_json_tok t;
	int rc, depth = 1;
	while ((rc = acc_json_next(j, &t, e)) > 0) {
		depth += (t.type == ACC_JSON_ARRAY || t.type == ACC_JSON_OBJECT) -
			 (t.type == ACC_JSON_ARRAY_END || t.type == ACC_JSON_OBJECT_END);
		if (depth == 0)
			return 0;
		if (depth > 1 || t.type == ACC_JSON_KEY)
			continue;
		p.value = t.f;
		p.at = (uint64_t)p.step + 1;
		if (t.type == ACC_JSON_INT || t.type == ACC_JSON_FLOAT)
			rc = acc_curve_put(cv, &p, e);
		if (rc < 0)
			return rc;
		p.step++;
	}
	return rc;
}

/* What stands under a key: a list, or lists under names of their own. 1 or < 0. */
static int
columns_of(struct curves *cv, struct acc_json *j, struct acc_str tag, struct acc_err *e)
{
	struct acc_json_tok t;
	char name[256];
	struct acc_str key = tag;
	int rc, depth = 0;
	while ((rc = acc_json_next(j, &t, e)) > 0) {
		depth += (t.type == ACC_JSON_OBJECT) - (t.type == ACC_JSON_OBJECT_END);
		if (t.type == ACC_JSON_KEY) {
			const int n = snprintf(name, sizeof name, "%.*s/%.*s", ACC_PRS(tag),
				t.s.n < 100 ? (int)t.s.n : 100, t.s.p);
			key = (struct acc_str){name,
				n < (int)sizeof name ? (uint32_t)n : (uint32_t)sizeof name - 1};
		} else if (t.type == ACC_JSON_ARRAY && (rc = column(cv, j, key, e)) < 0) {
			return rc;
		}
		if (depth == 0)
			return 1;
	}
	return rc < 0 ? rc : 1;
}

static int
top(struct curves *cv, struct acc_json *j, const char *path, bool columns, struct acc_err *e)
{
	struct acc_json_tok t;
	bool found = false;
	int rc = acc_json_next(j, &t, e);
	if (rc > 0 && t.type == ACC_JSON_ARRAY)
		return history(cv, j, path, e);
	if (rc > 0 && t.type != ACC_JSON_OBJECT)
		return acc_fail_at(e, ACC_EFORMAT, t.pos, "no trainer_state.json: it is no object");
	while (rc > 0 && (rc = acc_json_next(j, &t, e)) > 0) {
		if (t.type != ACC_JSON_KEY)
			continue;
		if (!acc_str_is(t.s, "log_history")) {
			char tag[256];
			struct acc_str name = {tag, (uint32_t)snprintf(tag, sizeof tag, "%.*s",
							    t.s.n < 255 ? (int)t.s.n : 255, t.s.p)};
			rc = !columns ? acc_json_skip(j, e) : columns_of(cv, j, name, e);
			rc = rc < 0 ? -1 : 1;
			continue;
		}
		rc = acc_json_next(j, &t, e);
		if (rc > 0 && t.type != ACC_JSON_ARRAY)
			return acc_fail_at(e, ACC_EFORMAT, t.pos, "log_history is no list");
		found = true;
		if (rc > 0)
			rc = history(cv, j, path, e) < 0 ? -1 : 1;
	}
	if (rc < 0)
		return e != NULL ? e->code : ACC_EFORMAT;
	return found || columns
		       ? 0
		       : acc_fail(e, ACC_EFORMAT, "no trainer_state.json: it has no log_history");
}

static int
read_state(struct acc_dump_ctx *c, const char *path, struct acc_err *e)
{
	struct curve_file f;
	struct curves cv = {0};
	int rc = acc_curve_begin(&cv, &f, c, path, "trainer_state", "pytorch", e);
	if (rc < 0)
		return rc;
	const uint8_t *head;
	size_t n = 0;
	rc = acc_bytes_more(f.b, &head, &n, e);
	uint32_t i = 0;
	while (rc >= 0 && i < n && head[i] != '\0' && strchr(" \t\r\n", head[i]) != NULL)
		i++;
	const bool columns = rc >= 0 && i < n && head[i] == '{' &&
			     is_columns((struct acc_str){(const char *)head + i,
				     (uint32_t)(n < 4096 ? n - i : 4096 - i)});
	struct acc_json *j = rc < 0 ? NULL : acc_json_open(f.b, false, e);
	rc = j == NULL ? (rc < 0 ? rc : ACC_ENOMEM) : top(&cv, j, path, columns, e);
	acc_json_close(j);
	acc_curves_release(&cv);
	return rc;
}

const struct acc_dump acc_dump_trainer_state = {
	.name = "trainer_state",
	.help = "Hugging Face's trainer_state.json, and lists of what was logged",
	.probe = probe,
	.read = read_state,
};
