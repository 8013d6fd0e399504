/* The grammar of a shell script: commands, and which of them are reached. */
#include "io/shell_impl.h"

#include <stdlib.h>

enum { TEXT_LIMIT = 16 << 20, BLOCKS = 64, VARS = 16384, HEREDOCS = 8 };

enum block_kind { BLOCK_IF, BLOCK_LOOP, BLOCK_CASE, BLOCK_GROUP };

struct block {
	enum block_kind kind;
	enum tri outer;                /* was what is around it reached? */
	enum tri taken;                /* of the branches so far: was one? */
	bool unsure;                   /* is what is not read here perhaps reached? */
	struct acc_shell_word subject; /* of a case */
	bool arm;                      /* of a case: a pattern has been read, its commands follow */
};

struct reader {
	struct shell sh;
	const struct acc_shell_hooks *h;
	const char *p, *end;
	uint32_t line;
	struct block block[BLOCKS];
	int depth;
	enum tri live;                   /* is what is read reached? UNKNOWN: perhaps */
	enum tri result;                 /* of the last condition */
	enum tri gate;                   /* of the commands behind && and ||: are they reached? */
	bool asking;                     /* a condition of if, elif or while is being read, */
	bool doubt;                      /* a part of which is unknown */
	struct shell_raw here[HEREDOCS]; /* ends of here documents that begin with the next line */
	bool here_tab[HEREDOCS];
	int nhere;
	struct shell_raw *word; /* of the command, as they stand */
	uint32_t nword;
	size_t word_cap;
};

static int
wrong(struct reader *rd, const char *what)
{
	return acc_fail(rd->sh.e, ACC_EFORMAT, "line %u: %s", rd->line, what);
}

static enum tri
both(enum tri a, enum tri b)
{
	return a == NO || b == NO ? NO : a == UNKNOWN || b == UNKNOWN ? UNKNOWN : YES;
}

/* --- characters and words --- */

static void
here_documents(struct reader *rd)
{
	for (int i = 0; i < rd->nhere; i++) {
		bool end = false;
		while (rd->p < rd->end && !end) {
			const char *nl = memchr(rd->p, '\n', (size_t)(rd->end - rd->p));
			const char *q = rd->p, *stop = nl == NULL ? rd->end : nl;
			while (rd->here_tab[i] && q < stop && *q == '\t')
				q++;
			end = (size_t)(stop - q) == rd->here[i].n &&
			      memcmp(q, rd->here[i].p, rd->here[i].n) == 0;
			rd->p = nl == NULL ? rd->end : nl + 1;
			rd->line++;
		}
	}
	rd->nhere = 0;
}

/* Blanks, comments and continued lines. */
static void
blanks(struct reader *rd)
{
	while (rd->p < rd->end) {
		if (*rd->p == ' ' || *rd->p == '\t' || *rd->p == '\r') {
			rd->p++;
		} else if (*rd->p == '\\' && rd->p + 1 < rd->end && rd->p[1] == '\n') {
			rd->p += 2;
			rd->line++;
		} else if (*rd->p == '\\' && rd->p + 2 < rd->end && rd->p[1] == '\r' &&
			   rd->p[2] == '\n') {
			rd->p += 3;
			rd->line++;
		} else if (*rd->p == '#') {
			const char *nl = memchr(rd->p, '\n', (size_t)(rd->end - rd->p));
			rd->p = nl == NULL ? rd->end : nl;
		} else {
			return;
		}
	}
}

static bool
ends_word(char c)
{
	return c == '\0' || strchr(" \t\r\n;&|()<>", c) != NULL;
}

/* The word at p; n = 0 where there is none. */
static int
raw_word(struct reader *rd, struct shell_raw *w)
{
	*w = (struct shell_raw){rd->p, 0, rd->line};
	while (rd->p < rd->end && !ends_word(*rd->p)) {
		const char *q = acc_shell_skip(rd->p, rd->end, &rd->line);
		if (q == NULL)
			return acc_fail(rd->sh.e, ACC_EFORMAT,
				"line %u: a quote or bracket is not closed", w->line);
		rd->p = q;
	}
	w->n = (uint32_t)(rd->p - w->p);
	return 0;
}

