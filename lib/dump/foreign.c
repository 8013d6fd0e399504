/* What lies in run folders and is not read. A name says more than "unrecognised format". */
#include "dump/foreign.h"

#include "acc/say.h"

struct magic {
	const char *bytes;
	size_t n, at;
	struct foreign f;
};
#define AT(at, bytes, what, advice) \
	{ \
		bytes, sizeof bytes - 1, at, \
		{ \
			what, advice \
		} \
	}
static const char npz[] = ACC_MSG("save its arrays by numpy.savez, or as .safetensors");
static const char decompress[] = ACC_MSG("decompress it");
static const struct magic magics[] = {
	AT(0, "BZh9", "bzip2", decompress),
	AT(0,
		"\xfd"
		"7zXZ\0",
		"xz", decompress),
	AT(0, "\x28\xb5\x2f\xfd", "zstd", decompress),
	AT(0, "7z\xbc\xaf\x27\x1c", "7-Zip", decompress),
	AT(0, "Rar!\x1a\x07", "RAR", decompress),
	AT(0, "\x04\x22\x4d\x18", "LZ4", decompress),
	AT(0, "PAR1", "Parquet",
		ACC_MSG("save it as CSV, or the samples of a rollout as JSON: python3 -m accrecord.samples")),
	AT(0, "ARROW1", "Arrow", ACC_MSG("save it as CSV")),
	AT(0, "SQLite format 3", "SQLite", ACC_MSG("save its table as CSV")),
	AT(0, "%PDF-", "PDF", NULL),
	AT(0, "\x89PNG\r\n\x1a\n", ACC_MSG("a picture"), NULL),
	AT(0, "\xff\xd8\xff", ACC_MSG("a picture"), NULL),
	AT(0, "GIF8", ACC_MSG("a picture"), NULL),
	AT(0,
		"\x7f"
		"ELF",
		ACC_MSG("a program"), NULL),
	AT(4, "ftyp", ACC_MSG("a film"), NULL),
	AT(4, "TFL3", "TensorFlow Lite", npz),
	/* The first byte says which cipher. */
	AT(1, "\x5e\x3a\x7f", ACC_MSG("a checkpoint that MindSpore encrypted"),
		ACC_MSG("load it by mindspore.load_checkpoint with dec_key, and save it without enc_key")),
	AT(5, "\x12\x09MindSpore", "MindIR",
		ACC_MSG("save the weights of the network by mindspore.save_checkpoint")),
};

const struct foreign *
acc_foreign(const uint8_t *head, size_t n)
{
	for (size_t i = 0; i < sizeof magics / sizeof *magics; i++)
		if (n >= magics[i].at + magics[i].n &&
			memcmp(head + magics[i].at, magics[i].bytes, magics[i].n) == 0)
			return &magics[i].f;
	return NULL;
}

/* --- by name --- */

static const struct {
	const char *globs, *what;
} clutter[] = {
	{"*.md *.rst LICENSE* NOTICE* *.html *.htm", ACC_MSG("text for people")},
	{"tokenizer*.json vocab*.json vocab.txt merges.txt special_tokens_map.json added_tokens.json"
	 " *.tiktoken *.spm spiece.model tokenizer.model *.vocab chat_template*",
		ACC_MSG("a tokenizer's")},
	{"all_results.json train_results.json eval_results.json test_results.json predict_results.json"
	 " wandb-summary.json",
		ACC_MSG("results of the whole run")},
	{"wandb-metadata.json wandb-history.jsonl debug*.log swanlab-metadata.json mlflow.user mlflow.source.* mlflow.runName"
	 " mlflow.log-model* mlflow.note* mlflow.parentRunId mlflow.project*",
		ACC_MSG("a tracker's own")},
	{"hydra.yaml", ACC_MSG("a launcher's own")},
	{"rng_state*.pth random_states_*.pkl", ACC_MSG("states of generators of random numbers")},
	{"scheduler.pt scheduler.bin scaler.pt", ACC_MSG("a scheduler's state")},
	{"*.pyc *.patch *.diff *.lock *.pid", ACC_MSG("no result")},
};

static bool
is_one_of(const char *globs, struct acc_str base)
{
	char glob[64];
	for (const char *g = globs; *g != '\0'; g += *g == ' ') {
		const size_t n = strcspn(g, " ");
		snprintf(glob, sizeof glob, "%.*s", (int)n, g);
		if (acc_glob(glob, base))
			return true;
		g += n;
	}
	return false;
}

/* A recorder's stacks: Python's frames as JSON, "File a.py, line 3, in f". */
bool
acc_foreign_stacks(struct acc_str base, const uint8_t *head, size_t n)
{
	static const char frame[] = "\"File ";
	const struct acc_str text = {(const char *)head, (uint32_t)n};
	const char *at = n == 0 || !acc_str_ends(base, "stack.json")
				 ? NULL
				 : memmem(text.p, text.n, frame, sizeof frame - 1);
	const size_t rest = at == NULL ? 0 : (size_t)(text.p + text.n - at);
	const char *line = at == NULL ? NULL : memmem(at, rest, ", line ", 7);
	return line != NULL && memchr(at + 1, '"', (size_t)(line - at - 1)) == NULL;
}

/* Does a line begin so? */
static bool
has_line(struct acc_str text, const char *start)
{
	for (uint32_t at = 0; at < text.n;) {
		const struct acc_str rest = {text.p + at, text.n - at};
		const char *nl = memchr(rest.p, '\n', rest.n);
		if (acc_str_starts(rest, start))
			return true;
		at = nl == NULL ? text.n : (uint32_t)(nl - text.p) + 1;
	}
	return false;
}

const char *
acc_run_clutter(struct acc_str base, const uint8_t *head, size_t n)
{
	const struct acc_str text = {(const char *)head, (uint32_t)n};
	for (size_t i = 0; i < sizeof clutter / sizeof *clutter; i++)
		if (is_one_of(clutter[i].globs, base))
			return clutter[i].what;
	if (acc_foreign_stacks(base, head, n))
		return ACC_MSG("a recorder's stacks");
	if (acc_str_is(base, "meta.yaml") &&
		(has_line(text, "artifact_uri:") || has_line(text, "artifact_location:")))
		return ACC_MSG("a tracker's own");
	if (acc_str_ends(base, ".py") && (has_line(text, "def ") || has_line(text, "class ")))
		return ACC_MSG("a program");
	return NULL;
}

bool
acc_foreign_results(struct acc_str base)
{
	return acc_str_ends(base, "results.json") || acc_str_ends(base, "metrics.json");
}
