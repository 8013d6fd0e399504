/* Payload is never kept: by the contract it comes behind all other records, so it can be passed
 * on after the pairs, as it is read: in the order of the pairs, as far as both streams are in
 * this order, so that who measures need not keep much of it either. */
#include "align_input.h"

#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

/* Is it a regular file that begins as a stream (2) or as gzip (1)? */
static int
looks(const char *path)
{
	uint8_t head[5];
	struct acc_err e = {0};
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		cli_die("%s: cannot open:", path);
	int64_t n = acc_file_peek(fd, head, sizeof head, 0, &e);
	close(fd);
	if (n < 0) {
		acc_err_in(&e, path);
		cli_die_err(&e);
	}
	if (n == 0 || !acc_is_stream(head, (size_t)n))
		return 0;
	return head[0] == 0x1f ? 1 : 2;
}

/* Find out what it is. What is neither file nor folder is a pipe, and must be a stream. */
void
align_open(struct input *in)
{
	struct acc_err e = {0};
	struct stat st = {0};
	int how = 2;
	if (strcmp(in->path, "-") != 0) {
		if (stat(in->path, &st) < 0)
			cli_die("%s: cannot open:", in->path);
		if (S_ISDIR(st.st_mode))
			how = 0;
		else if (S_ISREG(st.st_mode))
			how = looks(in->path);
	}
	if (how > 0)
		in->rd = acc_rd_open(in->path, &e);
	if (in->rd == NULL && how == 2)
		cli_die_err(&e);
}

int
align_take_whole(void *arg, struct acc_rec *r)
{
	struct input *in = arg;
	struct acc_err e = {0};
	int rc = acc_rec_is(r, "data") ? acc_fail(&e, ACC_EUNSUP, "payload outside of a stream")
				       : 0;
	if (rc == 0 && in->rules != NULL && acc_rec_is(r, "scalar"))
		rc = acc_maps_tag(in->rules, r, &e);
	if (rc >= 0)
		rc = acc_align_add(in->al, in->side, r, &e);
	if (rc < 0) {
		acc_err_in(&e, in->rd != NULL ? acc_rd_name(in->rd) : in->path);
		cli_die_err(&e);
	}
	if (rc == 0)
		cli_put(in->out, r);
	const int64_t step = acc_get_int(r, "", "step", -1);
	if (step >= 0 && (in->first < 0 || step < in->first))
		in->first = step;
	if (step > in->last)
		in->last = step;
	return 0;
}

int
align_take(void *arg, struct acc_rec *r)
{
	struct input *in = arg;
	struct acc_err e = {0};
	if (in->modules == NULL)
		return align_take_whole(in, r);
	if (acc_modules_add(in->modules, r, &e) < 0) {
		acc_err_in(&e, in->path);
		cli_die_err(&e);
	}
	return 0;
}

/* Behind the last record of a side: what modules there were. */
static void
end_modules(struct input *in)
{
	struct acc_err e = {0};
	uint64_t nowhere;
	if (in->modules == NULL)
		return;
	if (in->data != NULL)
		cli_die("%s: --modules: a stream that holds its tensors; give the dump that it was made of",
			in->path);
	if (acc_modules_end(in->modules, &e) < 0) {
		acc_err_in(&e, in->path);
		cli_die_err(&e);
	}
	if (acc_modules_count(in->modules, &nowhere) == 0 && nowhere > 0)
		cli_die("%s: --modules: no op call says in which module it ran", in->path);
	if (nowhere > 0)
		cli_warn(
			"%s: %llu records of op calls do not say in which module they ran, and are left"
			" out",
			in->path, (unsigned long long)nowhere);
	acc_modules_close(in->modules);
	in->modules = NULL;
}

static void
trouble(void *arg, const struct acc_err *e)
{
	struct input *in = arg;
	cli_warn_err(e);
	cli_status(in->out, e->code == ACC_ENOTE ? 0 : 2);
}

/* The next record of a stream; false at its end, at its payload and behind a step. */
bool
align_read_record(struct input *in)
{
	struct acc_err e = {0};
	struct acc_rec *r;
	int rc = acc_rd_next(in->rd, &r, &e);
	if (rc < 0)
		cli_die_err(&e);
	if (rc > 0 && acc_rec_is(r, "data"))
		in->data = r;
	if (rc > 0 && acc_rec_is(r, "step") && acc_rec_copy(&in->step, r) < 0)
		cli_nomem();
	if (rc == 0 || in->data != NULL || in->step.kind.n > 0)
		return false;
	align_take(in, r);
	return true;
}

void
align_read_dump(struct input *in, acc_emit_fn *fn)
{
	struct acc_err e = {0};
	struct acc_dump_ctx *c = acc_dump_open(NULL, fn, trouble, in, &e);
	if (c == NULL || (in->pattern != NULL && acc_dump_pattern(c, in->pattern, &e) < 0) ||
		acc_dump_read(c, in->path, NULL, &e) < 0)
		cli_die_err(&e);
	acc_dump_close(c);
}

/* The device, then the bench; two streams in turn, so that whoever writes them need not wait for
 * the other. False: the device is recorded while it is read, and its first step is whole. */
