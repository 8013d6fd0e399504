#include "dump/curve/curve.h"

#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <unistd.h>

#include "dump/place.h"

struct curve_name {
	struct acc_str tag, raw; /* raw is empty where it is the same */
	enum curve_class cls;
	bool stepped; /* its last point: */
	int64_t step;
	double value;
	uint64_t at;
};

enum { NAMES_KEPT = 1 << 16, TAG_LIMIT = 4096 };

static const char *const class_name[] = {"metric", "time", "count", "monitor"};

/* Other spellings: the writer's, in lower case with _ for blanks and hyphens. */
static const struct {
	const char *from, *to;
} alias[] = {
	{"loss", "loss"},    /* Loss */
	{"loss_is", "loss"}, /* MindSpore's LossMonitor */
	{"lm_loss", "loss"},
	{"train/loss", "loss"},
	{"training_loss", "loss"},
	{"cost", "loss"}, /* Marian's */
	{"lr", "learning_rate"},
	{"train/learning_rate", "learning_rate"},
	{"train/lr", "learning_rate"},
	{"global_norm", "grad_norm"},
	{"global_grad_norm", "grad_norm"},
	{"gradient_norm", "grad_norm"},
	{"train/grad_norm", "grad_norm"},
	{"train/global_norm", "grad_norm"},
	{"loss_scaler", "loss_scale"},
	{"train/loss_scale", "loss_scale"},
	{"overflow_cond", "overflow"},
	{"loss_train", "train_loss"},
	{"loss_val", "eval_loss"},
	{"loss_eval", "eval_loss"},
	{"validation_loss", "eval_loss"},
	{"val_loss", "eval_loss"},
	{"eval/loss", "eval_loss"},
	{"val/loss", "eval_loss"},
	{"valid_loss", "eval_loss"},
	{"valid/loss", "eval_loss"},
	{"validation/loss", "eval_loss"},
	{"lm_loss_validation", "eval_loss"},
	{"lm_loss_validation_ppl", "eval_ppl"},
	{"validation_lm_loss", "eval_loss"},
	{"validation_lm_loss_ppl", "eval_ppl"},
	{"test_lm_loss", "test_loss"},
	{"test_lm_loss_ppl", "test_ppl"},
	{"number_of_skipped_iterations", "skipped_iterations"},
	{"number_of_nan_iterations", "nan_iterations"},
	{"损失", "loss"},
	{"损失值", "loss"},
	{"训练损失", "train_loss"},
	{"验证损失", "eval_loss"},
	{"学习率", "learning_rate"},
	{"准确率", "accuracy"},
	{"梯度范数", "grad_norm"},
};

static char
fold(char c)
{
	return c >= 'A' && c <= 'Z' ? (char)(c | 0x20) : c;
}

/* Runs of blanks and hyphens become one underscore. */
static uint32_t
join_words(struct acc_str s, char *buf)
{
	uint32_t n = 0;
	for (uint32_t i = 0; i < s.n && n < TAG_LIMIT; i++) {
		bool gap = s.p[i] == ' ' || s.p[i] == '\t' || s.p[i] == '-';
		if (gap && n > 0 && buf[n - 1] == '_')
			continue;
		buf[n++] = gap ? '_' : s.p[i];
	}
	while (n > 1 && buf[n - 1] == '_' && s.p[s.n - 1] != '_')
		n--;
	return n;
}

static bool
is_alias(const char *name, uint32_t n, const char *from)
{
	for (uint32_t i = 0; i < n; i++)
		if (from[i] == '\0' || fold(name[i]) != from[i])
			return false;
	return from[n] == '\0';
}

