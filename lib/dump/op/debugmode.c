/* The log of torch's DebugMode: what debug_string() gives, a line a call, within the modules that it ran in,
 *
 *	  [nn.Mod] Net.fc
 *	    aten::addmm(t: f32[4], t: f32[2, 3], t: f32[3, 4])  ->  t: f32[2, 4]  # {'hash': 12.5}
 *
 * and what save_logs() writes, the same in JSON. Hashes are of log_tensor_hashes(): "norm", the L1 norm, and
 * "hash_tensor", an exclusive or. They see neither rows that change places nor, mostly, signs: behaviour
 * torch-debugmode-hash. There is nothing else of the values. */
#include "dump/op/debugmode.h"
#include "acc/json.h"
#include "dump/place.h"
#include "io/lines.h"
#include "io/literal.h"

#include <limits.h>
#include <unistd.h>

enum { SURE = 92, MODULES = 64, MODULE_NAME = 256 };
static const char json_mark[] = "torch.utils._debug_mode.DebugMode.logs";

static struct acc_str
line_of(struct acc_str *s)
{
	const char *nl = s->n == 0 ? NULL : memchr(s->p, '\n', s->n);
	const uint32_t n = nl == NULL ? s->n : (uint32_t)(nl - s->p);
	const struct acc_str line = {s->p, n};
	*s = (struct acc_str){s->p + n + (nl != NULL), s->n - n - (nl != NULL)};
	return line;
}

static uint32_t
indent(struct acc_str line)
{
	uint32_t n = 0;
	while (n < line.n && line.p[n] == ' ')
		n++;
	return n;
}

/* What stands beside the calls: modules and other marks in brackets, stacks, what DTensors do. */
static bool
is_beside(struct acc_str s)
{
	s = acc_str_trim(s);
	return s.n == 0 || acc_str_starts(s, "[") || acc_str_starts(s, "# ") ||
	       acc_str_starts(s, "redistribute_input") || acc_str_starts(s, "-> output:");
}

/* Two calls, each indented, of which one has a tensor, and nothing before it that no such log has. */
static int
probe(const struct acc_probe *p)
{
	struct acc_str s = {(const char *)p->head, (uint32_t)p->nhead};
	struct debug_call call;
	if (p->is_dir || p->nhead == 0)
		return 0;
	if (p->head[0] == '{')
		return memmem(p->head, p->nhead, json_mark, sizeof json_mark - 1) != NULL ? SURE
											  : 0;
	while (s.n > 0) {
		const struct acc_str line = line_of(&s);
		if (is_beside(line))
			continue;
		if (indent(line) < 2 || !acc_debugmode_parse(line, &call))
			return 0;
		if (acc_debugmode_has_tensor(&call))
			return SURE;
	}
	return 0;
}

/* --- text --- */

struct module {
	uint32_t indent;
	char name[MODULE_NAME];
};

static int
read_text(struct debug_log *d, struct acc_bytes *b, struct acc_err *e)
{
	struct acc_lines l = {.b = b};
	struct module in[MODULES];
	struct debug_call call;
	struct acc_str line;
	uint32_t depth = 0, lost = 0;
	int rc;
	while ((rc = acc_lines_next(&l, &line, e)) > 0) {
		struct acc_str s = acc_str_trim(line);
		static const char module[] = "[nn.Mod";
		if (s.n == 0)
			continue;
		while (depth > 0 && indent(line) <= in[depth - 1].indent)
			depth--;
		const char *end = acc_str_starts(s, module) ? memchr(s.p, ']', s.n) : NULL;
		if (end != NULL && depth < MODULES) {
			struct acc_str name = {end + 1, (uint32_t)(s.p + s.n - end - 1)};
			name = acc_str_trim(name);
			in[depth].indent = indent(line);
			snprintf(in[depth++].name, MODULE_NAME, "%.*s",
				(int)(name.n < MODULE_NAME ? name.n : MODULE_NAME - 1), name.p);
		}
		if (is_beside(line))
			continue;
		if (!acc_debugmode_parse(line, &call)) {
			lost++;
			continue;
		}
		call.scope = depth > 0 ? acc_str(in[depth - 1].name) : call.scope;
		rc = acc_debugmode_put(d, &call, e);
		if (rc < 0)
			return rc;
	}
	if (rc == 0 && lost > 0)
		rc = acc_fail(e, ACC_EFORMAT,
			"%u line%s that no call is: cut off, or mixed with other output", lost,
			lost == 1 ? "" : "s");
	return rc;
}

/* --- JSON --- */

/* A hash's numbers, as the text has them, in b. */
static int
read_hash(struct acc_json *j, struct acc_buf *b, struct acc_err *e)
{
	struct acc_json_tok t;
	bool value = false;
	int rc = acc_json_next(j, &t, e);
	if (rc <= 0)
		return rc;
	const uint32_t depth = t.depth;
	const bool open = t.type == ACC_JSON_OBJECT || t.type == ACC_JSON_ARRAY;
	while (open && (rc = acc_json_next(j, &t, e)) > 0) {
		if ((t.type == ACC_JSON_OBJECT_END || t.type == ACC_JSON_ARRAY_END) &&
			t.depth == depth)
			return 0;
		const bool number = t.type == ACC_JSON_INT || t.type == ACC_JSON_FLOAT ||
				    t.type == ACC_JSON_STRING;
		if (value && number &&
			(acc_buf_add(b, t.s.p, t.s.n) < 0 || acc_buf_add(b, " ", 1) < 0))
			return acc_nomem(e);
		value = t.type == ACC_JSON_KEY && acc_str_is(t.s, "value");
	}
	return rc < 0 ? rc : 0;
}