bool
align_read(struct input in[2])
{
	bool more[2] = {in[0].rd != NULL, in[1].rd != NULL};
	if (!more[0])
		align_read_dump(&in[0], align_take);
	while (more[0] || more[1])
		for (int s = 0; s < 2; s++)
			more[s] = more[s] && align_read_record(&in[s]);
	if (in[0].step.kind.n > 0 || in[1].step.kind.n > 0) {
		if (in[0].modules != NULL)
			cli_die("--modules: of a recording that is followed no module is whole");
		if (in[0].step.kind.n == 0 || in[1].rd != NULL)
			cli_die("a recording that is followed is the device, and its bench is a dump"
				" that is named: accdump-read --follow REC | accalign - BENCH");
		return false;
	}
	if (in[1].rd == NULL)
		align_read_dump(&in[1], align_take);
	end_modules(&in[0]);
	end_modules(&in[1]);
	return true;
}

/* --- payload --- */

static struct acc_map places; /* of tensors among the pairs; empty where there is no payload */

/* "a SEQ SRC" */
static struct acc_str
tensor_id(const struct acc_rec *r, const char *prefix, enum acc_side side, char buf[96])
{
	struct acc_str src = acc_get_text(r, prefix, "src");
	int n = snprintf(buf, 96, "%c %lld %.*s", side == ACC_A ? 'a' : 'b',
		(long long)acc_get_int(r, prefix, "seq", -1), src.n > 64 ? 64 : (int)src.n, src.p);
	return (struct acc_str){buf, (uint32_t)n};
}

/* Remember which of the records written, the n-th, has which tensors. */
void
align_remember(const struct input in[2], const struct acc_rec *r, uint64_t n)
{
	static const char *const prefix[2] = {"a.", "b."};
	char buf[96];
	for (int s = 0; s < 2; s++)
		if (in[s].data != NULL && acc_get(r, prefix[s], "seq") != NULL &&
			acc_map_put(&places, tensor_id(r, prefix[s], in[s].side, buf), n) == NULL)
			cli_nomem();
}

/* Find out where the payload record belongs at which a stream stands. */
static void
place_data(struct input *in)
{
	char buf[96];
	const uint64_t *p = acc_map_get(&places, tensor_id(in->data, "", in->side, buf));
	in->place = p == NULL ? 0 : *p;
	in->off = (uint64_t)acc_get_int(in->data, "", "off", 0);
}

/* On to the next payload record of a stream, or its end; other records are passed on. */
static void
next_data(struct input *in)
{
	static const char *const paired[] = {"tensor", "arg", "scalar", "param", "pair"};
	struct acc_err e = {0};
	int rc;
	const bool stream = cli_is_stream(in->out);
	while ((rc = stream ? acc_rd_next_open(in->rd, &in->data, &e)
			    : acc_rd_next(in->rd, &in->data, &e)) > 0 &&
		!acc_rec_is(in->data, "data")) {
		for (size_t i = 0; i < sizeof paired / sizeof *paired; i++)
			if (acc_rec_is(in->data, paired[i]))
				cli_die("%s: a %s record behind payload", acc_rd_name(in->rd),
					paired[i]);
		cli_put(in->out, in->data);
	}
	if (rc < 0)
		cli_die_err(&e);
	if (rc == 0)
		in->data = NULL;
	else
		place_data(in);
}

/* A payload record with its side, and its bytes last, so that they need not be copied; most of
 * them are still where they came from. */
static void
put_data(struct input *in)
{
	static struct acc_rec out;
	const struct acc_rec *r = in->data;
	int rc = acc_rec_start(&out, r->kind);
	for (uint32_t i = 0; i < r->n && rc == 0; i++)
		if (!acc_str_is(r->f[i].key, "data") && !acc_str_is(r->f[i].key, "side"))
			rc = acc_rec_push(&out, &r->f[i]);
	if (rc == 0)
		rc = acc_add(&out, "", "side", acc_ctext(in->side == ACC_A ? "a" : "b"));
	const struct acc_val *data = acc_get(r, "", "data");
	if (rc == 0 && data != NULL)
		rc = acc_rec_push(&out, &(struct acc_field){.key = ACC_STR("data"), .v = *data});
	if (rc < 0)
		cli_nomem();
	if (cli_is_stream(in->out))
		cli_pass(in->out, &out, in->rd);
	else
		cli_put(in->out, &out);
}

/* The rest of both streams, what belongs to the earlier pair first. */
void
align_pass_data(struct input in[2])
{
	for (int s = 0; s < 2; s++)
		if (in[s].data != NULL)
			place_data(&in[s]);
	while (in[0].data != NULL || in[1].data != NULL) {
		const struct input *a = &in[0], *b = &in[1];
		int s = a->data == NULL ||
			(b->data != NULL &&
				(b->place < a->place || (b->place == a->place && b->off < a->off)));
		put_data(&in[s]);
		next_data(&in[s]);
	}
	for (int s = 0; s < 2; s++)
		if (in[s].rd != NULL)
			cli_status(in[s].out, acc_rd_status(in[s].rd));
	acc_map_release(&places);
}