/* Words that make a quantity a time or a count, wherever they stand in its name. */
static const struct {
	const char *word;
	enum curve_class cls;
} words[] = {
	{"time", CURVE_TIME},
	{"runtime", CURVE_TIME},
	{"timestamp", CURVE_TIME},
	{"ms", CURVE_TIME},
	{"second", CURVE_TIME},
	{"seconds", CURVE_TIME},
	{"sec", CURVE_TIME},
	{"throughput", CURVE_TIME},
	{"tflop", CURVE_TIME},
	{"tflops", CURVE_TIME},
	{"mfu", CURVE_TIME},
	{"tps", CURVE_TIME},
	{"tgs", CURVE_TIME},
	{"wps", CURVE_TIME},
	{"ups", CURVE_TIME},
	{"ips", CURVE_TIME},
	{"fps", CURVE_TIME},
	{"elapsed", CURVE_TIME},
	{"eta", CURVE_TIME},
	{"energy", CURVE_TIME},
	{"power", CURVE_TIME},
	{"latency", CURVE_TIME},
	{"speed", CURVE_TIME},
	{"dur", CURVE_TIME},
	{"duration", CURVE_TIME},
	{"day", CURVE_TIME},
	{"wall", CURVE_TIME},
	{"linearity", CURVE_TIME},
	{"consumed", CURVE_COUNT},
	{"batch", CURVE_COUNT},
	{"skipped", CURVE_COUNT},
	{"memory", CURVE_COUNT},
	{"mem", CURVE_COUNT},
	{"allocated", CURVE_COUNT},
	{"reserved", CURVE_COUNT},
	{"epoch", CURVE_COUNT},
	{"step", CURVE_COUNT},
	{"steps", CURVE_COUNT},
	{"iteration", CURVE_COUNT},
	{"iterations", CURVE_COUNT},
	{"samples", CURVE_COUNT},
	{"tokens", CURVE_COUNT},
	{"timesteps", CURVE_COUNT},
	{"seqlen", CURVE_COUNT},
	{"length", CURVE_COUNT},
	{"flos", CURVE_COUNT},
	{"zeros", CURVE_COUNT},
	{"overflow", CURVE_COUNT},
	{"percentage", CURVE_COUNT},
};

static enum curve_class
class_of_word(const char *p, uint32_t n)
{
	for (size_t i = 0; i < sizeof words / sizeof *words; i++)
		if (is_alias(p, n, words[i].word))
			return words[i].cls;
	return CURVE_METRIC;
}

/* "img/s", "Tokens/sec", "TFLOP/s/device": something by seconds. */
static bool
is_rate(struct acc_str s)
{
	for (uint32_t i = 1; i + 1 < s.n; i++) {
		uint32_t n = 1;
		if (s.p[i] != '/')
			continue;
		while (i + n < s.n && (fold(s.p[i + n]) >= 'a' && fold(s.p[i + n]) <= 'z'))
			n++;
		if (is_alias(s.p + i + 1, n - 1, "s") || is_alias(s.p + i + 1, n - 1, "sec"))
			return true;
	}
	return false;
}

/* tag's last component: behind the last slash, but not that of TFLOP/s/GPU or samples/sec. */
static struct acc_str
leaf(const char *p, uint32_t n)
{
	const char *slash = memrchr(p, '/', n);
	if (slash == NULL || p + n - slash <= 4 || memchr(p, '(', n) != NULL ||
		is_rate((struct acc_str){p, n}))
		return (struct acc_str){p, n};
	return (struct acc_str){slash + 1, (uint32_t)(p + n - slash) - 1};
}

/* By the words of its last component; one with a dot is a weight, whatever its words. A time
 * is one even if it is a time of steps; what is called a loss or a norm is one whatever it is
 * divided by. */
static enum curve_class
guess(struct acc_str s)
{
	enum curve_class cls = CURVE_METRIC;
	/* Paddle's times: a cost alone may be a loss. */
	if (is_rate(s) || acc_str_ends(s, "batch_cost") || acc_str_ends(s, "data_cost") ||
		acc_str_ends(s, "reader_cost"))
		return CURVE_TIME;
	for (uint32_t i = 0, start = 0; i <= s.n; i++) {
		if (i < s.n && (s.p[i] == '.' || s.p[i] == '['))
			return CURVE_METRIC;
		if (i < s.n && (s.p[i] == '\0' || strchr("_ -/()", s.p[i]) == NULL))
			continue;
		const char *word = s.p + start;
		uint32_t n = i - start;
		enum curve_class w = class_of_word(word, n);
		if (is_alias(word, n, "loss") || is_alias(word, n, "ppl") ||
			is_alias(word, n, "norm"))
			return CURVE_METRIC;
		if (w == CURVE_TIME || cls == CURVE_METRIC)
			cls = w;
		start = i + 1;
	}
	return cls;
}

