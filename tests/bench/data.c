/* Makes the dumps that the benchmarks read: the folders DIR/a and DIR/b, as msprobe lays them
 * out, alike but for noise.
 *
 *	data npy|pt DTYPE COUNT BYTES DIR	COUNT tensors of BYTES bytes on each side
 *	data stats OPS DIR			statistics of OPS op calls, of 5 records each
 *	data alike|differ|names|shapes|random|values|sites OPS DIR
 *						OPS op calls, of 2 records each, and but for alike and sites
 *						half as many more on the bench: see struct unlike
 */
#include <inttypes.h>
#include <libdeflate.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "ptfile.h"

enum { POOL = 1 << 22, PIECE = 1 << 20 };

static void
die(const char *what)
{
	perror(what);
	exit(2);
}

static FILE *
create(const char *dir, const char *name)
{
	char *path;
	FILE *f = asprintf(&path, "%s/%s", dir, name) < 0 ? NULL : fopen(path, "w");
	if (f == NULL)
		die(path);
	free(path);
	return f;
}

static void
finish(FILE *f)
{
	if (fclose(f) != 0)
		die("write");
}

static char *
folder(const char *dir, const char *name)
{
	char *path;
	if (asprintf(&path, "%s/%s", dir, name) < 0 || mkdir(path, 0777) < 0)
		die(dir);
	return path;
}

/* DIR/a/step0/rank0 or DIR/b/step0/rank0 */
static char *
rank_folder(const char *dir, int side)
{
	return folder(folder(folder(dir, side == 0 ? "a" : "b"), "step0"), "rank0");
}

static uint64_t state = 88172645463325252u;

static uint64_t
rnd(void)
{
	state ^= state << 13;
	state ^= state >> 7;
	state ^= state << 17;
	return state;
}

static double
normal(void) /* nearly */
{
	double s = 0;
	for (int i = 0; i < 4; i++, s -= 0.5)
		s += (double)(rnd() >> 11) * 0x1p-53;
	return s * 1.7320508;
}

/* --- tensors --- */

static const struct dtype {
	const char *name, *raw, *npy, *storage;
	size_t size;
} dtypes[] = {
	{"f32", "torch.float32", "<f4", "FloatStorage", 4},
	{"f16", "torch.float16", "<f2", "HalfStorage", 2},
	{"bf16", "torch.bfloat16", NULL, "BFloat16Storage", 2},
};

static void
store(const struct dtype *t, float v, uint8_t *to)
{
	uint32_t u;
	memcpy(&u, &v, sizeof u);
	if (t->size == 4) {
		memcpy(to, &u, 4);
		return;
	}
	if (t->name[0] == 'b') {
		u = (u + 0x7fff + (u >> 16 & 1)) >> 16;
	} else { /* too small for a normal number is 0, too large does not occur */
		uint32_t sign = u >> 16 & 0x8000, mag = (u & 0x7fffffff) + 0xfff + (u >> 13 & 1);
		u = mag < 113u << 23 ? sign : sign | ((mag - (112u << 23)) >> 13 & 0x7fff);
	}
	to[0] = (uint8_t)u;
	to[1] = (uint8_t)(u >> 8);
}

/* Both sides' elements; every tensor is made of pieces of these. */
static uint8_t *pool[2];

static void
fill_pool(const struct dtype *t)
{
	for (int s = 0; s < 2; s++)
		if ((pool[s] = malloc(POOL * t->size)) == NULL)
			die("malloc");
	for (size_t i = 0; i < POOL; i++) {
		double b = normal(), a = b * (1 + 3e-4 * normal());
		store(t, (float)a, pool[0] + i * t->size);
		store(t, (float)b, pool[1] + i * t->size);
	}
}

/* n bytes of tensor number `no`; f NULL: only their checksum. */
static uint32_t
payload(FILE *f, int side, uint64_t no, uint64_t n)
{
	uint64_t at = no * 7919 * 64;
	uint32_t crc = 0;
	for (uint64_t k; n > 0; n -= k, at += PIECE + 4096) {
		k = n < PIECE ? n : PIECE;
		const uint8_t *p = pool[side] + at % (POOL * 2 - PIECE) / 64 * 64;
		if (f == NULL)
			crc = libdeflate_crc32(crc, p, k);
		else if (fwrite(p, 1, k, f) != k)
			die("write");
	}
	return crc;
}

/* Rows of 64 elements, if that divides. */
static uint64_t
columns(uint64_t count)
{
	return count % 64 == 0 ? 64 : 1;
}

