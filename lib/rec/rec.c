/* What the program that is recorded calls. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "rec/rec.h"

enum { QUEUE = 64 << 20, QUEUE_LEAST = 1 << 16 };

static bool
child(const struct acc_recording *r)
{
	return r->pid != getpid();
}

static int
state(struct acc_recording *r)
{
	pthread_mutex_lock(&r->said);
	int rc = r->failed ? -1 : 0;
	pthread_mutex_unlock(&r->said);
	return rc;
}

/* --- small things are queued together --- */

static void
unstage(struct acc_recording *r)
{
	if (r->staged > 0)
		acc_queue_put(&r->q, r->stage, r->staged);
	r->staged = 0;
}

static void
stage(void *arg, const void *p, size_t n)
{
	struct acc_recording *r = arg;
	if (r->staged + n > sizeof r->stage)
		unstage(r);
	if (n > sizeof r->stage / 4)
		unstage(r), acc_queue_put(&r->q, p, n);
	else if (n > 0)
		memcpy(r->stage + r->staged, p, n), r->staged += n;
}

static uint64_t
measure_strings(struct msg *m, const char *const *str, int n)
{
	uint64_t sum = 0;
	for (int i = 0; i < n; i++) {
		size_t len = str[i] == NULL ? 0 : strlen(str[i]) + 1;
		if (len > ACC_MAX_RECORD / 8)
			len = 0; /* no record could hold it */
		m->has |= (uint32_t)(len > 0) << i;
		m->len[i] = (uint32_t)len;
		sum += len;
	}
	return sum;
}

static void
stage_strings(struct acc_recording *r, const struct msg *m, const char *const *str, int n)
{
	stage(r, m, sizeof *m);
	for (int i = 0; i < n; i++)
		stage(r, str[i], m->len[i]);
}

/* --- tensors --- */

static bool
in_order(const struct acc_rec_item *t)
{
	int64_t want = 1;
	for (uint32_t i = t->ndim; t->stride != NULL && i-- > 0;) {
		if (t->shape[i] != 1 && t->stride[i] != want)
			return false;
		want *= t->shape[i];
	}
	return true;
}

/* The bytes of a tensor; false where its sizes make no sense. */
static bool
tensor_bytes(const struct acc_rec_item *t, size_t esize, uint64_t *bytes)
{
	*bytes = esize;
	bool ok = t->ndim <= ACC_REC_MAXDIM, empty = false;
	for (uint32_t i = 0; ok && i < t->ndim; i++)
		empty = empty || t->shape[i] == 0;
	for (uint32_t i = 0; ok && i < t->ndim; i++) {
		ok = t->shape[i] >= 0 && (t->stride == NULL || t->stride[i] >= 0);
		ok = ok && (empty || !__builtin_mul_overflow(*bytes, (uint64_t)t->shape[i], bytes));
	}
	*bytes = empty ? 0 : *bytes;
	return ok && *bytes <= INT64_MAX;
}

static void
hash_piece(void *state, const void *p, size_t n)
{
	XXH3_128bits_update(state, p, n);
}

/* Where its elements stand, that are to be kept, or will. */
static void
find_place(struct acc_recording *r, struct msg *m, const struct acc_rec_item *t, size_t esize,
	bool flat)
{
	XXH128_hash_t hash;
	m->place = SAME_PLACES;
	if (!m->elements || t->detail != ACC_REC_FULL || m->bytes < SAME_LEAST)
		return;
	if (flat) {
		hash = XXH3_128bits(t->data, m->bytes);
	} else {
		XXH3_128bits_reset(r->same.state);
		acc_rec_gather(t->data, esize, t->ndim, t->shape, t->stride, hash_piece,
			r->same.state);
		hash = XXH3_128bits_digest(r->same.state);
	}
	m->place = acc_same_place(&r->same, hash, m->bytes, &m->again);
}

