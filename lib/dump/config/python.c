/* What a script in Python is, by its text alone, and whether a text is INI. */
#include "dump/config/python.h"

#include "io/literal.h"

#include <string.h>

static bool
name_char(char c)
{
	return c == '_' || (c >= '0' && c <= '9') || ((c | 0x20) >= 'a' && (c | 0x20) <= 'z');
}

uint32_t
acc_python_indent(const char *p, const char *end)
{
	const char *q = p;
	while (q < end && (*q == ' ' || *q == '\t'))
		q++;
	return (uint32_t)(q - p);
}

uint32_t
acc_python_call(const char *p, const char *end)
{
	const char *q = p, *name;
	while (q < end && (name_char(*q) || *q == '.'))
		q++;
	if (q == p || q == end || *q++ != '(')
		return 0;
	const uint32_t n = (uint32_t)(q - p);
	if (n == 5 && memcmp(p, "dict(", 5) == 0)
		return n;
	while (q < end && (*q == ' ' || *q == '\t' || *q == '\n' || *q == '\r'))
		q++;
	for (name = q; q < end && name_char(*q); q++)
		;
	return q > name && end - q > 1 && *q == '=' && q[1] != '=' ? n : 0;
}

/* Is a script in Python nothing but assignments? Of each line that begins one. */
bool
acc_python_only_assigns(struct acc_str s)
{
	static const char *const others[] = {"import ", "from ", "with read_base", "@", ")", "]",
		"}", "#", "'''", "\"\"\"", "if ", "else", "del ", "def get_config("};
	unsigned n = 0;
	bool text = false; /* inside a string of several lines */
	while (s.n > 0) {
		const char *nl = memchr(s.p, '\n', s.n);
		const uint32_t len = nl == NULL ? s.n : (uint32_t)(nl - s.p);
		struct acc_str t = {s.p, len};
		uint32_t i = 0;
		bool known = text || t.n == 0 || t.p[0] == ' ' || t.p[0] == '\t' || t.p[0] == '\r';
		for (size_t k = 0; k < sizeof others / sizeof *others; k++)
			known = known || acc_str_starts(t, others[k]);
		for (const char *q = t.p;
			t.n > 0 && (q = memmem(q, (size_t)(t.p + t.n - q), "\"\"\"", 3)) != NULL;
			q += 3)
			text = !text;
		while (i < t.n && (name_char(t.p[i]) || (i > 0 && t.p[i] == '.')))
			i++;
		n += acc_str_starts(t, "def get_config(");
		if (!known && i > 0) {
			struct acc_str rest = acc_str_trim((struct acc_str){t.p + i, t.n - i});
			known = rest.n > 1 &&
				((rest.p[0] == '=' && rest.p[1] != '=') || rest.p[0] == ':');
			n += known;
		}
		/* The last line of a head may be cut off. */
		if (!known && nl != NULL)
			return false;
		s = (struct acc_str){s.p + len + (nl != NULL), s.n - len - (nl != NULL)};
	}
	return n > 0;
}

/* Does the name of a file say that it configures? Then what it calls and defines does not hinder. */
bool
acc_python_configures(struct acc_str base)
{
	static const char *const words[] = {"config", "cfg", "hparam", "setting", "conf", "hyper"};
	for (size_t i = 0; base.n > 3 && i < sizeof words / sizeof *words; i++)
		if (acc_str_ends(base, ".py") &&
			memmem(base.p, base.n, words[i], strlen(words[i])) != NULL)
			return true;
	return false;
}

/* Lines that give a name a value; those that begin a class into *classes. */
unsigned
acc_python_assigns(struct acc_str s, unsigned *classes)
{
	unsigned n = 0;
	*classes = 0;
	while (s.n > 0) {
		const char *nl = memchr(s.p, '\n', s.n);
		const uint32_t len = nl == NULL ? s.n : (uint32_t)(nl - s.p),
			       at = acc_python_indent(s.p, s.p + len);
		const char *p = s.p + at, *end = s.p + len;
		*classes += at == 0 && acc_str_starts(s, "class ");
		while (p < end && (name_char(*p) || *p == '.'))
			p++;
		const uint32_t gap = acc_python_indent(p, end);
		n += (at == 0 || *classes > 0) && p > s.p + at && end - p > gap + 1 &&
		     p[gap] == '=' && p[gap + 1] != '=';
		s = (struct acc_str){s.p + len + (nl != NULL), s.n - len - (nl != NULL)};
	}
	return n;
}

/* Lines "name = value", "[section]" and comments, and nothing else; the last may be cut off. */
bool
acc_text_is_ini(struct acc_str s)
{
	struct acc_str first = {NULL, 0};
	unsigned n = 0;
	while (s.n > 0) {
		const char *nl = memchr(s.p, '\n', s.n);
		const uint32_t len = nl == NULL ? s.n : (uint32_t)(nl - s.p);
		const struct acc_str t = acc_str_trim((struct acc_str){s.p, len});
		const char *q = t.p, *end = t.p + t.n;
		q += q < end && *q == '@'; /* "@architectures" of spaCy */
		while (q < end && (name_char(*q) || *q == '-' || *q == '.'))
			q++;
		const struct acc_str name = {t.p, (uint32_t)(q - t.p)};
		if (t.n > 0 && *t.p == '[')
			first.n = 0;
		if (q > t.p && q + 1 < end && *q == ' ' && q[1] == '=' &&
			(q + 2 == end || q[2] == ' ')) {
			if (first.n > 0 && acc_str_eq(first, name))
				return false; /* a log says it again */
			first = first.n == 0 ? name : first;
			n++;
		} else if (t.n > 0 && nl != NULL && *t.p != '#' && *t.p != ';' && *t.p != '[') {
			return false;
		}
		s = (struct acc_str){s.p + len + (nl != NULL), s.n - len - (nl != NULL)};
	}
	return n >= 3;
}