static void
write_npy(FILE *f, const struct dtype *t, int side, uint64_t no, uint64_t bytes)
{
	char head[128];
	uint64_t count = bytes / t->size, cols = columns(count);
	int n = snprintf(head, sizeof head,
		"%cNUMPY%c%c%c%c{'descr': '%s', "
		"'fortran_order': False, 'shape': (%" PRIu64 ", %" PRIu64 "), }",
		0x93, 1, 0, 118, 0, t->npy, count / cols, cols);
	memset(head + n, ' ', sizeof head - (size_t)n);
	head[127] = '\n';
	head[7] = 0;
	if (fwrite(head, 1, sizeof head, f) != sizeof head)
		die("write");
	payload(f, side, no, bytes);
}

static void
write_pt(FILE *f, const struct dtype *t, int side, uint64_t no, uint64_t bytes)
{
	struct bytes pk = {.n = 0};
	uint64_t pos = 0;
	uint64_t cols = columns(bytes / t->size), shape[] = {bytes / t->size / cols, cols};
	pickle(&pk, t->storage, shape, 2);
	struct member m[3] = {
		{"archive/data.pkl", libdeflate_crc32(0, pk.p, pk.n), (uint32_t)pk.n, 0},
		{"archive/data/0", payload(NULL, side, no, bytes), (uint32_t)bytes, 0},
		{"archive/version", libdeflate_crc32(0, "3\n", 2), 2, 0},
	};
	local(f, &m[0], &pos);
	fwrite(pk.p, 1, pk.n, f);
	local(f, &m[1], &pos);
	payload(f, side, no, bytes);
	local(f, &m[2], &pos);
	fputs("3\n", f);
	directory(f, m, 3, pos);
}

static void
tensor_json(FILE *f, const struct dtype *t, uint64_t bytes, const char *file)
{
	uint64_t count = bytes / t->size, cols = columns(count);
	fprintf(f,
		"    {\n     \"type\": \"torch.Tensor\",\n     \"dtype\": \"%s\",\n"
		"     \"shape\": [\n      %" PRIu64 ",\n      %" PRIu64 "\n     ],\n"
		"     \"Max\": 3.25,\n     \"Min\": -3.125,\n     \"Mean\": 0.0001,\n"
		"     \"Norm\": 10.5,\n     \"requires_grad\": true,\n"
		"     \"data_name\": \"%s\"\n    }\n",
		t->raw, count / cols, cols, file);
}

/* Op calls of an input and an output. */
static void
tensors(const struct dtype *t, bool pt, uint64_t count, uint64_t bytes, const char *dir)
{
	fill_pool(t);
	for (int side = 0; side < 2; side++) {
		const char *rank = rank_folder(dir, side), *data = folder(rank, "dump_tensor_data");
		FILE *j = create(rank, "dump.json");
		fprintf(j,
			"{\n \"task\": \"tensor\",\n \"level\": \"L1\",\n \"framework\": "
			"\"pytorch\",\n \"dump_data_dir\": \"%s\",\n \"data\": {\n",
			data);
		for (uint64_t i = 0; i < count; i++) {
			char name[80];
			bool out = i % 2 == 1 || count == 1;
			snprintf(name, sizeof name, "Functional.linear.%" PRIu64 ".forward.%s.0.%s",
				i / 2, out ? "output" : "input", pt ? "pt" : "npy");
			FILE *f = create(data, name);
			setvbuf(f, NULL, _IOFBF, 1 << 16);
			(pt ? write_pt : write_npy)(f, t, side, i, bytes);
			finish(f);
			if (!out)
				fprintf(j,
					"%s  \"Functional.linear.%" PRIu64 ".forward\": {\n"
					"   \"input_args\": [\n",
					i > 0 ? ",\n" : "", i / 2);
			if (out && count == 1)
				fputs("  \"Functional.linear.0.forward\": {\n", j);
			if (out)
				fputs(count == 1 ? "   \"output\": [\n"
						 : "   ],\n   \"input_kwargs\": "
						   "{},\n   \"output\": [\n",
					j);
			tensor_json(j, t, bytes, name);
			if (out || i + 1 == count)
				fputs("   ]\n  }", j);
		}
		fputs("\n }\n}\n", j);
		finish(j);
	}
}

/* --- statistics --- */

static void
stat_json(FILE *f, int side, bool last)
{
	fputs("    {\n     \"type\": \"torch.Tensor\",\n     \"dtype\": \"torch.bfloat16\",\n"
	      "     \"shape\": [\n      4096,\n      1,\n      8192\n     ],\n",
		f);
	static const char *const key[] = {"Max", "Min", "Mean", "Norm"};
	static const double about[] = {5, -5, 1e-3, 5793};
	for (int i = 0; i < 4; i++) {
		/* As item() of a tensor of f32: so are 9 of 10 in dumps of real networks. */
		float b = (float)(about[i] + fabs(about[i]) * 0.1 * normal()),
		      a = (float)(b * (1 + 1e-6 * normal()));
		fprintf(f, "     \"%s\": %.17g,\n", key[i], side == 0 ? a : b);
	}
	fprintf(f, "     \"requires_grad\": true\n    }%s\n", last ? "" : ",");
}

