/* One call, from its records to its results. */
#include "kernel/row.h"
#include "replay/cut.h"
#include "replay/views.h"

static int
unread(void *arg, struct acc_held *h)
{
	struct acc_audit_job *j = arg;
	j->unread |= h->err != NULL;
	j->fault |= h->fault;
	return 0;
}

/* Results refer to their record also where nothing comes of them. */
struct numbering {
	struct acc_audit_job *j;
	uint32_t n;
};

static int
number(void *arg, struct acc_held *h)
{
	struct numbering *n = arg;
	if (n->n < n->j->nresult) {
		n->j->result[n->n].dtype = h->d.dtype;
		n->j->result[n->n++].line = h->line;
	}
	return 0;
}

void
acc_audit_job_settle(struct acc_audit_job *j)
{
	for (uint32_t k = 0; k < j->nresult; k++) {
		struct acc_audited *v = &j->result[k];
		struct acc_tally *t = &j->tally[k];
		const char *place = acc_cause_place(&j->mem, &t->spots);
		v->rms = acc_err_rms(&t->err);
		v->max = acc_err_max(&t->err);
		v->coarse_rms = acc_err_rms(&t->coarse);
		v->coarse_max = acc_err_max(&t->coarse);
		v->slope = t->slope;
		v->left = t->left;
		v->finite = t->err.n > 0;
		v->n = t->err.n;
		v->form = acc_form_of(&t->forms);
		v->round = acc_rounds_of(&t->rounds);
		if (v->round != NULL) /* which is to one side, and right */
			v->slope = (struct acc_slope_found){0};
		if (v->skip == NULL && v->backward && !v->finite && t->left.n > 0)
			v->skip = "nothing in it is finite, or away from a kink";
		if (v->skip != NULL)
			continue;
		bool all = t->far == t->parts || place == NULL;
		v->cause = all && t->cause != NULL ? t->cause : place;
		v->explained = t->explained && t->far == t->parts && v->cause == t->cause;
		if (v->cause == t->cause)
			v->changed = t->changed;
		if (v->cause == NULL && t->rough)
			v->cause = acc_audit_rough;
		if (v->cause == NULL && v->round != NULL && t->rounds.flushed > 0)
			v->cause = "numbers below the normal ones of its dtype are zero";
	}
}

const char acc_audit_rough[] =
	"computed in 16 bits on the way (of its terms, its sums or its input)";

/* Calls with less than this, as doubles, are looked at as they are. */
#define WHOLE ((uint64_t)1 << 20)

static bool
any_far(const struct acc_audit_job *j)
{
	bool far = false;
	for (uint32_t k = 0; k < j->nresult; k++)
		far |= j->tally[k].far > 0;
	return far;
}

static void
reset(struct acc_audit_job *j)
{
	for (uint32_t k = 0; k < j->nresult; k++) {
		j->tally[k] = (struct acc_tally){0};
		j->result[k].skip = NULL;
		j->result[k].part = 1;
	}
}

/* If something is wrong, nothing was found yet. */
static bool
again(struct acc_audit_job *j)
{
	j->form |= any_far(j);
	if (j->form)
		reset(j);
	return j->form;
}

/* Without reading all of it at once. false: that is not possible. */
static bool
in_parts(struct acc_audit_job *j, const struct acc_op *op)
{
	struct acc_trial t;
	bool done = false;
	if (j->bad != NULL || j->bytes < WHOLE || (j->backward && j->fwd.nout == 0))
		return false;
	if (acc_audit_job_open(j) < 0) {
		j->bad = ACC_NOMEM_TEXT;
		return false;
	}
	if (!op->streams) {
		done = acc_audit_job_views(j, op) || acc_audit_job_rows(j, op) ||
		       acc_audit_job_cut(j, op);
	} else if (acc_trial_open(&t, j, op) == 0 && acc_trial_product(&t) == 0 && t.large) {
		acc_audit_job_test(j, op);
		done = !acc_product_formed(&t.product) || !again(j);
	}
	acc_audit_job_shut(j);
	return done;
}

