/* Pickles against the tree that Python's unpickler makes of them (tests/data/pickles.txt, made
 * by tests/data/make_pickles.py); what is refused; what must stay cheap. */
#include "acc/pickle.h"
#include "tap.h"

#include <stdlib.h>

static void
put_hex(FILE *f, const char *mark, struct acc_str s)
{
	fputs(mark, f);
	for (uint32_t i = 0; i < s.n; i++)
		fprintf(f, "%02x", (unsigned char)s.p[i]);
}

static void put(FILE *f, const struct acc_py *x);

static void
put_items(FILE *f, const char *marks, const struct acc_py *x)
{
	fputc(marks[0], f);
	for (uint32_t i = 0; i < x->n; i++) {
		if (i > 0)
			fputc(' ', f);
		put(f, x->item[i]);
	}
	fputc(marks[1], f);
}

static void
put_call(FILE *f, const struct acc_py *x)
{
	static const char *const before[] = {"!", "", "=", "+", "+"};
	for (int i = 0; i < ACC_CALL_PARTS; i++) {
		if (x->item[i] == NULL)
			continue;
		fputs(before[i], f);
		put(f, x->item[i]);
	}
}

static void
put(FILE *f, const struct acc_py *x)
{
	char text[40];
	switch (x->type) {
	case ACC_PY_NONE:
		fputc('N', f);
		break;
	case ACC_PY_BOOL:
		fputc(x->i != 0 ? 'T' : 'F', f);
		break;
	case ACC_PY_INT:
		fprintf(f, "%lld", (long long)x->i);
		break;
	case ACC_PY_BIGINT:
		put_hex(f, "L:", x->s);
		break;
	case ACC_PY_FLOAT:
		acc_f64_repr(x->f, text, sizeof text);
		fputs(text, f);
		break;
	case ACC_PY_STR:
		put_hex(f, "s:", x->s);
		break;
	case ACC_PY_BYTES:
		put_hex(f, "b:", x->s);
		break;
	case ACC_PY_LIST:
		put_items(f, "[]", x);
		break;
	case ACC_PY_TUPLE:
		put_items(f, "()", x);
		break;
	case ACC_PY_SET:
		put_items(f, "{}", x);
		break;
	case ACC_PY_DICT:
		put_items(f, "<>", x);
		break;
	case ACC_PY_GLOBAL: {
		const char *blank = memchr(x->s.p, ' ', x->s.n);
		int n = (int)(blank - x->s.p);
		fprintf(f, "@%.*s.%.*s", n, x->s.p, (int)x->s.n - n - 1, blank + 1);
		break;
	}
	case ACC_PY_PERSID:
		fputc('#', f);
		put(f, x->item[0]);
		break;
	case ACC_PY_CALL:
		put_call(f, x);
		break;
	}
}

/* An exact allocation, so that a sanitizer sees one byte too many. */
static int
read_exact(const void *p, size_t n, size_t *used, struct acc_arena *m, struct acc_err *e,
	char **text)
{
	uint8_t *copy = malloc(n > 0 ? n : 1);
	if (n > 0)
		memcpy(copy, p, n);
	struct acc_py *root = NULL;
	int rc = acc_pickle_read(copy, n, used, &root, m, e);
	if (rc == 0 && text != NULL) {
		size_t len;
		FILE *f = open_memstream(text, &len);
		put(f, root);
		fclose(f);
	}
	free(copy);
	return rc;
}

static size_t
from_hex(const char *s, uint8_t *out)
{
	size_t n = 0;
	unsigned v;
	for (; sscanf(s, "%2x", &v) == 1; s += 2)
		out[n++] = (uint8_t)v;
	return n;
}