static bool
is(struct shell_raw w, const char *text)
{
	return w.n == strlen(text) && memcmp(w.p, text, w.n) == 0;
}

static int
keep(struct reader *rd, struct shell_raw w)
{
	if (rd->nword == SHELL_WORDS)
		return acc_fail(rd->sh.e, ACC_ELIMIT, "line %u: more than %d words", w.line,
			SHELL_WORDS);
	if (!ACC_ROOM(rd->word, rd->word_cap, rd->nword + 1, rd->sh.e))
		return ACC_ENOMEM;
	rd->word[rd->nword++] = w;
	return 0;
}

/* > file, 2>&1, <<EOF: nothing of it is of use. */
static int
redirection(struct reader *rd)
{
	char c = *rd->p;
	bool here = c == '<' && rd->p + 1 < rd->end && rd->p[1] == '<', tab = false;
	while (rd->p < rd->end && (*rd->p == '<' || *rd->p == '>' || *rd->p == '&' ||
					  (here && *rd->p == '-' && !tab))) {
		tab = tab || *rd->p == '-';
		here = here && !(rd->p[0] == '<' && rd->p + 2 < rd->end && rd->p[1] == '<' &&
				       rd->p[2] == '<');
		rd->p++;
	}
	if (rd->p < rd->end && *rd->p == '(') {
		rd->p++; /* <(...): its commands are read as commands */
		return 0;
	}
	blanks(rd);
	struct shell_raw w;
	int rc = raw_word(rd, &w);
	if (rc < 0 || !here || rd->nhere == HEREDOCS)
		return rc;
	if (w.n >= 2 && (w.p[0] == '\'' || w.p[0] == '"'))
		w = (struct shell_raw){w.p + 1, w.n - 2, w.line};
	rd->here_tab[rd->nhere] = tab;
	rd->here[rd->nhere++] = w;
	return 0;
}

/* --- variables --- */

static int
set(struct reader *rd, struct acc_str name, const struct shell_words *w, bool array, bool append)
{
	struct shell *sh = &rd->sh;
	struct shell_var *v = acc_shell_find(sh, name);
	if (v == NULL && sh->nvar == VARS)
		return acc_fail(sh->e, ACC_ELIMIT, "line %u: more than %d variables", rd->line,
			VARS);
	if (v == NULL && sh->nvar == sh->var_cap) {
		if (!ACC_ROOM(sh->var, sh->var_cap, sh->nvar + 1, sh->e))
			return ACC_ENOMEM;
	}
	if (v == NULL) {
		v = &sh->var[sh->nvar++];
		*v = (struct shell_var){.name = name};
	}
	uint32_t old = append ? v->n : 0;
	bool join = append && !array && old > 0 && w->n > 0; /* text behind text */
	uint32_t n = old + w->n - join;
	if (n > SHELL_WORDS)
		return acc_fail(sh->e, ACC_ELIMIT, "line %u: more than %d words", rd->line,
			SHELL_WORDS);
	struct acc_shell_word *p = acc_alloc(&sh->mem, (n + 1) * sizeof *p);
	sh->work += (n + 1) * sizeof *p;
	if (p == NULL)
		return acc_nomem(sh->e);
	if (sh->work > SHELL_WORK)
		return acc_fail(sh->e, ACC_ELIMIT, "line %u: its values grow without end",
			rd->line);
	if (old > 0)
		memcpy(p, v->w, old * sizeof *p);
	if (w->n > join)
		memcpy(p + old, w->w + join, (w->n - join) * sizeof *p);
	if (join) {
		/* Where each part was written is lost, but for lines that the text itself holds. */
		char *text = acc_arena_printf(&sh->mem, "%.*s%.*s", ACC_PRS(p[0].s),
			ACC_PRS(w->w[0].s));
		if (text == NULL)
			return acc_nomem(sh->e);
		sh->work += p[0].s.n + w->w[0].s.n;
		p[0].s = (struct acc_str){text, p[0].s.n + w->w[0].s.n};
		p[0].open |= w->w[0].open;
	}
	for (uint32_t i = old - join; i < n; i++)
		p[i].maybe |= rd->live == UNKNOWN;
	v->w = p;
	v->n = n;
	v->array = array || (append && v->array);
	return 0;
}

