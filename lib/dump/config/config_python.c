/* Seeds and determinism switches in a training script in Python: a search in its text, line by
 * line. Nothing is run, so that a value is known only where it is written down.
 *
 *	torch.manual_seed(1234)                       torch.manual_seed 1234
 *	torch.backends.cudnn.deterministic = True     torch.backends.cudnn.deterministic True
 *	os.environ['HCCL_DETERMINISTIC'] = 'true'     HCCL_DETERMINISTIC true (as a variable)
 *	context.set_context(deterministic="ON")       deterministic ON
 *
 * The first parameter, script, is the file itself.
 */
#include "dump/config/param.h"
#include "io/literal.h"

/* Calls, by the end of their name, and what they are called here; then settings. */
static const struct {
	const char *tail, *key;
} calls[] =
	{
		{"numpy.random.seed", "numpy.random.seed"},
		{"np.random.seed", "numpy.random.seed"},
		{"random.seed", "random.seed"},
		{"default_rng", "numpy.random.seed"},
		{"cuda.manual_seed", "torch.cuda.manual_seed"},
		{"cuda.manual_seed_all", "torch.cuda.manual_seed"},
		{"npu.manual_seed", "torch.npu.manual_seed"},
		{"npu.manual_seed_all", "torch.npu.manual_seed"},
		{"torch.manual_seed", "torch.manual_seed"},
		{"ms.set_seed", "mindspore.set_seed"},
		{"mindspore.set_seed", "mindspore.set_seed"},
		{"set_seed", "set_seed"},
		{"seed_all", "seed_all"},
		{"seed_everything", "seed_all"},
		{"use_deterministic_algorithms", "torch.use_deterministic_algorithms"},
		{"set_deterministic", "deterministic"},
		{"set_float32_matmul_precision", "torch.float32_matmul_precision"},
},
  settings[] = {
	  {"cudnn.deterministic", "torch.backends.cudnn.deterministic"},
	  {"cudnn.benchmark", "torch.backends.cudnn.benchmark"},
	  {"cudnn.enabled", "torch.backends.cudnn.enabled"},
	  {"cudnn.enable", "torch.backends.cudnn.enabled"},
	  {"cudnn.allow_tf32", "torch.backends.cudnn.allow_tf32"},
	  {"matmul.allow_tf32", "torch.backends.cuda.matmul.allow_tf32"},
	  {"npu.matmul.allow_hf32", "torch.npu.matmul.allow_hf32"},
};

struct script {
	struct params ps;
	struct acc_map known; /* names that were given a whole number -> index in number[] */
	uint64_t line;
	bool text;  /* inside a string of several lines, */
	char quote; /* that ends so */
};

static bool
name_char(char c)
{
	return c == '_' || c == '.' || (c >= '0' && c <= '9') ||
	       ((c | 0x20) >= 'a' && (c | 0x20) <= 'z');
}

static struct acc_str
from(struct acc_str s, uint32_t n)
{
	n = n < s.n ? n : s.n;
	return (struct acc_str){s.p + n, s.n - n};
}

/* Whole components: cudnn.benchmark ends torch.backends.cudnn.benchmark. */
static bool
ends(struct acc_str name, const char *tail)
{
	uint32_t n = (uint32_t)strlen(tail);
	return acc_str_ends(name, tail) && (name.n == n || name.p[name.n - n - 1] == '.');
}

/* A value without its quotes. */
static struct acc_str
bare(struct acc_str s)
{
	s = acc_str_trim(s);
	if (s.n >= 2 && (s.p[0] == '"' || s.p[0] == '\'') && s.p[s.n - 1] == s.p[0])
		s = (struct acc_str){s.p + 1, s.n - 2};
	return s;
}

/* The first of arguments or values: up to a comma or the bracket that closes. */
static struct acc_str
first(struct acc_str s)
{
	int depth = 0;
	char quote = 0;
	for (uint32_t i = 0; i < s.n; i++) {
		char c = s.p[i];
		if (quote != 0) {
			quote = c == quote ? 0 : quote;
			continue;
		}
		if (c == '"' || c == '\'')
			quote = c;
		depth += c == '(' || c == '[' || c == '{';
		depth -= c == ')' || c == ']' || c == '}';
		if (depth < 0 || (depth == 0 && (c == ',' || c == ';')))
			return (struct acc_str){s.p, i};
	}
	return s;
}

static int
put(struct script *sc, const char *key, struct acc_str value, enum dialect d, struct acc_err *e)
{
	char number[24];
	struct param p = {.key = acc_str(key),
		.value = bare(value),
		.line = sc->line,
		.dialect = d};
	const char *eq = p.value.n == 0 ? NULL : memchr(p.value.p, '=', p.value.n);
	if (eq != NULL) /* seed=42 */
		p.value = bare(from(p.value, (uint32_t)(eq - p.value.p) + 1));
	uint64_t *known = acc_map_get(&sc->known, p.value);
	if (known != NULL) {
		snprintf(number, sizeof number, "%llu", (unsigned long long)*known);
		p.value = acc_str(number);
	}
	return acc_params_add(&sc->ps, &p, e);
}

/* name = 42, also as the default of a parameter: the seed may be given by its name. */
static int
remember(struct script *sc, struct acc_str name, struct acc_str value, struct acc_err *e)
{
	int64_t v;
	if (!acc_str_int(acc_str_trim(first(value)), &v) || v < 0)
		return 0;
	uint64_t *at = acc_map_put(&sc->known, name, 0);
	if (at == NULL)
		return acc_nomem(e);
	*at = (uint64_t)v;
	return 0;
}

