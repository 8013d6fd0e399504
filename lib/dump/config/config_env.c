/* The environment of a run, as env(1) prints it; the packages, as pip list, pip freeze or conda list do, or torch's
 * collect_env beside much else; versions of the driver, as nvidia-smi and npu-smi show them.
 *
 *	HCCL_DETERMINISTIC=true          Package    Version       torch==2.1.0
 *	ASCEND_LAUNCH_BLOCKING=1         ---------- -------       torch-npu @ file:///...
 *	                                 torch      2.1.0
 */
#include "dump/config/param.h"
#include "io/literal.h"

static bool
name_char(char c)
{
	return c == '_' || (c >= '0' && c <= '9') || ((c | 0x20) >= 'a' && (c | 0x20) <= 'z');
}

static bool
package_char(char c)
{
	return name_char(c) || c == '-' || c == '.';
}

/* The next line of the text, without its end. */
static bool
next(struct acc_str *rest, struct acc_str *line)
{
	if (rest->n == 0)
		return false;
	const char *nl = memchr(rest->p, '\n', rest->n);
	uint32_t n = nl == NULL ? rest->n : (uint32_t)(nl - rest->p);
	*line = (struct acc_str){rest->p, n};
	if (acc_str_starts(*line, "\xef\xbb\xbf"))
		*line = (struct acc_str){line->p + 3, line->n - 3};
	n += nl != NULL;
	*rest = (struct acc_str){rest->p + n, rest->n - n};
	if (line->n > 0 && line->p[line->n - 1] == '\r')
		line->n--;
	return true;
}

/* NAME=value */
static bool
variable(struct acc_str line, struct param *p)
{
	uint32_t n = 0;
	while (n < line.n && name_char(line.p[n]))
		n++;
	if (n == 0 || n == line.n || line.p[n] != '=' || (line.p[0] >= '0' && line.p[0] <= '9'))
		return false;
	p->key = (struct acc_str){line.p, n};
	p->value = (struct acc_str){line.p + n + 1, line.n - n - 1};
	return true;
}

/* Text between a word and the next blank or bar. */
static bool
behind(struct acc_str line, const char *word, struct acc_str *v)
{
	const char *at = line.n == 0 ? NULL : memmem(line.p, line.n, word, strlen(word));
	uint32_t n = 0;
	if (at == NULL)
		return false;
	at += strlen(word);
	struct acc_str rest = acc_str_trim((struct acc_str){at, (uint32_t)(line.p + line.n - at)});
	while (n < rest.n && rest.p[n] != ' ' && rest.p[n] != '|' && rest.p[n] != ',')
		n++;
	*v = (struct acc_str){rest.p, n};
	return n > 0 && !acc_str_is(*v, "None") && !acc_str_is(*v, "N/A");
}

/* What stands in a line of words; begins: only at its beginning. */
static const struct {
	const char *word, *key;
	bool begins;
} reports[] = {
	{"PyTorch version: ", "torch", false},
	{"Python version: ", "python", false},
	{"CUDA used to build PyTorch: ", "cuda", false},
	{"CUDA runtime version: ", "cuda_runtime", false},
	{"cuDNN version: ", "cudnn", false},
	{"Nvidia driver version: ", "nvidia_driver", false},
	{"CANN version: ", "cann", false},
	{"Driver Version: ", "nvidia_driver", false},
	{"CUDA Version: ", "cuda", false},
	{"| npu-smi ", "npu_driver", false},
	{"Python: ", "python", true},
	{"PyTorch: ", "torch", true},
	{"CUDA runtime: ", "cuda_runtime", true},
	{"CUDA: ", "cuda", true},
	{"cuDNN: ", "cudnn", true},
	{"Driver: ", "nvidia_driver", true},
	{"CANN: ", "cann", true},
	{"torch_npu: ", "torch_npu", true},
	{"Transformers: ", "transformers", true},
	{"NumPy: ", "numpy", true},
};

static bool package(struct acc_str line, struct param *p);

/* "|   0  NVIDIA GeForce RTX 5060      WDDM  |" of nvidia-smi, "GPU 0: NVIDIA A100", "GPU: NVIDIA A100". */
static bool
gpu(struct acc_str line, struct acc_str *name)
{
	struct acc_str s = acc_str_trim(line);
	const bool box = s.n > 0 && s.p[0] == '|';
	uint32_t n = box ? 1 : 3;
	if (!box && !acc_str_starts(s, "GPU"))
		return false;
	while (n < s.n && (s.p[n] == ' ' || (s.p[n] >= '0' && s.p[n] <= '9')))
		n++;
	if (!box && (n == s.n || s.p[n++] != ':'))
		return false;
	s = acc_str_trim((struct acc_str){s.p + n, s.n - n});
	if (box && !acc_str_starts(s, "NVIDIA ") && !acc_str_starts(s, "Tesla ") &&
		!acc_str_starts(s, "GeForce "))
		return false;
	/* The name ends at two blanks, a bar, or a bracket with its number. */
	for (n = 0; n < s.n && s.p[n] != '|' && s.p[n] != '(' &&
		    !(s.p[n] == ' ' && n + 1 < s.n && s.p[n + 1] == ' ');
		n++)
		;
	*name = acc_str_trim((struct acc_str){s.p, n});
	return name->n > 0 && !(name->p[0] >= '0' && name->p[0] <= '9');
}

