/* The filter: all records are kept, calls are found among them and run by threads, and they come out with what
 * the whole dump says about each. */
#include "acc/recorder.h"
#include "acc/say.h"
#include "replay/impl.h"
#include "audit/coarse.h"
#include "audit/data_records.h"
#include "audit/spans.h"
#include "ranks/fleet.h"

#include <stdlib.h>
#include <unistd.h>

enum { MAX_THREADS = 16, QUEUE = 64, ROOM = 4 << 20 };
/* Calls run at once while their tensors need no more than this, as doubles; one that is looked at in parts, a part. */
#define BUDGET ((uint64_t)256 << 20)
#define PART ((uint64_t)32 << 20)

struct left { /* a record that nothing could be said of: why */
	size_t line;
	const char *skip;
};

struct acc_audit {
	bool positional; /* see struct acc_audit_job */
	bool kernels;    /* some are of a dump of MindSpore's */
	struct acc_roots *roots;
	struct acc_audit_opt opt;
	acc_audit_emit_fn *emit;
	acc_audit_trouble_fn *trouble;
	void *arg;
	struct acc_spool *spool;
	struct acc_buf at; /* of uint64_t: the records' handles */
	struct acc_spans calls;
	struct acc_data_records *data;
	struct acc_coarse coarse;
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
	struct left *left;
	size_t nleft, cap_left;
	struct acc_map why;   /* texts that were kept: which of left has them */
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
	acc_spans_release(&a->calls);
	acc_map_release(&a->why);
	acc_coarse_release(&a->coarse);
	acc_arena_release(&a->mem);
	pthread_mutex_destroy(&a->lock);
	pthread_mutex_destroy(&a->files);
	pthread_cond_destroy(&a->more);
	pthread_cond_destroy(&a->room);
	free(a->result);
	free(a->left);
	free(a);
}

static size_t
records(const struct acc_audit *a)
{
	return a->at.n / sizeof(uint64_t);
}

