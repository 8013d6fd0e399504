/* The filter: all records are kept, calls are found among them and run by threads, and the
 * records come out with what the whole dump says about each. */
#include "acc/recorder.h"
#include "acc/say.h"
#include "replay/impl.h"
#include "audit/data_records.h"
#include "ranks/fleet.h"

#include <stdlib.h>
#include <unistd.h>

enum { MAX_THREADS = 16, QUEUE = 64, ROOM = 4 << 20 };
/* Calls run at once while their tensors need no more than this, as doubles; one that is looked at
 * in parts, as it is read or as it is stored, needs but a part of it. */
#define BUDGET ((uint64_t)256 << 20)
#define PART ((uint64_t)32 << 20)

struct span { /* the records of a call stand together */
	size_t first, n;
	bool backward;
	bool again; /* after a backward call of the same op call whose gradients want one themselves */
};

struct acc_audit {
	bool positional; /* see struct acc_audit_job */
	struct acc_roots *roots;
	struct acc_audit_opt opt;
	acc_audit_emit_fn *emit;
	acc_audit_trouble_fn *trouble;
	void *arg;
	struct acc_spool *spool;
	struct acc_buf at;      /* of uint64_t: the records' handles */
	struct acc_buf span;    /* of struct span */
	struct acc_map forward; /* which span is the forward call of a key */
	struct acc_map graphs; /* keys whose backward call has gradients that want one themselves */
	struct acc_buf key;    /* of the call that records are coming of */
	struct acc_data_records *data;
	/* the run */
	pthread_mutex_t lock, files;
	pthread_cond_t more, room;
	struct acc_audit_job *queue[QUEUE];
	size_t head, tail;
	uint64_t busy; /* bytes of the jobs that run or wait */
	bool closed;
	struct acc_err err; /* the first failure of a thread */
	struct acc_audited *result;
	size_t nresult, cap_result;
	struct acc_arena mem; /* of what results point to */
};

struct acc_audit *
acc_audit_open(struct acc_roots *roots, const struct acc_audit_opt *opt, acc_audit_emit_fn *emit,
	acc_audit_trouble_fn *trouble, void *arg, struct acc_err *e)
{
	struct acc_audit *a = calloc(1, sizeof *a);
	if (a == NULL) {
		acc_nomem(e);
		return NULL;
	}
	a->roots = roots;
	a->opt = *opt;
	a->emit = emit;
	a->trouble = trouble;
	a->arg = arg;
	pthread_mutex_init(&a->lock, NULL);
	pthread_mutex_init(&a->files, NULL);
	pthread_cond_init(&a->more, NULL);
	pthread_cond_init(&a->room, NULL);
	a->spool = acc_spool_open(opt->tmpdir, e);
	a->data = a->spool == NULL ? NULL : acc_data_open(opt->tmpdir, roots, e);
	if (a->data == NULL) {
		acc_audit_close(a);
		return NULL;
	}
	return a;
}

void
acc_audit_close(struct acc_audit *a)
{
	if (a == NULL)
		return;
	acc_spool_close(a->spool);
	acc_data_close(a->data);
	acc_buf_release(&a->at);
	acc_buf_release(&a->span);
	acc_buf_release(&a->key);
	acc_map_release(&a->forward);
	acc_map_release(&a->graphs);
	acc_arena_release(&a->mem);
	pthread_mutex_destroy(&a->lock);
	pthread_mutex_destroy(&a->files);
	pthread_cond_destroy(&a->more);
	pthread_cond_destroy(&a->room);
	free(a->result);
	free(a);
}

/* --- which records are a call --- */

static size_t
records(const struct acc_audit *a)
{
	return a->at.n / sizeof(uint64_t);
}

static struct span *
spans(const struct acc_audit *a, size_t *n)
{
	*n = a->span.n / sizeof(struct span);
	return (struct span *)(void *)a->span.p;
}

/* What tells calls apart; and, with the pass left out, what a backward call shares with its
 * forward call. */
