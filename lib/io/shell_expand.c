/* Words of a shell script: quotes, variables, arithmetic. */
#include "io/shell_impl.h"

struct shell_var *
acc_shell_find(struct shell *sh, struct acc_str name)
{
	for (uint32_t i = 0; i < sh->nvar; i++)
		if (acc_str_eq(sh->var[i].name, name))
			return &sh->var[i];
	return NULL;
}

static bool
is_name_char(char c)
{
	return c == '_' || (c >= '0' && c <= '9') || ((c | 0x20) >= 'a' && (c | 0x20) <= 'z');
}

uint32_t
acc_shell_name(struct acc_str s)
{
	uint32_t n = 0;
	if (s.n > 0 && s.p[0] >= '0' && s.p[0] <= '9')
		return 0;
	while (n < s.n && is_name_char(s.p[n]))
		n++;
	return n;
}

/* One step of acc_shell_skip: what stands at p changes what is open. Behind it, or NULL. */
static const char *
step(const char *p, const char *end, char *open, int *depth)
{
	char c = *p, top = *depth > 0 ? open[*depth - 1] : 0, push = 0;
	if (c == '\\')
		return p + 1 < end ? p + 2 : p + 1;
	if (c == '\'' && top != '"' && top != '`') {
		p = memchr(p + 1, '\'', (size_t)(end - p) - 1);
		return p == NULL ? NULL : p + 1;
	}
	if (c == top && top != 0) {
		--*depth;
		return p + 1;
	}
	if (c == '"' || c == '`')
		push = c;
	else if (c == '$' && p + 1 < end && (p[1] == '(' || p[1] == '{'))
		push = *++p == '(' ? ')' : '}';
	else if (c == '(' && top == ')')
		push = ')';
	if (push != 0)
		open[(*depth)++] = push;
	return p + 1;
}

const char *
acc_shell_skip(const char *p, const char *end, uint32_t *line)
{
	char open[64];
	int depth = 0;
	do {
		const char *from = p;
		p = step(p, end, open, &depth);
		if (p == NULL || depth == (int)sizeof open)
			return NULL;
		for (; from < p; from++)
			*line += *from == '\n';
	} while (depth > 0 && p < end);
	return depth == 0 ? p : NULL;
}

static int
push_word(struct shell *sh, struct shell_words *out, const struct acc_shell_word *w)
{
	if (out->n == SHELL_WORDS)
		return acc_fail(sh->e, ACC_ELIMIT, "line %u: more than %d words", w->line,
			SHELL_WORDS);
	if (!ACC_ROOM(out->w, out->cap, out->n + 1, sh->e))
		return ACC_ENOMEM;
	out->w[out->n++] = *w;
	return 0;
}

/* The word that is being made. */
struct making {
	struct shell *sh;
	struct shell_words *out;
	struct acc_buf b;
	struct acc_shell_word w; /* its line and marks */
	bool any;                /* there is a word, though it may be empty */
	bool split, array;       /* array: what was added is an empty one, which is no word */
	uint32_t line;
	int depth;
};

static int
add(struct making *m, const char *p, size_t n, uint32_t line)
{
	if (n == 0)
		return 0;
	m->sh->work += n;
	if (m->sh->work > SHELL_WORK)
		return acc_fail(m->sh->e, ACC_ELIMIT, "line %u: its values grow without end",
			m->line);
	if (!m->any)
		m->w.line = line;
	m->any = true;
	return acc_buf_add(&m->b, p, n) < 0 ? acc_nomem(m->sh->e) : 0;
}

static int
finish(struct making *m)
{
	if (!m->any)
		return 0;
	m->w.s.p = acc_arena_copy(&m->sh->mem, m->b.p, m->b.n);
	m->w.s.n = (uint32_t)m->b.n;
	if (m->w.s.p == NULL)
		return acc_nomem(m->sh->e);
	int rc = push_word(m->sh, m->out, &m->w);
	m->w = (struct acc_shell_word){.line = m->line};
	m->any = false;
	m->b.n = 0;
	return rc;
}

/* A value that stands without quotes falls apart at blanks, but not at those of a command within it that was not run:
 * that stands for what the command prints. */