int
acc_audit_put(struct acc_audit *a, const struct acc_rec *r, struct acc_err *e)
{
	uint64_t at;
	int rc = 0;
	if (acc_rec_is(r, "source")) {
		const struct acc_str format = acc_get_text(r, "", "format");
		a->positional |= acc_recorder_of(format)->positional;
		a->kernels |= acc_str_is(format, "mindspore");
		rc = acc_roots_add(a->roots, r, e);
		rc = rc < 0 ? rc : acc_coarse_add(&a->coarse, r, e);
	} else if (acc_rec_is(r, "data"))
		return acc_data_take(a->data, r, e);
	else if (acc_spans_add(&a->calls, r, records(a)) < 0)
		return acc_nomem(e);
	if (rc == 0)
		rc = acc_spool_put(a->spool, r, &at, e);
	return rc == 0 && acc_buf_add(&a->at, &at, sizeof at) < 0 ? acc_nomem(e) : rc;
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
take(struct acc_audit *a, const struct acc_span *s, struct acc_audit_job *j, bool of_forward,
	struct acc_err *e)
{
	struct acc_rec *r;
	int rc = 0;
	for (size_t i = 0; i < s->n && rc == 0; i++) {
		rc = get(a, s->first + i, &r, e);
		if (rc < 0)
			break;
		if (i == 0 && j->op.p == NULL) {
			j->op = acc_arena_str(&j->mem, acc_get_text(r, "", "op"));
			j->coarse = acc_coarse_is(&a->coarse, r);
			if (j->op.p == NULL)
				return acc_nomem(e);
		}
		rc = acc_data_refer(a->data, r, e);
		if (rc == 0)
			rc = acc_audit_job_take(j, r, s->first + i, of_forward, e);
	}
	return rc;
}

/* What a kernel of an optimizer writes over is dumped as it is afterwards (behaviour ms-optimizer-after-update): what it was
 * is what the step before left. */
static int
take_before(struct acc_audit *a, const struct acc_span *s, struct acc_audit_job *j,
	struct acc_err *e)
{
	const struct acc_op *op = s->before == ACC_NOID || !a->kernels ? NULL : acc_op_of_call(j);
	if (op == NULL || strcmp(op->cls, "optimizer") != 0)
		return 0;
	const struct acc_span *of = &a->calls.v[s->before];
	struct acc_rec *r;
	int rc = get(a, s->first, &r, e);
	struct acc_str name = rc < 0 ? (struct acc_str){"", 0}
				     : acc_arena_str(&j->mem, acc_get_text(r, "", "name"));
	if (rc < 0 || name.p == NULL)
		return rc < 0 ? rc : acc_nomem(e);
	for (size_t i = 0; i < of->n && rc == 0; i++) {
		rc = get(a, of->first + i, &r, e);
		/* The name has the time: of several graphs the iterations' numbers need not be in order. */
		struct acc_str then = rc < 0 ? name : acc_get_text(r, "", "name");
		if (rc == 0 && i == 0 && (then.n != name.n || memcmp(then.p, name.p, name.n) >= 0))
			return 0;
		if (rc < 0 || !acc_str_is(acc_get_text(r, "", "io"), "out"))
			continue;
		if (acc_put(r, "", "io", acc_ctext("in")) < 0)
			return acc_nomem(e);
		rc = acc_data_refer(a->data, r, e);
		rc = rc < 0 ? rc : acc_audit_job_take(j, r, of->first + i, true, e);
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

static struct acc_audit_job *
make(struct acc_audit *a, const struct acc_span *s, struct acc_err *e)
{
	struct acc_audit_job *j = calloc(1, sizeof *j);
	if (j == NULL) {
		acc_nomem(e);
		return NULL;
	}
	j->backward = s->backward;
	j->again = s->again;
	j->positional = a->positional;
	int rc = take(a, s, j, !s->backward, e);
	const struct acc_span *of = rc == 0 && s->backward ? acc_spans_forward(&a->calls, s) : NULL;
	if (of != NULL)
		rc = take(a, of, j, true, e);
	if (rc == 0 && !s->backward)
		rc = take_before(a, s, j, e);
	const struct acc_pass_of *p = s->backward ? &j->bwd : &j->fwd;
	acc_each_held(p->out, p->nout, acc_count_held, &j->nresult);
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

/* With the lock held. Of an output of which nothing but why it was not audited is to be said: few reasons for many of
 * them. */
static int
leave(struct acc_audit *a, const struct acc_audit_job *j, const struct acc_audited *v)
{
	if (!ACC_ROOM(a->left, a->cap_left, a->nleft + 1, NULL))
		return ACC_ENOMEM;
	const uint64_t *at = acc_map_get(&a->why, acc_str(v->skip));
	a->left[a->nleft] = (struct left){v->line,
		at != NULL ? a->left[*at].skip : lasting(a, j, v->skip)};
	if (at == NULL && acc_map_put(&a->why, acc_str(v->skip), a->nleft) == NULL)
		return ACC_ENOMEM;
	a->nleft++;
	return 0;
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
		v->known = j->coarse ? a->coarse.profile : NULL;
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
reserve(struct acc_audit *a, struct acc_audit_job *j)
{
	j->at = a->nresult;
	struct acc_audited *p = acc_grow(a->result, &a->cap_result, a->nresult + j->nresult,
		sizeof *p, NULL);
	if (p == NULL && j->nresult > 0)
		return ACC_ENOMEM;
	a->result = p;
	for (uint32_t k = 0; k < j->nresult; k++)
		p[a->nresult++] = (struct acc_audited){.skip = ACC_NOMEM_TEXT};
	return 0;
}

/* With the lock held. */
static int
submit(struct acc_audit *a, struct acc_audit_job *j)
{
	while (a->tail - a->head == QUEUE || (a->busy > 0 && a->busy + j->need > budget(a)))
		pthread_cond_wait(&a->room, &a->lock);
	if (reserve(a, j) < 0)
		return ACC_ENOMEM;
	a->busy += j->need;
	a->queue[a->tail++ % QUEUE] = j;
	pthread_cond_signal(&a->more);
	return 0;
}

/* A call of which there is nothing to read: no thread is woken for it, nor are all its results kept. */
static int
run_empty(struct acc_audit *a, struct acc_audit_job *j, struct acc_reader *reader)
{
	bool left = true;
	int rc = 0;
	j->reader = reader;
	acc_audit_job_run(j);
	for (uint32_t k = 0; k < j->nresult; k++)
		left &= j->result[k].skip != NULL && j->result[k].cause == NULL && !j->unread;
	/* What is kept stands in the memory that threads keep theirs in, too. */
	pthread_mutex_lock(&a->lock);
	for (uint32_t k = 0; k < j->nresult && left && rc == 0; k++)
		rc = leave(a, j, &j->result[k]);
	if (left) {
		drop(j);
	} else {
		rc = reserve(a, j);
		if (rc == 0)
			finish(a, j, j->at);
	}
	pthread_mutex_unlock(&a->lock);
	return rc;
}

static int
run(struct acc_audit *a, struct acc_err *e)
{
	pthread_t thread[MAX_THREADS];
	long cpus = sysconf(_SC_NPROCESSORS_ONLN);
	unsigned want = a->opt.threads > 0 ? a->opt.threads : cpus > 0 ? (unsigned)cpus : 1;
	unsigned started = 0;
	int rc = 0;
	want = want > MAX_THREADS ? MAX_THREADS : want;
	while (started < want && pthread_create(&thread[started], NULL, work, a) == 0)
		started++;
	struct acc_reader own = reader_new(a);
	for (size_t i = 0; i < a->calls.n && rc == 0; i++) {
		struct acc_audit_job *j = make(a, &a->calls.v[i], e);
		if (j == NULL || j->bytes == 0) {
			rc = j == NULL ? ACC_ENOMEM : run_empty(a, j, &own);
			continue;
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
	if (v->round != NULL)
		rc |= acc_put(r, "", "audit.round", acc_ctext(v->round));
	if (v->part < 1)
		rc |= acc_put(r, "", "audit.part", acc_f64(v->part));
	if (v->left.n > 0)
		rc |= acc_put(r, "", "audit.left", acc_uint(v->left.n));
	if (v->left.open > 0)
		rc |= acc_put(r, "", "audit.open", acc_uint(v->left.open));
	if (v->cause != NULL && !acc_audited_good(v))
		rc |= acc_put_said(r, "", "audit.cause", &a->mem, v->cause);
	if (v->cause != NULL && !acc_audited_good(v) && v->changed.text[0] != '\0')
		rc |= acc_put(r, "", "audit.changed", acc_ctext(v->changed.text));
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
	const struct acc_span *s = a->calls.v;
	int rc = acc_fleet_open(f, a->roots, get_whole, a, e);
	f->use = a->opt.rule_use;
	for (size_t i = 0; i < a->calls.n && rc == 0 && !a->opt.compared; i++)
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
	size_t k = 0, left = 0;
	int rc = 0;
	for (size_t i = 0; i < records(a) && rc == 0; i++) {
		const struct acc_fleet_verdict *v = acc_fleet_at(f, i);
		const struct acc_audited *own = NULL;
		rc = get(a, i, &r, e);
		if (rc == 0 && k < a->nresult && a->result[k].line == i)
			own = &a->result[k++];
		const char *skip = rc == 0 && left < a->nleft && a->left[left].line == i
					   ? a->left[left++].skip
					   : NULL;
		bool bad = own != NULL && own->skip == NULL && !acc_audited_good(own);
		if (rc == 0 && v != NULL && !bad) {
			rc = annotate_rank(r, &f->mem, v);
		} else if (rc == 0 && own != NULL) {
			report(a, r, own);
			rc = annotate(r, a, own);
		} else if (skip != NULL) {
			rc = acc_put(r, "", "audit.skip", acc_ctext(skip));
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
	if (acc_limits(a->result, a->nresult, &a->opt) < 0)
		return acc_nomem(e);
	rc = compare_ranks(a, &f, e);
	rc = rc == 0 ? put_out(a, &f, e) : rc;
	acc_fleet_close(&f);
	return rc;
}
