/* What differs between recorders: one row each. */
#include "acc/recorder.h"

static bool
is_one(const struct acc_again *g)
{
	return strcmp(g->first, g->last) == 0;
}

/* ["first", "last"], or ["first"] where that is enough. */
static const char *
names(struct acc_arena *m, const struct acc_again *g)
{
	return is_one(g) && !g->range ? acc_arena_printf(m, "[\"%s\"]", g->first)
				      : acc_arena_printf(m, "[\"%s\", \"%s\"]", g->first, g->last);
}

/* config.json. Where a producer was not recorded, it is likely one that only the highest level of risk records. */
static const char *
msprobe(struct acc_arena *m, const struct acc_again *g)
{
	const char *list = names(m, g), *where = "",
		   *task = g->statistics ? "statistics" : "tensor",
		   *risk = g->range && !g->statistics ? "\"risk_level\": \"ALL\", " : "";
	if (g->rank != INT64_MIN && g->step != INT64_MIN)
		where = acc_arena_printf(m, "\"rank\": [%lld], \"step\": [%lld], ",
			(long long)g->rank, (long long)g->step);
	return list == NULL || where == NULL
		       ? NULL
		       : acc_arena_printf(m,
				 "{\"task\": \"%s\", \"level\": \"%s\", %s%s\"%s\": {\"%s\": %s}}",
				 task, g->level, risk, where, task, g->range ? "scope" : "list",
				 list);
}

/* Calls of ptdbg_ascend's: what it records is chosen by the first, which ops by the second. */
static const char *
ptdbg(struct acc_arena *m, const struct acc_again *g)
{
	const char *list = names(m, g);
	return list == NULL
		       ? NULL
		       : acc_arena_printf(m, "%sset_dump_switch(\"ON\", mode=\"%s\", scope=%s%s)",
				 g->overflow ? "register_hook(model, acc_cmp_dump); " : "",
				 g->range ? "range" : "list", list,
				 g->statistics ? ", summary_only=True" : "");
}

/* A call of maca_tools': a half-open range. It cannot record a backward call without its forward
 * call. */
static const char *
maca(struct acc_arena *m, const struct acc_again *g)
{
	const struct acc_str first = acc_str(g->first);
	const char *from = !acc_str_ends(first, ".bwd")
				   ? g->first
				   : acc_arena_printf(m, "%.*sfwd", (int)first.n - 3, g->first);
	const char *end = g->end == NULL ? ", None" : acc_arena_printf(m, ", \"%s\"", g->end);
	return end == NULL || from == NULL
		       ? NULL
		       : acc_arena_printf(m,
				 "start_record(record_level=%d, op_range=[\"%s\"%s], skip=0)",
				 g->statistics ? 1 : 2, from, end);
}

/* Add what finds one kernel by its name, of which the dump shows "Mul.Default_Mul-op1": behind the
 * type, with _ for each /. */
static int
add_kernel(struct acc_buf *b, const char *key)
{
	const char *dot = strchr(key, '.');
	int rc = acc_buf_add(b, "\"name-regex(", 12);
	for (const char *p = dot == NULL ? key : dot + 1; *p != '\0'; p++)
		rc |= acc_buf_add(b, *p == '_' ? "." : p, 1);
	return rc | acc_buf_add(b, ")\"", 2);
}

/* The JSON of MINDSPORE_DUMP_CONFIG. It knows no range: of one, all is recorded. Inputs and outputs
 * are wanted, and not only of what overflows. */
static const char *
mindspore(struct acc_arena *m, const struct acc_again *g)
{
	struct acc_buf b = {0};
	const char *where = "", *saved = g->statistics ? "statistic" : "tensor", *text = NULL;
	int rc = 0;
	if (!g->range)
		rc |= add_kernel(&b, g->first);
	if (!g->range && !is_one(g))
		rc |= acc_buf_add(&b, ", ", 2) | add_kernel(&b, g->last);
	if (g->rank != INT64_MIN && g->step != INT64_MIN)
		where = acc_arena_printf(m, "\"iteration\": \"%lld\", \"support_device\": [%lld], ",
			(long long)g->step, (long long)g->rank);
	if (rc == 0 && where != NULL)
		text = acc_arena_printf(m,
			"{\"common_dump_settings\": {\"dump_mode\": %d, %s"
			"\"saved_data\": \"%s\", \"input_output\": 0, \"kernels\": [%.*s], "
			"\"op_debug_mode\": 0}}",
			!g->range, where, saved, (int)b.n, b.n == 0 ? "" : (const char *)b.p);
	acc_buf_release(&b);
	return text;
}

static const char *
unknown(struct acc_arena *m, const struct acc_again *g)
{
	(void)m;
	(void)g;
	return "";
}

static const struct acc_recorder recorders[] = {
	{.format = "msprobe", .risks = true, .again = msprobe},
	{.format = "ptdbg", .positional = true, .again = ptdbg},
	{.format = "maca", .again = maca},
	{.format = "record", .again = maca}, /* accrecord, whose interface is that of maca_tools */
	{.format = "mindspore", .again = mindspore},
	{.format = "", .again = unknown},
};

