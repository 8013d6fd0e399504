/* A training command line, in the shell script that gives it or alone: Megatron's arguments,
 * Hugging Face's, what the launcher is told, and the variables that the script exports. The script
 * is read, not run; see io/shell.h.
 *
 *	export HCCL_DETERMINISTIC=true              HCCL_DETERMINISTIC true
 *	ARGS="--num-layers 32 --swiglu"
 *	torchrun --nnodes 2 pretrain.py $ARGS       nnodes 2, num_layers 32, swiglu true
 *	python -m verl.trainer.main_ppo a.lr=1e-6 +b.seed=7 ~c       a.lr 1e-6, b.seed 7, ~c null
 *	python train.py --config-file a.yaml SOLVER.BASE_LR 0.01     config_file a.yaml, SOLVER.BASE_LR 0.01
 */
#include "dump/config/param.h"
#include "dump/say.h"
#include "io/shell.h"

#include <stdlib.h>

enum { SCRIPTS = 8 }; /* within each other; nobody writes more */

struct script {
	struct params ps;
	struct acc_err *e;
	bool command;      /* one that trains was found */
	unsigned commands; /* how many of them so far */
	bool overrides;    /* of Hydra: names are the program's own */
	bool yacs;         /* in capitals, without a sign */
	unsigned left;     /* words of it that are no options; the first: */
	uint32_t left_line;
	char left_word[64];
	unsigned passed; /* commands that are perhaps reached, and not read; the first: */
	uint32_t passed_line;
	unsigned depth; /* of scripts that are a word of a command, as bash -c '...' has it: */
	uint32_t above; /* lines before this one's first; */
	bool unsure;    /* perhaps it is not run */
};

static int
put(struct script *sc, struct acc_str key, struct acc_str value, uint32_t line, enum dialect d,
	bool maybe)
{
	char name[256];
	if (key.n >= sizeof name)
		return 0;
	memcpy(name, key.p, key.n);
	if (d != DIALECT_EXPORT)
		acc_param_fold(name, key.n);
	const struct param p = {.key = {name, key.n},
		.value = value,
		.line = line + sc->above,
		.dialect = d,
		.maybe = maybe || sc->unsure,
		.command = d == DIALECT_EXPORT ? 0 : sc->commands};
	return acc_params_add(&sc->ps, &p, sc->e);
}

static bool
is_option(const struct acc_shell_word *w)
{
	return w->s.n > 2 && w->s.p[0] == '-' && w->s.p[1] == '-' && w->s.p[2] != '-';
}

/* -x, but no negative number. */
static bool
is_short(const struct acc_shell_word *w)
{
	return w->s.n > 1 && w->s.p[0] == '-' && (w->s.p[1] | 0x20) >= 'a' &&
	       (w->s.p[1] | 0x20) <= 'z';
}

/* $EXTRA_ARGS, set elsewhere: it stands for options, not for the value of the one before it. */
static bool
is_unknown_list(const struct acc_shell_word *w)
{
	static const char *const tails[] = {"ARGS", "ARG", "OPTS", "OPTIONS", "FLAGS", "PARAMS",
		"CONFIG", "args", "opts", "[@]", "[*]"};
	struct acc_str s = w->s;
	if (!w->open || s.n < 2 || s.p[0] != '$')
		return false;
	if (s.p[s.n - 1] == '}')
		s.n--;
	for (size_t i = 0; i < sizeof tails / sizeof *tails; i++)
		if (acc_str_ends(s, tails[i]))
			return true;
	return false;
}

/* key=value, +key=value, ++key=value, ~key: what Hydra and its like change in a configuration. A variable of the
 * environment, in capitals, is none. */
