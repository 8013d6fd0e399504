#include "dump/op/handname.h"

static const struct {
	const char *word, *io;
	bool backward; /* by itself; of a backward call's own in and out: what comes in, what goes out */
} words[] = {
	{"grad_input", "out", true},
	{"grad_output", "in", true},
	{"grad_in", "out", true},
	{"grad_out", "in", true},
	{"grad", "out", true},
	{"inputs", "in", false},
	{"input", "in", false},
	{"args", "in", false},
	{"arg", "in", false},
	{"in", "in", false},
	{"outputs", "out", false},
	{"output", "out", false},
	{"result", "out", false},
	{"out", "out", false},
};
enum { NWORDS = sizeof words / sizeof *words };

static bool
is_sep(char c)
{
	return c == '.' || c == '_' || c == '-';
}

static bool
is_backward(struct acc_str module)
{
	return acc_str_starts(module, "bwd") || acc_str_starts(module, "backward");
}

static void
fill(struct acc_str module, size_t word, struct acc_str pos, struct argname *out)
{
	*out = (struct argname){.key = module,
		.op = module,
		.call = -1,
		.pass = words[word].backward || is_backward(module) ? ACC_STR("backward")
								    : ACC_STR("forward"),
		.io = words[word].io,
		.pos = pos.n > 0 ? pos : ACC_STR("0")};
}

bool
acc_dump_handname(struct acc_str name, struct argname *out)
{
	/* NAME, a separator, the word; and perhaps another, and a number. */
	uint32_t n = name.n, digits = 0;
	while (n > 0 && name.p[n - 1] >= '0' && name.p[n - 1] <= '9')
		n--, digits++;
	struct acc_str pos = {name.p + n, digits};
	if (digits > 0 && n > 0 && is_sep(name.p[n - 1]))
		n--;
	for (size_t i = 0; i < NWORDS; i++) {
		const uint32_t w = (uint32_t)strlen(words[i].word);
		struct acc_str head = {name.p, n};
		if (n <= w + 1 || !acc_str_ends(head, words[i].word) || !is_sep(name.p[n - w - 1]))
			continue;
		head.n = n - w - 1;
		fill(head, i, pos, out);
		return true;
	}
	return false;
}

bool
acc_dump_handpath(struct acc_str module, struct acc_str path, struct argname *out)
{
	const char *dot = path.n == 0 ? NULL : memchr(path.p, '.', path.n);
	struct acc_str head = {path.p, dot == NULL ? path.n : (uint32_t)(dot - path.p)};
	struct acc_str rest = {path.p + head.n, path.n - head.n};
	if (rest.n > 0)
		rest = (struct acc_str){rest.p + 1, rest.n - 1};
	for (size_t i = 0; i < NWORDS; i++)
		if (acc_str_is(head, words[i].word)) {
			fill(module, i, rest, out);
			return true;
		}
	return false;
}

int
acc_dump_handkey(struct argname *a, struct acc_arena *m)
{
	if (!acc_str_is(a->pass, "backward") || is_backward(a->key) ||
		acc_str_ends(a->key, ".backward"))
		return 0;
	a->key = acc_str_made(acc_arena_printf(m, "%.*s.backward", ACC_PRS(a->key)));
	return a->key.n == 0 ? ACC_ENOMEM : 0;
}

bool
acc_dump_handnumber(struct acc_str name)
{
	uint32_t n = 0;
	while (n < name.n && name.p[n] >= '0' && name.p[n] <= '9')
		n++;
	return n > 0 && n < name.n && is_sep(name.p[n]);
}

const char *
acc_dump_handorder(const char *const *names, size_t n, const char *suffix)
{
	size_t files = 0, numbered = 0;
	for (size_t i = 0; i < n; i++)
		if (acc_str_ends(acc_str(names[i]), suffix)) {
			files++;
			numbered += acc_dump_handnumber(acc_str(names[i]));
		}
	return files > 1 && numbered == files ? NULL : "names";
}
