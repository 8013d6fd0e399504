/* YAML files as trees, and names written so that they can be read back. */
#include "acc/yaml.h"

#include "tap.h"

#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

/* Reads text through a file in memory. */
static int
read_text(const char *text, size_t n, struct acc_arena *m, struct acc_yaml **y, struct acc_err *e)
{
	char path[64];
	int fd = memfd_create("yaml", MFD_CLOEXEC);
	if (fd < 0 || write(fd, text, n) != (ssize_t)n)
		abort();
	snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
	*e = (struct acc_err){0};
	int rc = acc_yaml_read(path, m, y, e);
	close(fd);
	return rc;
}

static void
refused(const char *text, int code, const char *what)
{
	struct acc_arena m = {0};
	struct acc_yaml *y;
	struct acc_err e;
	int rc = read_text(text, strlen(text), &m, &y, &e);
	ok(rc == code && strstr(e.msg, what) != NULL, "refused: %s (%s)", what, e.msg);
	acc_arena_release(&m);
}

static void
trees(void)
{
	static const char text[] = "# comment\n"
				   "a.b: c\n"
				   "list: [1, two]\n"
				   "'quoted key': \"x\\ty\"\n"
				   "none:\n"
				   "empty: ''\n"
				   "deep:\n  in: ~\n"
				   "---\nsecond: document\n";
	struct acc_arena m = {0};
	struct acc_yaml *y;
	struct acc_err e;
	ok(read_text(text, sizeof text - 1, &m, &y, &e) == 0 && y->kind == ACC_YAML_MAP, "a map");
	const struct acc_yaml *v = acc_yaml_get(y, "a.b");
	ok(v != NULL && strcmp(v->text, "c") == 0 && v->line == 2, "a value and its line");
	v = acc_yaml_get(y, "list");
	ok(v != NULL && v->kind == ACC_YAML_LIST && strcmp(v->child->text, "1") == 0 &&
			strcmp(v->child->next->text, "two") == 0 && v->child->next->next == NULL,
		"a list");
	ok(strcmp(acc_yaml_get(y, "quoted key")->text, "x\ty") == 0, "quotes and escapes");
	ok(acc_yaml_get(y, "none")->null && !acc_yaml_get(y, "empty")->null, "null is not ''");
	ok(acc_yaml_get(acc_yaml_get(y, "deep"), "in")->null, "~ is null");
	ok(acc_yaml_get(y, "second") == NULL && acc_yaml_get(y, "c") == NULL, "absent");
	ok(acc_yaml_get(NULL, "a") == NULL && acc_yaml_get(v->child, "a") == NULL, "of no map");
	ok(read_text("", 0, &m, &y, &e) == 0 && y == NULL, "an empty file");
	acc_arena_release(&m);
}

static void
round_trip(void)
{
	static char longest[1500] = "";
	static const char *const names[] = {"Functional.linear.0.forward.input.0", "a b", "x: y",
		"#x", "- z", "\"quoted\" \\ back", "tab\tnew\nline\x01", "标杆", "*alias",
		"&anchor", "0.1", "~", "null", "off", longest};
	memset(longest, 'x', sizeof longest - 1);
	struct acc_arena m = {0};
	struct acc_buf out = {0};
	struct acc_yaml *y;
	struct acc_err e;
	size_t n = sizeof names / sizeof *names;
	for (size_t i = 0; i < n; i++)
		acc_yaml_pair(&out, acc_str(names[i]), acc_str(names[n - 1 - i]));
	ok(read_text((char *)out.p, out.n, &m, &y, &e) == 0, "what is written can be read %s",
		e.msg);
	for (size_t i = 0; i < n; i++) {
		const struct acc_yaml *v = acc_yaml_get(y, names[i]);
		ok(v != NULL && !v->null && strcmp(v->text, names[n - 1 - i]) == 0, "name %zu", i);
	}
	acc_buf_release(&out);
	acc_arena_release(&m);
}

int
main(void)
{
	char deep[70];
	memset(deep, '[', sizeof deep);
	deep[sizeof deep - 1] = '\0';
	trees();
	round_trip();
	refused("a: &x b\n", ACC_EUNSUP, "line 1: anchors");
	refused("- &x [a]\n", ACC_EUNSUP, "anchors");
	refused("a: 1\nb: *x\n", ACC_EUNSUP, "line 2: anchors");
	refused("a: [b\n", ACC_EFORMAT, "line 2");
	refused("\"a\\0b\": c\n", ACC_EFORMAT, "zero byte");
	refused(deep, ACC_ELIMIT, "deeper than 64");
	return done();
}