/* os.environ["NAME"] = "value", with what stands behind os.environ */
static int
environment(struct script *sc, struct acc_str s, struct acc_err *e)
{
	char key[128];
	bool call = s.n > 0 && s.p[0] == '(', index = s.n > 0 && s.p[0] == '[';
	struct acc_str name = bare(first(from(s, 1)));
	const char *close = s.n == 0 ? NULL : memchr(s.p, call ? ',' : ']', s.n);
	if (!(call || index) || close == NULL || name.n == 0 || name.n >= sizeof key)
		return 0;
	struct acc_str v = acc_str_trim(from(s, (uint32_t)(close - s.p) + 1));
	if (index && (v.n == 0 || v.p[0] != '=' || (v.n > 1 && v.p[1] == '=')))
		return 0;
	v = bare(first(from(v, index)));
	if (acc_str_starts(v, "str(")) /* str(seed) */
		v = first(from(v, 4));
	snprintf(key, sizeof key, "%.*s", ACC_PRS(name));
	return put(sc, key, v, DIALECT_EXPORT, e);
}

/* A name, and what follows it. */
static int
found(struct script *sc, struct acc_str name, struct acc_str rest, bool definition,
	struct acc_err *e)
{
	struct acc_str s = acc_str_trim(rest);
	bool call = s.n > 0 && s.p[0] == '(', set = s.n > 1 && s.p[0] == '=' && s.p[1] != '=';
	if (ends(name, "os.environ") || ends(name, "environ.setdefault") || ends(name, "os.putenv"))
		return environment(sc, s, e);
	if (set && ends(name, "deterministic") && name.n == strlen("deterministic"))
		return put(sc, "deterministic", first(from(s, 1)), DIALECT_CODE, e);
	for (size_t i = 0; set && i < sizeof settings / sizeof *settings; i++)
		if (ends(name, settings[i].tail))
			return put(sc, settings[i].key, first(from(s, 1)), DIALECT_CODE, e);
	for (size_t i = 0; call && !definition && i < sizeof calls / sizeof *calls; i++)
		if (ends(name, calls[i].tail))
			return put(sc, calls[i].key, first(from(s, 1)), DIALECT_CODE, e);
	return set ? remember(sc, name, from(s, 1), e) : 0;
}

/* Is there a string of several lines that begins here, or ends? */
static bool
triple(struct acc_str s, uint32_t i)
{
	return i + 2 < s.n && s.p[i] == s.p[i + 1] && s.p[i] == s.p[i + 2];
}

static int
line(struct script *sc, struct acc_str s, struct acc_err *e)
{
	struct acc_str t = acc_str_trim(s);
	bool definition = acc_str_starts(t, "def ");
	char quote = 0;
	int rc = 0;
	for (uint32_t i = 0, n; i < s.n && rc == 0; i += n) {
		char c = s.p[i];
		n = 1;
		if (sc->text) {
			if (c == sc->quote && triple(s, i))
				sc->text = false, n = 3;
		} else if (quote != 0) {
			n += c == '\\';
			quote = c == quote ? 0 : quote;
		} else if ((c == '"' || c == '\'') && triple(s, i)) {
			sc->text = true, sc->quote = c, n = 3;
		} else if (c == '"' || c == '\'') {
			quote = c;
		} else if (c == '#') {
			break;
		} else if (name_char(c)) {
			while (i + n < s.n && name_char(s.p[i + n]))
				n++;
			struct acc_str name = {s.p + i, n};
			/* The call that a definition's line makes is that in its defaults. */
			rc = found(sc, name, from(s, i + n), definition, e);
		}
	}
	return rc;
}

static int
lines(struct script *sc, struct acc_err *e)
{
	struct acc_str text = {(const char *)sc->ps.text.p, (uint32_t)sc->ps.text.n};
	int rc = 0;
	while (text.n > 0 && rc == 0) {
		const char *nl = memchr(text.p, '\n', text.n);
		uint32_t n = nl == NULL ? text.n : (uint32_t)(nl - text.p);
		sc->line++;
		rc = line(sc, (struct acc_str){text.p, n}, e);
		text = from(text, n + 1);
	}
	return rc;
}

static int
probe(const struct acc_probe *p)
{
	return !p->is_dir && acc_str_ends(p->base, ".py") ? 60 : 0;
}

static int
read_python(struct acc_dump_ctx *c, const char *path, struct acc_err *e)
{
	struct script sc = {.line = 0};
	int rc = acc_params_open(&sc.ps, c, path, e);
	if (rc == 0 && sc.ps.text.n > 0 && memchr(sc.ps.text.p, '\0', sc.ps.text.n) != NULL)
		rc = acc_fail(e, ACC_EFORMAT, "no script: it holds a zero byte");
	/* That a script was read is worth knowing even if it sets nothing. */
	const struct param self = {.key = ACC_STR("script"),
		.value = acc_str(sc.ps.f.name),
		.line = 1};
	if (rc == 0)
		rc = acc_params_add(&sc.ps, &self, e);
	if (rc == 0)
		rc = lines(&sc, e);
	if (rc == 0)
		rc = acc_params_put(&sc.ps, "python", DIALECT_CODE, "", e);
	acc_map_release(&sc.known);
	acc_params_close(&sc.ps);
	return rc;
}

const struct acc_dump acc_dump_config_python = {
	.name = "python",
	.help = "seeds and determinism switches in a training script",
	.probe = probe,
	.read = read_python,
};