static void
check_line(char *line, int number, size_t *prefixes, size_t *taken)
{
	char *tab = strchr(line, '\t'), *got = NULL;
	*tab = '\0';
	uint8_t *p = malloc(strlen(line) / 2 + 4);
	size_t n = from_hex(line, p), used = 0;
	memcpy(p + n, "xyz", 3); /* what follows is not looked at */
	struct acc_arena m = {0};
	struct acc_err e = {0};
	int rc = read_exact(p, n + 3, &used, &m, &e, &got);
	bool good = rc == 0 && used == n && strcmp(got, tab + 1) == 0;
	ok(good, "pickles.txt line %d: %.60s %s", number, tab + 1, e.msg);
	if (!good)
		printf("# got %s\n", got != NULL ? got : "nothing");
	free(got);
	/* No proper prefix is a pickle. */
	for (size_t i = 0; i < n && n < 2000; i++, ++*prefixes) {
		acc_arena_reset(&m);
		*taken += read_exact(p, i, NULL, &m, NULL, NULL) == 0;
	}
	acc_arena_release(&m);
	free(p);
}

static void
check_lines(void)
{
	FILE *f = fopen("tests/data/pickles.txt", "r");
	char *line = NULL;
	size_t cap = 0, prefixes = 0, taken = 0;
	ssize_t n;
	int number = 0;
	while (f != NULL && (n = getline(&line, &cap, f)) > 0) {
		line[n - 1] = '\0';
		check_line(line, ++number, &prefixes, &taken);
	}
	ok(number > 100 && prefixes > 1000 && taken == 0, "%zu of %zu prefixes are pickles", taken,
		prefixes);
	free(line);
	if (f != NULL)
		fclose(f);
}

static void
fails(const char *what, const char *p, size_t n, int code, uint64_t pos, const char *text)
{
	struct acc_arena m = {0};
	struct acc_err e = {0};
	int rc = read_exact(p, n, NULL, &m, &e, NULL);
	if (!ok(rc == code && e.code == code && e.has_pos && e.pos == pos &&
			    strstr(e.msg, text) != NULL && m.held < 100000,
		    "%s: %s", what, e.msg))
		printf("# code %d at %llu, %zu bytes held\n", rc, (unsigned long long)e.pos,
			m.held);
	acc_arena_release(&m);
}
#define FAILS(what, lit, code, pos, text) fails(what, lit, sizeof(lit) - 1, code, pos, text)

