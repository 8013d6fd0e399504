/* Layouts as text: what was found, for people, and what they give back. */
#include "fold/impl.h"
#include "fold/weights.h"

#include <stdlib.h>

__attribute__((format(printf, 2, 3))) static int
add(struct acc_buf *b, const char *fmt, ...)
{
	char line[512];
	va_list ap;
	va_start(ap, fmt);
	int n = vsnprintf(line, sizeof line, fmt, ap);
	va_end(ap);
	return n < 0 ? ACC_ENOMEM
		     : acc_buf_add(b, line, (size_t)n < sizeof line ? (size_t)n : sizeof line - 1);
}

/* One word of a line: what would end it, or is not plain, becomes '?'. */
static int
add_word(struct acc_buf *b, struct acc_str s)
{
	int rc = 0;
	for (uint32_t i = 0; i < s.n && i < 200 && rc == 0; i++) {
		bool plain = s.p[i] > ' ' && s.p[i] < 0x7f && s.p[i] != '#';
		rc = acc_buf_add(b, plain ? &s.p[i] : "?", 1);
	}
	return s.n == 0 && rc == 0 ? acc_buf_add(b, "-", 1) : rc;
}

/* The innermost frame of a stack, on one line. */
static int
add_line(struct acc_fold *f, struct acc_buf *b, struct acc_str stack, struct acc_err *e)
{
	const uint64_t *at = stack.n > 0 ? acc_map_get(&f->stacks, stack) : NULL;
	struct acc_rec *r;
	if (at == NULL)
		return 0;
	int rc = acc_fold_record(f, *at, &r, e);
	const struct acc_val *v = rc < 0 ? NULL : acc_get(r, "", "frames");
	if (v == NULL || v->type != ACC_V_TEXTS || v->n == 0)
		return rc;
	struct acc_str s = v->texts[0];
	bool gap = false;
	rc = acc_buf_add(b, "; ", 2);
	for (uint32_t i = 0; i < s.n && i < 200 && rc == 0; i++) {
		bool blank = s.p[i] <= ' ' || s.p[i] >= 0x7f;
		if (!blank || !gap)
			rc = acc_buf_add(b, blank ? " " : &s.p[i], 1);
		gap = blank;
	}
	return rc < 0 ? acc_nomem(e) : 0;
}

static int
print_class(struct acc_fold *f, const struct fold_class *c, struct acc_buf *b, struct acc_err *e)
{
	struct acc_rec *r;
	char layout[ACC_LAYOUT_TEXT], id[17], stack[64] = "";
	struct acc_fold_layout l = acc_fold_winner(c);
	uint32_t all = 0, most = 0;
	int rc = acc_fold_record(f, c->at, &r, e);
	if (rc < 0)
		return rc;
	struct acc_str pass = acc_get_text(r, "", "pass"), st = acc_get_text(r, "", "stack");
	snprintf(stack, sizeof stack, "%.*s", ACC_PRS(st));
	for (uint32_t i = 0; i < c->n; i++) {
		all += c->vote[i].votes;
		most = c->vote[i].votes > most ? c->vote[i].votes : most;
	}
	acc_fold_layout_text(&l, layout);
	acc_hex16(c->id, id);
	/* Calls at odds are laid out one by one. */
	rc |= !c->is_given && l.n == 0 ? add(b, "# ") : 0;
	rc |= add_word(b, acc_get_text(r, "", "op"));
	rc |= add(b, ".");
	rc |= add_word(b, pass);
	rc |= add(b, " ");
	rc |= add_word(b, acc_get_text(r, "", "io"));
	rc |= add(b, ".");
	rc |= add_word(b, acc_get_text(r, "", "pos"));
	rc |= add(b, " %s %s\t# ", id, layout);
	rc |= c->is_given ? add(b, "given") : add(b, "%u of %u tensors", most, all);
	rc = rc < 0 ? acc_nomem(e) : add_line(f, b, acc_str(stack), e);
	return rc < 0 || add(b, "\n") < 0 ? ACC_ENOMEM : 0;
}

