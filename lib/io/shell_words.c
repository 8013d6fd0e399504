/* The words of a shell script, and its variables. */
#include "io/shell_impl.h"

#include <stdlib.h>

enum { VARS = 16384 };

int
acc_shell_wrong(struct shell_reader *rd, const char *what)
{
	return acc_fail(rd->sh.e, ACC_EFORMAT, "line %u: %s", rd->line, what);
}

/* --- characters and words --- */

void
acc_shell_here(struct shell_reader *rd)
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
void
acc_shell_blanks(struct shell_reader *rd)
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

bool
acc_shell_ends(char c)
{
	return c == '\0' || strchr(" \t\r\n;&|()<>", c) != NULL;
}

/* The word at p; n = 0 where there is none. */
int
acc_shell_raw_word(struct shell_reader *rd, struct shell_raw *w)
{
	*w = (struct shell_raw){rd->p, 0, rd->line};
	while (rd->p < rd->end && !acc_shell_ends(*rd->p)) {
		const char *q = acc_shell_skip(rd->p, rd->end, &rd->line);
		if (q == NULL)
			return acc_fail(rd->sh.e, ACC_EFORMAT,
				"line %u: a quote or bracket is not closed", w->line);
		rd->p = q;
	}
	w->n = (uint32_t)(rd->p - w->p);
	return 0;
}

bool
acc_shell_is(struct shell_raw w, const char *text)
{
	return w.n == strlen(text) && memcmp(w.p, text, w.n) == 0;
}

int
acc_shell_keep(struct shell_reader *rd, struct shell_raw w)
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
int
acc_shell_redirect(struct shell_reader *rd)
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
	acc_shell_blanks(rd);
	struct shell_raw w;
	int rc = acc_shell_raw_word(rd, &w);
	if (rc < 0 || !here || rd->nhere == SHELL_HEREDOCS)
		return rc;
	if (w.n >= 2 && (w.p[0] == '\'' || w.p[0] == '"'))
		w = (struct shell_raw){w.p + 1, w.n - 2, w.line};
	rd->here_tab[rd->nhere] = tab;
	rd->here[rd->nhere++] = w;
	return 0;
}

/* --- variables --- */

int
acc_shell_set(struct shell_reader *rd, struct acc_str name, const struct shell_words *w, bool array,
	bool append)
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

int
acc_shell_export(struct shell_reader *rd, struct acc_str name)
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
uint32_t
acc_shell_assignment(struct shell_raw w, struct acc_str *name, bool *append)
{
	uint32_t n = acc_shell_name((struct acc_str){w.p, w.n});
	*name = (struct acc_str){w.p, n};
	if (n == 0 || n == w.n)
		return 0;
	*append = w.p[n] == '+';
	n += *append;
	return n < w.n && w.p[n] == '=' ? n + 1 : 0;
}

int
acc_shell_assign(struct shell_reader *rd, struct shell_raw w, bool exported)
{
	struct acc_str name;
	bool append;
	uint32_t n = acc_shell_assignment(w, &name, &append);
	struct shell_words out = {0};
	struct shell_raw value = {w.p + n, w.n - n, w.line};
	if (rd->live == NO)
		return 0;
	int rc = acc_shell_expand(&rd->sh, value, false, &out);
	if (rc == 0)
		rc = acc_shell_set(rd, name, &out, false, append);
	if (rc == 0 && exported)
		rc = acc_shell_export(rd, name);
	else if (rc == 0) {
		const struct shell_var *v = acc_shell_find(&rd->sh, name);
		if (v != NULL && v->exported)
			rc = acc_shell_export(rd, name);
	}
	free(out.w);
	return rc;
}

/* NAME=( words ), over lines. p stands behind the bracket. */
int
acc_shell_array(struct shell_reader *rd, struct shell_raw head)
{
	struct shell_words out = {0};
	struct shell_raw w;
	struct acc_str name;
	bool append = false;
	int rc = 0;
	acc_shell_assignment(head, &name, &append);
	for (;;) {
		acc_shell_blanks(rd);
		if (rd->p < rd->end && *rd->p == '\n') {
			rd->p++;
			rd->line++;
			continue;
		}
		if (rd->p == rd->end) {
			rc = acc_shell_wrong(rd, "an array is not closed");
			break;
		}
		rc = acc_shell_raw_word(rd, &w);
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
		rc = acc_shell_set(rd, name, &out, true, append);
	free(out.w);
	return rc;
}