static const char *
common_name(const char *name, uint32_t n)
{
	for (size_t i = 0; i < sizeof alias / sizeof *alias; i++)
		if (is_alias(name, n, alias[i].from))
			return alias[i].to;
	return NULL;
}

/* Loss/train, as people call them who write to TensorBoard themselves, is train/loss. */
static const char *
common_of_split(const char *name, uint32_t n)
{
	static const char *const splits[][2] = {{"train", "train"}, {"training", "train"},
		{"val", "val"}, {"valid", "val"}, {"validation", "val"}, {"eval", "val"}};
	const struct acc_str last = leaf(name, n);
	char turned[64];
	if (last.n == n || n + 8 > sizeof turned)
		return NULL;
	for (size_t i = 0; i < sizeof splits / sizeof *splits; i++)
		if (is_alias(last.p, last.n, splits[i][0])) {
			const int k = snprintf(turned, sizeof turned, "%s/%.*s", splits[i][1],
				(int)(n - last.n - 1), name);
			return common_name(turned, (uint32_t)k);
		}
	return NULL;
}

struct acc_str
acc_curve_name(struct acc_str tag, char *buf, enum curve_class *cls)
{
	static const char samples[] = "_vs_samples", eval[] = "eval/";
	uint32_t n = join_words(tag, buf), tail = 0;
	if (*cls == CURVE_GUESS)
		*cls = guess(leaf(buf, n));
	if (acc_str_ends((struct acc_str){buf, n}, samples))
		tail = sizeof samples - 1;
	const char *common = common_name(buf, n - tail);
	if (common == NULL)
		common = common_of_split(buf, n - tail);
	if (common != NULL) {
		n = (uint32_t)snprintf(buf, CURVE_TAG, "%s%s", common, tail > 0 ? samples : "");
		return (struct acc_str){buf, n};
	}
	/* Hugging Face's callback for TensorBoard writes eval/x for eval_x. */
	if (n > sizeof eval && memcmp(buf, eval, sizeof eval - 1) == 0)
		buf[sizeof eval - 2] = '_';
	return (struct acc_str){buf, n};
}

int
acc_curves_start(struct curves *cv, struct acc_dump_ctx *c, const struct acc_source *s,
	const char *run, const char *file, char mark, struct acc_err *e)
{
	cv->c = c;
	cv->run = acc_str(run);
	cv->file = acc_str(file);
	cv->mark = mark;
	cv->nwhere = 0;
	return acc_dump_source(c, s, e);
}

void
acc_curves_release(struct curves *cv)
{
	acc_map_release(&cv->seen);
	acc_arena_release(&cv->mem);
	free(cv->name);
}

/* Was it, under this name, before the i-th? Loss and loss are one. */
static bool
named_before(const struct curves *cv, size_t i)
{
	size_t k = 0;
	while (k < i && !acc_str_eq(cv->name[k].tag, cv->name[i].tag))
		k++;
	return k < i;
}

void
acc_curves_names(const struct curves *cv, char *buf, size_t size)
{
	size_t at = 0, i = 0, n = 0;
	buf[0] = '\0';
	for (; i < cv->n && n < 6; i++) {
		struct acc_str t = cv->name[i].tag;
		if (named_before(cv, i))
			continue;
		if (at + t.n + 24 > size) /* leave room for the rest */
			break;
		at += (size_t)snprintf(buf + at, size - at, "%s%.*s", n++ > 0 ? ", " : "",
			ACC_PRS(t));
	}
	if (i < cv->n)
		snprintf(buf + at, size - at, "%smore", n > 0 ? " and " : "");
}

static int
look_up(struct curves *cv, struct acc_str tag, enum curve_class cls, struct curve_name *out,
	char *buf, struct curve_name **known)
{
	uint64_t *at = acc_map_get(&cv->seen, tag);
	*known = NULL;
	if (at != NULL) {
		*known = &cv->name[*at];
		*out = **known;
		return 0;
	}
	*out = (struct curve_name){.cls = cls};
	out->tag = acc_curve_name(tag, buf, &out->cls);
	out->raw = acc_str_eq(out->tag, tag) ? (struct acc_str){NULL, 0} : tag;
	if (cv->n == NAMES_KEPT)
		return 0;
	if (!ACC_ROOM(cv->name, cv->cap, cv->n + 1, NULL))
		return ACC_ENOMEM;
	struct curve_name *k = &cv->name[cv->n];
	*k = *out;
	k->tag.p = acc_arena_copy(&cv->mem, out->tag.p, out->tag.n);
	k->raw.p = acc_arena_copy(&cv->mem, out->raw.p, out->raw.n);
	if (k->tag.p == NULL || k->raw.p == NULL || acc_map_put(&cv->seen, tag, cv->n) == NULL)
		return ACC_ENOMEM;
	*out = *k;
	*known = k;
	cv->n++;
	return 0;
}

