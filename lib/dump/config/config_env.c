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
	/* "Could not collect", "Probably one of the following:" */
	return n > 0 && !acc_str_is(*v, "None") && !acc_str_is(*v, "N/A") &&
	       !acc_str_starts(rest, "Could not") && !acc_str_starts(rest, "Probably");
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
	{"/usr/lib/x86_64-linux-gnu/libcudnn.so.", "cudnn", true},
	{"/usr/lib/aarch64-linux-gnu/libcudnn.so.", "cudnn", true},
	{"/usr/local/cuda/lib64/libcudnn.so.", "cudnn", true},
	{"torch_npu: ", "torch_npu", true},
	{"Transformers: ", "transformers", true},
	{"NumPy: ", "numpy", true},
};

static bool package(struct acc_str line, struct param *p);

/* "PyTorch version      : 2.7.0", of vLLM and nvidia-smi -q: without the blanks before the colon, in buf. */
static struct acc_str
squeezed(struct acc_str line, char buf[256])
{
	const char *colon = line.n == 0 ? NULL : memmem(line.p, line.n, " : ", 3), *q = colon;
	while (q != NULL && q > line.p && q[-1] == ' ')
		q--;
	if (q == NULL || q == line.p)
		return line;
	const uint32_t n = (uint32_t)(q - line.p), rest = (uint32_t)(line.p + line.n - colon) - 1;
	if (n + rest > 256 || memchr(line.p, '|', n) != NULL)
		return line;
	memcpy(buf, line.p, n);
	memcpy(buf + n, colon + 1, rest);
	return acc_str_trim((struct acc_str){buf, n + rest});
}

/* "| 0     910B3               | OK            |" of npu-smi: a chip's name has a digit and a letter. */
static bool
npu(struct acc_str line, struct acc_str *name)
{
	const char *bar = line.n < 2 || line.p[0] != '|' ? NULL
							 : memchr(line.p + 1, '|', line.n - 1);
	uint32_t n = 0;
	bool number = false, capital = false;
	if (bar == NULL || !acc_str_starts(acc_str_trim((struct acc_str){bar + 1,
						   (uint32_t)(line.p + line.n - bar) - 1}),
				   "OK"))
		return false;
	struct acc_str s = acc_str_trim((struct acc_str){line.p + 1, (uint32_t)(bar - line.p) - 1});
	while (n < s.n && s.p[n] >= '0' && s.p[n] <= '9')
		n++;
	if (n == 0)
		return false;
	*name = acc_str_trim((struct acc_str){s.p + n, s.n - n});
	for (n = 0; n < name->n; n++) {
		number = number || (name->p[n] >= '0' && name->p[n] <= '9');
		capital = capital || (name->p[n] >= 'A' && name->p[n] <= 'Z');
	}
	return number && capital;
}

