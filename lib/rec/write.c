/* The writer: messages become records. */
#include <signal.h>
#include <stdlib.h>

#include "acc/kernel.h"
#include "acc/stream.h"
#include "io/crc.h"
#include "rec/deflate.h"
#include "rec/few.h"
#include "rec/rec.h"

struct writer {
	struct acc_recording *r;
	struct sink *s;
	struct acc_rec rec;
	struct acc_buf body; /* of the message */
	struct acc_buf call; /* strings of the op call that items belong to */
	struct msg at;       /* that op call */
	const char *str[CALL_N];
	char key[1024], stack[17];
	int64_t step;
	/* Of the tensor that is being taken: */
	uint8_t *chunk; /* ACC_CHUNK elements of any dtype */
	size_t nchunk;
	struct acc_one one;
	struct few few;
	double *doubles; /* ACC_CHUNK of them, for few */
	uint32_t crc;
	struct deflate zip; /* where the recording is compressed */
	struct acc_err e;
};

void
acc_rec_failed(struct acc_recording *r, const struct acc_err *e)
{
	pthread_mutex_lock(&r->said);
	if (!r->failed) {
		r->failed = true;
		r->e = *e;
		acc_err_text(e, r->text, sizeof r->text);
	}
	pthread_mutex_unlock(&r->said);
}

/* Take n bytes out of the queue. */
static int
take(struct writer *w, struct acc_buf *into, size_t n)
{
	const uint8_t *p;
	into->n = 0;
	if (acc_buf_reserve(into, n + 1) < 0)
		return acc_nomem(&w->e);
	while (into->n < n) {
		size_t k = acc_queue_get(&w->r->q, n - into->n, &p);
		acc_buf_add(into, p, k);
		acc_queue_done(&w->r->q, k);
	}
	return 0;
}

/* The strings of a message, one after the other in b. */
static const char *
strings(const struct msg *m, const uint8_t *b, const char **str)
{
	const char *p = (const char *)b;
	for (int i = 0; i < MSG_STRINGS; i++) {
		str[i] = m->has >> i & 1 ? p : NULL;
		p += m->len[i];
	}
	return p;
}

static void
put_text(struct acc_rec *r, const char *key, const char *text)
{
	if (text != NULL)
		acc_add(r, "", key, acc_ctext(text));
}

/* What the recorders call it in the name of a tensor. */
static const char *
io_word(const char *io)
{
	static const char *const word[][2] = {{"in", "input"}, {"kw", "kwargs"}, {"out", "output"},
		{"param", "parameters"}};
	for (size_t i = 0; i < sizeof word / sizeof *word; i++)
		if (strcmp(io, word[i][0]) == 0)
			return word[i][1];
	return io;
}

/* Which op call a record is of. */
static void
put_call(struct writer *w)
{
	struct acc_rec *r = &w->rec;
	acc_add(r, "", "key", acc_ctext(w->key));
	put_text(r, "op", w->str[CALL_OP]);
	if (w->at.i >= 0)
		acc_add(r, "", "call", acc_int(w->at.i));
	put_text(r, "pass", w->str[CALL_PASS]);
	put_text(r, "scope", w->str[CALL_SCOPE]);
	if (w->at.stack != 0)
		put_text(r, "stack", w->stack);
	put_text(r, "stack_from", w->str[CALL_STACK_FROM]);
	if (w->at.recompute)
		acc_add(r, "", "recompute", acc_bool(true));
}

static void
put_place(struct writer *w, const char *io, const char *pos)
{
	struct acc_rec *r = &w->rec;
	const bool grad = strcmp(io, "grad") == 0; /* the key says it */
	char *name = acc_arena_printf(&r->mem, "%s%s%s.%s", w->key, grad ? "" : ".",
		grad ? "" : io_word(io), pos);
	acc_add(r, "", "name", acc_text(acc_str_made(name)));
	put_call(w);
	put_text(r, "io", io);
	put_text(r, "pos", pos);
}

static void
put_origin(struct writer *w)
{
	acc_add(&w->rec, "", "src", acc_ctext(w->s->src));
	acc_add(&w->rec, "", "seq", acc_uint(w->s->seq));
	acc_add(&w->rec, "", "step", acc_int(w->step));
	if (w->s->rank >= 0)
		acc_add(&w->rec, "", "rank", acc_int(w->s->rank));
}