static int
key_of(const struct acc_rec *r, bool pass, struct acc_buf *out)
{
	static const char *const texts[] = {"src", "op"};
	static const char *const ints[] = {"step", "rank", "proc", "call"};
	int rc = 0;
	out->n = 0;
	for (size_t i = 0; i < 2 && rc == 0; i++) {
		struct acc_str s = acc_get_text(r, "", texts[i]);
		rc = acc_buf_add(out, s.p, s.n);
		if (rc == 0)
			rc = acc_buf_add(out, "", 1);
	}
	for (size_t i = 0; i < 4 && rc == 0; i++) {
		int64_t v = acc_get_int(r, "", ints[i], INT64_MIN);
		rc = acc_buf_add(out, &v, sizeof v);
	}
	if (rc == 0 && pass) {
		struct acc_str s = acc_get_text(r, "", "key");
		rc = acc_buf_add(out, s.p, s.n);
	}
	return rc;
}

static int
start(struct acc_audit *a, const struct acc_rec *r, bool backward)
{
	struct acc_buf key = {0};
	struct span s = {.first = records(a), .backward = backward};
	size_t n;
	spans(a, &n);
	int rc = key_of(r, false, &key);
	struct acc_str k = {(const char *)key.p, (uint32_t)key.n};
	s.again = rc == 0 && backward && acc_map_get(&a->graphs, k) != NULL;
	uint64_t *at = rc == 0 && !backward ? acc_map_put(&a->forward, k, n) : NULL;
	if (at != NULL)
		*at = n;
	else if (rc == 0 && !backward)
		rc = ACC_ENOMEM;
	acc_buf_release(&key);
	return rc < 0 ? rc : acc_buf_add(&a->span, &s, sizeof s);
}

/* A gradient that has a graph: what is made of it has a gradient in this op call's operands, too. */
static int
note_graph(struct acc_audit *a, const struct acc_rec *r)
{
	struct acc_buf key = {0};
	bool wants = false;
	if (!acc_as_bool(acc_get(r, "", "requires_grad"), &wants) || !wants ||
		!acc_str_is(acc_get_text(r, "", "io"), "out"))
		return 0;
	int rc = key_of(r, false, &key);
	struct acc_str k = {(const char *)key.p, (uint32_t)key.n};
	if (rc == 0 && acc_map_put(&a->graphs, k, 1) == NULL)
		rc = ACC_ENOMEM;
	acc_buf_release(&key);
	return rc;
}

/* Does the record belong to a forward or backward call? */
static int
sort(struct acc_audit *a, const struct acc_rec *r)
{
	struct acc_str pass = acc_get_text(r, "", "pass");
	bool backward = acc_str_is(pass, "backward");
	struct acc_buf key = {0};
	int rc = 0;
	size_t n;
	bool call = (acc_rec_is(r, "tensor") || acc_rec_is(r, "arg")) &&
		    (backward || acc_str_is(pass, "forward"));
	if (call)
		rc = key_of(r, true, &key);
	if (rc < 0)
		return rc;
	struct span *s = spans(a, &n);
	bool same = call && n > 0 && key.n == a->key.n && memcmp(key.p, a->key.p, key.n) == 0 &&
		    s[n - 1].first + s[n - 1].n == records(a);
	acc_buf_release(&a->key);
	a->key = key;
	if (call && !same)
		rc = start(a, r, backward);
	if (rc == 0 && call) {
		s = spans(a, &n);
		s[n - 1].n++;
	}
	return rc == 0 && call && backward ? note_graph(a, r) : rc;
}

int
acc_audit_put(struct acc_audit *a, const struct acc_rec *r, struct acc_err *e)
{
	uint64_t at;
	int rc = 0;
	if (acc_rec_is(r, "source"))
		a->positional |= acc_recorder_of(acc_get_text(r, "", "format"))->positional;
	if (acc_rec_is(r, "source"))
		rc = acc_roots_add(a->roots, r, e);
	else if (acc_rec_is(r, "data"))
		return acc_data_take(a->data, r, e);
	else if (sort(a, r) < 0)
		return acc_nomem(e);
	if (rc == 0)
		rc = acc_spool_put(a->spool, r, &at, e);
	if (rc == 0 && acc_buf_add(&a->at, &at, sizeof at) < 0)
		return acc_nomem(e);
	return rc;
}

