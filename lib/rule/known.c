/* The keys of records: one list, which tests compare with accstream(5) and with what the programs
 * write. */
#include "acc/known.h"
#include "acc/metric.h"

#define WHOLE(key) {key, false},
#define SIDED(key) {key, true},

const struct acc_known acc_known[] = {
	/* The kind of a record that is no pair is no field. */
	WHOLE("a.kind") WHOLE("b.kind")
	/* source */
	WHOLE("id") WHOLE("root") WHOLE("host") WHOLE("format") WHOLE("framework") WHOLE("device")
		WHOLE("versions") WHOLE("task") WHOLE("level") WHOLE("interface")
	/* tensor, arg, call */
	SIDED("name") SIDED("src") SIDED("seq") SIDED("step") SIDED("rank") SIDED("proc") SIDED(
		"key") SIDED("op") SIDED("call") SIDED("pass") SIDED("io") SIDED("pos") SIDED("as")
		SIDED("from") SIDED("scope") SIDED("stack") SIDED("stack_from") SIDED("type") SIDED(
			"value") SIDED("dtype") SIDED("dtype.raw") SIDED("shape") SIDED("stride")
			SIDED("stride.raw") SIDED("recompute") SIDED("block") SIDED("offset") SIDED(
				"order") WHOLE("place") SIDED("layout") SIDED("layout.raw")
				SIDED("requires_grad") SIDED("buffer") SIDED("whole") SIDED("at") SIDED(
					"data_name") SIDED("file") SIDED("off") SIDED("len") SIDED("enc")
					SIDED("clen") SIDED("crc32") SIDED("fsize") SIDED("mtime") SIDED(
						"part.src") SIDED("part.file") SIDED("part.off")
						SIDED("part.len") SIDED("part.crc32") SIDED("part.fsize") SIDED(
							"part.mtime") SIDED("part.rows") SIDED("stat.max")
							SIDED("stat.min") SIDED("stat.mean") SIDED(
								"stat.norm") SIDED("stat.l1") SIDED("stat.crc32")
								SIDED("stat.md5") SIDED("stat.xor") SIDED(
									"stat.sha1") SIDED("stat.count")
									SIDED("stat.nan") SIDED(
										"stat.posinf") SIDED("stat.neginf")
										SIDED("stat.zero") SIDED(
											"stat.negative")
											SIDED("stat.positive")
	/* stack, data */
	WHOLE("frames") WHOLE("data") WHOLE("side")
	/* scalar, param */
	SIDED("tag") SIDED("tag.raw") SIDED("res") SIDED("class") SIDED("counted") SIDED("epochs")
		SIDED("run") SIDED("where") SIDED("dialect") SIDED("maybe") SIDED("few")
			SIDED("given") SIDED("group")
	/* curve */
	WHOLE("role") WHOLE("n") WHOLE("begin") WHOLE("end") WHOLE("first") WHOLE("apart") WHOLE(
		"beyond") WHOLE("stays") WHOLE("max_abs") WHOLE("max_rel") WHOLE("most_rel")
		WHOLE("mean_abs") WHOLE("mean_rel") WHOLE("late_abs") WHOLE("begin_abs") WHOLE(
			"begin_rel") WHOLE("final") WHOLE("final_rel") WHOLE("offset_rel")
			WHOLE("offset_p") WHOLE("slope") WHOLE("trend_p") WHOLE("drift") WHOLE(
				"signs") WHOLE("change") WHOLE("change_rel") WHOLE("change_t")
				WHOLE("parted") WHOLE("parted_steps") WHOLE("parted_times") WHOLE(
					"parted_even") WHOLE("parted_rel") WHOLE("nonfinite")
					WHOLE("neither") WHOLE("lost") WHOLE("shift") WHOLE(
						"lr0") WHOLE("counted") WHOLE("epochs") WHOLE("inside")
						WHOLE("outside") WHOLE("noise.runs") WHOLE(
							"noise.max_abs") WHOLE("noise.mean_abs")
							WHOLE("noise.mean_rel")
								SIDED("nan") SIDED("spikes") SIDED(
									"spike") SIDED("only")
									SIDED("repeated") SIDED(
										"interval")
										SIDED("constant")
	/* pair, finding, verdict */
	WHOLE("how") WHOLE("sure") WHOLE("note") WHOLE("what") WHOLE("comm") WHOLE("stage")
		WHOLE("dump") WHOLE("settings") WHOLE("settings.name") WHOLE("behaviour")
			WHOLE("confidence") WHOLE("ranked") WHOLE("text") WHOLE("bad") WHOLE("rule")
				WHOLE("witness") WHOLE("limit") WHOLE("limit_from") WHOLE("why")
	/* messages of texts */
	WHOLE("text.msg") WHOLE("why.msg") WHOLE("m.where.msg") WHOLE("m.skip.msg") SIDED("err.msg")
		SIDED("audit.cause.msg") SIDED("audit.doubt.msg")
	/* measures that are no row of a table, and what went wrong */
	SIDED("stat.first") SIDED("stat.worst") SIDED("stat.worst.at") SIDED("s.few") WHOLE(
		"m.mode") WHOLE("m.skip") WHOLE("m.layout") WHOLE("m.padded") WHOLE("m.whole")
		WHOLE("m.reach") WHOLE("m.reach.rms") WHOLE("m.reach.along") WHOLE(
			"m.accuracy") SIDED("err") SIDED("audit.ok") SIDED("audit.err")
			SIDED("audit.err_max") SIDED("audit.limit") SIDED("audit.limit_max") SIDED(
				"audit.slope") SIDED("audit.limit_slope") SIDED("audit.form")
				SIDED("audit.round") SIDED("audit.part") SIDED("audit.left") SIDED(
					"audit.open") SIDED("audit.cause") SIDED("audit.changed")
					SIDED("audit.doubt") SIDED("audit.skip")
						SIDED("audit.ranks") SIDED("audit.rule")
	/* sample, rollout */
	SIDED("sample") SIDED("version") SIDED("finish") SIDED("cached") SIDED("ids") SIDED(
		"start") SIDED("tokens") SIDED("logp.rollout") SIDED("logp.train") SIDED("logp.ref")
		SIDED("mask") SIDED("top.n") SIDED("top.ids") SIDED("top.logp") SIDED("pad") SIDED(
			"counted.pad") SIDED("prompt") SIDED("response") WHOLE("tok.n")
			WHOLE("tok.samples") WHOLE("tok.k1") WHOLE("tok.k1_se") WHOLE("tok.k2") WHOLE(
				"tok.k2_se") WHOLE("tok.k3") WHOLE("tok.k3_se") WHOLE("tok.rms")
				WHOLE("tok.abs") WHOLE("tok.max_abs") WHOLE("tok.exp_abs") WHOLE(
					"tok.ratio_min") WHOLE("tok.ratio_mean") WHOLE("tok.ratio_max")
					WHOLE("tok.clip") WHOLE("tok.ess") WHOLE("tok.ess_seq") WHOLE(
						"tok.chi2") WHOLE("tok.chi2_seq") WHOLE("tok.log_ppl_diff")
						WHOLE("tok.log_ppl_abs_diff") WHOLE("tok.log_ppl_diff_max") WHOLE(
							"tok.log_ppl_diff_min") WHOLE("tok.ppl_ratio") WHOLE("tok.prob_diff_mean")
							WHOLE("tok.prob_diff_max") WHOLE("tok.prob_diff_std") WHOLE(
								"tok.pearson") WHOLE("tok.entropy_a")
								WHOLE("tok.entropy_b") WHOLE("tok.log_ratio") WHOLE(
									"tok.max") WHOLE("tok.max_at")
									WHOLE("tok.parted") WHOLE(
										"tok.parted_at") WHOLE("tok.at")
										WHOLE("tok.from") WHOLE(
											"tok.ids")
											WHOLE("tok.texts") WHOLE(
												"tok.logp_a")
												WHOLE("tok.logp_b")
	/* the ranks as one */
	SIDED("fold") SIDED("fold.key") SIDED("fold.rank") SIDED("fold.by") SIDED("fold.ranks")
		SIDED("fold.shape") SIDED("fold.own") SIDED("fold.mesh") SIDED("fold.differs")
			SIDED("fold.lost") SIDED("fold.not_sum") SIDED("fold.undivided")
				SIDED("fold.apart") SIDED("fold.talk") SIDED("fold.absent") WHOLE(
					"fold.batches") SIDED("fold.turned") SIDED("fold.unscaled")
					SIDED("fold.group") SIDED("s.chunks")};