static void
op_name(char *out, size_t size, uint64_t i, uint64_t ops)
{
	static const char *const api[] = {"Functional.linear", "Tensor.__add__",
		"Functional.softmax", "Torch.matmul", "Tensor.view"};
	bool back = i >= (ops + 1) / 2;
	uint64_t k = back ? ops - 1 - i : i; /* backward calls in reverse */
	if (k % 3 == 0)
		snprintf(out, size,
			"Module.module.layers.%" PRIu64 ".self_attention.proj.Linear.%s.%" PRIu64,
			k / 96, back ? "backward" : "forward", k % 96 / 3);
	else
		snprintf(out, size, "%s.%" PRIu64 ".%s", api[k % 5], k / 5,
			back ? "backward" : "forward");
}

static void
stats_json(FILE *f, int side, uint64_t ops)
{
	char name[128];
	state = 88172645463325252u;
	fputs("{\n \"task\": \"statistics\",\n \"level\": \"mix\",\n \"framework\": \"pytorch\",\n"
	      " \"dump_data_dir\": null,\n \"data\": {\n",
		f);
	for (uint64_t i = 0; i < ops; i++) {
		op_name(name, sizeof name, i, ops);
		fprintf(f, "  \"%s\": {\n   \"input_args\": [\n", name);
		stat_json(f, side, false);
		stat_json(f, side, false);
		fprintf(f,
			"    {\n     \"type\": \"int\",\n     \"value\": %" PRIu64 "\n    }\n"
			"   ],\n   \"input_kwargs\": {\n    \"inplace\": {\n     \"type\": \"bool\",\n"
			"     \"value\": false\n    }\n   },\n   \"output\": [\n",
			i % 7);
		stat_json(f, side, true);
		fprintf(f, "   ]\n  }%s\n", i + 1 < ops ? "," : "");
	}
	fputs(" }\n}\n", f);
}

/* Every hundred op calls share a stack. */
static void
stack_json(FILE *f, uint64_t ops)
{
	char name[128];
	fputs("{\n", f);
	for (uint64_t i = 0; i < ops; i++) {
		op_name(name, sizeof name, i, ops);
		if (i % 100 == 0)
			fprintf(f, " \"%" PRIu64 "\": [\n  [\n", i / 100);
		bool last = i % 100 == 99 || i + 1 == ops;
		fprintf(f, "   \"%s\"%s\n", name, last ? "" : ",");
		if (!last)
			continue;
		fputs("  ],\n  [\n", f);
		for (int k = 0; k < 20; k++)
			fprintf(f,
				"   \"File /train/model/part%d.py, line %" PRIu64 ", in forward, "
				"\\n return self.f(x)\"%s\n",
				k % 7, i / 100 + (uint64_t)k, k < 19 ? "," : "");
		fprintf(f, "  ]\n ]%s\n", i + 1 < ops ? "," : "");
	}
	fputs("}\n", f);
}

static void
construct_json(FILE *f, uint64_t ops)
{
	char name[128], parent[128];
	fputs("{\n", f);
	for (uint64_t i = 0; i < ops; i++) {
		op_name(name, sizeof name, i, ops);
		op_name(parent, sizeof parent, i / 3 * 3, ops);
		fprintf(f, " \"%s\": \"%s\"%s\n", name, parent, i + 1 < ops ? "," : "");
	}
	fputs("}\n", f);
}

static void
statistics(uint64_t ops, const char *dir)
{
	for (int side = 0; side < 2; side++) {
		const char *rank = rank_folder(dir, side);
		FILE *f = create(rank, "dump.json");
		stats_json(f, side, ops);
		finish(f);
		f = create(rank, "stack.json");
		stack_json(f, ops);
		finish(f);
		f = create(rank, "construct.json");
		construct_json(f, ops);
		finish(f);
	}
}

/* --- op calls that hardly pair --- */

static const struct unlike {
	const char *kind;
	bool names,
		shapes; /* each call has its own, another one on the other side; else one of ten, of eight */
	bool values; /* those of the sides are far apart; else by chance */
	bool sites;  /* each call has its own line, of other words on the other side */
	bool alike;  /* all is the same but for noise, sides are as long */
} unlike[] = {
	{.kind = "alike", .alike = true},
	{.kind = "differ", .names = true, .shapes = true},
	{.kind = "names", .names = true},
	{.kind = "shapes", .shapes = true},
	{.kind = "random"},
	{.kind = "values", .names = true, .values = true},
	{.kind = "sites", .sites = true},
};

