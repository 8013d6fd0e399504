/* Configurations that are assignments of literals: TOML, and Python as OpenMMLab and others write it, of which
 * nothing is run.
 *
 *	[optimizer]                                  optimizer = dict(type='AdamW', lr=1e-4,
 *	lr = 1e-4                                        betas=(0.9, 0.999))
 *	betas = [0.9, 0.999]                         train = [dict(type='Crop', size=8), dict(type='Flip')]
 *
 * Both are optimizer.lr and optimizer.betas; of a list that holds tables each has its number, train.0.size. What is
 * no literal is left out, and said. So are "config.lr = 0.1" and "_C.SOLVER.BASE_LR = 0.1" read, lr and
 * SOLVER.BASE_LR.
 */
#include "dump/config/param.h"
#include "dump/config/python.h"
#include "dump/say.h"
#include "io/literal.h"

enum { NESTED = 64 };

struct reader {
	struct params ps;
	const char *path;
	const char *p, *end;
	uint64_t line;
	bool toml;
	bool ini;          /* a value is the rest of its line */
	bool makes;        /* inside a function that makes it */
	bool named;        /* after a configuration, so that its classes are read, too: */
	struct acc_str of; /* the one, n is 0 outside, */
	uint32_t indent;   /* of what it assigns itself; 0: not seen yet */
	unsigned classes;
	char key[4096];
	uint32_t nkey;
	struct acc_buf text; /* of a value */
	unsigned left;       /* values that are no literals; the first: */
	uint64_t left_line;
	char left_key[128];
};

static bool
name_char(char c)
{
	return c == '_' || (c >= '0' && c <= '9') || ((c | 0x20) >= 'a' && (c | 0x20) <= 'z');
}

/* Over blanks, and line ends and comments where a bracket is open. */
static void
blanks(struct reader *r, bool lines)
{
	for (; r->p < r->end; r->p++) {
		if (*r->p == '#')
			while (r->p + 1 < r->end && r->p[1] != '\n')
				r->p++;
		else if (*r->p == '\n' && lines)
			r->line++;
		else if (*r->p == '\\' && r->p + 1 < r->end && r->p[1] == '\n' && !r->toml)
			r->line++, r->p++;
		else if (*r->p != ' ' && *r->p != '\t' && *r->p != '\r')
			break;
	}
}

static bool
at_char(struct reader *r, char c)
{
	blanks(r, true);
	if (r->p == r->end || *r->p != c)
		return false;
	r->p++;
	return true;
}

/* The string at p, its text into r->text. False: it does not end, or is no literal. */
static bool
string(struct reader *r, int *rc)
{
	static const char from[] = "ntr\"'\\", to[] = "\n\t\r\"'\\";
	const char q = *r->p;
	const bool triple = r->end - r->p > 2 && r->p[1] == q && r->p[2] == q;
	const uint32_t n = triple ? 3 : 1;
	for (r->p += n; r->p < r->end; r->p++) {
		const char *f = r->p + 1 < r->end && *r->p == '\\' && !(r->toml && q == '\'')
					? memchr(from, r->p[1], sizeof from - 1)
					: NULL;
		if (*r->p == q &&
			(!triple || (r->end - r->p > 2 && r->p[1] == q && r->p[2] == q))) {
			r->p += n;
			return true;
		}
		if (*r->p == '\n' && !triple)
			return false;
		r->line += *r->p == '\n';
		*rc |= acc_buf_add(&r->text, f != NULL ? &to[f - from] : r->p, 1);
		r->p += f != NULL;
	}
	return false;
}

static bool
is_string(const struct reader *r)
{
	const char *p = r->p;
	if (!r->toml && r->end - p > 1 && strchr("rbuRBU", *p) != NULL)
		p++;
	return p < r->end && (*p == '"' || *p == '\'');
}

