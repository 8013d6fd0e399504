/* Sentences that all judges need: which rank and step, which line of the model, what could not be
 * measured. */
#include "acc/judge.h"
#include "acc/say.h"

#include "judge/case.h"

const char *
acc_call_name(const struct acc_call *k)
{
	const char *name = k->key[ACC_A] != NULL ? k->key[ACC_A] : k->key[ACC_B];
	return acc_got(name); /* of a call that has none */
}

void
acc_finding_of(struct acc_finding *f, const struct acc_call *k)
{
	f->name = acc_call_name(k);
	f->step = k->step;
	f->rank = k->rank;
	f->seq = k->seq;
}

const char *
acc_say_io(const struct acc_item *it)
{
	static const char *const names[] = {NULL, "in", "kw", "param", "out", "grad"};
	return names[it->io];
}

const char *
acc_say_position(struct acc_case *c, const struct acc_rec *r, const struct acc_item *it)
{
	static const char *const words[] = {"the tensor", "input ", "keyword ", "parameter ",
		"output ", "gradient "};
	const char *prefix = !acc_rec_is(r, "pair") ? "" : (it->sides & 1) ? "a." : "b.";
	struct acc_str pos = acc_get_text(r, prefix, "pos");
	if (it->io == ACC_IO_NONE)
		pos.n = 0;
	return acc_say(&c->mem, "%s%.*s", words[it->io], ACC_PRS(pos));
}

const char *
acc_say_where(struct acc_case *c, const struct acc_call *k)
{
	const bool many = c->ncall > 0 && c->call[c->ncall - 1].segment > 0;
	if (c->ncall == 0 || (!many && !c->opt.one_step))
		return "";
	const char *rank = "", *step = "";
	if (many && k->rank != INT64_MIN)
		rank = acc_got(acc_say(&c->mem, k->by_proc ? "process %lld" : "rank %lld",
			(long long)k->rank));
	if (k->step != INT64_MIN)
		step = acc_got(acc_say(&c->mem, "step %lld", (long long)k->step));
	const char *comma = rank[0] != '\0' && step[0] != '\0' ? ", " : "";
	const char *colon = rank[0] != '\0' || step[0] != '\0' ? ": " : "";
	return acc_say(&c->mem, "%s%s%s%s", rank, comma, step, colon);
}

/* Frames of the framework and of the recorder say nothing about the model, which may live in a package, too. */
static bool
foreign(struct acc_str frame)
{
	static const char *const marks[] = {"*/torch/*", "*/torch_npu/*", "*/mindspore/*",
		"*/msprobe/*", "*/ptdbg_ascend/*", "*/maca_tools/*", "*/accrecord/*",
		"*-packages/paddle/*", "*-packages/jax/*", "*-packages/jaxlib/*",
		"*-packages/flax/*", "*-packages/keras/*", "*-packages/numpy/*",
		"*-packages/einops/*", "*<frozen *"};
	const char *end = memchr(frame.p, ',', frame.n);
	if (end != NULL)
		frame.n = (uint32_t)(end - frame.p);
	for (size_t i = 0; i < sizeof marks / sizeof *marks; i++)
		if (acc_glob(marks[i], frame))
			return true;
	return false;
}

/* "File /a/model.py, line 41, in __init__, \n code" -> "model.py:41 in __init__: code";
 * another form stays as it is. */
static const char *
frame_text(struct acc_arena *m, struct acc_str f)
{
	char *s = acc_arena_copy(m, f.p, f.n);
	if (s == NULL)
		return NULL;
	for (char *p = s; *p != '\0'; p++)
		if ((unsigned char)*p < ' ')
			*p = ' ';
	char *line = strstr(s, ", line "), *in = line == NULL ? NULL : strstr(line, ", in ");
	if (strncmp(s, "File ", 5) != 0 || in == NULL)
		return s;
	*line = *in = '\0';
	char *base = strrchr(s, '/'), *func = in + 5, *code = strchr(func, ',');
	base = base != NULL ? base + 1 : s + 5;
	if (code != NULL) {
		*code++ = '\0';
		code += strspn(code, " ");
	}
	return acc_say(m, "%s:%s in %s%s%s", base, line + 7, func,
		code != NULL && *code != '\0' ? ": " : "", code != NULL ? code : "");
}