static void
note_again(struct curves *cv, struct curve_name *k, const struct curve_point *p)
{
	if (k == NULL || !p->has_step || p->has_rank || k->cls != CURVE_METRIC)
		return;
	const bool same = isnan(p->value) ? isnan(k->value) : p->value == k->value;
	/* Keras draws a bar again in one line. */
	if (k->stepped &&
		(p->step < k->step ||
			(p->step == k->step && p->at != k->at && !same && !p->so_far)) &&
		cv->again++ == 0) {
		cv->again_name = (size_t)(k - cv->name);
		cv->again_at = p->at;
		cv->again_from = k->step;
		cv->again_to = p->step;
	}
	k->stepped = true;
	k->step = p->step;
	k->value = p->value;
	k->at = p->at;
}

void
acc_curves_say_again(const struct curves *cv, const char *path)
{
	if (cv->again > 0)
		acc_dump_note(cv->c, path,
			"line %llu: %.*s goes on at step %lld behind step %lld (%llu times): another run, or one that was"
			" taken up again? of each step the last counts",
			(unsigned long long)cv->again_at, ACC_PRS(cv->name[cv->again_name].tag),
			(long long)cv->again_to, (long long)cv->again_from,
			(unsigned long long)cv->again);
}

/* "file:12". Most lines have many points. */
static struct acc_str
where(struct curves *cv, uint64_t at)
{
	if (cv->nwhere > 0 && cv->at == at)
		return (struct acc_str){cv->where, cv->nwhere};
	cv->at = at;
	char digits[20], *d = digits + sizeof digits;
	uint32_t n = cv->file.n < sizeof cv->where - 24 ? cv->file.n : sizeof cv->where - 24;
	memcpy(cv->where, cv->file.p, n);
	cv->where[n++] = cv->mark;
	do
		*--d = (char)('0' + at % 10);
	while ((at /= 10) > 0);
	size_t len = (size_t)(digits + sizeof digits - d);
	memcpy(cv->where + n, d, len);
	cv->nwhere = n + (uint32_t)len;
	return (struct acc_str){cv->where, cv->nwhere};
}

static int
push(struct acc_rec *r, struct acc_str key, struct acc_val v)
{
	return acc_rec_push(r, &(struct acc_field){.key = key, .v = v});
}

int
acc_curve_put(struct curves *cv, const struct curve_point *p, struct acc_err *e)
{
	char buf[CURVE_TAG];
	struct curve_name k, *known;
	struct acc_str tag = p->tag;
	if (tag.n == 0)
		return 0;
	if (tag.n > TAG_LIMIT)
		tag.n = TAG_LIMIT;
	int rc = look_up(cv, tag, p->cls, &k, buf, &known);
	note_again(cv, known, p);
	struct acc_rec *r = acc_dump_nameless(cv->c, "scalar");
	rc |= push(r, ACC_STR("tag"), acc_text(k.tag));
	if (p->has_step)
		rc |= push(r, ACC_STR("step"), acc_int(p->step));
	if (p->has_rank)
		rc |= push(r, ACC_STR("rank"), acc_int(p->rank));
	rc |= push(r, ACC_STR("value"), acc_f64(p->value));
	if (p->res > 0)
		rc |= push(r, ACC_STR("res"), acc_f64(p->res));
	rc |= push(r, ACC_STR("class"), acc_ctext(class_name[k.cls]));
	if (k.raw.n > 0)
		rc |= push(r, ACC_STR("tag.raw"), acc_text(k.raw));
	if (p->counted)
		rc |= push(r, ACC_STR("counted"), acc_bool(true));
	if (p->epochs)
		rc |= push(r, ACC_STR("epochs"), acc_bool(true));
	rc |= push(r, ACC_STR("run"), acc_text(cv->run));
	rc |= push(r, ACC_STR("where"), acc_text(where(cv, p->at)));
	return rc < 0 ? acc_nomem(e) : acc_dump_put(cv->c, r, e);
}