static void
check_bad(void)
{
	FAILS("empty", "", ACC_ETRUNC, 0, "too early");
	FAILS("only STOP", ".", ACC_EFORMAT, 0, "nothing on the stack");
	FAILS("only a mark", "(.", ACC_EFORMAT, 1, "nothing on the stack");
	FAILS("unknown opcode", "\xf0.", ACC_EFORMAT, 0, "opcode 0xf0");
	FAILS("protocol 6", "\x80\x06N.", ACC_EVERSION, 0, "protocol 6");
	FAILS("extension", "\x82\x01.", ACC_EUNSUP, 0, "extension");
	FAILS("buffer", "\x97.", ACC_EUNSUP, 0, "buffers");
	FAILS("memo bomb", "Nr\xff\xff\xff\xff.", ACC_ELIMIT, 1, "memo index 4294967295");
	FAILS("memo bomb, smaller", "Nr\0\0\20\0.", ACC_ELIMIT, 1, "memo index 1048576");
	FAILS("memo bomb, text", "Np9223372036854775807\n.", ACC_ELIMIT, 1, "memo index");
	FAILS("memo unset", "Nh\x03.", ACC_EFORMAT, 1, "memo entry");
	FAILS("memo negative", "Np-1\n.", ACC_EFORMAT, 1, "not a number");
	FAILS("memo of a mark", "(q\x01.", ACC_EFORMAT, 1, "nothing on the stack");
	FAILS("string bomb", "X\xff\xff\xff\xffN.", ACC_ETRUNC, 0, "too early");
	FAILS("string bomb 8", "\x8d\xff\xff\xff\xff\xff\xff\xff\xffN.", ACC_ETRUNC, 0,
		"too early");
	FAILS("bytes bomb 8", "\x8e\xff\xff\xff\xff\xff\xff\xff\x7fN.", ACC_ETRUNC, 0, "too early");
	FAILS("negative LONG4", "\x8b\xff\xff\xff\xff.", ACC_EFORMAT, 0, "negative length");
	FAILS("LONG4 bomb", "\x8b\xff\xff\xff\x7f.", ACC_ETRUNC, 0, "too early");
	FAILS("frame too long", "\x95\x03\0\0\0\0\0\0\0N.", ACC_ETRUNC, 0, "too early");
	FAILS("no newline", "I12", ACC_ETRUNC, 0, "too early");
	FAILS("INT", "I1x\n.", ACC_EFORMAT, 0, "not a number");
	FAILS("LONG", "LL\n.", ACC_EFORMAT, 0, "not a number");
	FAILS("FLOAT", "F1.5x\n.", ACC_EFORMAT, 0, "not a number");
	FAILS("STRING without quotes", "Sab\n.", ACC_EFORMAT, 0, "not a string");
	FAILS("STRING with half a quote", "S'\n.", ACC_EFORMAT, 0, "not a string");
	FAILS("STRING, bad escape", "S'\\x4'\n.", ACC_EFORMAT, 0, "not a string");
	FAILS("STRING, escaped end", "S'\\'\n.", ACC_EFORMAT, 0, "not a string");
	FAILS("UNICODE, bad escape", "V\\u12\n.", ACC_EFORMAT, 0, "not a string");
	FAILS("UNICODE, no character", "V\\U00110000\n.", ACC_EFORMAT, 0, "not a string");
	FAILS("DUP of nothing", "2.", ACC_EFORMAT, 0, "nothing on the stack");
	FAILS("POP of nothing", "0.", ACC_EFORMAT, 0, "nothing on the stack");
	FAILS("POP_MARK without one", "N1.", ACC_EFORMAT, 1, "no mark");
	FAILS("TUPLE without a mark", "Nt.", ACC_EFORMAT, 1, "no mark");
	FAILS("TUPLE3 over a mark", "N(NN\x87.", ACC_EFORMAT, 4, "nothing on the stack");
	FAILS("odd dict", "(NNNd.", ACC_EFORMAT, 4, "without a value");
	FAILS("odd items", "}(Nu.", ACC_EFORMAT, 3, "without a value");
	FAILS("append to a number", "K\1K\2a.", ACC_EFORMAT, 4, "no container");
	FAILS("append to a tuple", ")Na.", ACC_EFORMAT, 2, "no container");
	FAILS("appends to a mark", "((Ne.", ACC_EFORMAT, 3, "no container");
	FAILS("appends to nothing", "(Ne.", ACC_EFORMAT, 2, "no container");
	FAILS("append to a mark", "(Na.", ACC_EFORMAT, 2, "nothing on the stack");
	FAILS("set in a list", "]NNs.", ACC_EFORMAT, 3, "no container");
	FAILS("BUILD of a list", "]Nb.", ACC_EFORMAT, 2, "no object");
	FAILS("BUILD of a class", "cm\nC\nNb.", ACC_EFORMAT, 6, "no object");
	FAILS("BUILD of nothing", "Nb.", ACC_EFORMAT, 1, "no object");
	FAILS("BUILD twice", "cm\nC\n)RNbNb.", ACC_EFORMAT, 10, "second state");
	FAILS("OBJ without a class", "(o.", ACC_EFORMAT, 1, "without a class");
	FAILS("arguments", "cm\nC\nNR.", ACC_EFORMAT, 6, "no tuple");
	FAILS("blank in a name", "cm\nC x\n.", ACC_EFORMAT, 0, "name of a class");
	FAILS("blank in a module", "cm n\nC\n.", ACC_EFORMAT, 0, "name of a class");
	FAILS("no name", "cm\n\n.", ACC_EFORMAT, 0, "name of a class");
	FAILS("name that is none", "NN\x93.", ACC_EFORMAT, 2, "name of a class");
}