/* {"type": "dict", "items": [["hash", {...}], ...]} */
static int
read_log(struct acc_json *j, struct acc_buf *given, struct acc_buf *made, struct acc_err *e)
{
	struct acc_json_tok t;
	int rc = acc_json_next(j, &t, e);
	if (rc <= 0 || t.type != ACC_JSON_OBJECT)
		return rc < 0 ? rc : 0;
	const uint32_t depth = t.depth;
	while ((rc = acc_json_next(j, &t, e)) > 0) {
		if (t.type == ACC_JSON_OBJECT_END && t.depth == depth)
			return 0;
		if (t.type == ACC_JSON_STRING && acc_str_is(t.s, "hash"))
			rc = read_hash(j, made, e);
		else if (t.type == ACC_JSON_STRING && acc_str_is(t.s, "input_hash"))
			rc = read_hash(j, given, e);
		if (rc < 0)
			return rc;
	}
	return rc;
}

enum { OP, ARGS, KWARGS, MADE, NTEXTS };

/* One call, whose brace was read. */
static int
read_call(struct debug_log *d, struct acc_json *j, uint32_t depth, struct acc_buf *text,
	struct acc_err *e)
{
	static const char *const keys[] = {"op_name", "args_str", "kwargs_str", "output_str"};
	struct acc_json_tok t;
	int rc, which = -1;
	for (int i = 0; i < NTEXTS + 2; i++)
		text[i].n = 0;
	while ((rc = acc_json_next(j, &t, e)) > 0) {
		if (t.type == ACC_JSON_OBJECT_END && t.depth == depth)
			break;
		if (t.type == ACC_JSON_KEY && acc_str_is(t.s, "log")) {
			rc = read_log(j, &text[NTEXTS], &text[NTEXTS + 1], e);
			which = -1;
		} else if (t.type == ACC_JSON_KEY) {
			which = -1;
			for (int i = 0; i < NTEXTS; i++)
				which = acc_str_is(t.s, keys[i]) ? i : which;
		} else if (t.type == ACC_JSON_STRING && which >= 0 &&
			   acc_buf_add(&text[which], t.s.p, t.s.n) < 0) {
			rc = acc_nomem(e);
		}
		if (rc < 0)
			return rc;
	}
	if (rc <= 0 || text[OP].n == 0)
		return rc < 0 ? rc : 0;
	if (acc_buf_add(&text[ARGS], text[KWARGS].p, text[KWARGS].n) < 0)
		return acc_nomem(e);
	struct acc_str part[NTEXTS + 2];
	for (int i = 0; i < NTEXTS + 2; i++)
		part[i] = (struct acc_str){(const char *)text[i].p, (uint32_t)text[i].n};
	part[MADE] = acc_str_trim(part[MADE]);
	if (acc_str_starts(part[MADE], "->"))
		part[MADE] = acc_str_trim((struct acc_str){part[MADE].p + 2, part[MADE].n - 2});
	const struct debug_call call = {.op = part[OP],
		.args = part[ARGS],
		.out = part[MADE],
		.given = part[NTEXTS],
		.made = part[NTEXTS + 1]};
	return acc_debugmode_put(d, &call, e);
}

static int
read_json(struct debug_log *d, struct acc_bytes *b, struct acc_err *e)
{
	struct acc_json *j = acc_json_open(b, false, e);
	struct acc_buf text[NTEXTS + 2] = {{0}};
	struct acc_json_tok t;
	bool logs = false;
	int rc = j == NULL ? ACC_ENOMEM : 0;
	while (rc >= 0 && (rc = acc_json_next(j, &t, e)) > 0) {
		if (t.type == ACC_JSON_KEY && t.depth == 1)
			logs = acc_str_is(t.s, "logs");
		else if (t.type == ACC_JSON_OBJECT && t.depth == 2 && logs)
			rc = read_call(d, j, t.depth, text, e);
	}
	for (int i = 0; i < NTEXTS + 2; i++)
		acc_buf_release(&text[i]);
	acc_json_close(j);
	return rc;
}

static int
read_debugmode(struct acc_dump_ctx *c, const char *path, struct acc_err *e)
{
	struct debug_log d = {.c = c};
	char dir[PATH_MAX];
	const char *file;
	uint8_t first = 0;
	int fd = acc_dump_open_file(path, dir, &file, e);
	if (fd < 0)
		return fd;
	const struct acc_source s = {.root = dir,
		.format = "debugmode",
		.framework = "pytorch",
		.task = "statistics",
		ACC_NO_PLACE};
	const int64_t n = acc_file_peek(fd, &first, 1, 0, e);
	struct acc_bytes *b = acc_bytes_open(fd, path, true, e);
	int rc = n < 0 ? (int)n : b == NULL ? ACC_EIO : acc_dump_source(c, &s, e);
	if (rc == 0 && first == '{') {
		rc = read_json(&d, b, e);
	} else {
		rc = rc == 0 ? read_text(&d, b, e) : rc;
		acc_bytes_close(b);
	}
	if (rc == 0 && d.calls == 0)
		rc = acc_fail(e, ACC_EFORMAT, "no call in it");
	if (d.calls > 0 && d.hashed == 0)
		acc_dump_note(c, path,
			"no hashes in it: record within DebugMode.log_tensor_hashes(hash_inputs=True)");
	acc_map_release(&d.nth);
	acc_arena_release(&d.mem);
	return rc;
}

const struct acc_dump acc_dump_debugmode = {
	.name = "debugmode",
	.help = "the log of torch's DebugMode, by debug_string() or save_logs()",
	.probe = probe,
	.read = read_debugmode,
};
