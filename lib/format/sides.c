#include "format/sides.h"

#include <stdlib.h>
#include <unistd.h>

/* The words of a command line: quoted parts stand in single quotes, a quote itself behind a backslash. */
static size_t
split(struct acc_str line, struct acc_arena *mem, char **word, size_t most)
{
	char *out = acc_alloc(mem, (size_t)line.n + 1), *p = out;
	size_t n = 0;
	bool quoted = false, inside = false;
	if (out == NULL)
		return 0;
	for (uint32_t i = 0; i < line.n; i++) {
		const char c = line.p[i];
		if (!quoted && c == ' ') {
			*p++ = '\0';
			inside = false;
			continue;
		}
		if (!inside && n == most)
			return 0;
		if (!inside)
			word[n++] = p;
		inside = true;
		if (c == '\'')
			quoted = !quoted;
		else
			*p++ = !quoted && c == '\\' && i + 1 < line.n ? line.p[++i] : c;
	}
	*p = '\0';
	return n;
}

static bool
is_program(const char *word, const char *name)
{
	const char *base = strrchr(word, '/');
	return strcmp(base == NULL ? word : base + 1, name) == 0;
}

/* A stream that another program makes. */
static bool
is_piped(const char *word)
{
	return strcmp(word, "-") == 0 || strncmp(word, "/dev/fd/", 8) == 0;
}

/* Does what was typed lie beneath the folder that the records come from, or hold it? By the names alone: nothing
 * that a file system says at this moment changes what is printed. */
static bool
is_of(const char *typed, const char *root, struct acc_arena *mem)
{
	char cwd[4096] = "";
	while (strncmp(typed, "./", 2) == 0)
		typed += 2;
	if (root == NULL || strstr(typed, "..") != NULL ||
		(typed[0] != '/' && getcwd(cwd, sizeof cwd) == NULL))
		return false;
	const char *path = typed[0] == '/'           ? typed
			   : strcmp(typed, ".") == 0 ? cwd
						     : acc_arena_printf(mem, "%s/%s", cwd, typed);
	size_t n = path == NULL ? 0 : strlen(path);
	while (n > 1 && path[n - 1] == '/')
		n--;
	const size_t m = strlen(root), k = n < m ? n : m;
	const char next = n < m ? root[k] : n > m ? path[k] : '/';
	return n > 0 && strncmp(path, root, k) == 0 && (next == '/' || k == 1);
}

/* What the user typed for each side: from command lines of which the first read the dumps. false: not both are
 * known, exist, and lie where the records come from. */
static bool
typed(const struct acc_format_opt *opt, const char *const root[2], struct acc_arena *mem,
	const char *out[2])
{
	enum { WORDS = 256 };
	char *word[WORDS];
	const char *read[2] = {NULL, NULL};
	size_t nread = 0;
	out[0] = out[1] = NULL;
	for (size_t i = 0; i < opt->nlog; i++) {
		const size_t k = split(opt->log[i], mem, word, WORDS);
		if (k >= 2 && is_program(word[0], "accdump-read") && !is_piped(word[k - 1])) {
			/* Of several dumps no word is the side. */
			if (k > 2 && word[k - 2][0] != '-' && (k == 3 || word[k - 3][0] != '-'))
				return false;
			if (nread < 2)
				read[nread] = word[k - 1];
			nread++;
		}
		if (k < 3 || !is_program(word[0], "accalign"))
			continue;
		/* Those that come through pipes were read in this order. */
		size_t next = 0;
		for (size_t s = 0; s < 2; s++) {
			const char *w = word[k - 2 + s];
			out[s] = !is_piped(w) ? w : next < nread && next < 2 ? read[next] : NULL;
			next += is_piped(w);
		}
		break;
	}
	return out[0] != NULL && out[1] != NULL && nread <= 2 && is_of(out[0], root[0], mem) &&
	       is_of(out[1], root[1], mem);
}

int
acc_sides_source(struct acc_sides *s, const struct acc_rec *r, struct acc_arena *mem,
	struct acc_err *e)
{
	const struct acc_str root = acc_get_text(r, "", "root");
	if (s->nroots == ACC_SIDES_SOURCES)
		return 0;
	const char *copy = acc_arena_copy(mem, root.p, root.n);
	if (copy == NULL || acc_map_put(&s->sources, acc_get_text(r, "", "id"), s->nroots) == NULL)
		return acc_nomem(e);
	s->root[s->nroots++] = copy;
	return 0;
}