static int export(struct reader *rd, struct acc_str name)
{
	struct shell_var *v = acc_shell_find(&rd->sh, name);
	if (v == NULL || v->n == 0)
		return 0;
	v->exported = true;
	return rd->h->variable == NULL
		       ? 0
		       : rd->h->variable(rd->h->arg, v->name, &v->w[0], rd->live == UNKNOWN);
}

/* NAME=, NAME+=: the bytes before the value, or 0. */
static uint32_t
assignment(struct shell_raw w, struct acc_str *name, bool *append)
{
	uint32_t n = acc_shell_name((struct acc_str){w.p, w.n});
	*name = (struct acc_str){w.p, n};
	if (n == 0 || n == w.n)
		return 0;
	*append = w.p[n] == '+';
	n += *append;
	return n < w.n && w.p[n] == '=' ? n + 1 : 0;
}

static int
assign(struct reader *rd, struct shell_raw w, bool exported)
{
	struct acc_str name;
	bool append;
	uint32_t n = assignment(w, &name, &append);
	struct shell_words out = {0};
	struct shell_raw value = {w.p + n, w.n - n, w.line};
	if (rd->live == NO)
		return 0;
	int rc = acc_shell_expand(&rd->sh, value, false, &out);
	if (rc == 0)
		rc = set(rd, name, &out, false, append);
	if (rc == 0 && exported)
		rc = export(rd, name);
	else if (rc == 0) {
		const struct shell_var *v = acc_shell_find(&rd->sh, name);
		if (v != NULL && v->exported)
			rc = export(rd, name);
	}
	free(out.w);
	return rc;
}

/* NAME=( words ), over lines. p stands behind the bracket. */
static int
array(struct reader *rd, struct shell_raw head)
{
	struct shell_words out = {0};
	struct shell_raw w;
	struct acc_str name;
	bool append = false;
	int rc = 0;
	assignment(head, &name, &append);
	for (;;) {
		blanks(rd);
		if (rd->p < rd->end && *rd->p == '\n') {
			rd->p++;
			rd->line++;
			continue;
		}
		if (rd->p == rd->end) {
			rc = wrong(rd, "an array is not closed");
			break;
		}
		rc = raw_word(rd, &w);
		if (rc == 0 && w.n == 0) {
			bool close = *rd->p == ')';
			rd->p++;
			if (close)
				break;
			continue;
		}
		if (rc == 0 && rd->live != NO)
			rc = acc_shell_expand(&rd->sh, w, true, &out);
		if (rc < 0)
			break;
	}
	if (rc == 0 && rd->live != NO)
		rc = set(rd, name, &out, true, append);
	free(out.w);
	return rc;
}

/* --- commands --- */

static bool
is_one_of(struct acc_str s, const char *const *list, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (acc_str_is(s, list[i]))
			return true;
	return false;
}

/* export A=1 B: declare and the like set, export and declare -x also hand on. */
static int
declare(struct reader *rd, uint32_t first)
{
	bool exported = is(rd->word[first], "export");
	struct acc_str name;
	bool append;
	int rc = 0;
	for (uint32_t i = first + 1; i < rd->nword && rc == 0; i++) {
		struct shell_raw w = rd->word[i];
		if (w.p[0] == '-') {
			exported = exported || memchr(w.p, 'x', w.n) != NULL;
		} else if (assignment(w, &name, &append) > 0) {
			rc = assign(rd, w, exported);
		} else if (exported && rd->live != NO) {
			rc = export(rd,
				(struct acc_str){w.p, acc_shell_name((struct acc_str){w.p, w.n})});
		}
	}
	return rc;
}

