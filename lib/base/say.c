#include "acc/say.h"

#include <stdlib.h>

#include "base/message.h"

static bool chinese;

bool
acc_lang_use(const char *lang)
{
	static const char *const english[] = {"en", "C", "POSIX"}, *const known[] = {"zh", "zh_CN",
									   "zh_SG"};
	char name[16];
	const size_t n = strcspn(lang, ".@");
	bool en = false, zh = false;
	snprintf(name, sizeof name, "%.*s", (int)(n < sizeof name ? n : 0), lang);
	for (size_t i = 0; i < sizeof english / sizeof *english; i++)
		en |= strcmp(name, english[i]) == 0;
	for (size_t i = 0; i < sizeof known / sizeof *known; i++)
		zh |= strcmp(name, known[i]) == 0;
	en |= strncmp(name, "en_", 3) == 0;
	if (en || zh)
		chinese = zh;
	return en || zh;
}

const char *
acc_lang(void)
{
	return chinese ? "zh" : "en";
}

const char *
acc_tr(const char *msgid)
{
	const struct message *m = chinese ? acc_message_find(acc_str(msgid)) : NULL;
	return m == NULL ? msgid : m->zh;
}

bool
acc_page_word(size_t i, const char **word, const char **translation)
{
	if (!chinese || i >= acc_npage_words)
		return false;
	*word = acc_page_words[i].id;
	*translation = acc_page_words[i].zh;
	return true;
}

/* --- texts that remember of what they were made: a table by their address, in the arena itself */

struct text {
	const char *at;
	const struct acc_str *item;
	uint32_t n;
	uint32_t length;
};

struct acc_texts {
	struct text *slot;
	size_t n, cap;
};

static struct text *
slot_of(const struct acc_texts *t, const char *at)
{
	size_t k = (size_t)((uintptr_t)at * 0x9e3779b97f4a7c15u >> 20) & (t->cap - 1);
	while (t->slot[k].at != NULL && t->slot[k].at != at)
		k = (k + 1) & (t->cap - 1);
	return &t->slot[k];
}

static const struct text *
known(const struct acc_arena *m, const char *at, size_t length)
{
	if (m->said == NULL || at == NULL)
		return NULL;
	const struct text *t = slot_of(m->said, at);
	return t->at != NULL && t->length == length ? t : NULL;
}

static int
larger(struct acc_arena *m)
{
	struct acc_texts *old = m->said, *t = acc_alloc(m, sizeof *t);
	const size_t cap = old == NULL ? 32 : old->cap * 2;
	struct text *slot = t == NULL ? NULL : acc_alloc(m, cap * sizeof *slot);
	if (slot == NULL)
		return ACC_ENOMEM;
	memset(slot, 0, cap * sizeof *slot);
	*t = (struct acc_texts){.slot = slot, .n = old == NULL ? 0 : old->n, .cap = cap};
	for (size_t i = 0; old != NULL && i < old->cap; i++)
		if (old->slot[i].at != NULL)
			*slot_of(t, old->slot[i].at) = old->slot[i];
	m->said = t;
	return 0;
}

static int
remember(struct acc_arena *m, const char *text, const struct acc_str *item, uint32_t n)
{
	if ((m->said == NULL || m->said->n * 2 >= m->said->cap) && larger(m) < 0)
		return ACC_ENOMEM;
	struct text *t = slot_of(m->said, text);
	m->said->n += t->at == NULL;
	*t = (struct text){.at = text, .item = item, .n = n, .length = (uint32_t)strlen(text)};
	return 0;
}

/* The items of a message, as they come: lists that are there already, and one by one. */
struct making {
	struct acc_arena *m;
	struct piece {
		const struct acc_str *item;
		uint32_t n;
		struct acc_str one; /* where item is NULL */
	} piece[ACC_SAID_ARGS + 1];
	uint32_t pieces, n;
};

static int
single(struct making *k, char how, struct acc_str s)
{
	char *p = acc_alloc(k->m, (size_t)s.n + 2);
	if (p == NULL)
		return ACC_ENOMEM;
	p[0] = how;
	if (s.n > 0)
		memcpy(p + 1, s.p, s.n);
	p[s.n + 1] = '\0';
	k->piece[k->pieces++] = (struct piece){.n = 1, .one = {p, s.n + 1}};
	k->n++;
	return 0;
}

/* A text as a format that has no conversions; where memory runs out, one that is no message. */
static struct acc_str
as_format(struct acc_arena *m, struct acc_str s)
{
	char *p = memchr(s.p, '%', s.n) == NULL ? NULL : acc_alloc(m, 2 * (size_t)s.n);
	uint32_t n = 0;
	for (uint32_t i = 0; p != NULL && i < s.n; i++) {
		p[n++] = s.p[i];
		if (s.p[i] == '%')
			p[n++] = '%';
	}
	return p == NULL ? s : (struct acc_str){p, n};
}