static bool
is_override(const struct acc_shell_word *w, struct acc_str *key, struct acc_str *value)
{
	struct acc_str s = w->s;
	uint32_t n = 0;
	bool lower = false, gone = acc_str_starts(s, "~");
	while (s.n > 0 && (s.p[0] == '+' || s.p[0] == '~'))
		s = (struct acc_str){s.p + 1, s.n - 1};
	for (; n < s.n && s.p[n] != '='; n++) {
		const char c = s.p[n];
		const bool letter = (c | 0x20) >= 'a' && (c | 0x20) <= 'z';
		lower |= c >= 'a' && c <= 'z';
		if (!letter && c != '_' &&
			(n == 0 || ((c < '0' || c > '9') && strchr(".-/@", c) == NULL)))
			return false;
	}
	if (n == 0 || !lower || (n == s.n && !gone))
		return false;
	*key = gone ? w->s : (struct acc_str){s.p, n};
	if (gone && n < s.n)
		key->n -= s.n - n;
	*value = n < s.n ? (struct acc_str){s.p + n + 1, s.n - n - 1} : (struct acc_str){NULL, 0};
	return true;
}

/* MODEL.WEIGHTS, as yacs and Detectron have it, and OUTPUT_DIR behind such: its value follows. */
static bool
is_yacs(const struct acc_shell_word *w, uint32_t n, bool yacs)
{
	bool dot = yacs, letter = false;
	for (uint32_t i = 0; i < w->s.n; i++) {
		const char c = w->s.p[i];
		dot = dot || (c == '.' && letter);
		letter = c >= 'A' && c <= 'Z';
		if (!letter && c != '.' && c != '_' && (i == 0 || c < '0' || c > '9'))
			return false;
		letter = letter || (c != '.' && dot);
	}
	return dot && letter && w->s.n > 1 && !w->open && n > 1 && !is_option(&w[1]);
}

/* What an option of another launcher before it has not for a value. */
static bool
is_launcher(struct acc_str s)
{
	static const char *const names[] = {"accelerate", "torchrun", "python", "python3",
		"deepspeed", "env", "srun", "msrun", "mpirun"};
	for (size_t i = 0; i < sizeof names / sizeof *names; i++)
		if (acc_str_is(s, names[i]))
			return true;
	return false;
}

/* Ends it an option's values? Behind one value any does, else one with a dot in its name. */
static bool
ends_values(const struct acc_shell_word *w, bool any)
{
	struct acc_str key, value;
	return is_override(w, &key, &value) &&
	       (any || w->s.p[0] == '+' || w->s.p[0] == '~' || memchr(key.p, '.', key.n) != NULL);
}

/* The option at w[0], with its values. How many words it takes, or < 0. */
static int64_t
option(struct script *sc, const struct acc_shell_word *w, uint32_t n, enum dialect d, bool maybe)
{
	const uint32_t dashes = is_option(w) ? 2 : 1;
	struct acc_str key = {w->s.p + dashes, w->s.n - dashes};
	struct acc_buf b = {0};
	uint32_t used = 1, cut = 0;
	int rc = 0;
	while (cut < key.n && key.p[cut] != '=' && key.p[cut] != ' ' && key.p[cut] != '\t')
		cut++;
	const bool assigned = cut < key.n;
	if (assigned) { /* --key=value, or both in one word */
		rc = acc_buf_add(&b, key.p + cut + 1, key.n - cut - 1);
		key.n = cut;
	} else {
		for (; used < n && rc == 0 && !is_option(&w[used]) && !is_short(&w[used]) &&
			!is_unknown_list(&w[used]) &&
			!(d == DIALECT_LAUNCH && is_launcher(w[used].s)) &&
			!ends_values(&w[used], used > 1) && !is_yacs(&w[used], n - used, sc->yacs);
			used++) {
			if (b.n > 0)
				rc = acc_buf_add(&b, " ", 1);
			if (rc == 0)
				rc = acc_buf_add(&b, w[used].s.p, w[used].s.n);
		}
	}
	struct acc_str value = acc_str_trim((struct acc_str){(char *)b.p, (uint32_t)b.n});
	if (used == 1 && !assigned)
		value = ACC_STR("true");
	if (value.p == NULL)
		value = ACC_STR("");
	rc = rc < 0 ? acc_nomem(sc->e) : put(sc, key, value, w->line, d, maybe || w->maybe);
	acc_buf_release(&b);
	return rc < 0 ? rc : (int64_t)used;
}