/* bash -c TEXT, launcher.sh "run.py --option": what the text says is run, with its variables. */
static int
inner(struct reader *rd, struct shell_words *w)
{
	for (uint32_t i = 0; i + 1 < w->n; i++) {
		struct acc_shell_word c = w->w[i + 1];
		bool text = c.quoted && c.s.n > 0 && memchr(c.s.p, ' ', c.s.n) != NULL &&
			    !acc_shell_several(c.s);
		if (!text ||
			(!acc_str_is(w->w[i].s, "-c") && memmem(c.s.p, c.s.n, ".py ", 4) == NULL))
			continue;
		w->n = i + 1;
		return acc_shell_expand(&rd->sh, (struct shell_raw){c.s.p, c.s.n, c.line}, true, w);
	}
	return 0;
}

static int
run(struct reader *rd, uint32_t first)
{
	struct shell_words w = {0};
	int rc = 0;
	for (uint32_t i = first; i < rd->nword && rc == 0; i++)
		rc = acc_shell_expand(&rd->sh, rd->word[i], true, &w);
	if (rc == 0)
		rc = inner(rd, &w);
	if (rc == 0 && w.n > 0)
		rc = rd->h->command(rd->h->arg, w.w, w.n, rd->live == UNKNOWN);
	rd->result = rc == 0 && w.n > 0 && acc_str_is(w.w[0].s, "true")    ? YES
		     : rc == 0 && w.n > 0 && acc_str_is(w.w[0].s, "false") ? NO
									   : UNKNOWN;
	free(w.w);
	return rc;
}

/* [ ... ], test ... */
static int
test(struct reader *rd, uint32_t first)
{
	struct shell_words w = {0};
	int rc = 0;
	uint32_t last = rd->nword;
	if (!is(rd->word[first], "test"))
		last -= last > first + 1;
	for (uint32_t i = first + 1; i < last && rc == 0; i++)
		rc = acc_shell_expand(&rd->sh, rd->word[i], false, &w);
	rd->result = rc < 0 ? UNKNOWN : acc_shell_test(w.w, w.n);
	free(w.w);
	return rc;
}

/* Commands with options that are perhaps reached, and not read. */
static int
pass(struct reader *rd)
{
	bool unsure = false, options = false;
	for (int i = 0; i < rd->depth; i++)
		unsure = unsure || rd->block[i].unsure;
	for (uint32_t i = 1; i < rd->nword; i++)
		options = options || (rd->word[i].n > 2 && memcmp(rd->word[i].p, "--", 2) == 0);
	return unsure && options && rd->h->passed != NULL
		       ? rd->h->passed(rd->h->arg, rd->word[0].line)
		       : 0;
}

/* The words of a simple command have been read. */
static int
command(struct reader *rd)
{
	static const char *const declares[] = {"export", "declare", "typeset", "local", "readonly"};
	uint32_t first = 0;
	struct acc_str name;
	bool append, negate = false;
	int rc = 0;
	while (first < rd->nword && is(rd->word[first], "!")) {
		negate = !negate;
		first++;
	}
	enum tri outer = rd->live;
	rd->live = both(rd->live, rd->gate);
	uint32_t set = first;
	while (set < rd->nword && assignment(rd->word[set], &name, &append) > 0)
		set++;
	for (; first < set && rc == 0; first++)
		rc = assign(rd, rd->word[first], set < rd->nword);
	if (rc == 0 && first < rd->nword && rd->live != NO) {
		struct acc_str w = {rd->word[first].p, rd->word[first].n};
		if (is_one_of(w, declares, sizeof declares / sizeof *declares))
			rc = declare(rd, first);
		else if (acc_str_is(w, "[") || acc_str_is(w, "[[") || acc_str_is(w, "test"))
			rc = test(rd, first);
		else
			rc = run(rd, first);
	} else if (rc == 0 && first < rd->nword) {
		rc = pass(rd);
	}
	if (negate)
		rd->result = shell_not(rd->result);
	rd->live = outer;
	rd->nword = 0;
	return rc;
}