const size_t acc_nknown = sizeof acc_known / sizeof *acc_known;

static bool
is_side(struct acc_str key)
{
	return acc_str_starts(key, "a.") || acc_str_starts(key, "b.");
}

bool
acc_key_known(struct acc_str key)
{
	bool sided = is_side(key);
	struct acc_str s = sided ? (struct acc_str){key.p + 2, key.n - 2} : key;
	if (acc_str_starts(s, "x-"))
		return true;
	for (size_t i = 0; i < acc_nknown; i++)
		if (acc_str_is(acc_known[i].sided ? s : key, acc_known[i].key))
			return true;
	for (size_t i = 0; i < acc_nmetrics; i++)
		if (acc_str_is(s, acc_metrics[i]->name) && (!sided || s.p[0] == 's'))
			return true;
	return false;
}

bool
acc_key_speaks(struct acc_str key)
{
	static const char *const keys[] = {"bad", "rule", "witness", "limit", "limit_from", "why",
		"note", "what", "text", "confidence", "ranked", "comm", "err", "layout",
		"layout.raw", "m.layout", "m.skip", "m.where", "audit.skip", "audit.cause",
		"audit.changed", "audit.doubt", "audit.rule", "audit.form", "audit.round",
		"audit.part", "audit.left", "audit.open", "stack_from", "maybe", "given"};
	struct acc_str s = is_side(key) ? (struct acc_str){key.p + 2, key.n - 2} : key;
	for (size_t i = 0; i < sizeof keys / sizeof *keys; i++)
		if (acc_str_is(s, keys[i]))
			return true;
	return false;
}

int
acc_key_check(struct acc_str key, struct acc_err *e)
{
	static const char *const prefix[] = {"m.", "s.", "stat.", "audit.", "m.acu."};
	char meant[128];
	if (acc_key_known(key))
		return 0;
	for (size_t i = 0; i < sizeof prefix / sizeof *prefix; i++) {
		snprintf(meant, sizeof meant, "%s%.*s", prefix[i], ACC_PRS(key));
		if (acc_key_known(acc_str(meant)))
			return acc_fail(e, ACC_EUSAGE,
				"no program writes the key '%.*s'; is '%s'"
				" meant?",
				ACC_PRS(key), meant);
	}
	return acc_fail(e, ACC_EUSAGE,
		"no program writes the key '%.*s' (accstream(5) lists"
		" them; those that begin with x- are your own)",
		ACC_PRS(key));
}
