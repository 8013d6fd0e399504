/* What a recorder is asked to record again: in its own words, chosen by the dump's format. */
#include <string.h>

#include "acc/judge.h"
#include "acc/recorder.h"
#include "tap.h"

static struct acc_arena mem;

static void
says(const char *format, const struct acc_again *g, const char *want)
{
	const char *got = acc_recorder_of(acc_str(format))->again(&mem, g);
	ok(got != NULL && strcmp(got, want) == 0, "%s: %s", format, got == NULL ? "nothing" : got);
}

/* The whole file: of that name, this text. */
static void
writes(const char *format, const struct acc_again *g, const char *root, const char *name,
	const char *want)
{
	const char *file = "", *got = acc_recorder_settings(acc_recorder_of(acc_str(format)), &mem,
				       g, root, &file);
	ok(got != NULL && strcmp(got, want) == 0 && (want[0] == '\0' || strcmp(file, name) == 0),
		"%s, %s: %s", format, file, got == NULL ? "nothing" : got);
}

static void
settings(void)
{
	const struct acc_again one = {.first = "Mul.Default_Mul-op1",
		.last = "Mul.Default_Mul-op1",
		.level = "L1",
		.step = 5,
		.rank = 2};
	struct acc_again any = one;
	any.step = any.rank = INT64_MIN;
	writes("mindspore", &one, "/d/npu/rank_2/Llama/0/5", "dump.json",
		"{\"common_dump_settings\": {\"path\": \"/d/npu.again\", \"net_name\": \"Llama\", "
		"\"dump_mode\": 1, \"iteration\": \"5\", \"support_device\": [2], "
		"\"saved_data\": \"tensor\", \"input_output\": 0, "
		"\"kernels\": [\"name-regex(Default.Mul-op1)\"], \"op_debug_mode\": 0}, "
		"\"e2e_dump_settings\": {\"enable\": true, \"trans_flag\": true}}\n");
	writes("mindspore", &any, "/d/npu", "dump.json",
		"{\"common_dump_settings\": {\"path\": \"/d/npu.again\", \"net_name\": \"Net\", "
		"\"iteration\": \"all\", \"support_device\": [0, 1, 2, 3, 4, 5, 6, 7], "
		"\"dump_mode\": 1, \"saved_data\": \"tensor\", \"input_output\": 0, "
		"\"kernels\": [\"name-regex(Default.Mul-op1)\"], \"op_debug_mode\": 0}, "
		"\"e2e_dump_settings\": {\"enable\": true, \"trans_flag\": true}}\n");
	writes("msprobe", &any, "/d/npu/step0/rank12", "config.json",
		"{\"dump_path\": \"/d/npu.again\", \"task\": \"tensor\", \"level\": \"L1\", "
		"\"tensor\": {\"list\": [\"Mul.Default_Mul-op1\"]}}\n");
	writes("maca", &any, "/d/npu", "record.py",
		"from maca_tools.accuracy import record_switch, start_record\n"
		"start_record(output_dir=\"/d/npu.again\", record_level=2, "
		"op_range=[\"Mul.Default_Mul-op1\", None], skip=0)\n");
	writes("npy", &any, "/d", "", "");
}