/* --- blocks --- */

static int
enter(struct reader *rd, enum block_kind kind)
{
	if (rd->depth == BLOCKS)
		return acc_fail(rd->sh.e, ACC_ELIMIT, "line %u: more than %d blocks in one another",
			rd->line, BLOCKS);
	rd->block[rd->depth++] = (struct block){.kind = kind, .outer = rd->live};
	rd->gate = YES;
	return 0;
}

static void
leave(struct reader *rd, enum block_kind kind)
{
	if (rd->depth == 0 || rd->block[rd->depth - 1].kind != kind)
		return; /* not one of ours: a function's, or a word that only looks so */
	rd->live = rd->block[--rd->depth].outer;
	rd->asking = false;
	rd->gate = YES;
}

/* The branch that begins: taken if its condition holds and none before it did. Of an unknown
 * condition, the first branch is perhaps taken, and no other. */
static void
branch(struct reader *rd, enum tri condition)
{
	struct block *b = rd->depth == 0 ? NULL : &rd->block[rd->depth - 1];
	rd->asking = false;
	rd->gate = YES;
	if (b == NULL || b->kind != BLOCK_IF)
		return;
	rd->live = b->taken != NO ? NO : both(b->outer, condition);
	b->unsure = b->taken == UNKNOWN && b->outer != NO;
	if (b->taken == NO)
		b->taken = condition;
}

static void
ask(struct reader *rd)
{
	rd->asking = true;
	rd->doubt = false;
	rd->result = UNKNOWN;
	rd->gate = YES;
}

static void
loop(struct reader *rd)
{
	struct block *b = rd->depth == 0 ? NULL : &rd->block[rd->depth - 1];
	/* while: what is not known to be true is read as ended. */
	if (b != NULL && b->kind == BLOCK_LOOP && rd->asking)
		b->unsure = b->outer != NO && (rd->result == UNKNOWN || rd->doubt);
	if (b != NULL && b->kind == BLOCK_LOOP && rd->asking)
		rd->live = rd->result == YES && !rd->doubt ? b->outer : NO;
	rd->asking = false;
	rd->gate = YES;
}

/* for NAME in words: the name is unknown; the words are of no use. */
static int
for_head(struct reader *rd)
{
	struct shell_raw w;
	struct acc_shell_word value = {.open = true, .line = rd->line};
	const struct shell_words one = {&value, 1, 1};
	blanks(rd);
	int rc = raw_word(rd, &w);
	struct acc_str name = {w.p, acc_shell_name((struct acc_str){w.p, w.n})};
	value.s = acc_str_made(acc_arena_printf(&rd->sh.mem, "$%.*s", ACC_PRS(name)));
	if (rc == 0 && value.s.p == NULL)
		return acc_nomem(rd->sh.e);
	if (rc == 0 && name.n > 0 && rd->live != NO)
		rc = set(rd, name, &one, false, false);
	while (rc == 0 && rd->p < rd->end && *rd->p != ';' && *rd->p != '\n') {
		rc = raw_word(rd, &w);
		if (rc == 0 && w.n == 0)
			rd->p++;
		blanks(rd);
	}
	return rc;
}

/* case WORD in */
static int
case_head(struct reader *rd)
{
	struct shell_raw w;
	struct shell_words out = {0};
	blanks(rd);
	int rc = raw_word(rd, &w);
	if (rc == 0)
		rc = acc_shell_expand(&rd->sh, w, false, &out);
	if (rc == 0)
		rc = enter(rd, BLOCK_CASE);
	if (rc == 0 && out.n > 0)
		rd->block[rd->depth - 1].subject = out.w[0];
	free(out.w);
	blanks(rd);
	if (rc == 0)
		rc = raw_word(rd, &w); /* in */
	if (rc == 0)
		rd->live = NO;
	return rc;
}

