/* The grammar of a shell script: commands, and which of them are reached. */
#include "io/shell_impl.h"

#include <stdlib.h>

enum { TEXT_LIMIT = 16 << 20 };

static enum tri
both(enum tri a, enum tri b)
{
	return a == NO || b == NO ? NO : a == UNKNOWN || b == UNKNOWN ? UNKNOWN : YES;
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
declare(struct shell_reader *rd, uint32_t first)
{
	bool exported = acc_shell_is(rd->word[first], "export");
	struct acc_str name;
	bool append;
	int rc = 0;
	for (uint32_t i = first + 1; i < rd->nword && rc == 0; i++) {
		struct shell_raw w = rd->word[i];
		if (w.p[0] == '-') {
			exported = exported || memchr(w.p, 'x', w.n) != NULL;
		} else if (acc_shell_assignment(w, &name, &append) > 0) {
			rc = acc_shell_assign(rd, w, exported);
		} else if (exported && rd->live != NO) {
			rc = acc_shell_export(rd,
				(struct acc_str){w.p, acc_shell_name((struct acc_str){w.p, w.n})});
		}
	}
	return rc;
}

/* bash -c TEXT, launcher.sh "run.py --option": what the text says is run, with its variables. */
static int
inner(struct shell_reader *rd, struct shell_words *w)
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
run(struct shell_reader *rd, uint32_t first)
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
test(struct shell_reader *rd, uint32_t first)
{
	struct shell_words w = {0};
	int rc = 0;
	uint32_t last = rd->nword;
	if (!acc_shell_is(rd->word[first], "test"))
		last -= last > first + 1;
	for (uint32_t i = first + 1; i < last && rc == 0; i++)
		rc = acc_shell_expand(&rd->sh, rd->word[i], false, &w);
	rd->result = rc < 0 ? UNKNOWN : acc_shell_test(w.w, w.n);
	free(w.w);
	return rc;
}

/* Commands with options that are perhaps reached, and not read. */
static int
pass(struct shell_reader *rd)
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
command(struct shell_reader *rd)
{
	static const char *const declares[] = {"export", "declare", "typeset", "local", "readonly"};
	uint32_t first = 0;
	struct acc_str name;
	bool append, negate = false;
	int rc = 0;
	while (first < rd->nword && acc_shell_is(rd->word[first], "!")) {
		negate = !negate;
		first++;
	}
	enum tri outer = rd->live;
	rd->live = both(rd->live, rd->gate);
	uint32_t set = first;
	while (set < rd->nword && acc_shell_assignment(rd->word[set], &name, &append) > 0)
		set++;
	for (; first < set && rc == 0; first++)
		rc = acc_shell_assign(rd, rd->word[first], set < rd->nword);
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
enter(struct shell_reader *rd, enum block_kind kind)
{
	if (rd->depth == SHELL_BLOCKS)
		return acc_fail(rd->sh.e, ACC_ELIMIT, "line %u: more than %d blocks in one another",
			rd->line, SHELL_BLOCKS);
	rd->block[rd->depth++] = (struct shell_block){.kind = kind, .outer = rd->live};
	rd->gate = YES;
	return 0;
}

static void
leave(struct shell_reader *rd, enum block_kind kind)
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
branch(struct shell_reader *rd, enum tri condition)
{
	struct shell_block *b = rd->depth == 0 ? NULL : &rd->block[rd->depth - 1];
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
ask(struct shell_reader *rd)
{
	rd->asking = true;
	rd->doubt = false;
	rd->result = UNKNOWN;
	rd->gate = YES;
}

static void
loop(struct shell_reader *rd)
{
	struct shell_block *b = rd->depth == 0 ? NULL : &rd->block[rd->depth - 1];
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
for_head(struct shell_reader *rd)
{
	struct shell_raw w;
	struct acc_shell_word value = {.open = true, .line = rd->line};
	const struct shell_words one = {&value, 1, 1};
	acc_shell_blanks(rd);
	int rc = acc_shell_raw_word(rd, &w);
	struct acc_str name = {w.p, acc_shell_name((struct acc_str){w.p, w.n})};
	value.s = acc_str_made(acc_arena_printf(&rd->sh.mem, "$%.*s", ACC_PRS(name)));
	if (rc == 0 && value.s.p == NULL)
		return acc_nomem(rd->sh.e);
	if (rc == 0 && name.n > 0 && rd->live != NO)
		rc = acc_shell_set(rd, name, &one, false, false);
	while (rc == 0 && rd->p < rd->end && *rd->p != ';' && *rd->p != '\n') {
		rc = acc_shell_raw_word(rd, &w);
		if (rc == 0 && w.n == 0)
			rd->p++;
		acc_shell_blanks(rd);
	}
	return rc;
}

/* case WORD in */
static int
case_head(struct shell_reader *rd)
{
	struct shell_raw w;
	struct shell_words out = {0};
	acc_shell_blanks(rd);
	int rc = acc_shell_raw_word(rd, &w);
	if (rc == 0)
		rc = acc_shell_expand(&rd->sh, w, false, &out);
	if (rc == 0)
		rc = enter(rd, BLOCK_CASE);
	if (rc == 0 && out.n > 0)
		rd->block[rd->depth - 1].subject = out.w[0];
	free(out.w);
	acc_shell_blanks(rd);
	if (rc == 0)
		rc = acc_shell_raw_word(rd, &w); /* in */
	if (rc == 0)
		rd->live = NO;
	return rc;
}

/* pattern | pattern ) */
static int
pattern(struct shell_reader *rd, struct shell_block *b)
{
	bool match = false;
	int rc = 0;
	while (rc == 0 && rd->p < rd->end && *rd->p != ')') {
		struct shell_raw w;
		struct shell_words out = {0};
		char glob[256];
		rc = acc_shell_raw_word(rd, &w);
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
		acc_shell_blanks(rd);
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
reserved(struct shell_reader *rd, struct shell_raw w)
{
	static const char *const skipped[] = {"{", "}", "time", "function"};
	int rc;
	if (acc_shell_is(w, "if") || acc_shell_is(w, "while") || acc_shell_is(w, "until")) {
		rc = enter(rd, acc_shell_is(w, "if") ? BLOCK_IF : BLOCK_LOOP);
		ask(rd);
		return rc < 0 ? rc : 1;
	}
	if (acc_shell_is(w, "for") || acc_shell_is(w, "select")) {
		rc = enter(rd, BLOCK_LOOP);
		rc = rc < 0 ? rc : for_head(rd);
		return rc < 0 ? rc : 1;
	}
	if (acc_shell_is(w, "case")) {
		rc = case_head(rd);
		return rc < 0 ? rc : 1;
	}
	if (acc_shell_is(w, "then")) {
		branch(rd, rd->doubt ? UNKNOWN : rd->result);
	} else if (acc_shell_is(w, "else")) {
		branch(rd, YES);
	} else if (acc_shell_is(w, "elif")) {
		struct shell_block *b = rd->depth == 0 ? NULL : &rd->block[rd->depth - 1];
		rd->live = b == NULL ? rd->live : b->outer;
		ask(rd);
	} else if (acc_shell_is(w, "do")) {
		loop(rd);
	} else if (acc_shell_is(w, "fi")) {
		leave(rd, BLOCK_IF);
	} else if (acc_shell_is(w, "done")) {
		leave(rd, BLOCK_LOOP);
	} else if (acc_shell_is(w, "esac")) {
		leave(rd, BLOCK_CASE);
	} else {
		return is_one_of((struct acc_str){w.p, w.n}, skipped,
			sizeof skipped / sizeof *skipped);
	}
	return 1;
}

/* What stands between commands. */
static int
operator(struct shell_reader *rd)
{
	struct shell_block *b = rd->depth == 0 ? NULL : &rd->block[rd->depth - 1];
	char c = *rd->p, next = rd->p + 1 < rd->end ? rd->p[1] : 0;
	bool twice = c == next && (c == '&' || c == '|' || c == ';');
	int rc = command(rd);
	rd->p += 1 + twice;
	if (c == '\n') {
		rd->line++;
		acc_shell_here(rd);
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
condition(struct shell_reader *rd)
{
	struct shell_raw w = {.n = 0};
	int rc = 0;
	while (rc == 0 && rd->p < rd->end && !acc_shell_is(w, "]]")) {
		acc_shell_blanks(rd);
		if (rd->p == rd->end)
			break;
		w = (struct shell_raw){rd->p, 1, rd->line};
		if (!acc_shell_ends(*rd->p)) {
			rc = acc_shell_raw_word(rd, &w);
		} else {
			rd->line += *rd->p == '\n';
			w.n += rd->p + 1 < rd->end && rd->p[1] == *rd->p && *rd->p != '\n';
			rd->p += w.n;
		}
		if (rc == 0 && *w.p != '\n')
			rc = acc_shell_keep(rd, w);
	}
	return rc;
}

static int
next(struct shell_reader *rd)
{
	struct shell_block *b = rd->depth == 0 ? NULL : &rd->block[rd->depth - 1];
	struct shell_raw w;
	acc_shell_blanks(rd);
	if (rd->p == rd->end)
		return 0;
	char c = *rd->p;
	if (c == '<' || c == '>')
		return acc_shell_redirect(rd);
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
			return acc_shell_array(rd, head);
		}
		rd->nword--; /* name(): a function */
		return 0;
	}
	if (c != '\0' && strchr("\n;&|()", c) != NULL)
		return operator(rd);
	if (c == '\0')
		return acc_shell_wrong(rd, "a zero byte");
	if (b != NULL && b->kind == BLOCK_CASE && !b->arm && rd->nword == 0 &&
		!(rd->end - rd->p >= 4 && memcmp(rd->p, "esac", 4) == 0))
		return pattern(rd, b);
	int rc = acc_shell_raw_word(rd, &w);
	/* {1..3} and 2>: the digit before a redirection is no word. */
	if (rc < 0 || (w.n == 1 && w.p[0] >= '0' && w.p[0] <= '9' && rd->p < rd->end &&
			      (*rd->p == '>' || *rd->p == '<')))
		return rc;
	bool negated = rd->nword > 0 && acc_shell_is(rd->word[rd->nword - 1], "!");
	if (rd->nword == 0) {
		rc = reserved(rd, w);
		if (rc != 0)
			return rc < 0 ? rc : 0;
	}
	rc = acc_shell_keep(rd, w);
	if (rc == 0 && acc_shell_is(w, "[[") && (rd->nword == 1 || negated))
		rc = condition(rd);
	return rc;
}

int
acc_shell_read(const char *text, size_t n, const struct acc_shell_hooks *h, struct acc_err *e)
{
	struct shell_reader rd = {.sh.e = e,
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