static int
put_arg(void *arg, struct acc_str s)
{
	struct making *k = arg;
	if (k->pieces > ACC_SAID_ARGS)
		return ACC_EUNSUP;
	const struct text *t = known(k->m, s.p, s.n);
	if (t == NULL) {
		struct acc_str id = s.n == 0 ? s : as_format(k->m, s);
		return acc_message_find(id) != NULL ? single(k, '%', id) : single(k, '=', s);
	}
	k->piece[k->pieces++] = (struct piece){.item = t->item, .n = t->n};
	k->n += t->n;
	return 0;
}

static int
join(struct making *k, const char *text)
{
	struct acc_str *item = acc_alloc(k->m, k->n * sizeof *item), *to = item;
	if (item == NULL)
		return ACC_ENOMEM;
	for (uint32_t i = 0; i < k->pieces; to += k->piece[i++].n)
		memcpy(to, k->piece[i].item != NULL ? k->piece[i].item : &k->piece[i].one,
			k->piece[i].n * sizeof *to);
	return remember(k->m, text, item, k->n);
}

char *
acc_say_v(struct acc_arena *m, const char *fmt, va_list ap)
{
	struct making k = {.m = m};
	va_list again;
	va_copy(again, ap);
	int n = vsnprintf(NULL, 0, fmt, again);
	va_end(again);
	char *p = n < 0 ? NULL : acc_alloc(m, (size_t)n + 1);
	int rc = p == NULL ? ACC_ENOMEM : single(&k, '%', acc_str(fmt));
	if (rc == 0) {
		va_copy(again, ap);
		vsnprintf(p, (size_t)n + 1, fmt, again);
		va_end(again);
		rc = acc_format_args(fmt, ap, put_arg, &k);
	}
	if (rc == 0)
		rc = join(&k, p);
	/* What cannot be taken apart is a text, in English. */
	return rc == ACC_ENOMEM ? NULL : p;
}

char *
acc_say(struct acc_arena *m, const char *fmt, ...)
{
	va_list ap;
	va_start(ap, fmt);
	char *p = acc_say_v(m, fmt, ap);
	va_end(ap);
	return p;
}

/* A text that is a message by itself, with % doubled. What its translation takes, mem has. */
static struct acc_str
word(struct acc_arena *mem, struct acc_str s)
{
	const bool percent = s.n > 0 && memchr(s.p, '%', s.n) != NULL;
	const struct message *m = acc_message_find(percent ? as_format(mem, s) : s);
	if (m == NULL)
		return s;
	if (!percent)
		return acc_str(m->zh);
	char *p = acc_arena_copy(mem, m->zh, strlen(m->zh)), *to = p;
	if (p == NULL)
		return s;
	for (const char *from = p; *from != '\0'; from++) {
		*to++ = *from;
		from += from[0] == '%' && from[1] == '%';
	}
	return (struct acc_str){p, (uint32_t)(to - p)};
}

struct acc_str
acc_shown(struct acc_arena *m, struct acc_str text)
{
	struct acc_buf b = {0};
	const struct text *t = chinese ? known(m, text.p, text.n) : NULL;
	if (t != NULL && acc_message_show(t->item, t->n, &b)) {
		const char *p = acc_arena_copy(m, b.p, b.n);
		text = p == NULL ? text : (struct acc_str){p, (uint32_t)b.n};
	} else if (t == NULL && chinese)
		text = word(m, text);
	acc_buf_release(&b);
	return text;
}

struct acc_val
acc_message(const struct acc_arena *m, const char *text)
{
	const struct text *t = text == NULL ? NULL : known(m, text, strlen(text));
	return t == NULL ? acc_nil() : acc_texts(t->item, t->n);
}

/* Items of another life, for a text in m. */
static int
keep(struct acc_arena *m, const char *text, const struct acc_str *from, uint32_t n)
{
	struct acc_str *item = acc_alloc(m, n * sizeof *item);
	for (uint32_t i = 0; item != NULL && i < n; i++) {
		item[i] = acc_arena_str(m, from[i]);
		if (item[i].p == NULL)
			return ACC_ENOMEM;
	}
	return item == NULL ? ACC_ENOMEM : remember(m, text, item, n);
}

char *
acc_say_copy(struct acc_arena *m, const struct acc_arena *from, const char *text)
{
	const struct text *t = known(from, text, strlen(text));
	char *copy = acc_arena_copy(m, text, strlen(text));
	return copy == NULL || t == NULL || keep(m, copy, t->item, t->n) == 0 ? copy : NULL;
}

/* --- records */

static const char suffix[] = ".msg";

bool
acc_is_msg(struct acc_str key)
{
	return acc_str_ends(key, suffix);
}

static void
msg_key(char *out, size_t size, const char *prefix, const char *key)
{
	snprintf(out, size, "%s%s%s", prefix, key, suffix);
}