/* A call of "module name" by REDUCE, NEWOBJ, INST or OBJ: refused by name, or let pass. */
static void
calls(const char *module, const char *name, const char *how, bool good)
{
	char p[200], want[200];
	int n = strcmp(how, "INST") == 0 ? snprintf(p, sizeof p, "(i%s\n%s\n.", module, name)
					 : snprintf(p, sizeof p, "%sc%s\n%s\n%s.",
						   strcmp(how, "OBJ") == 0 ? "(" : "", module, name,
						   strcmp(how, "OBJ") == 0      ? "o"
						   : strcmp(how, "NEWOBJ") == 0 ? ")\x81"
										: ")R");
	struct acc_arena m = {0};
	struct acc_err e = {0};
	int rc = read_exact(p, (size_t)n, NULL, &m, &e, NULL);
	snprintf(want, sizeof want, "pickle calls %s.%s: refused", module, name);
	if (good)
		ok(rc == 0, "%s of %s.%s passes", how, module, name);
	else
		ok(rc == ACC_EREFUSED && strcmp(e.msg, want) == 0, "%s of %s.%s is refused", how,
			module, name);
	acc_arena_release(&m);
}

static void
check_calls(void)
{
	static const char *const bad[][2] = {{"os", "system"}, {"posix", "system"},
		{"nt", "system"}, {"builtins", "eval"}, {"builtins", "exec"},
		{"builtins", "getattr"}, {"builtins", "__import__"}, {"__builtin__", "eval"},
		{"builtins", "open"}, {"subprocess", "Popen"}, {"subprocess", "run"},
		{"functools", "partial"}, {"operator", "attrgetter"}, {"sys", "exit"},
		{"shutil", "rmtree"}, {"socket", "socket"}, {"runpy", "_run_code"},
		{"importlib", "import_module"}, {"types", "FunctionType"}, {"types", "CodeType"},
		{"code", "InteractiveConsole"}, {"pty", "spawn"}, {"ctypes", "CDLL"},
		{"multiprocessing.pool", "Pool"}, {"pickle", "loads"}, {"torch.hub", "load"},
		{"webbrowser", "open"}, {"torch", "load"}, {"numpy", "load"},
		{"some.where", "function"}, {"io", "FileIO"}, {"_io", "open"},
		{"torch", "os.system"}, {"torch", "_utils.Popen"}, {"logging", "config.dictConfig"},
		{"torch._utils", "_rebuild_x.os.system"}, {"torch._utils", "classproperty"},
		{"collections", "abc.os.system"}, {"x", "_"}, {"x", "__y"}, {"x", "Upper.lower"},
		{"tempfile", "TemporaryDirectory"}, {"os.path", "Weird"}, {"x", "\xc3\x84"}};
	static const char *const good[][2] = {{"argparse", "Namespace"}, {"datetime", "datetime"},
		{"torch._utils", "_rebuild_tensor_v2"}, {"torch._utils", "_rebuild_not_yet"},
		{"torch_npu.utils.storage", "_rebuild_npu_tensor"}, {"torch", "device"},
		{"torch", "Size"}, {"collections", "deque"}, {"builtins", "set"},
		{"__builtin__", "bytearray"}, {"builtins", "ValueError"}, {"_codecs", "encode"},
		{"types", "SimpleNamespace"}, {"io", "BytesIO"}, {"transformers.x", "Some_Class"},
		{"m", "_Private"}, {"m", "Outer._Inner"}, {"operators", "Op"}, {"osmium", "Os"},
		{"pathlib", "PosixPath"}, {"torch.return_types", "max"},
		{"numpy.core.multiarray", "_reconstruct"}, {"copyreg", "_reconstructor"}};
	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
		calls(bad[i][0], bad[i][1], "REDUCE", false);
	for (size_t i = 0; i < sizeof good / sizeof *good; i++)
		calls(good[i][0], good[i][1], "REDUCE", true);
	calls("some.where", "lower_class", "NEWOBJ", true);
	calls("some.where", "through.lower_class", "NEWOBJ", false);
	calls("subprocess", "Popen", "NEWOBJ", false);
	calls("os", "system", "INST", false);
	calls("os", "system", "OBJ", false);
	calls("some.where", "Thing", "INST", true);
	FAILS("called, then dropped", "Ncos\nsystem\n)R0.", ACC_EREFUSED, 13, "os.system: refused");
	FAILS("called in a memo", "cos\nsystem\nq\0)Rq\0N.", ACC_EREFUSED, 14, "os.system");
	FAILS("STACK_GLOBAL", "U\2osU\6system\x93)R.", ACC_EREFUSED, 14, "os.system: refused");
	FAILS("a call of a call", "cm\nC\n)R)R.", ACC_EREFUSED, 8, "no name");
	FAILS("a call of a number", "K\1)R.", ACC_EREFUSED, 3, "no name");
	FAILS("what a rebuilder calls",
		"ctorch._tensor\n_rebuild_from_type_v2\n(cos\nsystem\n)N}tR.", ACC_EREFUSED, 53,
		"os.system: refused");
}