static void
put_record(struct writer *w)
{
	if (w->e.code != 0)
		return;
	put_origin(w);
	if (w->rec.lost)
		acc_nomem(&w->e);
	else
		acc_sink_put(w->s, &w->rec, &w->e);
	w->s->seq++;
}

/* An op call of which nothing was recorded but that it was there. */
static void
write_call(struct writer *w)
{
	acc_rec_start(&w->rec, ACC_STR("call"));
	acc_add(&w->rec, "", "name", acc_ctext(w->key));
	put_call(w);
	put_record(w);
}

static void
begin_call(struct writer *w, const struct msg *m)
{
	if (take(w, &w->call, m->bytes) < 0)
		return;
	w->at = *m;
	strings(m, w->call.p, w->str);
	const char *op = w->str[CALL_OP], *pass = w->str[CALL_PASS];
	if (w->str[CALL_KEY] != NULL)
		snprintf(w->key, sizeof w->key, "%s", w->str[CALL_KEY]);
	else if (m->i < 0)
		snprintf(w->key, sizeof w->key, "%s.%s", op, pass);
	else if (strncmp(op, "Module.", 7) == 0)
		snprintf(w->key, sizeof w->key, "%s.%s.%lld", op, pass, (long long)m->i);
	else
		snprintf(w->key, sizeof w->key, "%s.%lld.%s", op, (long long)m->i, pass);
	acc_hex16(m->stack, w->stack);
	if (m->n == 0)
		write_call(w);
}

static void
write_arg(struct writer *w, const struct msg *m, const char *const *str, const int64_t *ints)
{
	static const char *const cls[] = {"torch.Tensor", "None", "bool", "int", "float", "str",
		"list"};
	const struct acc_val value[] = {acc_nil(), acc_nil(), acc_bool(m->i != 0), acc_int(m->i),
		acc_f64(m->f), acc_ctext(str[ITEM_TEXT]), acc_ints(ints, m->n)};
	acc_rec_start(&w->rec, ACC_STR("arg"));
	put_place(w, str[ITEM_IO], str[ITEM_POS]);
	put_text(&w->rec, "type", str[ITEM_CLS] != NULL ? str[ITEM_CLS] : cls[m->type]);
	acc_add(&w->rec, "", "value", value[m->type]);
	put_record(w);
}

static void
measure_chunk(struct writer *w, const struct msg *m)
{
	const enum acc_dtype dtype = (enum acc_dtype)m->dtype;
	const size_t n = w->nchunk / acc_dtype_of(dtype)->size;
	struct acc_one one;
	acc_kernel_one(dtype, w->chunk, n, &one);
	acc_one_merge(&w->one, &one);
	if (m->detail == ACC_REC_FEW && acc_dtype_of(dtype)->cls != 'C')
		acc_few_take(&w->few, dtype, w->chunk, n, w->doubles);
	w->nchunk = 0;
}

/* Statistics are taken of whole chunks of elements. */
static void
measure(struct writer *w, const struct msg *m, const uint8_t *p, size_t n)
{
	const size_t size = acc_dtype_of(m->dtype)->size, full = size * ACC_CHUNK;
	while (n > 0) {
		size_t k = full - w->nchunk < n ? full - w->nchunk : n;
		memcpy(w->chunk + w->nchunk, p, k);
		w->nchunk += k;
		p += k;
		n -= k;
		if (w->nchunk == full)
			measure_chunk(w, m);
	}
}

static void
take_piece(struct writer *w, const struct msg *m, const uint8_t *p, size_t n)
{
	if (w->e.code != 0)
		return;
	if (m->detail == ACC_REC_FULL || m->detail == ACC_REC_HASH)
		w->crc = acc_crc32(w->crc, p, n);
	if (m->detail == ACC_REC_FULL && w->zip.out != NULL)
		acc_deflate_bytes(&w->zip, w->s, p, n, &w->e);
	else if (m->detail == ACC_REC_FULL)
		acc_sink_bytes(w->s, p, n, &w->e);
	else if (m->detail != ACC_REC_HASH)
		measure(w, m, p, n);
}