/* A word that nothing takes. */
static void
leave(struct script *sc, const struct acc_shell_word *w)
{
	if (w->s.n == 0 || w->open || sc->left++ > 0)
		return;
	sc->left_line = w->line + sc->above;
	snprintf(sc->left_word, sizeof sc->left_word, "%.*s", w->s.n < 60 ? (int)w->s.n : 60,
		w->s.p);
}

static int
options(struct script *sc, const struct acc_shell_word *w, uint32_t n, enum dialect d, bool maybe)
{
	struct acc_str key, value;
	for (uint32_t i = 0; i < n;) {
		/* -lr 0.1 is an option of the program's, -u one of python's. */
		const bool opens = is_option(&w[i]) ||
				   (is_short(&w[i]) && d == DIALECT_OTHER && sc->command);
		int64_t used = opens ? option(sc, &w[i], n - i, d, maybe) : 1;
		if (used == 1 && !opens && d == DIALECT_OTHER && is_override(&w[i], &key, &value)) {
			sc->overrides = true;
			used = put(sc, key, value, w[i].line, d, maybe || w[i].maybe) < 0
				       ? ACC_ENOMEM
				       : 1;
		} else if (!opens && d == DIALECT_OTHER && is_yacs(&w[i], n - i, sc->yacs)) {
			sc->overrides = sc->yacs = true;
			used = put(sc, w[i].s, w[i + 1].s, w[i].line, d, maybe || w[i].maybe) < 0
				       ? ACC_ENOMEM
				       : 2;
		} else if (!opens && d == DIALECT_OTHER && sc->command) {
			leave(sc, &w[i]);
		}
		if (used < 0)
			return sc->e->code != 0 ? sc->e->code : (int)used;
		i += (uint32_t)used;
	}
	return 0;
}

/* Programs that train and are no file of Python. */
static bool
is_trainer(struct acc_str s)
{
	static const char *const names[] = {"llamafactory-cli", "lmf", "swift", "megatron",
		"axolotl", "tune", "litgpt", "colossalai", "xtuner", "trl", "fairseq-train", "nemo",
		"paddleformers-cli", "mmrazor", "mim"};
	static const char *const parts[] = {"train", "finetune"}; /* ns-train, onmt_train */
	const char *slash = s.n == 0 ? NULL : memrchr(s.p, '/', s.n);
	if (slash != NULL)
		s = (struct acc_str){slash + 1, (uint32_t)(s.p + s.n - slash) - 1};
	for (size_t i = 0; i < sizeof names / sizeof *names; i++)
		if (acc_str_is(s, names[i]))
			return true;
	for (size_t i = 0; s.n > 0 && i < sizeof parts / sizeof *parts; i++)
		if (memmem(s.p, s.n, parts[i], strlen(parts[i])) != NULL &&
			memchr(s.p, '.', s.n) == NULL)
			return true;
	return false;
}

/* Programs that print or keep what they are given. */
static bool
only_shows(struct acc_str s)
{
	static const char *const names[] = {"echo", "printf", "cat", "cp", "mv", "ls", "rm",
		"mkdir", "sed", "grep", "tee", "cd", "test", "wget", "pip", "git", "set", "vim",
		"vi"};
	for (size_t i = 0; i < sizeof names / sizeof *names; i++)
		if (acc_str_is(s, names[i]))
			return true;
	return false;
}