static int
add_split(struct making *m, struct acc_str s, uint32_t line, bool open)
{
	int rc = 0;
	for (uint32_t i = 0, start = 0; i <= s.n && rc == 0; i++) {
		const bool command = open && i + 1 < s.n &&
				     (s.p[i] == '`' || (s.p[i] == '$' && s.p[i + 1] == '('));
		const char *end = command ? acc_shell_skip(s.p + i, s.p + s.n, &line) : NULL;
		if (end != NULL)
			i = (uint32_t)(end - s.p) - 1;
		if (end != NULL || (i < s.n && s.p[i] != ' ' && s.p[i] != '\t' && s.p[i] != '\n'))
			continue;
		rc = add(m, s.p + start, i - start, line);
		if (rc == 0 && i < s.n)
			rc = finish(m);
		line += i < s.n && s.p[i] == '\n';
		start = i + 1;
	}
	return rc;
}

static int
add_value(struct making *m, const struct acc_shell_word *w, bool quoted)
{
	m->w.open |= w->open;
	m->w.maybe |= w->maybe;
	if (m->split && !quoted) {
		bool open = w->open, maybe = w->maybe;
		int rc = add_split(m, w->s, w->line, open);
		m->w.open |= open && m->any;
		m->w.maybe |= maybe && m->any;
		return rc;
	}
	if (!m->any)
		m->w.line = w->line;
	m->any |= quoted;
	return add(m, w->s.p, w->s.n, w->line);
}

static int
unknown(struct making *m, struct acc_str raw)
{
	m->w.open = true;
	return add(m, raw.p, raw.n, m->line);
}

/* The elements of an array, each a word. */
static int
add_array(struct making *m, const struct shell_var *v, bool quoted)
{
	int rc = 0;
	m->array = m->array || v->n == 0;
	for (uint32_t i = 0; i < v->n && rc == 0; i++) {
		if (i > 0 && m->split)
			rc = finish(m);
		else if (i > 0)
			rc = add(m, " ", 1, m->line);
		if (rc == 0)
			rc = add_value(m, &v->w[i], quoted);
	}
	return rc;
}

static int expand(struct making *m, struct acc_str s, bool quoted);

/* ${...}, without the braces; raw with them. */
static int
braces(struct making *m, struct acc_str in, struct acc_str raw, bool quoted)
{
	uint32_t n = acc_shell_name(in);
	struct acc_str name = {in.p, n}, rest = {in.p + n, in.n - n};
	bool digits = n == 0 && in.n > 0 && in.p[0] >= '0' && in.p[0] <= '9';
	if (digits) {
		while (name.n < in.n && in.p[name.n] >= '0' && in.p[name.n] <= '9')
			name.n++;
		rest = (struct acc_str){in.p + name.n, in.n - name.n};
	}
	const struct shell_var *v = acc_shell_find(m->sh, name);
	bool all = acc_str_is(rest, "[@]") || acc_str_is(rest, "[*]");
	if (name.n == 0)
		return unknown(m, raw);
	if (all && v != NULL)
		return add_array(m, v, quoted);
	if (rest.n == 0 && v != NULL)
		return v->n > 0 ? add_value(m, &v->w[0], quoted) : 0;
	bool colon = rest.n > 0 && rest.p[0] == ':';
	char op = rest.n > colon ? rest.p[colon] : 0;
	if (op != '-' && op != '=' && op != '+')
		return unknown(m, raw);
	struct acc_str word = {rest.p + colon + 1, rest.n - colon - 1};
	bool set = v != NULL && (v->n > 0 || !colon) &&
		   !(colon && v->w[0].s.n == 0 && !v->w[0].open);
	if (op == '+')
		return set ? expand(m, word, quoted) : 0;
	if (set)
		return v->n > 0 ? add_value(m, &v->w[0], quoted) : 0;
	return expand(m, word, quoted);
}