/* A string, a number, a truth: its text onto r->text. */
static bool
scalar(struct reader *r, int *rc)
{
	struct acc_literal v;
	if (is_string(r)) {
		bool good = true;
		for (; good && is_string(r);
			blanks(r, false)) { /* Python joins those that follow */
			r->p += *r->p != '"' && *r->p != '\'';
			good = string(r, rc);
			if (r->toml)
				break;
		}
		return good;
	}
	const char *q = r->p;
	while (q < r->end && (name_char(*q) || strchr("+-.:", *q) != NULL) && *q != '\0')
		q++;
	char plain[64];
	uint32_t n = 0;
	for (const char *c = r->p; c < q && n < sizeof plain; c++)
		if (*c != '_')
			plain[n++] = *c;
	const struct acc_str word = {r->p, (uint32_t)(q - r->p)}, number = {plain, n};
	const bool date = r->toml && n >= 8 && (plain[2] == ':' || plain[4] == '-');
	r->p = q;
	if (acc_word_in("True False true false", word) || date)
		*rc |= acc_buf_add(&r->text, word.p, word.n);
	else if (word.n > 0 && !name_char(word.p[0]) == (strchr("+-.", word.p[0]) != NULL) &&
		 acc_literal_all(number, &v))
		*rc |= acc_buf_add(&r->text, number.p, number.n);
	else if (!r->toml && acc_str_is(word, "None"))
		*rc |= acc_buf_add(&r->text, "None", 4);
	else
		return false;
	return true;
}

static char
closing(char c)
{
	return c == '[' ? ']' : c == '(' ? ')' : c == '{' ? '}' : '\0';
}

/* Over a value of any kind: to the comma, bracket or line end behind it. */
static void
skip(struct reader *r, bool nested)
{
	int depth = 0, rc = 0;
	for (; r->p < r->end; r->p++) {
		if (*r->p == '"' || *r->p == '\'') {
			r->text.n = 0;
			if (!string(r, &rc))
				return;
			r->p--;
			continue;
		}
		if (*r->p == '#')
			while (r->p + 1 < r->end && r->p[1] != '\n')
				r->p++;
		if (depth == 0 && (*r->p == ')' || *r->p == ']' || *r->p == '}' ||
					  (nested && *r->p == ',') || (!nested && *r->p == '\n')))
			return;
		r->line += *r->p == '\n';
		depth += closing(*r->p) != '\0';
		depth -= *r->p == ')' || *r->p == ']' || *r->p == '}';
	}
}

static bool
is_dict(const struct reader *r)
{
	return *r->p == '{' || (!r->toml && acc_python_call(r->p, r->end) > 0);
}

/* A list without tables, as [a, b]. */
static bool
flat(struct reader *r, int depth, int *rc)
{
	const char close = closing(*r->p++);
	*rc |= acc_buf_add(&r->text, "[", 1);
	for (unsigned n = 0; !at_char(r, close); n++) {
		if (r->p == r->end || depth == NESTED || is_dict(r))
			return false;
		if (n > 0)
			*rc |= acc_buf_add(&r->text, ", ", 2);
		if (*r->p == '[' || (*r->p == '(' && !r->toml) ? !flat(r, depth + 1, rc)
							       : !scalar(r, rc))
			return false;
		if (!at_char(r, ',') && (r->p == r->end || *r->p != close))
			return false;
	}
	*rc |= acc_buf_add(&r->text, "]", 1);
	return true;
}

static int value(struct reader *r, int depth, uint64_t line, struct acc_err *e);

/* A name below the key so far; the length of that. Too long a key is cut. */
static uint32_t
below(struct reader *r, struct acc_str name)
{
	const uint32_t before = r->nkey;
	if (r->nkey > 0 && r->nkey < sizeof r->key)
		r->key[r->nkey++] = '.';
	const uint32_t n = (uint32_t)(sizeof r->key) - r->nkey;
	if (name.n > n)
		name.n = n;
	if (name.n > 0)
		memcpy(r->key + r->nkey, name.p, name.n);
	r->nkey += name.n;
	return before;
}

/* One name of a key, quoted or not; in r->text. */
static bool
key_part(struct reader *r, int *rc)
{
	r->text.n = 0;
	if (r->p < r->end && (*r->p == '"' || *r->p == '\''))
		return string(r, rc);
	const char *q = r->p;
	q += r->ini && q < r->end && *q == '@';
	while (q < r->end && (name_char(*q) || (*q == '-' && r->toml)))
		q++;
	*rc |= acc_buf_add(&r->text, r->p, (size_t)(q - r->p));
	r->p = q;
	return r->text.n > 0;
}

/* Names of the configuration itself, in Python: config.lr is lr. */
static const char roots[] = "config cfg _C C conf cfgs args opt hparams hps self";