static void
unlike_tensor(FILE *f, const struct unlike *u, int side, uint64_t i, uint64_t shape)
{
	const double far = u->values ? pow(10, side == 0 ? 9 + 4 * normal() : -9 + 4 * normal())
				     : 1;
	const double max = far * (4 + normal()), noise = side == 0 ? 1 + 1e-6 * normal() : 1;
	fprintf(f,
		"[{\"type\": \"torch.Tensor\", \"dtype\": \"torch.float32\", \"shape\": [%" PRIu64
		", %d], \"Max\": %.17g, \"Min\": %.17g, \"Mean\": %.17g, \"Norm\": %.17g, "
		"\"requires_grad\": false}]",
		u->shapes ? i + 1 : shape, u->shapes && side == 1 ? 5 : 3, max * noise,
		-max * noise, 0.1 * normal() * far * noise, 3 * max * noise);
}

static void
unlike_call(FILE *f, FILE *stacks, const struct unlike *u, int side, uint64_t i)
{
	static const char *const api[] = {"matmul", "add", "mul", "softmax", "gelu", "relu", "exp",
		"sum", "layer_norm", "cat"};
	const uint64_t which = rnd() % 10, shape = rnd() % 8 + 1;
	char name[64];
	if (u->names)
		snprintf(name, sizeof name, "Torch.%c%" PRIu64 ".0.forward", 'a' + side, i);
	else
		snprintf(name, sizeof name, "Torch.%s.%" PRIu64 ".forward", api[which], i);
	fprintf(f, "%s\n  \"%s\": {\"input_args\": ", i > 0 ? "," : "", name);
	unlike_tensor(f, u, side, i, shape);
	fputs(", \"input_kwargs\": {}, \"output\": ", f);
	unlike_tensor(f, u, side, i, shape);
	fputs("}", f);
	if (u->sites)
		fprintf(stacks,
			"%s\n \"%" PRIu64 "\": [[\"%s\"], [\"File /train/model.py, line %" PRIu64
			", in f%" PRIu64 ", \\n %c%" PRIu64 " = self.layer%" PRIu64 "(x)\", "
			"\"File /train/train.py, line 5, in main, \\n loss = model%" PRIu64
			"(x)\"]]",
			i > 0 ? "," : "", i, name, i, i % 97, 'u' + side, i, i, i % 7);
}

static void
unlike_sides(const struct unlike *u, uint64_t ops, const char *dir)
{
	for (int side = 0; side < 2; side++) {
		const char *rank = rank_folder(dir, side);
		const bool same = u->alike || u->sites;
		FILE *f = create(rank, "dump.json"), *stacks = create(rank, "stack.json");
		state = 88172645463325252u + (same ? 0 : (uint64_t)side);
		fputs("{\"task\": \"statistics\", \"level\": \"L1\", \"framework\": \"pytorch\", "
		      "\"dump_data_dir\": null, \"data\": {",
			f);
		fputs("{", stacks);
		for (uint64_t i = 0; i < (side == 0 || same ? ops : ops * 3 / 2); i++)
			unlike_call(f, stacks, u, side, i);
		fputs("}}\n", f);
		fputs("}\n", stacks);
		finish(f);
		finish(stacks);
	}
}

int
main(int argc, char **argv)
{
	for (size_t i = 0; argc == 4 && i < sizeof unlike / sizeof *unlike; i++)
		if (strcmp(argv[1], unlike[i].kind) == 0) {
			unlike_sides(&unlike[i], strtoull(argv[2], NULL, 10), argv[3]);
			return 0;
		}
	if (argc == 4 && strcmp(argv[1], "stats") == 0) {
		statistics(strtoull(argv[2], NULL, 10), argv[3]);
		return 0;
	}
	bool pt = argc == 6 && strcmp(argv[1], "pt") == 0;
	for (size_t i = 0; argc == 6 && i < sizeof dtypes / sizeof *dtypes; i++)
		if (strcmp(dtypes[i].name, argv[2]) == 0 && (pt || dtypes[i].npy != NULL)) {
			tensors(&dtypes[i], pt, strtoull(argv[3], NULL, 10),
				strtoull(argv[4], NULL, 10), argv[5]);
			return 0;
		}
	fputs("usage: data npy|pt f32|f16|bf16 COUNT BYTES DIR\n       data stats OPS DIR\n"
	      "       data alike|differ|names|shapes|random|values|sites OPS DIR\n",
		stderr);
	return 2;
}