/* A line of collect_env, of nvidia-smi or npu-smi, which may say two things. */
static int
report(struct params *ps, struct acc_str line, struct param *p, struct acc_err *e)
{
	static const char *const marks[] = {"[pip3] ", "[pip] ", "[conda] "};
	int rc = 0;
	for (size_t i = 0; i < sizeof marks / sizeof *marks; i++) {
		const uint32_t n = (uint32_t)strlen(marks[i]);
		if (acc_str_starts(line, marks[i]))
			return package((struct acc_str){line.p + n, line.n - n}, p)
				       ? acc_params_add(ps, p, e)
				       : 0;
	}
	for (size_t i = 0; i < sizeof reports / sizeof *reports && rc == 0; i++)
		if ((!reports[i].begins || acc_str_starts(line, reports[i].word)) &&
			behind(line, reports[i].word, &p->value)) {
			p->key = acc_str(reports[i].key);
			rc = acc_params_add(ps, p, e);
		}
	if (rc == 0 && gpu(line, &p->value)) {
		p->key = ACC_STR("gpu");
		rc = acc_params_add(ps, p, e);
	}
	return rc;
}

/* "Python: 3.8.20" and "PyTorch: 2.0.1", as people note it down. */
static bool
noted(struct acc_str text)
{
	struct acc_str line;
	bool python = false, torch = false;
	while (next(&text, &line)) {
		python = python || acc_str_starts(line, "Python: ");
		torch = torch || acc_str_starts(line, "PyTorch: ");
	}
	return python && torch;
}

/* Is it one of these? */
static bool
is_report(struct acc_str text)
{
	static const char *const words[] = {"Collecting environment information",
		"PyTorch version: ", "| NVIDIA-SMI ", "| npu-smi "};
	for (size_t i = 0; text.n > 0 && i < sizeof words / sizeof *words; i++)
		if (memmem(text.p, text.n, words[i], strlen(words[i])) != NULL)
			return true;
	return noted(text);
}

/* "https://conda.anaconda.org/main/linux-64/bzip2-1.0.6-h9a117a8_4.tar.bz2", of conda list --explicit */
static bool explicit(struct acc_str line, struct param *p)
{
	const char *slash = line.n == 0 ? NULL : memrchr(line.p, '/', line.n);
	if (slash == NULL || !acc_str_starts(line, "http"))
		return false;
	const struct acc_str base = {slash + 1, (uint32_t)(line.p + line.n - slash) - 1};
	const char *build = base.n == 0 ? NULL : memrchr(base.p, '-', base.n);
	const char *version = build == NULL || build == base.p
				      ? NULL
				      : memrchr(base.p, '-', (size_t)(build - base.p));
	if (version == NULL)
		return false;
	p->key = (struct acc_str){base.p, (uint32_t)(version - base.p)};
	p->value = (struct acc_str){version + 1, (uint32_t)(build - version) - 1};
	return p->key.n > 0 && p->value.n > 0;
}

/* "torch 2.1.0 [/path]", "torch==2.1.0", "torch @ file:///x" */
static bool
package(struct acc_str line, struct param *p)
{
	uint32_t n = 0;
	if (explicit(line, p))
		return true;
	while (n < line.n && package_char(line.p[n]))
		n++;
	p->key = (struct acc_str){line.p, n};
	struct acc_str v = {line.p + n, line.n - n};
	bool gap = v.n > 0 && (v.p[0] == ' ' || v.p[0] == '\t');
	v = acc_str_trim(v);
	if (n == 0 || v.n == 0 || !(gap || acc_str_starts(v, "==")))
		return false;
	if (acc_str_starts(v, "==")) {
		v = (struct acc_str){v.p + 2, v.n - 2};
	} else if (v.p[0] != '@') {
		uint32_t k = 0;
		while (k < v.n && v.p[k] != ' ' && v.p[k] != '\t')
			k++;
		v.n = k;
		if (v.p[0] < '0' || v.p[0] > '9')
			return false;
	}
	p->value = v;
	return v.n > 0;
}

typedef bool line_fn(struct acc_str line, struct param *p);