static int
print_mesh(const struct fold_mesh *m, struct acc_buf *text)
{
	int rc = add(text, "stages=%u ", m->stages);
	rc |= m->micro > 1 ? add(text, "batches=%u ", m->micro) : 0;
	for (uint32_t d = m->micro > 1; d < m->n; d++)
		rc |= add(text, "%s%u", d > (m->micro > 1) ? "x" : "ranks=", m->size[d]);
	rc |= m->ranks == 1 && m->micro > 1 ? add(text, "ranks=1") : 0;
	return rc | add(text, "\n");
}

int
acc_fold_print(struct acc_fold *f, struct acc_buf *text, struct acc_err *e)
{
	if (f->weights != NULL)
		return acc_weights_print(f, text, e);
	int rc = add(text, "# operator and pass, argument, line of code, layout over the mesh\n");
	rc |= f->both == NULL ? 0 : add(text, "# the bench becomes one rank, too, of the mesh ");
	rc |= f->both == NULL ? 0 : print_mesh(&f->both->mesh, text);
	rc |= add(text, "mesh ");
	rc |= f->groups > 1 ? add(text, "groups=%u apart=%u ", f->groups, f->apart) : 0;
	rc |= f->turns > 1 ? add(text, "turns=%u ", f->turns) : 0;
	rc |= print_mesh(&f->mesh, text);
	for (uint32_t i = 0; i < f->ncls && rc >= 0; i++)
		/* What no call of a line speaks for is decided call by call. */
		if (f->cls[i].at != FOLD_NOWHERE && !f->cls[i].wide &&
			(f->cls[i].n > 0 || f->cls[i].is_given))
			rc = print_class(f, &f->cls[i], text, e);
	return rc < 0 ? acc_nomem(e) : 0;
}

/* --- and back --- */

static void
skip_blanks(struct acc_str *s)
{
	while (s->n > 0 && (*s->p == ' ' || *s->p == '\t'))
		*s = (struct acc_str){s->p + 1, s->n - 1};
}

static struct acc_str
word_of(struct acc_str *s)
{
	skip_blanks(s);
	struct acc_str w = {s->p, 0};
	while (w.n < s->n && s->p[w.n] != ' ' && s->p[w.n] != '\t')
		w.n++;
	*s = (struct acc_str){s->p + w.n, s->n - w.n};
	skip_blanks(s);
	return w;
}

/* A number behind a word, up to 2^16; *s becomes the rest. */
static bool
number_behind(struct acc_str *s, const char *word, uint32_t *out)
{
	int64_t v;
	struct acc_str all = *s, w = word_of(s);
	uint32_t n = (uint32_t)strlen(word);
	if (!acc_str_starts(w, word)) {
		*s = all;
		return false;
	}
	if (!acc_str_int((struct acc_str){w.p + n, w.n - n}, &v) || v < 1 || v > 1 << 16)
		return false;
	*out = (uint32_t)v;
	return true;
}

static bool
add_axis(struct fold_mesh *m, int64_t v)
{
	if (v < 1 || v > 1 << 16 || m->n == ACC_MESH_DIMS)
		return false;
	m->size[m->n++] = (uint32_t)v;
	m->zip *= (uint32_t)v;
	return m->zip <= 1 << 16 && (uint64_t)m->zip * m->stages <= 1 << 16;
}

static bool
parse_mesh(struct acc_str s, struct fold_mesh *m)
{
	int64_t v;
	*m = (struct fold_mesh){.zip = 1, .micro = 1};
	if (!number_behind(&s, "stages=", &m->stages))
		return false;
	if (acc_str_starts(s, "batches=") && (!number_behind(&s, "batches=", &m->micro) ||
						     m->micro < 2 || !add_axis(m, m->micro)))
		return false;
	struct acc_str ranks = word_of(&s);
	if (!acc_str_starts(ranks, "ranks=") || s.n > 0)
		return false;
	for (struct acc_str r = {ranks.p + 6, ranks.n - 6};;) {
		const char *x = r.n == 0 ? NULL : memchr(r.p, 'x', r.n);
		struct acc_str n = {r.p, x != NULL ? (uint32_t)(x - r.p) : r.n};
		if (!acc_str_int(n, &v))
			return false;
		/* The parts of the batch are an axis already. */
		bool only = v == 1 && x == NULL && m->n == 1 && m->micro > 1;
		if (!only && !add_axis(m, v))
			return false;
		if (x == NULL)
			break;
		r = (struct acc_str){x + 1, r.n - n.n - 1};
	}
	m->ranks = m->zip / m->micro;
	return true;
}

