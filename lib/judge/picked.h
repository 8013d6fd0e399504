/* picked.h - what the judges read of every record
 *
 * They are many fields of many records: so each is looked up by its key once for all records of
 * one shape. */
#ifndef JUDGE_PICKED_H
#define JUDGE_PICKED_H

#include "acc/judge.h"

#include <math.h>

/* Of a side; statistics of the recorder in the order max, min, mean, norm. */
/* clang-format off */
#define PICKED_SIDE(X) \
	X(DTYPE, "dtype") X(RAW, "dtype.raw") X(SHAPE, "shape") X(TYPE, "type") X(VALUE, "value") \
	X(ERR, "err") X(IO, "io") X(S_HASH, "s.hash") X(S_NAN, "s.nan") \
	X(S_POSINF, "s.posinf") X(S_NEGINF, "s.neginf") X(S_SAT, "s.sat") \
	X(S_NORM, "s.norm") X(S_MEAN, "s.mean") X(S_MIN, "s.min") X(S_MAX, "s.max") X(MAX, "stat.max") \
	X(MIN, "stat.min") X(MEAN, "stat.mean") X(NORM, "stat.norm") X(L1, "stat.l1") \
	X(CRC32, "stat.crc32") X(MD5, "stat.md5") X(XOR, "stat.xor") \
	X(AUDIT_ERR, "audit.err") X(AUDIT_MAX, "audit.err_max") \
	X(AUDIT_LIMIT, "audit.limit") X(AUDIT_LIMIT_MAX, "audit.limit_max") \
	X(AUDIT_SLOPE, "audit.slope") X(AUDIT_LIMIT_SLOPE, "audit.limit_slope") \
	X(AUDIT_LEFT, "audit.left") X(AUDIT_OPEN, "audit.open") X(AUDIT_FORM, "audit.form") X(AUDIT_ROUND, "audit.round") X(AUDIT_OK, "audit.ok") X(AUDIT_SKIP, "audit.skip") X(AUDIT_DOUBT, "audit.doubt") X(KEY, "key") \
	X(STEP, "step") X(RANK, "rank") X(PROC, "proc") X(SEQ, "seq") X(PASS, "pass") \
	X(OP, "op") X(CALL, "call") X(POS, "pos") X(FOLD, "fold")
/* Of the record itself; the first two also of one that is no pair. */
#define PICKED_OWN(X) \
	X(BAD, "bad") X(NAME, "name") X(A_KIND, "a.kind") X(B_KIND, "b.kind") \
	X(ERROR, "err") X(NOTE, "note") X(HOW, "how") X(SURE, "sure") X(M_ERR_RMS, "m.err_rms") \
	X(M_ERR_MAX, "m.err_max") X(M_RMSE, "m.rmse") X(M_MAX_ABS, "m.max_abs") \
	X(M_MAX_REL, "m.max_rel") X(M_SAME, "m.same") X(M_NONFINITE, "m.nonfinite") \
	X(M_EQUAL, "m.equal") X(M_LAYOUT, "m.layout") X(M_REACH, "m.reach") X(M_REACH_RMS, "m.reach.rms") \
	X(M_REACH_ALONG, "m.reach.along")
/* clang-format on */
#define X(name, key) name,
enum picked_side { PICKED_SIDE(X) NSIDE };
enum picked_own { PICKED_OWN(X) NOWN };
#undef X

/* Zero it to start. */
struct acc_picked {
	struct acc_pick pair, alone;
	bool is_pair, has[2], tensor[2]; /* which sides there are, and are tensors */
	/* NULL where there is no such field. One that is no pair has side A only. */
	const struct acc_val *const *side[2], *const *own;
	const struct acc_val *v[2 * NSIDE + NOWN];
};
/* 0 or ACC_ENOMEM. */
int acc_picked_get(struct acc_picked *s, const struct acc_rec *r);
void acc_picked_release(struct acc_picked *s);
/* The text or integer of a field, or an empty string, or dflt. */
static inline struct acc_str
acc_picked_text(const struct acc_val *v)
{
	return v == NULL || v->type != ACC_V_TEXT ? (struct acc_str){"", 0} : v->s;
}
static inline int64_t
acc_picked_int(const struct acc_val *v, int64_t dflt)
{
	return v == NULL || v->type != ACC_V_INT ? dflt : v->i;
}
/* A number, NAN where it is none; whether it is one; of a shape how many elements, 0 where it is none. */
static inline double
acc_picked_f64(const struct acc_val *v)
{
	double x = NAN;
	if (v == NULL || v->type == ACC_V_F64)
		return v == NULL ? x : v->f;
	acc_as_f64(v, &x);
	return x;
}
static inline bool
acc_picked_is_f64(const struct acc_val *v)
{
	return v != NULL && v->type >= ACC_V_INT && v->type <= ACC_V_F64;
}
uint64_t acc_picked_count(const struct acc_val *shape);

/* How many times its limit the worse error of an audit is; NAN where it did not judge. A factor
 * that is beyond its limit (NULL: none) is not chance: it has the margin that other errors must have. */
float acc_audit_excess(const struct acc_val *err, const struct acc_val *err_max,
	const struct acc_val *limit, const struct acc_val *limit_max, const struct acc_val *slope,
	const struct acc_val *limit_slope);

/* What an audit of the device's side says of it: own_rms, own_max, from units of rounding. */
void acc_item_own(struct acc_item *it, const struct acc_val *err, const struct acc_val *err_max);

/* Whether it leaves out what differs. Where it did not see the other side beside it, what it leaves out is taken
 * for that where NaN or Inf differ. */
/* How a side multiplies and rounds, of audit.form and audit.round, after the other side. */
void acc_item_how(struct acc_item *it, int side, const struct acc_val *form,
	const struct acc_val *round);
void acc_item_open(struct acc_item *it, const struct acc_val *left, const struct acc_val *open,
	bool beside);

/* --- weights.c --- */
/* Is a weight the other side's but for rounding, by m.reach and what else that says? */
bool acc_is_rounded(double most, double rms, double along, double limit);

/* --- item_statistics.c --- */
/* Fill what statistics tell of how far two sides are apart, where that is all that is known. */
void acc_item_by_statistics(struct acc_item *it, const struct acc_picked *f);
/* What a cast to f16 may have rounded away of each element; 0 without a cast. */
double acc_item_cast(const struct acc_item *it);
/* --- item.c --- */
/* Fill an item from its record: everything but at, call, mark, line. */
void acc_item_measure(struct acc_item *it, const struct acc_picked *s);

#endif