static void
take_elements(struct writer *w, const struct msg *m)
{
	enum { PIECE = 1 << 18 };
	const uint8_t *p = m->stays;
	for (uint64_t left = m->bytes; left > 0;) {
		size_t n = left < PIECE ? (size_t)left : PIECE;
		if (m->stays == NULL)
			n = acc_queue_get(&w->r->q, n, &p);
		take_piece(w, m, p, n);
		if (m->stays == NULL)
			acc_queue_done(&w->r->q, n);
		else
			p += n;
		left -= n;
	}
}

/* The elements that a record will refer to: where they are, and in how many bytes. */
static struct same_stored
store(struct writer *w, const struct msg *m)
{
	struct same_stored at = {0, m->bytes, 0};
	if (m->again)
		return w->r->same.stored[m->place];
	if (w->e.code == 0)
		acc_sink_begin(w->s, m->bytes, &at.off, &w->e);
	if (w->zip.out != NULL && w->e.code == 0)
		acc_deflate_begin(&w->zip, &w->e);
	take_elements(w, m);
	if (w->zip.out != NULL && w->e.code == 0)
		acc_deflate_end(&w->zip, w->s, &at.len, &w->e);
	at.crc = w->crc;
	if (m->place < SAME_PLACES)
		w->r->same.stored[m->place] = at;
	return at;
}

static void
put_statistics(struct writer *w, const struct msg *m, uint64_t count)
{
	measure_chunk(w, m);
	acc_stat_put(&w->rec, (enum acc_dtype)m->dtype, m->n, count, &w->one);
	if (m->detail == ACC_REC_FEW && acc_dtype_of(m->dtype)->cls != 'C')
		acc_few_put(&w->few, &w->rec);
}

static void
put_elements(struct writer *w, const struct msg *m, uint64_t count, struct same_stored at)
{
	char hex[9];
	if (m->detail == ACC_REC_STATISTICS || m->detail == ACC_REC_FEW)
		put_statistics(w, m, count);
	if (m->detail == ACC_REC_HASH) {
		snprintf(hex, sizeof hex, "%08x", w->crc);
		acc_add(&w->rec, "", "stat.crc32", acc_ctext(hex));
	}
	if (m->detail != ACC_REC_FULL)
		return;
	if (w->s->dir < 0) {
		acc_sink_keep(w->s, at.off, m->bytes, &w->e);
		return;
	}
	acc_add(&w->rec, "", "file", acc_ctext(w->s->file));
	acc_add(&w->rec, "", "off", acc_uint(at.off));
	acc_add(&w->rec, "", "len", acc_uint(m->bytes));
	/* So that a bit that turns on a disk is no fault of an operator. */
	acc_add(&w->rec, "", "crc32", acc_int(at.crc));
	if (w->zip.out != NULL) {
		acc_add(&w->rec, "", "enc", acc_ctext("deflate"));
		acc_add(&w->rec, "", "clen", acc_uint(at.len));
	}
}

static void
write_tensor(struct writer *w, const struct msg *m, const char *const *str, const int64_t *dims)
{
	struct acc_rec *r = &w->rec;
	const bool full = m->elements && m->detail == ACC_REC_FULL;
	struct same_stored at = {0};
	uint64_t count = 1;
	for (uint32_t i = 0; i < m->n; i++)
		count *= (uint64_t)dims[i];
	acc_one_init(&w->one);
	w->nchunk = 0;
	w->crc = 0;
	w->few = (struct few){0};
	if (full)
		at = store(w, m);
	else if (m->elements)
		take_elements(w, m);
	acc_rec_start(r, ACC_STR("tensor"));
	put_place(w, str[ITEM_IO], str[ITEM_POS]);
	put_text(r, "type", str[ITEM_CLS]);
	put_text(r, "dtype.raw", str[ITEM_DTYPE]);
	if (m->dtype != ACC_NODTYPE)
		put_text(r, "dtype", acc_dtype_of(m->dtype)->name);
	acc_add(r, "", "shape", acc_ints(dims, m->n));
	if (m->strided)
		acc_add(r, "", "stride.raw", acc_ints(dims + m->n, m->n));
	if (m->requires_grad >= 0)
		acc_add(r, "", "requires_grad", acc_bool(m->requires_grad != 0));
	if (m->elements && w->e.code == 0)
		put_elements(w, m, count, at);
	if (m->dropped)
		put_text(r, "err", "the elements are not recorded: the queue was full");
	put_record(w);
}

