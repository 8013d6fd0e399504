/* Seeds and determinism switches in a training script in Python: a search in its text, line by
 * line. Nothing is run, so that a value is known only where it is written down.
 *
 *	torch.manual_seed(1234)                       torch.manual_seed 1234
 *	torch.backends.cudnn.deterministic = True     torch.backends.cudnn.deterministic True
 *	os.environ['HCCL_DETERMINISTIC'] = 'true'     HCCL_DETERMINISTIC true (as a variable)
 *	context.set_context(deterministic="ON")       deterministic ON
 *	seed_all(seed=1, mode=True)                   seed_all 1, seed_all.mode True
 *	set_dump_switch("ON", mode="list")            set_dump_switch.mode list
 *
 * Calls that set up a recorder are read with all their arguments, also over several lines.
 *
 * So are the defaults of argparse, which a command line may change:
 *
 *	parser.add_argument('--lr', type=float, default=0.1)      lr 0.1, perhaps
 *
 * The first parameter, script, is the file itself.
 */
#include "dump/config/param.h"
#include "dump/say.h"
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

/* Calls of recorders: their parameters in order, called PREFIX + NAME here. */
enum { PARAMETERS = 12 };
struct setup {
	const char *name, *prefix;
	enum dialect dialect;
	const char *parameter[PARAMETERS];
};
static const struct setup setups[] = {
	{"set_dump_path", "set_dump_path.", DIALECT_PTDBG, {"fpath", "dump_tag"}},
	{"set_dump_switch", "set_dump_switch.", DIALECT_PTDBG,
		{"switch", "mode", "scope", "api_list", "filter_switch", "dump_mode",
			"summary_only"}},
	{"register_hook", "register_hook.", DIALECT_PTDBG, {"model", "hook"}},
	{"PrecisionDebugger", "", DIALECT_MSPROBE,
		{"config_path", "task", "dump_path", "level", "model", "step"}},
	{"seed_all", "seed_all.", DIALECT_CODE, {"seed", "mode"}},
	{"start_record", "start_record.", DIALECT_MACA,
		{"enabled", "output_dir", "record_level", "record_stack", "record_input",
			"record_output", "op_range", "op_list", "skip", "process_group", "ranks"}},
};