static int
get(struct acc_audit *a, size_t line, struct acc_rec **r, struct acc_err *e)
{
	uint64_t at;
	memcpy(&at, a->at.p + line * sizeof at, sizeof at);
	int rc = acc_spool_get(a->spool, at, r, e);
	return rc < 0 ? rc : 0;
}

/* --- running them --- */

static int
take(struct acc_audit *a, const struct span *s, struct acc_audit_job *j, bool of_forward,
	struct acc_err *e)
{
	struct acc_rec *r;
	int rc = 0;
	for (size_t i = 0; i < s->n && rc == 0; i++) {
		rc = get(a, s->first + i, &r, e);
		if (rc < 0)
			break;
		if (i == 0 && j->op.p == NULL) {
			struct acc_str op = acc_get_text(r, "", "op");
			j->op = acc_arena_str(&j->mem, op);
			if (j->op.p == NULL)
				return acc_nomem(e);
		}
		rc = acc_data_refer(a->data, r, e);
		if (rc == 0)
			rc = acc_audit_job_take(j, r, s->first + i, of_forward, e);
	}
	return rc;
}

static void
drop(struct acc_audit_job *j)
{
	if (j != NULL) {
		acc_arena_release(&j->mem);
		free(j->result);
		free(j->tally);
	}
	free(j);
}

static int
count(void *arg, struct acc_held *h)
{
	(void)h;
	(*(uint32_t *)arg)++;
	return 0;
}

static struct acc_audit_job *
make(struct acc_audit *a, struct span *s, struct acc_err *e)
{
	struct acc_audit_job *j = calloc(1, sizeof *j);
	struct acc_rec *r;
	if (j == NULL) {
		acc_nomem(e);
		return NULL;
	}
	j->backward = s->backward;
	j->again = s->again;
	j->positional = a->positional;
	int rc = take(a, s, j, !s->backward, e);
	if (rc == 0 && s->backward && (rc = get(a, s->first, &r, e)) == 0) {
		struct acc_buf key = {0};
		size_t n;
		if (key_of(r, false, &key) < 0)
			rc = acc_nomem(e);
		const uint64_t *at = rc < 0 ? NULL
					    : acc_map_get(&a->forward,
						      (struct acc_str){(const char *)key.p,
							      (uint32_t)key.n});
		acc_buf_release(&key);
		const struct span *all = spans(a, &n);
		if (at != NULL)
			rc = take(a, &all[*at], j, true, e);
	}
	const struct acc_pass_of *p = s->backward ? &j->bwd : &j->fwd;
	acc_each_held(p->out, p->nout, count, &j->nresult);
	if (rc == 0) {
		j->result = calloc(j->nresult + 1, sizeof *j->result);
		j->tally = calloc(j->nresult + 1, sizeof *j->tally);
		if (j->result == NULL || j->tally == NULL)
			rc = acc_nomem(e);
	}
	if (rc == 0)
		return j;
	drop(j);
	return NULL;
}

static char *
lasting(struct acc_audit *a, const struct acc_audit_job *j, const char *s)
{
	static char none[] = ACC_NOMEM_TEXT;
	char *p = s == NULL ? NULL : acc_say_copy(&a->mem, &j->mem, s);
	return s == NULL ? NULL : p == NULL ? none : p;
}

/* With the lock held: the results go to their places. */
static void
finish(struct acc_audit *a, struct acc_audit_job *j, size_t at)
{
	for (uint32_t k = 0; k < j->nresult; k++) {
		struct acc_audited *v = &a->result[at + k];
		*v = j->result[k];
		v->call = at;
		v->compared = a->opt.compared;
		v->skip = lasting(a, j, v->skip);
		v->cause = lasting(a, j, v->cause);
		/* A cause that could not be kept: as if nothing had been found out. */
		if (v->cause != NULL && strcmp(v->cause, ACC_NOMEM_TEXT) == 0)
			v->skip = v->cause;
		bool nomem = v->skip != NULL && strcmp(v->skip, ACC_NOMEM_TEXT) == 0;
		v->unread = v->skip != NULL && (j->unread || nomem);
		v->fault = v->unread && (j->fault || nomem);
	}
	a->busy -= j->need;
	drop(j);
	pthread_cond_broadcast(&a->room);
}