/* a."b".c: put below the key so far. */
static bool
dotted(struct reader *r, int *rc)
{
	for (bool first = r->nkey == 0;; first = false) {
		blanks(r, false);
		if (!key_part(r, rc))
			return false;
		const struct acc_str name = {(const char *)r->text.p, (uint32_t)r->text.n};
		const bool more = r->p < r->end && *r->p == '.';
		if (r->toml || !first || !more || !acc_word_in(roots, name))
			below(r, name);
		blanks(r, false);
		if (r->p == r->end || *r->p != '.')
			return true;
		r->p++;
	}
}

/* {"a": 1}, dict(a=1), { a = 1 } */
static int
table(struct reader *r, int depth, struct acc_err *e)
{
	const bool called = *r->p != '{', colons = !called && !r->toml;
	const char close = called ? ')' : '}';
	int rc = 0;
	r->p += called ? acc_python_call(r->p, r->end) : 1;
	while (rc == 0 && !at_char(r, close)) {
		const uint32_t before = r->nkey;
		const uint64_t line = r->line;
		const bool good = r->p < r->end && (r->toml ? dotted(r, &rc) : key_part(r, &rc));
		if (good && rc == 0 && !r->toml)
			below(r, (struct acc_str){(const char *)r->text.p, (uint32_t)r->text.n});
		if (rc == 0)
			rc = good && at_char(r, colons ? ':' : '=') ? value(r, depth + 1, line, e)
								    : ACC_EFORMAT;
		r->nkey = before;
		if (rc == 0 && !at_char(r, ',') && (r->p == r->end || *r->p != close))
			rc = ACC_EFORMAT;
	}
	return rc;
}

/* A list of which some are tables. */
static int
items(struct reader *r, int depth, struct acc_err *e)
{
	const char close = closing(*r->p++);
	int rc = 0;
	for (unsigned n = 0; rc == 0 && !at_char(r, close); n++) {
		char number[16];
		snprintf(number, sizeof number, "%u", n);
		const uint32_t before = below(r, acc_str(number));
		rc = r->p == r->end ? ACC_EFORMAT : value(r, depth + 1, r->line, e);
		r->nkey = before;
		if (rc == 0 && !at_char(r, ',') && (r->p == r->end || *r->p != close))
			rc = ACC_EFORMAT;
	}
	return rc;
}

static void
leave(struct reader *r, uint64_t line)
{
	if (r->left++ > 0)
		return;
	r->left_line = line;
	snprintf(r->left_key, sizeof r->left_key, "%.*s", (int)r->nkey, r->key);
}

/* A value that holds tables, or is one: 0; 1: it is no literal, nothing of it is kept; < 0. */
static int
tables(struct reader *r, int depth, struct acc_err *e)
{
	const char *start = r->p;
	const uint64_t line = r->line;
	const size_t had = r->ps.n;
	const unsigned left = r->left;
	const uint32_t nkey = r->nkey;
	int rc = is_dict(r) ? table(r, depth, e) : items(r, depth, e);
	blanks(r, depth > 0);
	if (rc == 0 && (r->p == r->end || *r->p == '\n' || *r->p == ';' ||
			       (depth > 0 && strchr(",)]}", *r->p) != NULL)))
		return 0;
	r->p = start;
	r->line = line;
	r->ps.n = had;
	r->left = left;
	r->nkey = nkey;
	return rc == 0 || rc == ACC_EFORMAT ? 1 : rc;
}

/* "edict()", "CN()": it is empty, what it holds is assigned later. */
static bool
is_empty_call(struct reader *r)
{
	const char *q = r->p;
	while (q < r->end && (name_char(*q) || *q == '.'))
		q++;
	return !r->toml && q > r->p && r->end - q > 1 && q[0] == '(' && q[1] == ')';
}

/* "efficientnet-b3  ; a comment" */
static int
rest_of_line(struct reader *r, uint64_t line, struct acc_err *e)
{
	const char *first = r->p;
	while (r->p < r->end && *r->p != '\n' &&
		!(r->p > first && r->p[-1] == ' ' && (*r->p == ';' || *r->p == '#')))
		r->p++;
	const struct acc_str v = acc_str_trim((struct acc_str){first, (uint32_t)(r->p - first)});
	return acc_params_add(&r->ps,
		&(struct param){.key = {r->key, r->nkey},
			.value = v.n > 0 ? v : ACC_STR(""),
			.line = line},
		e);
}

