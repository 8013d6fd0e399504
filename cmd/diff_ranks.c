/* A gradient that is given to no reduction, weights that drift apart: one process as the bench has none of it, and parts that
 * become one show the sum of what they have. accaudit's rules over ranks see it, of the device alone, where it is recorded who
 * communicates with whom. What a bench of several ranks has, too, is by design, also where these are as many. */
#include "diff_ranks.h"
#include "acc/stream.h"
#include "cli.h"

#include <stdlib.h>
#include <unistd.h>

bool
ranks_ask(const struct plan *p)
{
	const struct diff_opt *o = p->opt;
	return p->holds == ACC_HOLDS_DUMP && (p->side[DEVICE].folded || p->both_ranked) &&
	       !p->side[DEVICE].parted && p->side[DEVICE].g.groups && !o->no_audit &&
	       o->preset == NULL && o->rules == NULL;
}

/* Of its findings that are errors those whose tensor other ranks convict: their names, and where wr is not NULL
 * the records; then, too, which rules were left out: so many such findings in *left. */
static int
pick(const char *path, struct acc_nameset *convicted, const struct acc_nameset *known,
	struct acc_wr *wr, unsigned *left, struct acc_err *e)
{
	struct acc_rec *r;
	struct acc_nameset here = {0};
	struct acc_rd *rd = acc_rd_open(path, e);
	int rc = rd == NULL ? e->code : 0;
	while (rc >= 0 && (rc = acc_rd_next(rd, &r, e)) > 0) {
		const bool finding = acc_rec_is(r, "finding"), tensor = acc_rec_is(r, "tensor"),
			   error = acc_str_is(acc_get_text(r, "", "bad"), "error") &&
				   acc_get_text(r, "", "audit.ranks").n > 0;
		const struct acc_str key = acc_get_text(r, "", finding ? "name" : "key");
		bool keep = acc_rec_is(r, "source") || acc_rec_is(r, "stack");
		if (tensor && error && !acc_nameset_holds(known, key)) {
			rc = acc_nameset_add(&here, key, e);
			keep = true;
		}
		if (finding)
			acc_nameset_sort(&here);
		if (finding && acc_str_is(acc_get_text(r, "", "what"), "culprit") &&
			acc_nameset_holds(&here, key)) {
			rc = acc_nameset_add(convicted, key, e);
			keep = true;
		}
		if (finding && acc_str_is(acc_get_text(r, "", "rule"), "rules")) {
			++*left;
			keep = true;
		}
		if (rc >= 0 && keep && wr != NULL)
			rc = acc_wr_put(wr, r, e);
	}
	acc_nameset_sort(convicted);
	acc_nameset_release(&here);
	acc_rd_close(rd);
	return rc;
}

struct prog *
ranks_plan(struct pipeline *l, const struct side *s)
{
	struct prog *p = plan_member(l, SAID_METRIC, "accaudit", plan_reader(l, s));
	prog_add_all(p, &l->plan->opt->auditing);
	prog_add_two(p, "-j", l->plan->opt->threads);
	return plan_member(l, SAID_JUDGE, "accfirstbad", p);
}

/* Their stream in a file; its status in *status. */
static int
asked(const struct plan *p, int side, int *status)
{
	struct pipeline l;
	const int fd = diff_stream_file();
	plan_open(&l, p);
	*status = prog_run(ranks_plan(&l, &p->side[side]), fd);
	if (*status > 1 && plan_audited_nothing(&l))
		*status = 0;
	if (*status > 1)
		plan_said_members(&l);
	plan_close(&l);
	return fd;
}

int
ranks_convicted(const struct plan *p, bool *failed, bool *bad)
{
	struct acc_err e = {0};
	struct acc_nameset device = {0}, bench = {0};
	int status, of_bench = 0, out = -1;
	const int fd = asked(p, DEVICE, &status);
	const char *path = diff_text("/dev/fd/%d", fd);
	unsigned left = 0;
	int rc = status <= 1 ? pick(path, &device, &bench, NULL, &left, &e) : 0;
	*failed = status > 1;
	if (rc >= 0 && device.n > 0 && p->both_ranked) {
		const int other = asked(p, BENCH, &of_bench);
		*failed |= of_bench > 1;
		if (of_bench == 1)
			rc = pick(diff_text("/dev/fd/%d", other), &bench, &(struct acc_nameset){0},
				NULL, &(unsigned){0}, &e);
		close(other);
	}
	acc_nameset_release(&device);
	if (rc >= 0 && (status == 1 || left > 0)) {
		out = diff_stream_file();
		struct acc_wr *wr = acc_wr_open(out, NULL, 0, "accdiff", &e);
		rc = wr == NULL ? e.code : pick(path, &device, &bench, wr, &left, &e);
		rc = rc < 0 ? rc : acc_wr_end(wr, device.n > 0, &e);
		acc_wr_close(wr);
	}
	if (rc < 0)
		cli_die_err(&e);
	*bad = device.n > 0;
	if (device.n == 0 && left == 0 && out >= 0) {
		close(out);
		out = -1;
	}
	acc_nameset_release(&device);
	acc_nameset_release(&bench);
	close(fd);
	return out;
}