static struct acc_reader
reader_new(struct acc_audit *a)
{
	struct acc_reader reader = {a->roots, &a->files, malloc((size_t)ACC_CHUNK * 16), {0}, {0},
		acc_memos_new(), a->opt.all};
	/* One piece of memory for all parts. */
	acc_alloc(&reader.room, ROOM);
	acc_arena_reset(&reader.room);
	return reader;
}

static void
reader_free(struct acc_reader *reader)
{
	acc_arena_release(&reader->room);
	acc_buf_release(&reader->raw);
	acc_memos_free(reader->memos);
	free(reader->scratch);
}

/* With the lock held: do the next job, where there is one. */
static bool
serve(struct acc_audit *a, struct acc_reader *reader)
{
	if (a->head == a->tail)
		return false;
	struct acc_audit_job *j = a->queue[a->head++ % QUEUE];
	pthread_mutex_unlock(&a->lock);
	j->reader = reader;
	if (reader->scratch == NULL || reader->memos == NULL)
		j->bad = ACC_NOMEM_TEXT;
	acc_audit_job_run(j);
	pthread_mutex_lock(&a->lock);
	finish(a, j, j->at);
	return true;
}

static void *
work(void *arg)
{
	struct acc_audit *a = arg;
	struct acc_reader reader = reader_new(a);
	pthread_mutex_lock(&a->lock);
	while (serve(a, &reader) || !a->closed)
		if (a->head == a->tail && !a->closed)
			pthread_cond_wait(&a->more, &a->lock);
	pthread_mutex_unlock(&a->lock);
	reader_free(&reader);
	return NULL;
}

/* What of its tensors will be in memory. */
static uint64_t
need(const struct acc_audit_job *j)
{
	const struct acc_op *op = j->bytes <= PART ? NULL : acc_op_of_call(j);
	bool some = op != NULL && (op->cut != NULL || op->streams || op->views || op->rows);
	return some ? PART : j->bytes;
}

static uint64_t
budget(const struct acc_audit *a)
{
	return a->opt.room > 0 && a->opt.room < BUDGET ? a->opt.room : BUDGET;
}

/* With the lock held: places for the results, in the order of the records. */
static int
submit(struct acc_audit *a, struct acc_audit_job *j)
{
	while (a->tail - a->head == QUEUE || (a->busy > 0 && a->busy + j->need > budget(a)))
		pthread_cond_wait(&a->room, &a->lock);
	j->at = a->nresult;
	struct acc_audited *p = acc_grow(a->result, &a->cap_result, a->nresult + j->nresult,
		sizeof *p, NULL);
	if (p == NULL && j->nresult > 0)
		return ACC_ENOMEM;
	a->result = p;
	for (uint32_t k = 0; k < j->nresult; k++)
		p[a->nresult++] = (struct acc_audited){.skip = ACC_NOMEM_TEXT};
	a->busy += j->need;
	a->queue[a->tail++ % QUEUE] = j;
	pthread_cond_signal(&a->more);
	return 0;
}