/* What is assigned to the key so far. ACC_EFORMAT: it could not be told where it ends. */
static int
value(struct reader *r, int depth, uint64_t line, struct acc_err *e)
{
	const char *start;
	int rc = 0;
	if (r->ini)
		return rest_of_line(r, line, e);
	blanks(r, depth > 0);
	start = r->p;
	if (r->p == r->end || depth == NESTED)
		return ACC_EFORMAT;
	const uint64_t first = r->line;
	const bool dict = is_dict(r);
	const bool list = *r->p == '[' || (*r->p == '(' && !r->toml);
	r->text.n = 0;
	bool good = dict ? false : list ? flat(r, depth, &rc) : scalar(r, &rc);
	if (!good && rc == 0 && (dict || list)) {
		r->p = start;
		r->line = first;
		if ((rc = tables(r, depth, e)) <= 0)
			return rc;
		rc = 0;
	}
	if (good) {
		blanks(r, depth > 0);
		good = r->p == r->end || *r->p == '\n' || *r->p == ';' ||
		       (depth > 0 && strchr(",)]}", *r->p) != NULL);
	}
	if (rc < 0)
		return acc_nomem(e);
	if (!good) {
		r->p = start;
		r->line = first;
		if (!is_empty_call(r))
			leave(r, line);
		skip(r, depth > 0);
		return 0;
	}
	struct param p = {.key = {r->key, r->nkey},
		.value = {(const char *)r->text.p, (uint32_t)r->text.n},
		.line = line};
	if (!r->toml && !is_string(&(struct reader){.p = start, .end = r->end}) &&
		acc_str_is(p.value, "None"))
		p.value.p = NULL;
	else if (p.value.p == NULL)
		p.value = ACC_STR("");
	return acc_params_add(&r->ps, &p, e);
}

/* "[a.b]" and "[[a.b]]", whose tables have numbers. */
static int
header(struct reader *r, struct acc_map *counts, struct acc_err *e)
{
	int rc = 0;
	const bool many = r->end - r->p > 1 && r->p[1] == '[';
	r->p += many ? 2 : 1;
	r->nkey = 0;
	if (!dotted(r, &rc) || r->p == r->end || *r->p != ']')
		return rc < 0 ? acc_nomem(e) : ACC_EFORMAT;
	r->p += many && r->end - r->p > 1 ? 2 : 1;
	if (!many)
		return 0;
	char number[24];
	uint64_t *n = acc_map_put(counts, (struct acc_str){r->key, r->nkey}, UINT64_MAX);
	if (n == NULL)
		return acc_nomem(e);
	snprintf(number, sizeof number, "%llu", (unsigned long long)++*n);
	below(r, acc_str(number));
	return 0;
}

static void
next_line(struct reader *r)
{
	while (r->p < r->end && *r->p != '\n')
		r->p++;
}

/* An assignment at the beginning of a line. 1: none. */
static int
assignment(struct reader *r, struct acc_err *e)
{
	const uint32_t head = r->nkey;
	const uint64_t line = r->line;
	int rc = 0, got;
	bool good = dotted(r, &rc);
	if (good && !r->toml && r->p < r->end && *r->p == ':') /* x: float = 1 */
		while (r->p < r->end && *r->p != '=' && *r->p != '\n')
			r->p++;
	good = good && r->p + 1 < r->end && *r->p == '=' && r->p[1] != '=';
	r->p += good;
	got = rc < 0 ? acc_nomem(e) : !good ? 1 : value(r, 0, line, e);
	r->nkey = head;
	return got;
}

/* "def get_config():" of those who use ml_collections: what it assigns is the configuration. */
static bool
makes(const struct reader *r)
{
	static const char def[] = "def get_config(";
	return (size_t)(r->end - r->p) > sizeof def && memcmp(r->p, def, sizeof def - 1) == 0;
}

/* "class TrainConfig(Base):" at the beginning of a line. */
static void class(struct reader *r)
{
	const char *p = r->p + 6, *q = p;
	while (q < r->end && name_char(*q))
		q++;
	r->of = (struct acc_str){p, (uint32_t)(q - p)};
	r->indent = 0;
}