/* pattern | pattern ) */
static int
pattern(struct reader *rd, struct block *b)
{
	bool match = false;
	int rc = 0;
	while (rc == 0 && rd->p < rd->end && *rd->p != ')') {
		struct shell_raw w;
		struct shell_words out = {0};
		char glob[256];
		rc = raw_word(rd, &w);
		if (rc == 0 && w.n > 0)
			rc = acc_shell_expand(&rd->sh, w, false, &out);
		else if (rc == 0)
			rd->p++;
		if (rc == 0 && out.n > 0 && out.w[0].s.n < sizeof glob) {
			memcpy(glob, out.w[0].s.p, out.w[0].s.n);
			glob[out.w[0].s.n] = '\0';
			match = match || (!b->subject.open && acc_glob(glob, b->subject.s));
		}
		free(out.w);
		blanks(rd);
	}
	rd->p += rd->p < rd->end;
	b->arm = true;
	b->unsure = b->subject.open && b->outer != NO;
	rd->live = match && b->taken == NO ? b->outer : NO;
	b->taken = match ? YES : b->taken;
	rd->gate = YES;
	return rc;
}

/* A reserved word at the start of a command. 1: it was one. */
static int
reserved(struct reader *rd, struct shell_raw w)
{
	static const char *const skipped[] = {"{", "}", "time", "function"};
	int rc;
	if (is(w, "if") || is(w, "while") || is(w, "until")) {
		rc = enter(rd, is(w, "if") ? BLOCK_IF : BLOCK_LOOP);
		ask(rd);
		return rc < 0 ? rc : 1;
	}
	if (is(w, "for") || is(w, "select")) {
		rc = enter(rd, BLOCK_LOOP);
		rc = rc < 0 ? rc : for_head(rd);
		return rc < 0 ? rc : 1;
	}
	if (is(w, "case")) {
		rc = case_head(rd);
		return rc < 0 ? rc : 1;
	}
	if (is(w, "then")) {
		branch(rd, rd->doubt ? UNKNOWN : rd->result);
	} else if (is(w, "else")) {
		branch(rd, YES);
	} else if (is(w, "elif")) {
		struct block *b = rd->depth == 0 ? NULL : &rd->block[rd->depth - 1];
		rd->live = b == NULL ? rd->live : b->outer;
		ask(rd);
	} else if (is(w, "do")) {
		loop(rd);
	} else if (is(w, "fi")) {
		leave(rd, BLOCK_IF);
	} else if (is(w, "done")) {
		leave(rd, BLOCK_LOOP);
	} else if (is(w, "esac")) {
		leave(rd, BLOCK_CASE);
	} else {
		return is_one_of((struct acc_str){w.p, w.n}, skipped,
			sizeof skipped / sizeof *skipped);
	}
	return 1;
}

/* What stands between commands. */
static int
operator(struct reader *rd)
{
	struct block *b = rd->depth == 0 ? NULL : &rd->block[rd->depth - 1];
	char c = *rd->p, next = rd->p + 1 < rd->end ? rd->p[1] : 0;
	bool twice = c == next && (c == '&' || c == '|' || c == ';');
	int rc = command(rd);
	rd->p += 1 + twice;
	if (c == '\n') {
		rd->line++;
		here_documents(rd);
	}
	rd->doubt = rd->doubt || (twice && rd->result == UNKNOWN);
	if (twice && c == '&')
		rd->gate = rd->result == UNKNOWN && !rd->asking ? rd->gate
								: both(rd->gate, rd->result);
	else if (twice && c == '|')
		rd->gate = both(rd->gate, shell_not(rd->result));
	else
		rd->gate = YES;
	if (twice && c == ';' && b != NULL && b->kind == BLOCK_CASE) {
		b->arm = false;
		rd->live = NO;
	}
	return rc;
}