static int
run(struct acc_audit *a, struct acc_err *e)
{
	pthread_t thread[MAX_THREADS];
	long cpus = sysconf(_SC_NPROCESSORS_ONLN);
	unsigned want = a->opt.threads > 0 ? a->opt.threads : cpus > 0 ? (unsigned)cpus : 1;
	unsigned started = 0;
	size_t n;
	int rc = 0;
	want = want > MAX_THREADS ? MAX_THREADS : want;
	while (started < want && pthread_create(&thread[started], NULL, work, a) == 0)
		started++;
	struct acc_reader own = {0}; /* where no thread could be started */
	if (started == 0)
		own = reader_new(a);
	struct span *s = spans(a, &n);
	for (size_t i = 0; i < n && rc == 0; i++) {
		struct acc_audit_job *j = make(a, &s[i], e);
		if (j == NULL) {
			rc = ACC_ENOMEM;
			break;
		}
		j->need = need(j);
		if (a->opt.room > 0 && j->need > a->opt.room)
			j->bad = "it is too large to be recomputed here: use accaudit";
		pthread_mutex_lock(&a->lock);
		rc = submit(a, j);
		while (started == 0 && serve(a, &own))
			;
		pthread_mutex_unlock(&a->lock);
	}
	pthread_mutex_lock(&a->lock);
	a->closed = true;
	pthread_cond_broadcast(&a->more);
	pthread_mutex_unlock(&a->lock);
	for (unsigned i = 0; i < started; i++)
		pthread_join(thread[i], NULL);
	if (started == 0)
		reader_free(&own);
	return rc < 0 ? acc_rec_fail(e, rc) : 0;
}

/* --- what comes of it --- */

static int
annotate(struct acc_rec *r, const struct acc_audit *a, const struct acc_audited *v)
{
	int rc = 0;
	if (v->skip != NULL)
		return acc_put(r, "", "audit.skip", acc_ctext(v->skip));
	rc |= acc_put(r, "", "audit.ok", acc_bool(acc_audited_good(v)));
	rc |= acc_put(r, "", "audit.err", acc_f64(v->rms));
	rc |= acc_put(r, "", "audit.err_max", acc_f64(v->max));
	rc |= acc_put(r, "", "audit.limit", acc_f64(v->limit));
	rc |= acc_put(r, "", "audit.limit_max", acc_f64(v->limit_max));
	if (v->slope.slope > v->slope.limit) {
		rc |= acc_put(r, "", "audit.slope", acc_f64(v->slope.slope));
		rc |= acc_put(r, "", "audit.limit_slope", acc_f64(v->slope.limit));
	}
	if (v->form != NULL)
		rc |= acc_put(r, "", "audit.form", acc_ctext(v->form));
	if (v->part < 1)
		rc |= acc_put(r, "", "audit.part", acc_f64(v->part));
	if (v->left.n > 0)
		rc |= acc_put(r, "", "audit.left", acc_uint(v->left.n));
	if (v->left.open > 0)
		rc |= acc_put(r, "", "audit.open", acc_uint(v->left.open));
	if (v->cause != NULL && !acc_audited_good(v))
		rc |= acc_put_said(r, "", "audit.cause", &a->mem, v->cause);
	return rc;
}

/* What the ranks say of a record is put where nothing was found without them. */
static int
annotate_rank(struct acc_rec *r, const struct acc_arena *m, const struct acc_fleet_verdict *v)
{
	int rc = 0;
	if (v->skip != NULL)
		return acc_put(r, "", "audit.skip", acc_ctext(v->skip));
	rc |= acc_put(r, "", "audit.ok", acc_bool(v->said == NULL));
	rc |= acc_put(r, "", "audit.err", acc_f64(v->rms));
	rc |= acc_put(r, "", "audit.err_max", acc_f64(v->max));
	rc |= acc_put(r, "", "audit.limit", acc_f64(v->limit));
	rc |= acc_put(r, "", "audit.limit_max", acc_f64(v->limit));
	if (v->said != NULL) {
		rc |= acc_put_said(r, "", "audit.cause", m, v->said);
		rc |= acc_put(r, "", "audit.rule", acc_ctext(acc_rank_rules[v->rule].id));
	}
	rc |= acc_put(r, "", "audit.ranks", acc_ctext(v->who));
	return rc;
}

static void
report(struct acc_audit *a, const struct acc_rec *r, const struct acc_audited *v)
{
	struct acc_err e = {0};
	char where[200];
	struct acc_str name = acc_get_text(r, "", "name");
	/* Of what is compared, what is not there was said when it was measured. */
	if (!v->unread || (v->compared && !v->fault))
		return;
	snprintf(where, sizeof where, "%.*s", ACC_PRS(name));
	acc_fail(&e, ACC_EIO, "not audited: %s", v->skip);
	acc_err_in(&e, where);
	a->trouble(a->arg, &e);
}