/* A line inside a class: what it assigns to itself, and its methods to self. Of several classes each has its name. */
static int
inside(struct reader *r, struct acc_err *e)
{
	const uint32_t n = acc_python_indent(r->p, r->end), before = r->nkey;
	const bool self = r->end - r->p - n > 5 && memcmp(r->p + n, "self.", 5) == 0;
	r->p += n;
	r->indent = r->indent == 0 ? n : r->indent;
	if (r->p == r->end || !name_char(*r->p) || !(n == r->indent || self))
		return 1;
	r->p += self ? 5 : 0;
	if (r->classes > 1)
		below(r, r->of);
	int rc = assignment(r, e);
	r->nkey = before;
	return rc;
}

static int
lines(struct reader *r, struct acc_err *e)
{
	struct acc_map counts = {0};
	int rc = 0;
	while (rc == 0 && r->p < r->end) {
		const char *start = r->p;
		if (*start == '\n') {
			r->line++;
			r->p++;
			continue;
		}
		if (r->toml || r->makes)
			blanks(r, false);
		const char c = r->p < r->end ? *r->p : '\n';
		if (name_char(c))
			r->of.n = 0;
		if (c == '[' && r->toml)
			rc = header(r, &counts, e);
		else if (!r->toml && makes(r))
			r->makes = true;
		else if (r->named && r->end - r->p > 6 && memcmp(r->p, "class ", 6) == 0)
			class(r);
		else if (r->of.n > 0 && (c == ' ' || c == '\t'))
			rc = inside(r, e);
		else if (c == '"' || c == '\'' ? r->toml : name_char(c) || (c == '@' && r->ini))
			rc = assignment(r, e);
		else if (c == '"' || c == '\'')
			rc = string(r, &rc) ? 0 : ACC_EFORMAT; /* what a module says of itself */
		if (rc == ACC_EFORMAT)
			rc = acc_fail(e, ACC_EFORMAT, "line %llu: no %s",
				(unsigned long long)r->line,
				r->ini    ? "INI"
				: r->toml ? "TOML"
					  : "literal that ends");
		rc = rc > 0 ? 0 : rc;
		if (rc == 0)
			next_line(r);
	}
	acc_map_release(&counts);
	return rc;
}

static int
probe(const struct acc_probe *p)
{
	if (p->is_dir || p->nhead == 0 || memchr(p->head, '\0', p->nhead) != NULL)
		return 0;
	if (acc_str_ends(p->base, ".toml"))
		return 70;
	const struct acc_str head = {(const char *)p->head, (uint32_t)p->nhead};
	unsigned classes;
	if (!acc_str_ends(p->base, ".py"))
		return acc_text_is_ini(head) ? 45 : 0;
	return acc_python_only_assigns(head) || (acc_python_configures(p->base) &&
							acc_python_assigns(head, &classes) > 0)
		       ? 65
		       : 0;
}

static int
read_literals(struct acc_dump_ctx *c, const char *path, struct acc_err *e)
{
	struct reader r = {.path = path, .line = 1};
	int rc = acc_params_open(&r.ps, c, path, e);
	r.p = r.ps.text.n > 0 ? (const char *)r.ps.text.p : "";
	r.end = r.p + r.ps.text.n;
	r.toml = rc == 0 && !acc_str_ends(acc_str(r.ps.f.name), ".py");
	r.ini = r.toml && !acc_str_ends(acc_str(r.ps.f.name), ".toml");
	r.named = rc == 0 && acc_python_configures(acc_str(r.ps.f.name));
	if (r.named)
		acc_python_assigns((struct acc_str){r.p, (uint32_t)r.ps.text.n}, &r.classes);
	if (rc == 0)
		rc = lines(&r, e);
	if (rc == 0 && r.left == 1)
		acc_dump_note(c, path, "line %llu: %s is no literal, and not read",
			(unsigned long long)r.left_line, r.left_key);
	else if (rc == 0 && r.left > 0)
		acc_dump_note(c, path, "line %llu: %s is no literal, and not read, nor are %u more",
			(unsigned long long)r.left_line, r.left_key, r.left - 1);
	if (rc == 0)
		rc = acc_params_put(&r.ps, r.toml ? "toml" : "python", acc_params_own(&r.ps),
			"no value in it", e);
	acc_buf_release(&r.text);
	acc_params_close(&r.ps);
	return rc;
}

const struct acc_dump acc_dump_config_literal = {
	.name = "toml",
	.help = "a configuration in TOML or INI, or of assignments in Python (OpenMMLab)",
	.probe = probe,
	.read = read_literals,
};