static int
put_tensor(struct acc_recording *r, struct msg *m, const struct acc_rec_item *t,
	const char *const *str)
{
	enum acc_dtype dtype = acc_dtype_find(acc_str(t->dtype));
	const size_t esize = acc_dtype_measured(dtype) ? acc_dtype_of(dtype)->size : 0;
	const bool flat = t->ndim <= ACC_REC_MAXDIM && in_order(t);
	struct acc_err e = {0};
	if (!tensor_bytes(t, esize, &m->bytes)) {
		acc_fail(&e, ACC_EUSAGE, "a tensor of an impossible shape was to be recorded");
		acc_rec_failed(r, &e);
		return -1;
	}
	m->n = t->ndim;
	m->dtype = dtype;
	m->detail = t->detail;
	m->requires_grad = t->requires_grad;
	m->strided = t->stride != NULL;
	m->elements = esize > 0 && (t->data != NULL || m->bytes == 0) &&
		      t->detail != ACC_REC_DESCRIPTION;
	m->stays = m->elements && t->stays && flat ? t->data : NULL;
	find_place(r, m, t, esize, flat);
	if (r->drop && m->elements && m->stays == NULL && !m->again &&
		acc_queue_room(&r->q) < m->bytes + sizeof r->stage) {
		if (m->place < SAME_PLACES)
			r->same.place[m->place].bytes = 0;
		m->elements = false;
		m->dropped = true;
		r->dropped++;
	}
	stage_strings(r, m, str, ITEM_N);
	stage(r, t->shape, t->ndim * sizeof *t->shape);
	if (m->strided)
		stage(r, t->stride, t->ndim * sizeof *t->stride);
	if (!m->elements || m->stays != NULL || m->again || m->bytes == 0)
		return 0;
	if (flat)
		stage(r, t->data, m->bytes);
	else
		acc_rec_gather(t->data, esize, t->ndim, t->shape, t->stride, stage, r);
	return 0;
}

static int
put_item(struct acc_recording *r, const struct acc_rec_item *t)
{
	const char *str[ITEM_N] = {t->io, t->pos, t->cls, t->text, t->dtype};
	struct msg m = {.kind = MSG_ITEM, .type = t->type, .i = t->i, .f = t->f};
	measure_strings(&m, str, ITEM_N);
	if (t->type == ACC_REC_TENSOR)
		return put_tensor(r, &m, t, str);
	m.n = t->type != ACC_REC_INTS        ? 0
	      : t->ndim < 2 * ACC_REC_MAXDIM ? t->ndim
					     : 2 * ACC_REC_MAXDIM;
	stage_strings(r, &m, str, ITEM_N);
	stage(r, t->shape, m.n * sizeof *t->shape);
	return 0;
}

int
acc_rec_call(struct acc_recording *r, const struct acc_rec_call *c, const struct acc_rec_item *item,
	size_t n)
{
	if (child(r))
		return ACC_REC_CHILD;
	const char *str[CALL_N] = {c->op, c->pass, c->key, c->scope, c->stack_from};
	struct msg m = {.kind = MSG_CALL,
		.i = c->call,
		.stack = c->stack,
		.recompute = c->recompute,
		.n = (uint32_t)(n > 0)};
	m.bytes = measure_strings(&m, str, CALL_N);
	int rc = 0;
	pthread_mutex_lock(&r->lock);
	stage_strings(r, &m, str, CALL_N);
	for (size_t i = 0; i < n && rc == 0; i++)
		rc = put_item(r, &item[i]);
	unstage(r);
	pthread_mutex_unlock(&r->lock);
	return rc < 0 ? rc : state(r);
}

/* --- the rest --- */

int
acc_rec_stack(struct acc_recording *r, const char *const *frame, size_t n, uint64_t *id)
{
	*id = 0;
	if (child(r))
		return ACC_REC_CHILD;
	int rc = 0;
	pthread_mutex_lock(&r->lock);
	r->frames.n = 0;
	/* A record has a limit; the innermost frames say most. */
	for (size_t i = 0; i < n && rc == 0; i++) {
		size_t len = strlen(frame[i]) + 1;
		if (r->frames.n + len > ACC_MAX_RECORD / 8)
			n = i;
		else
			rc = acc_buf_add(&r->frames, frame[i], len);
	}
	if (rc == 0) {
		*id = acc_hash(r->frames.p, r->frames.n);
		if (acc_ids_get(&r->stacks, *id) == ACC_NOID) {
			struct msg m = {.kind = MSG_STACK,
				.stack = *id,
				.n = (uint32_t)n,
				.bytes = r->frames.n};
			rc = acc_ids_put(&r->stacks, *id, 0, false, NULL);
			stage(r, &m, sizeof m);
			stage(r, r->frames.p, r->frames.n);
			unstage(r);
		}
	}
	pthread_mutex_unlock(&r->lock);
	return rc < 0 ? rc : state(r);
}