bool
acc_curve_number(const struct jnode *n, double *v)
{
	struct acc_literal l;
	if (n->type == ACC_JSON_STRING && acc_literal_all(n->s, &l))
		*v = l.v;
	else if (n->type == ACC_JSON_FLOAT)
		*v = n->f;
	else if (n->type == ACC_JSON_INT)
		*v = (double)n->i;
	else
		return false;
	return true;
}

/* Names that say nothing of a run. */
static bool
is_generic(struct acc_str name)
{
	static const char *const names[] = {"trainer_state", "trainer_log", "info", "log", "train"};
	for (size_t i = 0; i < sizeof names / sizeof *names; i++)
		if (acc_str_is(name, names[i]))
			return true;
	return acc_str_starts(name, "worker_");
}

static void
name_run(struct curve_file *f)
{
	const char *slash = strrchr(f->dir, '/');
	struct acc_str stem = acc_str(f->name);
	const char *dot = memrchr(stem.p, '.', stem.n);
	if (dot != NULL && dot > stem.p)
		stem.n = (uint32_t)(dot - stem.p);
	if (is_generic(stem) && slash != NULL && slash[1] != '\0')
		stem = acc_str(slash + 1);
	snprintf(f->run, sizeof f->run, "%.*s", ACC_PRS(stem));
}

static int
open_bytes(struct curve_file *f, int fd, const char *path, struct acc_err *e)
{
	f->b = acc_bytes_open(fd, path, true, e);
	if (f->b == NULL)
		return e != NULL ? e->code : ACC_EIO;
	int rc = acc_bytes_growing(f->b, e);
	if (rc < 0) {
		acc_bytes_close(f->b);
		f->b = NULL; /* who opens it may close it whatever came of it */
	}
	return rc;
}

void
acc_curve_grown(struct acc_dump_ctx *c, const struct acc_bytes *b, const char *path)
{
	uint64_t n = acc_bytes_grown(b);
	if (n > 0)
		acc_dump_note(c, path,
			"it is being written: %llu bytes that were appended meanwhile are not read",
			(unsigned long long)n);
}

void
acc_curve_cut(struct acc_dump_ctx *c, const char *path, uint64_t line)
{
	acc_dump_note(c, path,
		"line %llu is not judged: it has no line end, so a number in it may be cut off",
		(unsigned long long)line);
}

int
acc_curve_open_at(struct curve_file *f, int dirfd, struct acc_err *e)
{
	char path[2 * PATH_MAX];
	int fd = acc_file_beneath(dirfd, acc_str(f->name), e);
	snprintf(path, sizeof path, "%s/%s", f->dir, f->name);
	name_run(f);
	return fd < 0 ? fd : open_bytes(f, fd, path, e);
}

int
acc_curve_open(struct curve_file *f, const char *path, struct acc_err *e)
{
	if (strcmp(path, "-") == 0) {
		strcpy(f->dir, ".");
		f->name = "standard input";
		snprintf(f->run, sizeof f->run, "-");
		int fd = dup(STDIN_FILENO);
		if (fd < 0)
			return acc_fail(e, ACC_EIO, "cannot read standard input:");
		return open_bytes(f, fd, "standard input", e);
	}
	int fd = acc_dump_open_file(path, f->dir, &f->name, e);
	if (fd < 0)
		return fd;
	name_run(f);
	return open_bytes(f, fd, path, e);
}

int
acc_curve_begin(struct curves *cv, struct curve_file *f, struct acc_dump_ctx *c, const char *path,
	const char *format, const char *framework, struct acc_err *e)
{
	const struct acc_source s = {.root = f->dir,
		.format = format,
		.framework = framework,
		.task = "curves",
		ACC_NO_PLACE};
	int rc = acc_curve_open(f, path, e);
	if (rc < 0)
		return rc;
	rc = acc_curves_start(cv, c, &s, f->run, f->name, '#', e);
	if (rc < 0) {
		acc_bytes_close(f->b);
		acc_curves_release(cv);
	}
	return rc;
}