/* bash -lc 'export A=1; python train.py': is w[0] such a shell, with a script behind it? */
static bool
is_shell(const struct acc_shell_word *w, uint32_t n)
{
	static const char *const names[] = {"bash", "sh", "zsh", "dash", "/bin/bash", "/bin/sh",
		"/usr/bin/bash"};
	bool known = false;
	for (size_t i = 0; n > 2 && i < sizeof names / sizeof *names; i++)
		known = known || acc_str_is(w[0].s, names[i]);
	/* What one command says has become words. */
	return known && w[1].s.n > 1 && w[1].s.p[0] == '-' && w[1].s.p[1] != '-' &&
	       w[1].s.p[w[1].s.n - 1] == 'c' && w[2].s.n > 0 &&
	       memchr(w[2].s.p, ' ', w[2].s.n) != NULL;
}

/* "docker run --gpus all -e A=1 IMAGE python train.py": what a container is told is no setting of the training, but for
 * its variables. How many words it takes, or < 0; 0 where nothing that starts a training is in it. */
static int64_t
container(struct script *sc, const struct acc_shell_word *w, uint32_t n, bool maybe)
{
	static const char *const names[] = {"docker", "podman", "nerdctl", "singularity",
		"apptainer", "enroot"};
	uint32_t at = 1;
	bool known = false;
	for (size_t i = 0; i < sizeof names / sizeof *names; i++)
		known = known || acc_str_is(w[0].s, names[i]);
	while (known && at < n && !is_launcher(w[at].s) && !is_trainer(w[at].s) &&
		!is_shell(w + at, n - at))
		at++;
	if (!known || at == n)
		return 0;
	for (uint32_t i = 1; i < at; i++) {
		const char *eq = w[i].s.n == 0 ? NULL : memchr(w[i].s.p, '=', w[i].s.n);
		const bool env = acc_str_is(w[i - 1].s, "-e") || acc_str_is(w[i - 1].s, "--env");
		if (!env || eq == NULL) {
			if (is_option(&w[i]) && !acc_str_is(w[i].s, "--env"))
				leave(sc, &w[i]);
			continue;
		}
		const uint32_t k = (uint32_t)(eq - w[i].s.p);
		int rc = put(sc, (struct acc_str){w[i].s.p, k},
			(struct acc_str){eq + 1, w[i].s.n - k - 1}, w[i].line, DIALECT_EXPORT,
			maybe || w[i].maybe);
		if (rc < 0)
			return rc;
	}
	return at;
}

/* python3 $script --alpha 1 */
static bool
is_script(const struct acc_shell_word *w, uint32_t i)
{
	return i > 0 && w[i].open && w[i].s.n > 1 && w[i].s.p[0] == '$' &&
	       !is_unknown_list(&w[i]) &&
	       (acc_str_is(w[i - 1].s, "python") || acc_str_is(w[i - 1].s, "python3"));
}

static int command(void *arg, const struct acc_shell_word *w, uint32_t n, bool maybe);
static int variable(void *arg, struct acc_str name, const struct acc_shell_word *value, bool maybe);
static int passed(void *arg, uint32_t line);

/* The script that a word is. */
static int
script_word(struct script *sc, const struct acc_shell_word *w, bool maybe)
{
	const struct acc_shell_hooks h = {command, variable, NULL, passed, sc};
	const uint32_t above = sc->above;
	const bool unsure = sc->unsure;
	if (sc->depth == SCRIPTS) {
		leave(sc, w);
		return 0;
	}
	sc->depth++;
	sc->above += w->line - 1;
	sc->unsure = unsure || maybe || w->maybe;
	int rc = acc_shell_read(w->s.p, w->s.n, &h, sc->e);
	sc->depth--;
	sc->above = above;
	sc->unsure = unsure;
	if (rc != ACC_EFORMAT)
		return rc;
	*sc->e = (struct acc_err){0}; /* a quote that is not closed: no script */
	leave(sc, w);
	return 0;
}