static const char *
innermost(struct acc_case *c, const struct acc_val *frames)
{
	if (frames == NULL || frames->type != ACC_V_TEXTS || frames->n == 0)
		return "";
	for (uint32_t i = 0; i < frames->n; i++)
		if (!foreign(frames->texts[i]))
			return frame_text(&c->mem, frames->texts[i]);
	return frame_text(&c->mem, frames->texts[0]);
}

/* Of this call alone, by the stack that the first of the prefixes has. */
static const char *
source_of(struct acc_case *c, const struct acc_call *k, const char *const *prefix, int n,
	const char **id, struct acc_err *e)
{
	struct acc_rec *r;
	struct acc_str stack = {"", 0};
	*id = NULL;
	if (acc_case_record(c, &c->item[k->first], &r, e) < 0)
		return NULL;
	for (int i = 0; i < n && stack.n == 0; i++)
		stack = acc_get_text(r, prefix[i], "stack");
	if (stack.n == 0)
		return "";
	*id = acc_arena_copy(&c->mem, stack.p, stack.n);
	if (*id == NULL)
		return NULL;
	for (uint32_t i = 0; i < k->first; i++) {
		if (c->item[i].kind != ACC_ITEM_AUX)
			continue;
		if (acc_case_record(c, &c->item[i], &r, e) < 0)
			return NULL;
		if (acc_rec_is(r, "stack") && acc_str_is(acc_get_text(r, "", "id"), *id))
			return innermost(c, acc_get(r, "", "frames"));
	}
	return "";
}

static const char *
own_source(struct acc_case *c, const struct acc_call *k, const char **id, struct acc_err *e)
{
	static const char *const prefix[] = {"a.", "b.", ""};
	return source_of(c, k, prefix, 3, id, e);
}

const char *
acc_source_on(struct acc_case *c, const struct acc_call *k, int side, struct acc_err *e)
{
	static const char *const prefix[] = {"a.", "b."};
	const char *id;
	return source_of(c, k, &prefix[side], 1, &id, e);
}

/* The forward call of a backward one, or NULL. */
static const struct acc_call *
forward_of(const struct acc_case *c, const struct acc_call *k)
{
	for (const struct acc_call *f = k;
		k->backward && f > c->call && f[-1].segment == k->segment;)
		if ((--f)->twin == k->twin && !f->backward && !f->grad && f->keyed)
			return f;
	return NULL;
}

/* A backward call has no line of the model: its stack, where there is one, is that of whoever
 * called backward(). Its forward call has. */
const char *
acc_say_source(struct acc_case *c, const struct acc_call *k, const char **id, struct acc_err *e)
{
	const char *own = own_source(c, k, id, e), *from, *line;
	const struct acc_call *f = own == NULL ? NULL : forward_of(c, k);
	if (f == NULL)
		return own;
	line = own_source(c, f, &from, e);
	if (line == NULL || line[0] == '\0' || strcmp(line, own) == 0)
		return line == NULL ? NULL : own;
	if (*id == NULL)
		*id = from;
	return own[0] == '\0' ? acc_say(&c->mem, "%s (its forward call)", line)
			      : acc_say(&c->mem, "%s (its forward call at %s)", own, line);
}

const char *
acc_say_value(struct acc_arena *m, const struct acc_val *v)
{
	char buf[40];
	if (v == NULL || v->type == ACC_V_NIL)
		return "None";
	if (v->type == ACC_V_BOOL)
		return v->b ? "True" : "False";
	if (v->type == ACC_V_INT)
		return acc_say(m, "%lld", (long long)v->i);
	if (v->type == ACC_V_TEXT)
		return acc_say(m, "'%.*s'", v->s.n < 60 ? (int)v->s.n : 60, v->s.p);
	if (v->type != ACC_V_F64)
		return "another list";
	acc_f64_repr(v->f, buf, sizeof buf);
	return acc_say(m, "%s", buf);
}