int
acc_put_said(struct acc_rec *r, const char *prefix, const char *key, const struct acc_arena *m,
	const char *text)
{
	char name[96];
	int rc = acc_put(r, prefix, key, acc_ctext(text));
	const struct text *t = text == NULL ? NULL : known(m, text, strlen(text));
	msg_key(name, sizeof name, "", key);
	if (rc == 0 && t != NULL)
		rc = acc_put(r, prefix, name, acc_texts(t->item, t->n));
	else if (rc == 0 && text != NULL && strchr(text, '%') == NULL &&
		 acc_message_find(acc_str(text)) != NULL) {
		struct acc_arena mem = {0};
		const struct acc_str item = acc_str_made(acc_arena_printf(&mem, "%%%s", text));
		rc = acc_put(r, prefix, name, acc_texts(&item, 1));
		acc_arena_release(&mem);
	}
	return rc;
}

const char *
acc_got_said(struct acc_arena *m, const struct acc_rec *r, const char *prefix, const char *key)
{
	char name[96];
	struct acc_str s;
	if (!acc_as_text(acc_get(r, prefix, key), &s))
		return NULL;
	char *text = acc_arena_copy(m, s.p, s.n);
	msg_key(name, sizeof name, "", key);
	const struct acc_val *v = acc_get(r, prefix, name);
	if (text == NULL || v == NULL || v->type != ACC_V_TEXTS || v->n == 0)
		return text;
	return keep(m, text, v->texts, v->n) < 0 ? NULL : text;
}

/* Texts that are one of the catalogue's whole, and have no message. */
static bool
is_reason(struct acc_str key)
{
	return acc_str_ends(key, ".skip") || acc_str_ends(key, ".cause") ||
	       acc_str_is(key, "why") || acc_str_is(key, "limit_from");
}

/* A list of reasons, each by itself; their messages stand one behind the other. */
static struct acc_val
words(const struct acc_val *v, const struct acc_val *msg, struct acc_arena *mem)
{
	struct acc_str *s = acc_alloc(mem, v->n * sizeof *s);
	uint32_t at = 0, n = msg != NULL && msg->type == ACC_V_TEXTS ? msg->n : 0;
	for (uint32_t i = 0; s != NULL && i < v->n; i++) {
		struct acc_buf b = {0};
		const uint32_t items = at < n ? acc_message_items(msg->texts + at, n - at)
					      : UINT32_MAX;
		s[i] = word(mem, v->texts[i]);
		if (items == UINT32_MAX)
			n = 0;
		else if (acc_message_show(msg->texts + at, items, &b))
			s[i] = (struct acc_str){acc_arena_copy(mem, b.p, b.n), (uint32_t)b.n};
		at += items == UINT32_MAX ? 0 : items;
		acc_buf_release(&b);
	}
	return s == NULL ? *v : acc_texts(s, v->n);
}

/* The text of this field as people read it; p is NULL: as it is, or memory ran out (mem->lost). */
static struct acc_str
shown(const struct acc_rec *r, const struct acc_field *f, struct acc_arena *mem)
{
	char name[96];
	struct acc_buf b = {0};
	struct acc_str s = {NULL, 0};
	if (!chinese || f->v.type != ACC_V_TEXT || f->key.n >= sizeof name - sizeof suffix)
		return s;
	snprintf(name, sizeof name, "%.*s%s", ACC_PRS(f->key), suffix);
	const struct acc_val *v = acc_get(r, "", name);
	if (v != NULL && v->type == ACC_V_TEXTS && acc_message_show(v->texts, v->n, &b))
		s = (struct acc_str){acc_arena_copy(mem, b.p, b.n), (uint32_t)b.n};
	else if (v == NULL && is_reason(f->key))
		s = word(mem, f->v.s);
	acc_buf_release(&b);
	return s;
}

/* The message of a field; NULL: it has none. */
static const struct acc_val *
message_of(const struct acc_rec *r, struct acc_str key)
{
	char name[96];
	if (key.n >= sizeof name - sizeof suffix)
		return NULL;
	snprintf(name, sizeof name, "%.*s%s", ACC_PRS(key), suffix);
	return acc_get(r, "", name);
}

int
acc_rec_said(const struct acc_rec *r, struct acc_rec *room, const struct acc_rec **out)
{
	bool any = false;
	*out = r;
	for (uint32_t i = 0; i < r->n && !any; i++)
		any = acc_is_msg(r->f[i].key) || (chinese && is_reason(r->f[i].key));
	if (!any)
		return 0;
	int rc = acc_rec_start(room, r->kind);
	for (uint32_t i = 0; i < r->n && rc == 0; i++) {
		struct acc_field f = r->f[i];
		if (acc_is_msg(f.key))
			continue;
		const struct acc_str s = shown(r, &f, &room->mem);
		if (s.p != NULL)
			f = (struct acc_field){.key = f.key, .v = acc_text(s)};
		else if (chinese && f.v.type == ACC_V_TEXTS && is_reason(f.key))
			f = (struct acc_field){.key = f.key,
				.v = words(&f.v, message_of(r, f.key), &room->mem)};
		rc = acc_rec_push(room, &f);
	}
	*out = room;
	return rc == 0 && room->mem.lost ? ACC_ENOMEM : rc;
}