static int
get_whole(void *arg, size_t line, struct acc_rec **r, struct acc_err *e)
{
	struct acc_audit *a = arg;
	int rc = get(a, line, r, e);
	return rc < 0 ? rc : acc_data_refer(a->data, *r, e);
}

/* What the ranks of the side say of each other. Of what is compared, some calls alone are here. */
static int
compare_ranks(struct acc_audit *a, struct acc_fleet *f, struct acc_err *e)
{
	size_t n;
	const struct span *s = spans(a, &n);
	int rc = acc_fleet_open(f, a->roots, get_whole, a, e);
	f->use = a->opt.rule_use;
	for (size_t i = 0; i < n && rc == 0 && !a->opt.compared; i++)
		rc = acc_fleet_add(f, s[i].first, s[i].n, s[i].backward, e);
	return rc == 0 ? acc_fleet_judge(f, e) : rc;
}

/* What was switched off, or left out where groups contradict the ranks: a finding. */
static int
put_left_out(struct acc_audit *a, struct acc_fleet *f, struct acc_err *e)
{
	const char *text = acc_fleet_left_out(f, e);
	struct acc_rec r = {0};
	if (text == NULL)
		return ACC_ENOMEM;
	if (text[0] == '\0')
		return 0;
	int rc = acc_rec_start(&r, ACC_STR("finding"));
	rc |= acc_add(&r, "", "what", acc_ctext("audit"));
	rc |= acc_add(&r, "", "rule", acc_ctext("rules"));
	rc |= acc_put_said(&r, "", "text", &f->mem, acc_say(&f->mem, "rules over ranks: %s", text));
	rc = rc < 0 ? acc_nomem(e) : a->emit(a->arg, &r);
	acc_rec_release(&r);
	return rc;
}

static int
put_out(struct acc_audit *a, struct acc_fleet *f, struct acc_err *e)
{
	struct acc_rec *r;
	size_t k = 0;
	int rc = 0;
	for (size_t i = 0; i < records(a) && rc == 0; i++) {
		const struct acc_fleet_verdict *v = acc_fleet_at(f, i);
		const struct acc_audited *own = NULL;
		rc = get(a, i, &r, e);
		if (rc == 0 && k < a->nresult && a->result[k].line == i)
			own = &a->result[k++];
		bool bad = own != NULL && own->skip == NULL && !acc_audited_good(own);
		if (rc == 0 && v != NULL && !bad) {
			rc = annotate_rank(r, &f->mem, v);
		} else if (rc == 0 && own != NULL) {
			report(a, r, own);
			rc = annotate(r, a, own);
		}
		const struct acc_fleet_doubt *doubt = rc == 0 ? acc_fleet_doubted(f, i) : NULL;
		if (doubt != NULL)
			rc = acc_put_said(r, "", "audit.doubt", &f->mem, doubt->said);
		if (rc == 0 && doubt != NULL && acc_get(r, "", "audit.rule") == NULL)
			rc = acc_put(r, "", "audit.rule",
				acc_ctext(acc_rank_rules[doubt->rule].id));
		if (rc == 0)
			rc = a->emit(a->arg, r);
	}
	if (rc == 0)
		rc = put_left_out(a, f, e);
	return rc < 0 ? rc : acc_data_emit(a->data, a->emit, a->arg, e);
}

int
acc_audit_end(struct acc_audit *a, struct acc_err *e)
{
	struct acc_fleet f = {0};
	int rc = run(a, e);
	if (rc < 0)
		return rc;
	if (acc_limits(a->result, a->nresult) < 0)
		return acc_nomem(e);
	rc = compare_ranks(a, &f, e);
	if (rc == 0)
		rc = put_out(a, &f, e);
	acc_fleet_close(&f);
	return rc;
}