/* Lines of the form in the head of a file, and others. The last may be cut off. */
static void
survey(const struct acc_probe *p, line_fn *form, unsigned *good, unsigned *bad)
{
	struct acc_str rest = {(const char *)p->head, (uint32_t)p->nhead}, line;
	struct param q;
	*good = *bad = 0;
	if (p->is_dir || p->nhead == 0 || memchr(p->head, '\0', p->nhead) != NULL)
		return;
	while (next(&rest, &line)) {
		if (rest.n == 0 && p->nhead == 4096)
			break;
		if (line.n > 0 && line.p[0] != '#')
			++*(form(line, &q) ? good : bad);
	}
}

static int
probe_env(const struct acc_probe *p)
{
	static const char *const known[] = {"PATH=", "HOME=", "PWD=", "SHLVL=", "LD_LIBRARY_PATH=",
		"LANG=", "ASCEND_", "HCCL_", "CUDA_", "NCCL_", "PYTHONPATH="};
	struct acc_str rest = {(const char *)p->head, (uint32_t)p->nhead}, line, last = {NULL, 0};
	struct param q;
	unsigned good, bad, hits = 0, again = 0;
	survey(p, variable, &good, &bad);
	if (good == 0 || bad > good / 2)
		return 0;
	/* An environment has each name once: lines that say one again and again are a log's. */
	for (struct acc_str all = rest; next(&all, &line); last = q.key) {
		q.key = last;
		again += variable(line, &q) && acc_str_eq(q.key, last);
	}
	if (again > good / 2)
		return 0;
	while (next(&rest, &line))
		for (size_t i = 0; i < sizeof known / sizeof *known; i++)
			hits += acc_str_starts(line, known[i]);
	return hits > 0 ? 65 : 30;
}

static int
probe_pip(const struct acc_probe *p)
{
	struct acc_str rest = {(const char *)p->head, (uint32_t)p->nhead}, line;
	unsigned good, bad;
	bool title = false, freeze = false;
	if (!p->is_dir && p->nhead > 0 && memchr(p->head, '\0', p->nhead) == NULL &&
		is_report(rest))
		return 95;
	survey(p, package, &good, &bad);
	while (next(&rest, &line)) {
		if (title && acc_str_starts(line, "----"))
			return 95;
		if (acc_str_starts(line, "# packages in environment at ") && good > 0)
			return 95;
		if (acc_str_is(line, "@EXPLICIT"))
			return 95;
		title = acc_str_starts(line, "Package ");
		for (uint32_t i = 0; i + 2 < line.n && package_char(line.p[i]); i++)
			freeze = freeze || (line.p[i + 1] == '=' && line.p[i + 2] == '=');
	}
	return freeze && good > bad ? 70 : 0;
}

/* form: NULL for reports. */
static int
read_lines(struct params *ps, line_fn *form, enum dialect d, struct acc_err *e)
{
	struct acc_str rest = {(const char *)ps->text.p, (uint32_t)ps->text.n}, line;
	struct param p = {.dialect = d};
	int rc = 0;
	while (rc == 0 && next(&rest, &line)) {
		p.line++;
		if (form == NULL)
			rc = report(ps, line, &p, e);
		else if (form(line, &p))
			rc = acc_params_add(ps, &p, e);
	}
	return rc;
}

static int
read_env(struct acc_dump_ctx *c, const char *path, struct acc_err *e)
{
	struct params ps;
	int rc = acc_params_open(&ps, c, path, e);
	if (rc == 0)
		rc = read_lines(&ps, variable, DIALECT_ENV, e);
	if (rc == 0)
		rc = acc_params_put(&ps, "env", DIALECT_ENV, "no line NAME=value in it", e);
	acc_params_close(&ps);
	return rc;
}

/* Whoever spells it torch-npu means torch_npu. */
static int
read_pip(struct acc_dump_ctx *c, const char *path, struct acc_err *e)
{
	struct params ps;
	int rc = acc_params_open(&ps, c, path, e);
	const struct acc_str text = {(const char *)ps.text.p, (uint32_t)ps.text.n};
	if (rc == 0)
		rc = read_lines(&ps, is_report(text) ? NULL : package, DIALECT_PIP, e);
	for (size_t i = 0; i < ps.n; i++)
		acc_param_fold((char *)ps.p[i].key.p, ps.p[i].key.n);
	if (rc == 0)
		rc = acc_params_put(&ps, "pip", DIALECT_PIP, "no package with a version in it", e);
	acc_params_close(&ps);
	return rc;
}

const struct acc_dump acc_dump_config_env = {
	.name = "env",
	.help = "environment variables, as env prints them",
	.probe = probe_env,
	.read = read_env,
};

const struct acc_dump acc_dump_config_pip = {
	.name = "pip",
	.help = "packages and versions: pip list, conda list, collect_env, nvidia-smi, npu-smi",
	.probe = probe_pip,
	.read = read_pip,
};