/* "|   0  NVIDIA GeForce RTX 5060      WDDM  |" of nvidia-smi, "GPU 0: NVIDIA A100", "GPU: NVIDIA A100". */
static bool
gpu(struct acc_str line, struct acc_str *name)
{
	struct acc_str s = acc_str_trim(line);
	const bool box = s.n > 0 && s.p[0] == '|';
	uint32_t n = box ? 1 : 3;
	if (acc_str_starts(s, "Product Name: ")) { /* nvidia-smi -q */
		*name = acc_str_trim((struct acc_str){s.p + 14, s.n - 14});
		return true;
	}
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

/* Where a report says a thing twice, the first counts: what was imported, before what pip and conda list. */
static int
add(struct params *ps, struct param *p, struct acc_err *e)
{
	for (size_t i = 0; i < ps->n; i++)
		if (acc_str_eq(ps->p[i].key, p->key) && ps->p[i].dialect == p->dialect)
			return 0;
	return acc_params_add(ps, p, e);
}

/* What lines before say of this one. */
struct seen {
	bool toolkit;        /* it is of CANN's toolkit */
	struct acc_str name; /* of pip show */
};

/* Variables of the environment, as vLLM's collect_env shows them behind the rest; versions of CANN's files. 1: it is such. */
static int
assigned(struct params *ps, struct seen *seen, struct acc_str line, struct param *p,
	struct acc_err *e)
{
	static const char *const known[] = {"ASCEND_", "HCCL_", "CUDA_", "NCCL_", "PYTORCH_",
		"TORCH_", "VLLM_", "LCCL_", "ATB_", "INF_NAN_", "TASK_QUEUE_", "OMP_",
		"LD_LIBRARY_PATH="};
	const enum dialect d = p->dialect;
	if (!variable(line, p))
		return 0;
	if (acc_str_is(p->key, "package_name"))
		seen->toolkit = acc_str_starts(p->value, "Ascend-cann");
	int rc = 0;
	if (seen->toolkit && acc_str_is(p->key, "version")) {
		p->key = ACC_STR("cann");
		rc = add(ps, p, e);
	}
	for (size_t i = 0; i < sizeof known / sizeof *known; i++)
		if (acc_str_starts(line, known[i])) {
			p->dialect = DIALECT_ENV;
			rc = add(ps, p, e);
			p->dialect = d;
			return rc < 0 ? rc : 1;
		}
	return rc < 0 ? rc : 1;
}

/* A line of collect_env, of nvidia-smi or npu-smi, which may say two things. */
static int
report(struct params *ps, struct seen *seen, struct acc_str line, struct param *p,
	struct acc_err *e)
{
	static const char *const marks[] = {"[pip3] ", "[pip] ", "[conda] "};
	char buf[256];
	line = squeezed(line, buf);
	int rc = assigned(ps, seen, line, p, e);
	if (rc != 0)
		return rc < 0 ? rc : 0;
	if (line.p != buf && acc_str_starts(line, "Name: ")) /* it outlives this line */
		seen->name = acc_str_trim((struct acc_str){line.p + 6, line.n - 6});
	if (acc_str_starts(line, "Version: ") && seen->name.n > 0) {
		p->key = seen->name;
		p->value = acc_str_trim((struct acc_str){line.p + 9, line.n - 9});
		seen->name.n = 0;
		return add(ps, p, e);
	}
	for (size_t i = 0; i < sizeof marks / sizeof *marks; i++) {
		const uint32_t n = (uint32_t)strlen(marks[i]);
		if (acc_str_starts(line, marks[i]))
			return package((struct acc_str){line.p + n, line.n - n}, p) ? add(ps, p, e)
										    : 0;
	}
	for (size_t i = 0; i < sizeof reports / sizeof *reports && rc == 0; i++)
		if ((!reports[i].begins || acc_str_starts(line, reports[i].word)) &&
			behind(line, reports[i].word, &p->value)) {
			p->key = acc_str(reports[i].key);
			rc = add(ps, p, e);
		}
	if (rc == 0 && (gpu(line, &p->value) || npu(line, &p->value))) {
		p->key = ACC_STR("gpu");
		rc = add(ps, p, e);
	}
	return rc;
}

/* "Python: 3.8.20" and "PyTorch: 2.0.1", as people note it down; "Name: torch" and "Version: 2.0.1" of pip show. */
static bool
noted(struct acc_str text)
{
	struct acc_str line;
	bool python = false, torch = false, name = false;
	while (next(&text, &line)) {
		if (name && acc_str_starts(line, "Version: "))
			return true;
		name = acc_str_starts(line, "Name: ");
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
		"PyTorch version: ", "| NVIDIA-SMI ", "| npu-smi ", "PyTorch version   ",
		"==NVSMI LOG==", "(UUID: GPU-", "package_name=Ascend-cann"};
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

/* "torch=2.1.0=py310_0", of conda list --export */
static bool
exported(struct acc_str line, struct param *p)
{
	const char *eq = line.n == 0 ? NULL : memchr(line.p, '=', line.n), *end = line.p + line.n,
		   *build;
	if (eq == NULL || eq == line.p || end - eq < 3 || eq[1] < '0' || eq[1] > '9')
		return false;
	for (const char *q = line.p; q < eq; q++)
		if (!package_char(*q))
			return false;
	build = memchr(eq + 1, '=', (size_t)(end - eq) - 1);
	if (build == NULL)
		return false;
	p->key = (struct acc_str){line.p, (uint32_t)(eq - line.p)};
	p->value = (struct acc_str){eq + 1, (uint32_t)(build - eq) - 1};
	return true;
}

/* "torch 2.1.0 [/path]", "torch==2.1.0", "torch @ file:///x" */
static bool
package(struct acc_str line, struct param *p)
{
	uint32_t n = 0;
	if (explicit(line, p) || exported(line, p))
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
		/* "==2.1.0 ; python_version > '3.8' \\", of requirements */
		uint32_t k = 2;
		while (k < v.n && strchr(" \t;,\\#", v.p[k]) == NULL)
			k++;
		v = (struct acc_str){v.p + 2, k - 2};
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

/* "[{"name": "torch", "version": "2.1.0"}, ...]" of pip list and conda list, pip inspect's: the next package. */
static bool
listed(const char **at, const char *end, struct param *p)
{
	struct acc_str key = {NULL, 0}, name = key;
	for (const char *q = *at; q < end; q++) {
		if (*q == '}')
			name.n = 0;
		if (*q != '"')
			continue;
		const char *start = ++q;
		while (q < end && *q != '"')
			q += *q == '\\' ? 2 : 1;
		if (q >= end)
			return false;
		const struct acc_str s = {start, (uint32_t)(q - start)};
		const char *next = q + 1;
		while (next < end && (*next == ' ' || *next == '\n' || *next == '\r'))
			next++;
		if (next < end && *next == ':') {
			key = s;
			continue;
		}
		if (acc_str_is(key, "name"))
			name = s;
		if (acc_str_is(key, "version") && name.n > 0) {
			p->key = name;
			p->value = s;
			*at = q + 1;
			return true;
		}
		key.n = 0;
	}
	return false;
}

/* Is it such a list, of three packages at least? */
static bool
is_list(struct acc_str text)
{
	enum { ENOUGH = 3 };
	const char *at = text.p, *end = text.p + text.n;
	struct param p;
	int n = 0;
	text = acc_str_trim(text);
	if (text.n == 0 ||
		(text.p[0] != '[' && memmem(text.p, text.n, "\"pip_version\"", 13) == NULL))
		return false;
	while (n < ENOUGH && listed(&at, end, &p) && p.value.n > 0 && p.value.p[0] >= '0' &&
		p.value.p[0] <= '9')
		n++;
	return n == ENOUGH;
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
		/* Options of pip stand in requirements, too. */
		const bool option = form == package && acc_str_starts(acc_str_trim(line), "-");
		if (line.n > 0 && line.p[0] != '#' && !option)
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
		(is_report(rest) || is_list(rest)))
		return 95;
	survey(p, package, &good, &bad);
	while (next(&rest, &line)) {
		if (title && acc_str_starts(line, "----"))
			return 95;
		if (acc_str_starts(line, "# packages in environment at ") && good > 0)
			return 95;
		if (acc_str_is(line, "@EXPLICIT") ||
			acc_str_starts(line, "# $ conda create --name "))
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
	struct seen seen = {0};
	int rc = 0;
	while (rc == 0 && next(&rest, &line)) {
		p.line++;
		if (form == NULL)
			rc = report(ps, &seen, line, &p, e);
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
	const char *at = text.p;
	struct param p = {.dialect = DIALECT_PIP, .line = 1};
	if (rc == 0 && is_list(text))
		while (rc == 0 && listed(&at, text.p + text.n, &p))
			rc = acc_params_add(&ps, &p, e);
	else if (rc == 0)
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