static void
write_item(struct writer *w, const struct msg *m)
{
	const char *str[MSG_STRINGS];
	size_t n = m->n * (m->strided ? 2u : 1u) * sizeof(int64_t);
	int64_t dims[2 * ACC_REC_MAXDIM];
	for (int i = 0; i < MSG_STRINGS; i++)
		n += m->len[i];
	if (take(w, &w->body, n) < 0)
		return;
	const char *rest = strings(m, w->body.p, str);
	memcpy(dims, rest, (size_t)((const char *)w->body.p + n - rest));
	if (m->type == ACC_REC_TENSOR)
		write_tensor(w, m, str, dims);
	else
		write_arg(w, m, str, dims);
}

static void
write_stack(struct writer *w, const struct msg *m)
{
	if (take(w, &w->body, m->bytes) < 0)
		return;
	struct acc_str *frame = malloc((m->n + 1) * sizeof *frame);
	const char *p = (const char *)w->body.p;
	for (uint32_t i = 0; frame != NULL && i < m->n; i++) {
		frame[i] = acc_str(p);
		p += frame[i].n + 1;
	}
	char hex[17];
	acc_hex16(m->stack, hex);
	int rc = acc_rec_start(&w->rec, ACC_STR("stack"));
	rc |= acc_add(&w->rec, "", "id", acc_ctext(hex));
	rc |= frame == NULL ? -1 : acc_add(&w->rec, "", "frames", acc_texts(frame, m->n));
	if (rc < 0)
		acc_nomem(&w->e);
	else if (w->e.code == 0)
		acc_sink_put(w->s, &w->rec, &w->e);
	free(frame);
}

static void
tell(struct writer *w, uint64_t sync)
{
	struct acc_recording *r = w->r;
	pthread_mutex_lock(&r->said);
	r->sync_done = sync;
	pthread_cond_broadcast(&r->synced);
	pthread_mutex_unlock(&r->said);
}

static void
write_msg(struct writer *w, const struct msg *m)
{
	switch (m->kind) {
	case MSG_CALL:
		begin_call(w, m);
		break;
	case MSG_ITEM:
		write_item(w, m);
		break;
	case MSG_STACK:
		write_stack(w, m);
		break;
	case MSG_STEP:
		w->step = m->i;
		if (w->e.code == 0)
			acc_sink_step(w->s, m->i, &w->e);
		break;
	default:
		break;
	}
}

void *
acc_rec_write(void *recording)
{
	struct writer w = {.r = recording};
	struct acc_buf head = {0};
	struct msg m = {.kind = MSG_SYNC};
	w.s = &w.r->sink;
	w.chunk = malloc((size_t)ACC_CHUNK * 16);
	w.doubles = malloc(ACC_CHUNK * sizeof *w.doubles);
	if (w.chunk == NULL || w.doubles == NULL)
		acc_nomem(&w.e);
	if (w.r->deflate && w.s->dir >= 0 && w.e.code == 0)
		acc_deflate_open(&w.zip, &w.e);
	while (w.e.code == 0 && m.kind != MSG_STOP && take(&w, &head, sizeof m) == 0) {
		memcpy(&m, head.p, sizeof m);
		write_msg(&w, &m);
		if (w.e.code == 0 && (m.kind == MSG_SYNC || acc_queue_empty(&w.r->q)))
			acc_sink_flush(w.s, &w.e);
		if (w.e.code == 0 && m.kind == MSG_SYNC)
			tell(&w, (uint64_t)m.i);
	}
	if (w.e.code == 0)
		acc_sink_end(w.s, w.r->dropped > 0 ? 2 : 0, &w.e);
	if (w.e.code != 0)
		acc_rec_failed(w.r, &w.e);
	acc_queue_shut(&w.r->q);
	tell(&w, UINT64_MAX);
	acc_rec_release(&w.rec);
	acc_buf_release(&w.body);
	acc_buf_release(&w.call);
	acc_buf_release(&head);
	acc_deflate_release(&w.zip);
	free(w.chunk);
	free(w.doubles);
	return NULL;
}