/* Where the reference has several ranks, too. */
static bool
parse_groups(struct acc_fold *f, struct acc_str *s)
{
	return !acc_str_starts(*s, "groups=") ||
	       (number_behind(s, "groups=", &f->groups) && number_behind(s, "apart=", &f->apart) &&
		       f->groups % f->apart == 0);
}

static bool
parse_turns(struct acc_fold *f, struct acc_str *s)
{
	return !acc_str_starts(*s, "turns=") || number_behind(s, "turns=", &f->turns);
}

static bool
parse_hex(struct acc_str s, uint64_t *v)
{
	*v = 0;
	for (uint32_t i = 0; i < s.n && s.n == 16; i++) {
		static const char digits[] = "0123456789abcdef";
		const char *d = s.p[i] == '\0' ? NULL : strchr(digits, s.p[i]);
		if (d == NULL)
			return false;
		*v = *v << 4 | (uint64_t)(d - digits);
	}
	return s.n == 16;
}

static int
parse_line(struct acc_fold *f, struct acc_str s, struct acc_err *e)
{
	uint64_t id;
	struct acc_fold_layout l;
	const char *hash = s.n == 0 ? NULL : memchr(s.p, '#', s.n);
	s.n = hash != NULL ? (uint32_t)(hash - s.p) : s.n;
	while (s.n > 0 && (s.p[s.n - 1] == ' ' || s.p[s.n - 1] == '\t' || s.p[s.n - 1] == '\r'))
		s.n--;
	struct acc_str first = word_of(&s);
	if (first.n == 0)
		return 0;
	if (acc_str_is(first, "mesh")) {
		f->mesh_given = parse_groups(f, &s) && parse_turns(f, &s) &&
				parse_mesh(s, &f->mesh);
		return f->mesh_given ? 0
				     : acc_fail(e, ACC_EFORMAT,
					       "the mesh is not as in"
					       " 'mesh stages=1 ranks=2x4'");
	}
	word_of(&s);
	if (!parse_hex(word_of(&s), &id))
		return acc_fail(e, ACC_EFORMAT,
			"no line of code of 16 hex digits in the third column");
	while (s.n > 0 && *s.p == ' ')
		s = (struct acc_str){s.p + 1, s.n - 1};
	if (!acc_fold_layout_parse(s, &l))
		return acc_fail(e, ACC_EFORMAT,
			"unknown layout '%.*s': Shard(0), Replicate() or Partial(sum) is expected, one for "
			"each axis of the mesh",
			s.n < 60 ? (int)s.n : 60, s.p);
	if (l.n > 0 && (!f->mesh_given || l.n != f->mesh.n))
		return acc_fail(e, ACC_EFORMAT,
			f->mesh_given ? "the layout has not as many axes as the mesh"
				      : "a layout before the line of the mesh");
	if (!ACC_ROOM(f->cls, f->cls_cap, (size_t)f->ncls + 1, e))
		return ACC_ENOMEM;
	uint32_t at = acc_ids_get(&f->by_class, id);
	if (at == ACC_NOID) {
		at = f->ncls++;
		f->cls[at] = (struct fold_class){.id = id, .at = FOLD_NOWHERE};
	}
	f->cls[at].given = l;
	f->cls[at].is_given = true;
	return acc_ids_put(&f->by_class, id, at, false, e);
}

int
acc_fold_given(struct acc_fold *f, struct acc_str text, const char *name, struct acc_err *e)
{
	int rc = 0;
	for (uint32_t line = 1; text.n > 0 && rc == 0; line++) {
		const char *end = memchr(text.p, '\n', text.n);
		struct acc_str s = {text.p, end != NULL ? (uint32_t)(end - text.p) : text.n};
		uint32_t skip = s.n + (end != NULL);
		struct acc_err own = {0};
		rc = parse_line(f, s, &own);
		if (rc < 0)
			acc_fail(e, rc, "line %u: %s", line, own.msg);
		text = (struct acc_str){text.p + skip, text.n - skip};
	}
	if (rc == 0 && !f->mesh_given)
		rc = acc_fail(e, ACC_EFORMAT,
			"there is no line of the mesh, such as"
			" 'mesh stages=1 ranks=2'");
	if (rc < 0)
		acc_err_in(e, name);
	return rc;
}