static void
again(void)
{
	const struct acc_again one = {.first = "Torch.mm.3.forward",
		.last = "Torch.mm.3.forward",
		.end = "Torch.mm.4.forward",
		.level = "L1",
		.step = INT64_MIN,
		.rank = INT64_MIN};
	struct acc_again two = one, range = one, stat = one, kernel = one, here = one;
	two.first = range.first = "Torch.add.0.forward";
	range.range = stat.range = stat.statistics = true;
	here.step = 5;
	here.rank = 2;
	says("msprobe", &one,
		"{\"task\": \"tensor\", \"level\": \"L1\", "
		"\"tensor\": {\"list\": [\"Torch.mm.3.forward\"]}}");
	says("msprobe", &two,
		"{\"task\": \"tensor\", \"level\": \"L1\", "
		"\"tensor\": {\"list\": [\"Torch.add.0.forward\", \"Torch.mm.3.forward\"]}}");
	says("msprobe", &stat,
		"{\"task\": \"statistics\", \"level\": \"L1\", "
		"\"statistics\": {\"scope\": [\"Torch.mm.3.forward\", \"Torch.mm.3.forward\"]}}");
	says("msprobe", &here,
		"{\"task\": \"tensor\", \"level\": \"L1\", \"rank\": [2], "
		"\"step\": [5], \"tensor\": {\"list\": [\"Torch.mm.3.forward\"]}}");
	says("", &one,
		"{\"task\": \"tensor\", \"level\": \"L1\", "
		"\"tensor\": {\"list\": [\"Torch.mm.3.forward\"]}}");
	/* Its last version joins by dots, as msprobe does. */
	says("ptdbg", &one,
		"set_dump_switch(\"ON\", mode=\"list\", scope=[\"Torch.mm.3.forward\"])");
	says("ptdbg", &range,
		"set_dump_switch(\"ON\", mode=\"range\", "
		"scope=[\"Torch.add.0.forward\", \"Torch.mm.3.forward\"])");
	says("ptdbg", &stat,
		"set_dump_switch(\"ON\", mode=\"range\", scope=[\"Torch.mm.3.forward\", "
		"\"Torch.mm.3.forward\"], summary_only=True)");
	says("maca", &range,
		"start_record(record_level=2, op_range=[\"Torch.add.0.forward\", "
		"\"Torch.mm.4.forward\"], skip=0)");
	says("record", &range,
		"start_record(record_level=2, op_range=[\"Torch.add.0.forward\", "
		"\"Torch.mm.4.forward\"], skip=0)");
	struct acc_again back = one, overflow = one;
	back.first = back.last = "torch.mul.3.bwd";
	says("maca", &back,
		"start_record(record_level=2, op_range=[\"torch.mul.3.fwd\", "
		"\"Torch.mm.4.forward\"], skip=0)");
	overflow.overflow = true;
	says("ptdbg", &overflow,
		"register_hook(model, acc_cmp_dump); "
		"set_dump_switch(\"ON\", mode=\"list\", scope=[\"Torch.mm.3.forward\"])");
	stat.end = NULL;
	says("maca", &stat,
		"start_record(record_level=1, op_range=[\"Torch.mm.3.forward\", None], "
		"skip=0)");
	kernel.first = kernel.last = "Mul.Default_Mul-op1";
	says("mindspore", &kernel,
		"{\"common_dump_settings\": {\"dump_mode\": 1, "
		"\"saved_data\": \"tensor\", \"input_output\": 0, "
		"\"kernels\": [\"name-regex(Default.Mul-op1)\"], \"op_debug_mode\": 0}}");
	kernel.first = "Add.Default_Add-op0";
	kernel.step = 5;
	kernel.rank = 2;
	says("mindspore", &kernel,
		"{\"common_dump_settings\": {\"dump_mode\": 1, "
		"\"iteration\": \"5\", \"support_device\": [2], \"saved_data\": \"tensor\", \"input_output\": 0, \"kernels\": "
		"[\"name-regex(Default.Add-op0)\", \"name-regex(Default.Mul-op1)\"], "
		"\"op_debug_mode\": 0}}");
	kernel.range = kernel.statistics = true;
	kernel.step = INT64_MIN;
	says("mindspore", &kernel,
		"{\"common_dump_settings\": {\"dump_mode\": 0, "
		"\"saved_data\": \"statistic\", \"input_output\": 0, \"kernels\": [], \"op_debug_mode\": 0}}");
	says("atb", &one, "");
}

static void
traits(void)
{
	ok(acc_recorder_of(acc_str("ptdbg"))->positional, "ptdbg leaves keywords out");
	ok(!acc_recorder_of(acc_str("msprobe"))->positional &&
			!acc_recorder_of(acc_str("ascend"))->positional,
		"others do not");
	ok(acc_is_wrapper(acc_str("module")) && acc_is_wrapper(acc_str("network")) &&
			!acc_is_wrapper(acc_str("modules")) && !acc_is_wrapper(acc_str("")),
		"wrappers");
}

/* A stream of statistics from a dump of this format: what the judge wants recorded next. */
static void
judged(const char *format, const char *want)
{
	struct acc_err e = {0};
	struct acc_judge_opt opt = {.tmpdir = "/tmp"};
	struct acc_rd *rd = acc_rd_open("tests/data/judge/stat-culprit.acc", &e);
	struct acc_case *c = acc_case_open(&opt, &e);
	struct acc_rec *r;
	int rc = rd == NULL || c == NULL ? -1 : 0;
	while (rc == 0 && (rc = acc_rd_next(rd, &r, &e)) == 1) {
		if (acc_rec_is(r, "source"))
			acc_put(r, "", "format", acc_ctext(format));
		rc = acc_case_add(c, r, &e);
	}
	const char *text = NULL;
	if (rc == 0 && acc_case_judge(c, &e) == 0)
		for (uint32_t i = 0; i < c->nfinding; i++)
			if (strcmp(c->finding[i].what, "next") == 0)
				text = c->finding[i].text;
	ok(text != NULL && strstr(text, want) != NULL, "%s: %s", format,
		text == NULL ? e.msg : text);
	acc_case_close(c);
	acc_rd_close(rd);
}

int
main(void)
{
	again();
	settings();
	traits();
	judged("msprobe", " sides, {\"task\": \"tensor\", ");
	judged("ptdbg", " sides, set_dump_switch(\"ON\", mode=\"list\", "
			"scope=[\"Functional.gelu.1.forward\"]): ");
	judged("maca", " sides, start_record(record_level=2, "
		       "op_range=[\"Functional.gelu.1.forward\", None], skip=0): ");
	judged("mindspore", " sides, {\"common_dump_settings\": {\"dump_mode\": 1, ");
	judged("atb", " on both sides: statistics ");
	acc_arena_release(&mem);
	return done();
}