/* The words up to the ]] that ends a condition; && and || are words in it. */
static int
condition(struct reader *rd)
{
	struct shell_raw w = {.n = 0};
	int rc = 0;
	while (rc == 0 && rd->p < rd->end && !is(w, "]]")) {
		blanks(rd);
		if (rd->p == rd->end)
			break;
		w = (struct shell_raw){rd->p, 1, rd->line};
		if (!ends_word(*rd->p)) {
			rc = raw_word(rd, &w);
		} else {
			rd->line += *rd->p == '\n';
			w.n += rd->p + 1 < rd->end && rd->p[1] == *rd->p && *rd->p != '\n';
			rd->p += w.n;
		}
		if (rc == 0 && *w.p != '\n')
			rc = keep(rd, w);
	}
	return rc;
}

static int
next(struct reader *rd)
{
	struct block *b = rd->depth == 0 ? NULL : &rd->block[rd->depth - 1];
	struct shell_raw w;
	blanks(rd);
	if (rd->p == rd->end)
		return 0;
	char c = *rd->p;
	if (c == '<' || c == '>')
		return redirection(rd);
	if (b != NULL && b->kind == BLOCK_CASE && !b->arm && c == '(') {
		rd->p++;
		return 0;
	}
	if (c == '(' && rd->nword > 0 &&
		rd->word[rd->nword - 1].p + rd->word[rd->nword - 1].n == rd->p) {
		struct shell_raw head = rd->word[rd->nword - 1];
		rd->p++;
		if (head.p[head.n - 1] == '=') {
			rd->nword--;
			return array(rd, head);
		}
		rd->nword--; /* name(): a function */
		return 0;
	}
	if (c != '\0' && strchr("\n;&|()", c) != NULL)
		return operator(rd);
	if (c == '\0')
		return wrong(rd, "a zero byte");
	if (b != NULL && b->kind == BLOCK_CASE && !b->arm && rd->nword == 0 &&
		!(rd->end - rd->p >= 4 && memcmp(rd->p, "esac", 4) == 0))
		return pattern(rd, b);
	int rc = raw_word(rd, &w);
	/* {1..3} and 2>: the digit before a redirection is no word. */
	if (rc < 0 || (w.n == 1 && w.p[0] >= '0' && w.p[0] <= '9' && rd->p < rd->end &&
			      (*rd->p == '>' || *rd->p == '<')))
		return rc;
	bool negated = rd->nword > 0 && is(rd->word[rd->nword - 1], "!");
	if (rd->nword == 0) {
		rc = reserved(rd, w);
		if (rc != 0)
			return rc < 0 ? rc : 0;
	}
	rc = keep(rd, w);
	if (rc == 0 && is(w, "[[") && (rd->nword == 1 || negated))
		rc = condition(rd);
	return rc;
}

int
acc_shell_read(const char *text, size_t n, const struct acc_shell_hooks *h, struct acc_err *e)
{
	struct reader rd = {.sh.e = e,
		.h = h,
		.p = text,
		.end = text + n,
		.line = 1,
		.live = YES,
		.gate = YES};
	int rc = n > TEXT_LIMIT
			 ? acc_fail(e, ACC_ELIMIT, "more than %d MiB: no script", TEXT_LIMIT >> 20)
			 : 0;
	while (rc == 0 && rd.p < rd.end)
		rc = next(&rd);
	if (rc == 0)
		rc = command(&rd);
	for (uint32_t i = 0; rc == 0 && h->left != NULL && i < rd.sh.nvar; i++)
		rc = h->left(h->arg, rd.sh.var[i].name, rd.sh.var[i].w, rd.sh.var[i].n);
	acc_arena_release(&rd.sh.mem);
	free(rd.sh.var);
	free(rd.word);
	return rc;
}