struct script {
	struct params ps;
	struct acc_map known; /* names that were given a whole number -> index in number[] */
	uint64_t line;
	unsigned left; /* defaults of argparse that are no literals */
	bool text;     /* inside a string of several lines, */
	char quote;    /* that ends so */
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
		if (c == '#') { /* a comment, up to the end of its line */
			const char *nl = memchr(s.p + i, '\n', s.n - i);
			if (nl == NULL)
				return (struct acc_str){s.p, i};
			i = (uint32_t)(nl - s.p);
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

/* An argument in one line, without comments; runs of blanks are one. */
static struct acc_str
argument(struct acc_str s, char *out, size_t size)
{
	uint32_t n = 0;
	bool comment = false;
	char quote = 0;
	for (uint32_t i = 0; i < s.n && n < size; i++) {
		char c = s.p[i];
		comment = comment ? c != '\n' : c == '#' && quote == 0;
		if (quote != 0)
			quote = c == quote ? 0 : quote;
		else if (!comment && (c == '"' || c == '\''))
			quote = c;
		if (quote == 0 && (unsigned char)c <= ' ')
			c = ' ';
		if (!comment && !(c == ' ' && quote == 0 && n > 0 && strchr(" [(,", out[n - 1])))
			out[n++] = c;
	}
	return acc_str_trim((struct acc_str){out, n});
}

static int
set_up(struct script *sc, const struct setup *u, struct acc_str name, struct acc_str value,
	struct acc_err *e)
{
	char key[160], number[24];
	struct param p = {.value = bare(value), .line = sc->line, .dialect = u->dialect};
	uint64_t *known = acc_map_get(&sc->known, p.value);
	if (known != NULL) {
		snprintf(number, sizeof number, "%llu", (unsigned long long)*known);
		p.value = acc_str(number);
	}
	snprintf(key, sizeof key, "%s%.*s", u->prefix, ACC_PRS(name));
	p.key = acc_str(key);
	/* The seed itself is called as the call is, as those of other libraries are. */
	if (u->dialect == DIALECT_CODE && acc_str_is(name, "seed"))
		p.key = acc_str(u->name);
	return acc_params_add(&sc->ps, &p, e);
}

/* What the call sets, from its bracket on. *seen: of its parameters, those that it names, as bits. */
static int
arguments(struct script *sc, const struct setup *u, struct acc_str s, unsigned *seen,
	struct acc_err *e)
{
	enum { MOST = 4096 };
	char text[MOST];
	unsigned at = 0;
	int rc = 0;
	for (bool more = true; more && rc == 0; at++) {
		struct acc_str raw = first(s), v = argument(raw, text, sizeof text);
		more = raw.n < s.n && s.p[raw.n] == ',';
		s = from(s, raw.n + 1);
		uint32_t n = 0;
		while (n < v.n && name_char(v.p[n]) && v.p[n] != '.')
			n++;
		struct acc_str name = {v.p, n}, rest = acc_str_trim(from(v, n));
		bool named = n > 0 && rest.n > 1 && rest.p[0] == '=' && rest.p[1] != '=';
		if (named)
			v = from(rest, 1);
		else if (at < PARAMETERS && u->parameter[at] != NULL)
			name = acc_str(u->parameter[at]);
		else
			continue;
		/* Recording ends: what it was stays. */
		if (u->dialect == DIALECT_PTDBG && acc_str_is(name, "switch") &&
			acc_str_is(bare(v), "OFF"))
			return 0;
		for (unsigned i = 0; i < PARAMETERS; i++)
			*seen |= (unsigned)(v.n > 0 && u->parameter[i] != NULL &&
					    acc_str_is(name, u->parameter[i]))
				 << i;
		if (v.n > 0 && name.n < 64)
			rc = set_up(sc, u, name, v, e);
	}
	return rc;
}

/* A call that sets up a recorder? 1: it is. tensor.register_hook() is torch's own. */
static int
recorder(struct script *sc, struct acc_str name, struct acc_str rest, struct acc_err *e)
{
	for (size_t i = 0; i < sizeof setups / sizeof *setups; i++) {
		const struct setup *u = &setups[i];
		bool method = strcmp(u->name, "register_hook") == 0 &&
			      !acc_str_is(name, "register_hook") && !acc_str_starts(name, "ptdbg");
		if (!ends(name, u->name) || method)
			continue;
		const char *open = memchr(rest.p, '(', rest.n);
		/* Its arguments may stand on the lines that follow. */
		const char *end = (const char *)sc->ps.text.p + sc->ps.text.n;
		enum { REACH = 16384 };
		const ptrdiff_t left = end - open - 1;
		struct acc_str s = {open + 1, (uint32_t)(left < REACH ? left : REACH)};
		unsigned seen = 0;
		int rc = arguments(sc, u, s, &seen, e);
		/* What seed_all does where it is not told. */
		if (rc == 0 && u->dialect == DIALECT_CODE && !(seen & 1))
			rc = set_up(sc, u, ACC_STR("seed"), ACC_STR("1234"), e);
		if (rc == 0 && u->dialect == DIALECT_CODE && !(seen & 2))
			rc = set_up(sc, u, ACC_STR("mode"), ACC_STR("False"), e);
		return rc < 0 ? rc : 1;
	}
	return 0;
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

/* Is it a literal, as it stands? */
static bool
is_literal(struct acc_str v)
{
	struct acc_literal number;
	v = acc_str_trim(v);
	if (v.n == 0)
		return false;
	return acc_literal_all(v, &number) || acc_word_in("True False None", v) ||
	       ((v.p[0] == '"' || v.p[0] == '\'') && v.p[v.n - 1] == v.p[0]) ||
	       (v.p[0] == '[' && v.p[v.n - 1] == ']' && memchr(v.p, '(', v.n) == NULL);
}

/* What is behind add_argument(: '--lr', type=float, default=0.1. A command line may say otherwise. */
static int
default_of(struct script *sc, struct acc_str s, struct acc_err *e)
{
	char text[512], name[128] = "";
	struct acc_str value = {NULL, 0};
	uint32_t n = 0;
	for (bool more = true; more;) {
		struct acc_str raw = first(s), v = acc_str_trim(raw);
		while (v.n > 0 && (*v.p == '\n' || *v.p == '\r'))
			v = acc_str_trim(from(v, 1));
		more = raw.n < s.n && s.p[raw.n] == ',';
		s = from(s, raw.n + 1);
		if (v.n > 4 && (v.p[0] == '"' || v.p[0] == '\'') &&
			acc_str_starts(from(v, 1), "--") && bare(v).n < sizeof name)
			n = (uint32_t)snprintf(name, sizeof name, "%.*s",
				ACC_PRS(from(bare(v), 2)));
		else if (acc_str_starts(v, "default") &&
			 acc_str_starts(acc_str_trim(from(v, 7)), "="))
			value = argument(from(acc_str_trim(from(v, 7)), 1), text, sizeof text);
		else if (acc_str_starts(v, "action") && value.p == NULL &&
			 memmem(v.p, v.n, "store_true", 10) != NULL)
			value = ACC_STR("False");
	}
	if (n == 0 || value.p == NULL)
		return 0;
	sc->left += !is_literal(value);
	if (!is_literal(value))
		return 0;
	acc_param_fold(name, n);
	const struct param p = {.key = {name, n},
		.value = bare(value),
		.line = sc->line,
		.dialect = DIALECT_CODE,
		.maybe = true};
	return acc_params_add(&sc->ps, &p, e);
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
	if (call && !definition && sc->ps.text.n < UINT32_MAX) {
		int rc = recorder(sc, name, s, e);
		if (rc != 0)
			return rc < 0 ? rc : 0;
	}
	if (call && !definition && ends(name, "add_argument")) {
		enum { REACH = 4096 };
		const ptrdiff_t rest_n = (const char *)sc->ps.text.p + sc->ps.text.n - s.p - 1;
		return default_of(sc,
			(struct acc_str){s.p + 1, (uint32_t)(rest_n < REACH ? rest_n : REACH)}, e);
	}
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
	if (rc == 0 && sc.left > 0)
		acc_dump_note(c, path, "defaults of argparse that are no literals are not read: %u",
			sc.left);
	acc_map_release(&sc.known);
	acc_params_close(&sc.ps);
	return rc;
}

const struct acc_dump acc_dump_config_python = {
	.name = "python",
	.help = "seeds, determinism switches and recorders in a training script",
	.probe = probe,
	.read = read_python,
};