static int
say(struct acc_recording *r, enum msg_kind kind, int64_t i)
{
	struct msg m = {.kind = kind, .i = i};
	pthread_mutex_lock(&r->lock);
	acc_queue_put(&r->q, &m, sizeof m);
	pthread_mutex_unlock(&r->lock);
	return state(r);
}

int
acc_rec_step(struct acc_recording *r, int64_t step)
{
	const struct msg m = {.kind = MSG_STEP, .i = step};
	if (child(r))
		return ACC_REC_CHILD;
	pthread_mutex_lock(&r->lock);
	if (step != r->step) {
		r->step = step;
		acc_same_forget(&r->same);
		acc_queue_put(&r->q, &m, sizeof m);
	}
	pthread_mutex_unlock(&r->lock);
	return state(r);
}

int
acc_rec_sync(struct acc_recording *r)
{
	if (child(r))
		return ACC_REC_CHILD;
	pthread_mutex_lock(&r->said);
	uint64_t mine = ++r->sync_asked;
	pthread_mutex_unlock(&r->said);
	say(r, MSG_SYNC, (int64_t)mine);
	pthread_mutex_lock(&r->said);
	while (r->sync_done < mine)
		pthread_cond_wait(&r->synced, &r->said);
	pthread_mutex_unlock(&r->said);
	return state(r);
}

uint64_t
acc_rec_dropped(struct acc_recording *r)
{
	return r->dropped;
}

const char *
acc_rec_error(struct acc_recording *r)
{
	return !child(r) && state(r) < 0 ? r->text : "";
}

int
acc_rec_close(struct acc_recording *r, char *why, size_t n)
{
	if (why != NULL && n > 0)
		why[0] = '\0';
	if (r == NULL)
		return 0;
	if (child(r))
		return ACC_REC_CHILD; /* the memory is the parent's, whose threads are not here */
	say(r, MSG_STOP, 0);
	pthread_join(r->writer, NULL);
	int rc = state(r);
	if (why != NULL && rc < 0)
		snprintf(why, n, "%s", r->text);
	acc_sink_release(&r->sink);
	acc_queue_release(&r->q);
	acc_same_release(&r->same);
	acc_ids_release(&r->stacks);
	acc_buf_release(&r->frames);
	pthread_mutex_destroy(&r->lock);
	pthread_mutex_destroy(&r->said);
	pthread_cond_destroy(&r->synced);
	free(r);
	return rc;
}

/* --- opening --- */

/* As long as this process lives it holds a lock on the stream (fcntl(2)): who follows the recording sees
 * when it has died. False where the file system has no locks. */
static bool
lock(int fd)
{
	struct flock whole = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
	return fcntl(fd, F_SETLK, &whole) == 0;
}

static int
start_sink(struct acc_recording *r, const struct acc_rec_options *o, const char *root,
	struct acc_err *e)
{
	struct acc_rec source = {0};
	char host[256] = "", framework[64];
	const char *const versions = acc_framework_versions(o->framework, framework);
	const char *field[][2] = {{"root", root}, {"host", host}, {"format", "record"},
		{"framework", o->framework == NULL ? NULL : framework}, {"versions", versions},
		{"device", o->device}, {"task", o->task == NULL ? "tensor" : o->task}};
	gethostname(host, sizeof host - 1);
	int rc = acc_rec_start(&source, ACC_STR("source"));
	for (size_t i = 0; i < sizeof field / sizeof *field; i++)
		if (field[i][1] != NULL)
			rc |= acc_add(&source, "", field[i][0], acc_ctext(field[i][1]));
	if (r->sink.own && lock(r->sink.fd))
		rc |= acc_add(&source, "", "locked", acc_ctext("yes"));
	rc = rc < 0 ? acc_nomem(e)
		    : acc_sink_start(&r->sink, o->program == NULL ? "libaccrec" : o->program,
			      &source, e);
	acc_rec_release(&source);
	return rc < 0 ? rc : acc_sink_step(&r->sink, 0, e);
}