/* What begins with a dollar at p; *used bytes of it. */
static int
dollar(struct making *m, struct acc_str s, bool quoted, uint32_t *used)
{
	uint32_t line = m->line;
	int64_t v;
	char number[24];
	*used = 1;
	if (s.n < 2)
		return add(m, "$", 1, m->line);
	if (s.p[1] == '{' || s.p[1] == '(') {
		const char *end = acc_shell_skip(s.p, s.p + s.n, &line);
		*used = end == NULL ? s.n : (uint32_t)(end - s.p);
		struct acc_str raw = {s.p, *used};
		if (end == NULL)
			return unknown(m, raw);
		if (s.p[1] == '{')
			return braces(m, (struct acc_str){s.p + 2, *used - 3}, raw, quoted);
		if (*used >= 5 && s.p[2] == '(' && s.p[*used - 2] == ')' &&
			acc_shell_arithmetic(m->sh, (struct acc_str){s.p + 3, *used - 5}, &v))
			return add(m, number,
				(size_t)snprintf(number, sizeof number, "%lld", (long long)v),
				m->line);
		return unknown(m, raw);
	}
	struct acc_str name = {s.p + 1, s.n - 1};
	name.n = acc_shell_name(name);
	if (name.n == 0) { /* $1 $@ $# $? $$ */
		bool special = strchr("0123456789@*#?$!-", s.p[1]) != NULL && s.p[1] != '\0';
		*used += special;
		if (s.p[1] == '@' || s.p[1] == '*') {
			m->array = true;
			return 0; /* a script that is given no arguments */
		}
		return special ? unknown(m, (struct acc_str){s.p, 2}) : add(m, "$", 1, m->line);
	}
	*used = name.n + 1;
	const struct shell_var *var = acc_shell_find(m->sh, name);
	if (var == NULL)
		return unknown(m, (struct acc_str){s.p, *used});
	return var->n > 0 ? add_value(m, &var->w[0], quoted) : 0;
}

/* Text between double quotes. */
static int
quoted_text(struct making *m, struct acc_str s)
{
	int rc = 0;
	m->w.quoted = true;
	m->array = false;
	bool before = m->any;
	for (uint32_t i = 0, n; i < s.n && rc == 0; i += n) {
		char c = s.p[i];
		n = 1;
		m->line += c == '\n';
		if (c == '\\' && i + 1 < s.n && strchr("\\\"$`\n", s.p[i + 1]) != NULL) {
			/* A continued line: its end still parts words, and counts. */
			n = 2;
			m->line += s.p[i + 1] == '\n';
			rc = add(m, &s.p[i + 1], 1, m->line);
		} else if (c == '$') {
			rc = dollar(m, (struct acc_str){s.p + i, s.n - i}, true, &n);
		} else if (c == '`') {
			uint32_t lines = m->line;
			const char *end = acc_shell_skip(s.p + i, s.p + s.n, &lines);
			n = end == NULL ? s.n - i : (uint32_t)(end - s.p) - i;
			rc = unknown(m, (struct acc_str){s.p + i, n});
		} else {
			rc = add(m, &s.p[i], 1, m->line);
		}
	}
	/* "" is a word, and "${empty[@]}" is none. */
	if (!m->any && !m->array)
		m->any = true, m->w.line = m->line;
	m->any |= before;
	return rc;
}

static int
expand(struct making *m, struct acc_str s, bool quoted)
{
	int rc = 0;
	if (++m->depth > SHELL_DEPTH)
		return acc_fail(m->sh->e, ACC_ELIMIT, "line %u: values within values, more than %d",
			m->line, SHELL_DEPTH);
	for (uint32_t i = 0, n; i < s.n && rc == 0; i += n) {
		char c = s.p[i];
		uint32_t lines = m->line;
		n = 1;
		if (c == '\\') {
			n = i + 1 < s.n ? 2 : 1;
			if (n == 2 && s.p[i + 1] == '\n')
				m->line++;
			else if (n == 2)
				rc = add(m, &s.p[i + 1], 1, m->line);
		} else if (c == '\'' || c == '"' || c == '`') {
			const char *end = acc_shell_skip(s.p + i, s.p + s.n, &lines);
			n = end == NULL ? s.n - i : (uint32_t)(end - s.p) - i;
			struct acc_str in = {s.p + i + 1, n < 2 ? 0 : n - 2};
			if (c == '"') {
				rc = quoted_text(m, in);
			} else if (c == '`') {
				rc = unknown(m, (struct acc_str){s.p + i, n});
			} else {
				if (!m->any)
					m->w.line = m->line;
				m->any = m->w.quoted = true;
				rc = add(m, in.p, in.n, m->line);
			}
			m->line = lines;
		} else if (c == '$') {
			rc = dollar(m, (struct acc_str){s.p + i, s.n - i}, quoted, &n);
		} else if (m->split && !quoted && (c == ' ' || c == '\t' || c == '\n')) {
			rc = finish(m); /* in a default: ${A:---x 1} */
			m->line += c == '\n';
		} else {
			m->line += c == '\n';
			rc = add(m, &s.p[i], 1, m->line);
		}
	}
	m->depth--;
	return rc;
}