/* Time and memory stay linear. */
static void
check_cheap(void)
{
	struct acc_arena m = {0};
	struct acc_err e = {0};
	struct acc_py *root;
	/* Marks and items, many times over one another: each is looked at once. */
	size_t n = 400000;
	char *p = malloc(n + 1);
	memset(p, '(', n / 2);
	memset(p + n / 2, 't', n / 2);
	p[n] = '.';
	ok(acc_pickle_read(p, n + 1, NULL, &root, &m, &e) == 0 && root->type == ACC_PY_TUPLE,
		"tuples nested 200,000 deep");
	ok(m.held < 100 * n, "%zu bytes for a pickle of %zu", m.held, n);
	acc_arena_release(&m);
	/* A list that holds itself, and doubles: 30 times two references. */
	static const char self[] = "]q\1h\1a.";
	ok(acc_pickle_read(self, sizeof self - 1, NULL, &root, &m, &e) == 0 && root->n == 1 &&
			root->item[0] == root,
		"a list that holds itself");
	size_t k = 0;
	p[k++] = ')';
	for (int i = 0; i < 60; i++) {
		p[k++] = '2';
		p[k++] = (char)0x86;
	}
	p[k++] = '.';
	ok(acc_pickle_read(p, k, NULL, &root, &m, &e) == 0 && m.held < 50000,
		"2^60 leaves take %zu bytes", m.held);
	acc_arena_release(&m);
	/* A million objects out of a few bytes: 32 MiB in any case, 100 bytes more for each byte. */
	free(p);
	n = 1000000;
	p = malloc(n + 3);
	memset(p, 'N', n + 2);
	p[0] = '(';
	p[n + 1] = 't';
	p[n + 2] = '.';
	ok(acc_pickle_read_packed(p, n + 3, 1000, NULL, &root, &m, &e) == ACC_ELIMIT &&
			m.held < (33 << 20),
		"objects that took too few bytes: %s", e.msg);
	acc_arena_release(&m);
	e = (struct acc_err){0};
	ok(acc_pickle_read_packed(p, n + 3, n / 2, NULL, &root, &m, &e) == 0,
		"with half as many bytes as objects: %s", e.msg);
	acc_arena_release(&m);
	ok(acc_pickle_read(p, n + 3, NULL, &root, &m, &e) == 0 && m.held < 100 * n + (32 << 20),
		"as they are");
	acc_arena_release(&m);
	/* An earlier failure stays what it was. */
	e = (struct acc_err){.code = ACC_EIO, .msg = "earlier"};
	ok(acc_pickle_read("R.", 2, NULL, &root, &m, &e) == ACC_EFORMAT && e.code == ACC_EIO,
		"the first failure wins");
	ok(acc_pickle_read("R.", 2, NULL, &root, &m, NULL) == ACC_EFORMAT, "no error struct");
	acc_arena_release(&m);
	free(p);
}

int
main(void)
{
	check_lines();
	check_bad();
	check_calls();
	check_cheap();
	return done();
}