/* "rank0", "rank_0", "step12": a folder of these. */
static bool
is_place(const char *name, size_t n)
{
	const size_t word = n > 4 && (strncmp(name, "rank", 4) == 0 ||
					     strncmp(name, "step", 4) == 0)
				    ? 4 + (name[4] == '_')
				    : 0;
	return word > 0 && word < n && strspn(name + word, "0123456789") >= n - word;
}

/* The folder that a recorder was given, of that of a step and rank; of MindSpore's, whose next folder is the net's
 * name, *net is that. Nothing that a JSON text or Python would have to escape. */
static const char *
folder_of(struct acc_arena *m, const char *root, const char **net)
{
	size_t n = strlen(root);
	const char *rank = strstr(root, "/rank_");
	*net = "Net";
	for (const char *p = root; *p != '\0'; p++)
		if (*p == '"' || *p == '\\' || (unsigned char)*p < ' ')
			return "./again";
	if (rank != NULL) {
		const char *after = rank + 6 + strspn(rank + 6, "0123456789");
		n = (size_t)(rank - root);
		if (*after == '/')
			*net = acc_arena_copy(m, after + 1, (uint32_t)strcspn(after + 1, "/"));
	}
	for (size_t at = n; at > 0 && rank == NULL;) {
		while (at > 0 && root[at - 1] != '/')
			at--;
		if (at == 0 || !is_place(root + at, n - at))
			break;
		n = --at;
	}
	return n == 0 ? "./again" : acc_arena_printf(m, "%.*s.again", (int)n, root);
}

/* The call, within a script: where it records to, and on which rank. */
static const char *
script(struct acc_arena *m, const char *module, const char *call, const char *to,
	const struct acc_again *g)
{
	const char *open = strchr(call, '('), *step = "", *ranks = "";
	if (g->step != INT64_MIN)
		step = acc_arena_printf(m, "# before step %lld; record_switch(False) behind it\n",
			(long long)g->step);
	if (g->rank != INT64_MIN)
		ranks = acc_arena_printf(m, "ranks=[%lld], ", (long long)g->rank);
	if (open == NULL || step == NULL || ranks == NULL || to == NULL)
		return NULL;
	return acc_arena_printf(m, "%s%s\n%s(output_dir=\"%s\", %s%s\n", step,
		strcmp(module, "accrecord") == 0
			? "from accrecord import record_switch, start_record"
			: "from maca_tools.accuracy import record_switch, start_record",
		"start_record", to, ranks, open + 1);
}

const char *
acc_recorder_settings(const struct acc_recorder *by, struct acc_arena *m, const struct acc_again *g,
	const char *root, const char **name)
{
	const char *net, *how = by->again(m, g), *to = folder_of(m, root, &net);
	static const char common[] = "{\"common_dump_settings\": {";
	*name = "record.py";
	if (how == NULL || to == NULL || net == NULL || how[0] == '\0')
		return how == NULL || to == NULL || net == NULL ? NULL : "";
	if (by->again == msprobe) {
		*name = "config.json";
		return acc_arena_printf(m, "{\"dump_path\": \"%s\", %s\n", to, how + 1);
	}
	if (by->again == mindspore) {
		*name = "dump.json";
		const char *where =
			g->step == INT64_MIN || g->rank == INT64_MIN
				? "\"iteration\": \"all\", \"support_device\": [0, 1, 2, 3, 4, 5, 6, 7], "
				: "";
		const size_t n = sizeof common - 1;
		return acc_arena_printf(m,
			"%s\"path\": \"%s\", \"net_name\": \"%s\", %s%.*s,"
			" \"e2e_dump_settings\": {\"enable\": true, \"trans_flag\": true}}\n",
			common, to, net, where, (int)(strlen(how) - n - 1), how + n);
	}
	if (by->again == ptdbg) {
		const char *step =
			g->step == INT64_MIN
				? ""
				: acc_arena_printf(m,
					  "  # before step %lld; set_dump_switch(\"OFF\") behind it",
					  (long long)g->step);
		const bool hooked = strncmp(how, "register_hook", 13) == 0;
		return step == NULL
			       ? NULL
			       : acc_arena_printf(m,
					 "from ptdbg_ascend import *\nset_dump_path(\"%s\")\n%s%s%s\n",
					 to, hooked ? "" : "register_hook(model, acc_cmp_dump)\n",
					 how, step);
	}
	return script(m, strcmp(by->format, "maca") == 0 ? "maca_tools" : "accrecord", how, to, g);
}

const struct acc_recorder *
acc_recorder_of(struct acc_str format)
{
	const struct acc_recorder *r = recorders;
	while (format.n > 0 && r->format[0] != '\0' && !acc_str_is(format, r->format))
		r++;
	return r;
}

bool
acc_is_wrapper(struct acc_str name)
{
	/* Of torch's DDP, compile and FSDP; of MindSpore's cells for training. */
	return acc_word_in("module _orig_mod _fsdp_wrapped_module network_with_loss network", name);
}