int
acc_shell_expand(struct shell *sh, struct shell_raw raw, bool split, struct shell_words *out)
{
	struct making m = {.sh = sh,
		.out = out,
		.split = split,
		.line = raw.line,
		.w.line = raw.line};
	int rc = expand(&m, (struct acc_str){raw.p, raw.n}, false);
	if (!split && !m.any)
		m.any = true;
	if (rc == 0)
		rc = finish(&m);
	acc_buf_release(&m.b);
	return rc;
}

/* --- arithmetic: operands and operators on two stacks --- */

static int
binds(char op)
{
	return op == '(' ? 0 : op == '+' || op == '-' ? 1 : 2;
}

static bool
apply(int64_t *v, int *n, char op)
{
	if (*n < 2)
		return false;
	int64_t a = v[*n - 2], b = v[*n - 1], r = 0;
	bool bad = false;
	if (op == '+')
		bad = __builtin_add_overflow(a, b, &r);
	else if (op == '-')
		bad = __builtin_sub_overflow(a, b, &r);
	else if (op == '*')
		bad = __builtin_mul_overflow(a, b, &r);
	else if (b == 0 || (a == INT64_MIN && b == -1))
		bad = true;
	else
		r = op == '/' ? a / b : a % b;
	v[--*n - 1] = r;
	return !bad;
}

/* A number, or a variable that holds one. */
static bool
operand(struct shell *sh, struct acc_str s, uint32_t *used, int64_t *v)
{
	uint32_t i = s.n > 0 && s.p[0] == '$';
	bool brace = i + 1 < s.n && i == 1 && s.p[1] == '{';
	i += brace;
	uint32_t n = 0;
	while (i + n < s.n && is_name_char(s.p[i + n]))
		n++;
	struct acc_str word = {s.p + i, n};
	*used = i + n + brace;
	if (n == 0 || *used > s.n || (brace && s.p[i + n] != '}'))
		return false;
	if (acc_str_int(word, v))
		return true;
	const struct shell_var *var = acc_shell_find(sh, word);
	return var != NULL && var->n > 0 && acc_str_int(var->w[0].s, v);
}

bool
acc_shell_arithmetic(struct shell *sh, struct acc_str s, int64_t *out)
{
	int64_t v[32] = {0};
	char op[32];
	int nv = 0, nop = 0;
	bool value = true; /* one is expected next */
	for (uint32_t i = 0, used; i < s.n; i += used) {
		char c = s.p[i];
		used = 1;
		if (c == ' ' || c == '\t' || c == '\n')
			continue;
		if (nv == 32 || nop == 32)
			return false;
		if (value && c == '(') {
			op[nop++] = c;
		} else if (value) {
			if (!operand(sh, (struct acc_str){s.p + i, s.n - i}, &used, &v[nv]))
				return false;
			nv++;
			value = false;
		} else if (c == ')') {
			while (nop > 0 && op[nop - 1] != '(')
				if (!apply(v, &nv, op[--nop]))
					return false;
			if (nop-- == 0)
				return false;
		} else if (c != '\0' && strchr("+-*/%", c) != NULL) {
			while (nop > 0 && binds(op[nop - 1]) >= binds(c))
				if (!apply(v, &nv, op[--nop]))
					return false;
			op[nop++] = c;
			value = true;
		} else {
			return false;
		}
	}
	while (nop > 0)
		if (op[nop - 1] == '(' || !apply(v, &nv, op[--nop]))
			return false;
	*out = v[0];
	return nv == 1;
}

bool
acc_shell_several(struct acc_str text)
{
	while (text.n > 0 && (text.p[text.n - 1] == ' ' || text.p[text.n - 1] == '\n'))
		text.n--;
	return text.n > 0 &&
	       (memchr(text.p, '\n', text.n) != NULL || memchr(text.p, ';', text.n) != NULL ||
		       memmem(text.p, text.n, "&&", 2) != NULL);
}