static int
command(void *arg, const struct acc_shell_word *w, uint32_t n, bool maybe)
{
	struct script *sc = arg;
	if (only_shows(w[0].s))
		return 0;
	const int64_t outer = container(sc, w, n, maybe);
	if (outer < 0)
		return (int)outer;
	w += outer;
	n -= (uint32_t)outer;
	for (uint32_t i = 0; i < n; i++)
		if (is_shell(w + i, n - i)) {
			int rc = options(sc, w, i, DIALECT_LAUNCH, maybe);
			return rc < 0 ? rc : script_word(sc, &w[i + 2], maybe);
		}
	uint32_t at = n;
	for (uint32_t i = 0; i < n && at == n; i++) {
		bool module = i > 0 && acc_str_is(w[i - 1].s, "-m");
		if (module ? !acc_str_starts(w[i].s, "torch.distributed") &&
					!acc_str_starts(w[i].s, "accelerate")
			   : acc_str_ends(w[i].s, ".py") || is_script(w, i))
			at = i;
	}
	bool names_task = false; /* swift sft, llamafactory-cli train */
	for (uint32_t i = 0; i < n && at == n && !is_option(&w[i]); i++)
		if (is_trainer(w[i].s)) {
			at = i;
			names_task = i + 1 < n && !is_option(&w[i + 1]);
		}
	/* A command line alone, as it is noted down, may begin with its options. */
	if (at == n && !is_option(&w[0]))
		return 0;
	if (at == n)
		return options(sc, w, n, DIALECT_OTHER, maybe);
	sc->command = true;
	sc->commands++;
	int rc = options(sc, w, at, DIALECT_LAUNCH, maybe);
	at += names_task;
	return rc < 0 ? rc : options(sc, w + at + 1, n - at - 1, DIALECT_OTHER, maybe);
}

static int
variable(void *arg, struct acc_str name, const struct acc_shell_word *value, bool maybe)
{
	struct script *sc = arg;
	return put(sc, name, value->s, value->line, DIALECT_EXPORT, maybe);
}

/* Where no command trains, as in a file that others read in, options wait in variables. */
static int
left(void *arg, struct acc_str name, const struct acc_shell_word *w, uint32_t n)
{
	struct script *sc = arg;
	struct acc_shell_word *list = NULL;
	uint32_t k = 0;
	size_t cap = 0;
	int rc = 0;
	(void)name;
	for (uint32_t i = 0; i < n && !sc->command && rc == 0; i++) {
		uint32_t line = w[i].line;
		for (uint32_t j = 0, start = 0; j <= w[i].s.n && rc == 0; j++) {
			char c = j < w[i].s.n ? w[i].s.p[j] : ' ';
			if (c != ' ' && c != '\t' && c != '\n')
				continue;
			struct acc_shell_word *p = acc_grow(list, &cap, (size_t)k + 1, sizeof *p,
				sc->e);
			if (p == NULL) {
				rc = ACC_ENOMEM;
				break;
			}
			list = p;
			list[k] = w[i];
			list[k].s = (struct acc_str){w[i].s.p + start, j - start};
			list[k].line = line;
			k += j > start;
			line += c == '\n';
			start = j + 1;
		}
	}
	if (rc == 0 && k > 0 && is_option(&list[0]))
		rc = options(sc, list, k, DIALECT_OTHER, false);
	free(list);
	return rc;
}

static int
passed(void *arg, uint32_t line)
{
	struct script *sc = arg;
	sc->passed_line = sc->passed++ == 0 ? line + sc->above : sc->passed_line;
	return 0;
}

/* Does the first line that says anything begin as a command that trains? */
static bool
begins(struct acc_str s)
{
	static const char *const words[] = {"--", "torchrun ", "python ", "python3 ", "deepspeed ",
		"accelerate ", "msrun ", "export ", "declare -x ", "llamafactory-cli ", "swift ",
		"axolotl ", "tune run ", "litgpt "};
	while (s.n > 0 && (s.p[0] == ' ' || s.p[0] == '\n' || s.p[0] == '\r' || s.p[0] == '#')) {
		const char *nl = s.p[0] == '#' ? memchr(s.p, '\n', s.n) : s.p;
		uint32_t n = nl == NULL ? s.n : (uint32_t)(nl - s.p) + 1;
		s = (struct acc_str){s.p + n, s.n - n};
	}
	/* A rule of hyphens, and an arrow, are no options. */
	if (acc_str_starts(s, "--") && (s.n < 3 || (s.p[2] | 0x20) < 'a' || (s.p[2] | 0x20) > 'z'))
		return false;
	for (size_t i = 0; i < sizeof words / sizeof *words; i++)
		if (acc_str_starts(s, words[i]))
			return true;
	return false;
}