static int
name_other(struct acc_sides *s, const struct acc_rec *r, struct acc_arena *mem, struct acc_err *e)
{
	const struct acc_str a = acc_get_text(r, "a.", "key"), b = acc_get_text(r, "b.", "key");
	if (a.n == 0 || b.n == 0 || acc_str_eq(a, b) || acc_map_get(&s->other, a) != NULL)
		return 0;
	if (!ACC_ROOM(s->key, s->cap, s->nkeys + 1, e))
		return ACC_ENOMEM;
	s->key[s->nkeys] = acc_arena_str(mem, b);
	return acc_map_put(&s->other, a, s->nkeys++) == NULL ? acc_nomem(e) : 0;
}

struct acc_str
acc_sides_other(const struct acc_sides *s, struct acc_str key)
{
	const uint64_t *at = acc_map_get(&s->other, key);
	return at == NULL ? (struct acc_str){"", 0} : s->key[*at];
}

void
acc_sides_release(struct acc_sides *s)
{
	acc_map_release(&s->sources);
	acc_map_release(&s->other);
	free(s->key);
}

int
acc_sides_see(struct acc_sides *s, const struct acc_rec *r, bool bad, struct acc_arena *mem,
	struct acc_err *e)
{
	static const char *const side[2] = {"a.", "b."};
	if (name_other(s, r, mem, e) < 0)
		return ACC_ENOMEM;
	if ((s->of[0] != NULL && s->of[1] != NULL) && (!bad || s->of_bad))
		return 0;
	bool both = true;
	for (int i = 0; i < 2; i++) {
		const uint64_t *at = acc_map_get(&s->sources, acc_get_text(r, side[i], "src"));
		both = both && at != NULL;
		if (at == NULL)
			continue;
		s->of[i] = s->root[*at];
		s->of_file[i] = acc_arena_str(mem, acc_get_text(r, side[i], "file"));
	}
	s->of_bad |= bad && both;
	return 0;
}

bool
acc_sides_checkpoint(struct acc_sides *s, const struct acc_rec *r, struct acc_arena *mem)
{
	const bool pair = acc_rec_is(r, "pair");
	const char *const prefix[2] = {pair ? "a." : "", "b."};
	bool weight = false;
	for (int i = 0; i < (pair ? 2 : 1); i++) {
		const struct acc_str file = acc_get_text(r, prefix[i], "file");
		if (acc_str_is(acc_get_text(r, prefix[i], "io"), "param") &&
			acc_get(r, prefix[i], "pass") == NULL &&
			acc_get(r, prefix[i], "scope") == NULL) {
			weight = true;
			if (s->file[i].n == 0)
				s->file[i] = acc_arena_str(mem, file);
			s->files[i] |= !acc_str_eq(s->file[i], file);
		} else if (acc_get(r, prefix[i], "kind") != NULL) {
			s->files[i] = true;
		}
	}
	return weight;
}

struct acc_str
acc_shell_word(struct acc_str t, struct acc_arena *mem)
{
	char *out = acc_alloc(mem, 4 * (size_t)t.n + 3), *p = out;
	if (out == NULL)
		return (struct acc_str){"", 0};
	*p++ = '\'';
	for (uint32_t i = 0; i < t.n; i++) {
		/* Closes the quotes, has the quote, and opens them again. */
		if (t.p[i] == '\'')
			*p++ = '\'', *p++ = '\\', *p++ = '\'';
		*p++ = t.p[i];
	}
	*p++ = '\'';
	return (struct acc_str){out, (uint32_t)(p - out)};
}

void
acc_sides_operands(const struct acc_sides *s, const struct acc_format_opt *opt,
	struct acc_arena *mem, struct acc_str out[2])
{
	static const char *const unknown[2] = {"DEVICE", "BENCH"};
	const char *words[2];
	const bool known = typed(opt, s->of, mem, words);
	const bool one = s->of[0] != NULL && s->of[1] != NULL && strcmp(s->of[0], s->of[1]) == 0;
	for (int i = 0; i < 2; i++) {
		/* The file, if it is the one of a checkpoint, or the other side is in the same folder. */
		const struct acc_str file = s->file[i].n > 0 && !s->files[i] ? s->file[i]
					    : one                            ? s->of_file[i]
						  : (struct acc_str){"", 0};
		const char *path = known ? words[i] : s->of[i];
		if (!known && one && file.n == 0)
			path = NULL;
		if (!known && path != NULL && file.n > 0)
			path = acc_arena_printf(mem, "%s/%.*s", path, ACC_PRS(file));
		if (path != NULL && path[0] == '-') /* no option */
			path = acc_arena_printf(mem, "./%s", path);
		out[i] = path == NULL ? acc_str(unknown[i]) : acc_shell_word(acc_str(path), mem);
	}
}