/* --- operands that are cast first --- */

static int
any_finer(void *arg, struct acc_held *h)
{
	*(bool *)arg |= h->d.dtype == ACC_F32;
	return 0;
}

static int
cast(void *arg, struct acc_held *h)
{
	if (h->d.dtype == ACC_F32)
		h->as = *(enum acc_dtype *)arg;
	return 0;
}

/* Where a factor is in f32 and the product in 16 bits, autocast has cast all that is in f32 to these
 * before, the bias as well: so the operands are known to the bit. A bias alone in f32 is no sign of
 * that, since some devices want it so. */
static bool
cast_first(struct acc_audit_job *j, const struct acc_op *op)
{
	const struct acc_pass_of *p = &j->fwd;
	enum acc_dtype to = p->nout > 0 && p->out[0].type == ACC_A_TENSOR ? p->out[0].t->dtype
									  : ACC_NODTYPE;
	bool found = false,
	     sums = strcmp(op->cls, "product") == 0 || strcmp(op->cls, "recurrent") == 0;
	if (!sums || (to != ACC_BF16 && to != ACC_F16))
		return false;
	for (uint32_t i = 0; i < p->nin + p->nkw; i++) {
		const struct acc_value *v = i < p->nin ? &p->in[i] : &p->kw[i - p->nin];
		struct acc_str name, kw = i < p->nin ? (struct acc_str){"", 0} : v->name;
		struct acc_str mode = acc_sig_mode(op, kw, i, &name);
		if (acc_str_is(mode, "prod") || acc_str_is(mode, "block") ||
			acc_str_is(mode, "any"))
			acc_each_held(v, 1, any_finer, &found);
	}
	if (!found)
		return false;
	acc_each_held(p->in, p->nin, cast, &to);
	acc_each_held(p->kw, p->nkw, cast, &to);
	return true;
}

static void
look(struct acc_audit_job *j, const struct acc_op *op)
{
	if (in_parts(j, op))
		return;
	if (j->bad == NULL && acc_audit_job_load(j) < 0)
		j->bad = ACC_NOMEM_TEXT;
	acc_audit_job_test(j, op);
}

/* A device that does not cast them, but rounds once at the end, is right, too. */
static int
look_uncast(struct acc_audit_job *j, const struct acc_op *op)
{
	size_t n = j->nresult;
	struct acc_tally *tally = acc_alloc(&j->mem, n * sizeof *tally);
	struct acc_audited *result = acc_alloc(&j->mem, n * sizeof *result);
	if (tally == NULL || result == NULL)
		return ACC_ENOMEM;
	memcpy(tally, j->tally, n * sizeof *tally);
	memcpy(result, j->result, n * sizeof *result);
	reset(j);
	acc_audit_job_as_recorded(j);
	look(j, op);
	if (any_far(j)) {
		memcpy(j->tally, tally, n * sizeof *tally);
		memcpy(j->result, result, n * sizeof *result);
	}
	return 0;
}

void
acc_audit_job_run(struct acc_audit_job *j)
{
	const struct acc_op *op = acc_op_of_call(j);
	const struct acc_pass_of *p = j->backward ? &j->bwd : &j->fwd;
	struct numbering n = {j, 0};
	acc_each_held(p->out, p->nout, number, &n);
	for (uint32_t k = 0; k < j->nresult; k++) {
		j->result[k].part = 1;
		j->result[k].op = op;
	}
	if (op == NULL || j->bad != NULL)
		acc_audit_job_skip(j, j->bad != NULL ? j->bad : "unknown operator");
	else {
		j->casts = cast_first(j, op);
		look(j, op);
		if (j->casts && any_far(j) && look_uncast(j, op) < 0)
			acc_audit_job_skip(j, ACC_NOMEM_TEXT);
	}
	acc_others_shut(j);
	acc_each_tensor(j, unread, j);
	acc_audit_job_settle(j);
}