static int
probe(const struct acc_probe *p)
{
	struct acc_str s = {(const char *)p->head, (uint32_t)p->nhead};
	const char *nl = s.n == 0 ? NULL : memchr(s.p, '\n', s.n);
	struct acc_str first = {s.p, nl == NULL ? s.n : (uint32_t)(nl - s.p)};
	/* A model's card shows commands, and is none. */
	if (p->is_dir || s.n == 0 || memchr(s.p, '\0', s.n) != NULL || acc_str_ends(p->base, ".md"))
		return 0;
	if (acc_str_starts(first, "#!") && memmem(first.p, first.n, "sh", 2) != NULL)
		return 75;
	return acc_str_ends(p->base, ".sh") ? 70 : begins(s) ? 50 : 0;
}

/* Of several commands that train the one with the most options is the script's own; what the others are given has
 * their number before its name. */
static int
apart(struct script *sc, struct acc_err *e)
{
	unsigned best = 1, most = 0, n = 0, of = 0;
	for (size_t i = 0; i < sc->ps.n; i++) { /* those of a command stand together */
		const unsigned c = sc->ps.p[i].command;
		n = c != of ? 1 : n + 1;
		of = c;
		best = c > 0 && n > most ? c : best;
		most = c > 0 && n > most ? n : most;
	}
	for (size_t i = 0; i < sc->ps.n; i++) {
		struct param *p = &sc->ps.p[i];
		char name[280];
		if (p->command == best || p->command == 0)
			continue;
		p->key.n = (uint32_t)snprintf(name, sizeof name, "command%u.%.*s", p->command,
			ACC_PRS(p->key));
		p->key.p = acc_arena_copy(&sc->ps.mem, name, p->key.n);
		if (p->key.p == NULL)
			return acc_nomem(e);
	}
	return 0;
}

static int
read_script(struct acc_dump_ctx *c, const char *path, struct acc_err *e)
{
	struct script sc = {.e = e};
	const struct acc_shell_hooks h = {command, variable, left, passed, &sc};
	int rc = acc_params_open(&sc.ps, c, path, e);
	if (rc == 0)
		rc = acc_shell_read((const char *)sc.ps.text.p, sc.ps.text.n, &h, e);
	if (rc == 0 && sc.commands > 1)
		rc = apart(&sc, e);
	if (rc == 0)
		rc = acc_params_put(&sc.ps, "shell",
			sc.overrides ? acc_params_own(&sc.ps) : acc_params_guess(&sc.ps),
			"no command line with options and no exported variable in it", e);
	if (rc == 0 && sc.left == 1)
		acc_dump_note(c, path, "line %llu: '%s' is not read",
			(unsigned long long)sc.left_line, sc.left_word);
	else if (rc == 0 && sc.left > 1)
		acc_dump_note(c, path, "line %llu: '%s' is not read, nor are %u more words",
			(unsigned long long)sc.left_line, sc.left_word, sc.left - 1);
	if (rc == 0 && sc.passed > 0)
		acc_dump_note(c, path,
			"line %llu: not read, for only a run can tell whether it is reached (such commands: %u)",
			(unsigned long long)sc.passed_line, sc.passed);
	acc_params_close(&sc.ps);
	return rc;
}

const struct acc_dump acc_dump_config_shell = {
	.name = "shell",
	.help = "a script or command line: Megatron's arguments, exported variables",
	.probe = probe,
	.read = read_script,
};