/* The thread takes no signal: those of the program go to the program's, and a pipe that nobody reads
 * is an error that is told. */
static int
start_writer(struct acc_recording *r, struct acc_err *e)
{
	sigset_t all, old;
	sigfillset(&all);
	pthread_sigmask(SIG_BLOCK, &all, &old);
	errno = pthread_create(&r->writer, NULL, acc_rec_write, r);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	return errno == 0 ? 0 : acc_fail(e, ACC_EIO, "cannot start a thread:");
}

/* Of *r its sink is set; taken over, also where this fails. */
static struct acc_recording *
start(struct acc_recording *r, const struct acc_rec_options *o, const char *root, struct acc_err *e)
{
	size_t size = o->queue == 0 ? QUEUE : o->queue < QUEUE_LEAST ? QUEUE_LEAST : o->queue;
	r->pid = getpid();
	r->drop = o->drop;
	r->deflate = o->deflate;
	pthread_mutex_init(&r->lock, NULL);
	pthread_mutex_init(&r->said, NULL);
	pthread_cond_init(&r->synced, NULL);
	int rc = acc_queue_open(&r->q, size) < 0 || acc_same_open(&r->same) < 0 ? acc_nomem(e) : 0;
	if (rc == 0 && (rc = start_sink(r, o, root, e)) == 0)
		rc = start_writer(r, e);
	if (rc == 0)
		return r;
	acc_queue_release(&r->q);
	acc_same_release(&r->same);
	acc_sink_release(&r->sink);
	free(r);
	return NULL;
}

static struct acc_recording *
told(struct acc_recording *r, const struct acc_err *e, char *why, size_t n)
{
	if (n > 0)
		why[0] = '\0';
	if (r == NULL)
		acc_err_text(e, why, n);
	return r;
}

static struct acc_recording *
new_recording(const struct acc_rec_options *o, struct acc_err *e)
{
	struct acc_recording *r = calloc(1, sizeof *r);
	if (r == NULL)
		acc_nomem(e);
	else
		r->sink = (struct sink){.rank = o->rank, .dir = -1, .fd = -1, .data = -1};
	return r;
}

struct acc_recording *
acc_rec_open(const char *folder, const struct acc_rec_options *o, char *why, size_t n)
{
	struct acc_err e = {0};
	char root[PATH_MAX], name[64];
	struct acc_recording *r = new_recording(o, &e);
	if (r == NULL)
		return told(NULL, &e, why, n);
	snprintf(name, sizeof name, "rank%lld.acc", (long long)(o->rank < 0 ? 0 : o->rank));
	snprintf(r->sink.where, sizeof r->sink.where, "%.180s/%s", folder, name);
	if ((mkdir(folder, 0777) < 0 && errno != EEXIST) || realpath(folder, root) == NULL ||
		(r->sink.dir = open(root, O_RDONLY | O_DIRECTORY | O_CLOEXEC)) < 0)
		acc_fail(&e, ACC_EIO, "cannot make the folder:");
	else if ((r->sink.fd = openat(r->sink.dir, name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC,
			  0666)) < 0)
		acc_fail(&e, ACC_EIO,
			errno == EEXIST ? "a recording is there already:" : "cannot make:");
	r->sink.own = true;
	if (e.code == 0) {
		r = start(r, o, root, &e);
	} else {
		acc_err_in(&e, r->sink.where);
		acc_sink_release(&r->sink);
		free(r);
		r = NULL;
	}
	return told(r, &e, why, n);
}

struct acc_recording *
acc_rec_open_fd(int fd, const struct acc_rec_options *o, char *why, size_t n)
{
	struct acc_err e = {0};
	struct acc_recording *r = new_recording(o, &e);
	if (r != NULL) {
		r->sink.fd = fd;
		snprintf(r->sink.where, sizeof r->sink.where, "the recording");
		r = start(r, o, "/", &e);
	}
	return told(r, &e, why, n);
}
