/* Pairing, on small traces whose right answer was found by hand.
 *
 * A record is a line: step rank key io pos dtype shape; "-" is absent, rank "p7" is process 7.
 * The answer names records by their number in the trace: "name 0=1", "only-a 2=-". */
#include "align/impl.h"
#include "acc/dump.h"
#include "tap.h"

#include <stdlib.h>

#define L (const char *const[])

static void
number(struct acc_rec *r, const char *key, const char *text)
{
	int64_t v;
	if (acc_str_int(acc_str(text), &v))
		acc_add(r, "", key, acc_int(v));
}

static void
call(struct acc_rec *r, const char *key)
{
	struct acc_opkey k;
	acc_opkey_parse(acc_str(key), '.', &k);
	acc_add(r, "", "key", acc_ctext(key));
	acc_add(r, "", "op", acc_text(k.op));
	if (k.call >= 0)
		acc_add(r, "", "call", acc_int(k.call));
	acc_add(r, "", "pass",
		acc_str_is(k.pass, "parameters_grad") ? acc_ctext("grad") : acc_text(k.pass));
}

/* A tensor, or, where the data type is in <>, an argument of this type. */
static void
record(struct acc_rec *r, const char *line, int seq)
{
	char step[8], rank[8], key[64], io[8], pos[16], dtype[24], shape[16], name[128];
	int64_t dim[8];
	uint32_t nd = 0;
	sscanf(line, "%7s %7s %63s %7s %15s %23s %15s", step, rank, key, io, pos, dtype, shape);
	bool arg = dtype[0] == '<';
	acc_rec_start(r, arg ? ACC_STR("arg") : ACC_STR("tensor"));
	snprintf(name, sizeof name, "%s.%s.%s", key, strcmp(io, "out") == 0 ? "output" : "input",
		pos);
	acc_add(r, "", "name", acc_ctext(name));
	acc_add(r, "", "seq", acc_int(seq));
	number(r, "step", step);
	number(r, rank[0] == 'p' ? "proc" : "rank", rank + (rank[0] == 'p'));
	call(r, key);
	acc_add(r, "", "io", acc_ctext(io));
	if (strcmp(pos, "-") != 0)
		acc_add(r, "", "pos", acc_ctext(pos));
	if (arg) {
		struct acc_str type = {dtype + 1, (uint32_t)strlen(dtype) - 2};
		acc_add(r, "", "type", acc_text(type));
		acc_add(r, "", "value",
			acc_str_is(type, "int")    ? acc_int(1)
			: acc_str_is(type, "None") ? acc_nil()
						   : acc_ctext("1"));
		return;
	}
	acc_add(r, "", "type", acc_ctext("torch.Tensor"));
	acc_add(r, "", "dtype.raw", acc_ctext(dtype));
	for (const char *p = shape; *p != '\0' && nd < 8; p += *p == 'x')
		dim[nd++] = strtoll(p, (char **)&p, 10);
	acc_add(r, "", "shape", acc_ints(dim, nd));
}

static int
collect(void *arg, const struct acc_rec *r)
{
	struct acc_buf *b = arg;
	char line[256];
	int64_t x = acc_get_int(r, "a.", "seq", -1), y = acc_get_int(r, "b.", "seq", -1);
	struct acc_str note = acc_get_text(r, "", "note");
	int n;
	if (acc_rec_is(r, "finding"))
		n = snprintf(line, sizeof line, "%s%.*s", b->n > 0 ? ", " : "",
			ACC_PRS(acc_get_text(r, "", "text")));
	else
		n = snprintf(line, sizeof line, "%s%.*s %c=%c%s%.*s", b->n > 0 ? ", " : "",
			ACC_PRS(acc_get_text(r, "", "how")), x < 0 ? '-' : (char)('0' + x),
			y < 0 ? '-' : (char)('0' + y), note.n > 0 ? " " : "", ACC_PRS(note));
	return acc_buf_add(b, line, (size_t)n);
}

static void
check(const char *what, const char *way, const struct acc_join *join, const char *const *dev,
	const char *const *bench, const char *want)
{
	struct acc_err e = {0};
	struct acc_rec r = {0};
	struct acc_buf got = {0};
	const char *const *const side[2] = {dev, bench};
	struct acc_align *al = acc_align_open("/tmp", &e);
	int rc = 0;
	for (int s = 0; s < 2; s++)
		for (int i = 0; side[s][i] != NULL && rc >= 0; i++) {
			record(&r, side[s][i], i);
			rc = acc_align_add(al, s == 0 ? ACC_A : ACC_B, &r, &e);
		}
	if (rc >= 0)
		rc = acc_align_run(al, acc_aligner_find(way), join, NULL, collect, &got, &e);
	acc_buf_add(&got, "", 1);
	const char *text = rc < 0 ? e.msg : (char *)got.p;
	if (!ok(strcmp(text, want) == 0, "%s", what))
		printf("# got  %s\n# want %s\n", text, want);
	acc_align_close(al);
	acc_rec_release(&r);
	acc_buf_release(&got);
}

static const struct acc_join none;

static void
names(void)
{
	check("all the same", "name", &none,
		L{"0 0 T.a.0.forward in 0 f32 2", "0 0 T.a.0.forward out 0 f32 2", NULL},
		L{"0 0 T.a.0.forward in 0 f32 2", "0 0 T.a.0.forward out 0 f32 2", NULL},
		"name 0=0, name 1=1");
	check("what differs is said and separates nothing", "name", &none,
		L{"0 0 T.a.0.forward in 0 f32 2", "0 0 T.a.0.forward in 1 f32 2x3",
			"0 0 T.a.0.forward in 2 f32 2", "0 0 T.a.0.forward in 3 <int> -", NULL},
		L{"0 0 T.a.0.forward in 0 bf16 2", "0 0 T.a.0.forward in 1 torch.float32 3x2",
			"0 0 T.a.0.forward in 2 <int> -", "0 0 T.a.0.forward in 3 <float> -", NULL},
		"name 0=0 dtype, name 1=1 shape, name 2=2 type, name 3=3 type");
	check("keyword arguments by name, records by place", "name", &none,
		L{"0 0 T.a.0.forward in 0 f32 2", "0 0 T.a.0.forward kw dim <int> -",
			"0 0 T.a.0.forward kw eps <int> -", "0 0 T.a.0.forward out 0 f32 2", NULL},
		L{"0 0 T.a.0.forward in 0 f32 2", "0 0 T.a.0.forward in 1 f32 2",
			"0 0 T.a.0.forward kw eps <int> -", "0 0 T.a.0.forward kw dim <int> -",
			"0 0 T.a.0.forward out 0 f32 2", "0 0 T.a.0.forward out 1 f32 2", NULL},
		"name 0=0, only-b -=1, name 1=3, name 2=2, name 3=4, only-b -=5");
	check("the only output, unnumbered, is number 0", "name", &none,
		L{"0 0 T.a.0.forward out - f32 2", NULL}, L{"0 0 T.a.0.forward out 0 f32 2", NULL},
		"name 0=0");
	check("a name that comes several times pairs in order", "name", &none,
		L{"0 0 T.a.0.forward in 0 f32 1", "0 0 T.b.0.forward in 0 f32 2",
			"0 0 T.a.0.forward in 0 f32 3", "0 0 T.b.0.forward in 0 f32 4",
			"0 0 T.a.0.forward in 0 f32 5", NULL},
		L{"0 0 T.b.0.forward in 0 f32 2", "0 0 T.a.0.forward in 0 f32 1",
			"0 0 T.a.0.forward in 0 f32 3", NULL},
		"name 0=1, name 1=0, name 2=2, only-a 3=-, only-a 4=-");
	check("what only one side has stays in its place", "name", &none,
		L{"0 0 T.a.0.forward in 0 f32 2", "0 0 T.x.0.forward in 0 f32 2",
			"0 0 T.b.0.forward in 0 f32 2", "0 0 T.c.0.forward in 0 f32 2", NULL},
		L{"0 0 T.p.0.forward in 0 f32 2", "0 0 T.b.0.forward in 0 f32 2",
			"0 0 T.q.0.forward in 0 f32 2", "0 0 T.q.1.forward in 0 f32 2",
			"0 0 T.a.0.forward in 0 f32 2", "0 0 T.r.0.forward in 0 f32 2", NULL},
		"only-b -=0, name 0=4, only-b -=5, only-a 1=-, name 2=1, only-b -=2, only-b -=3, "
		"only-a 3=-");
	check("gradients whose numbers differ pair in order", "name", &none,
		L{"0 0 M.a.C.parameters_grad.0 grad 0 f32 2", "0 0 T.a.0.backward in 0 f32 2",
			"0 0 T.b.1.backward in 0 f32 2", "0 0 T.c.7.backward in 0 f32 2", NULL},
		L{"0 0 M.a.C.parameters_grad.3 grad 0 f32 2", "0 0 T.a.0.backward in 0 f32 2",
			"0 0 T.a.1.backward in 0 f32 2", "0 0 T.b.2.backward in 0 f32 2",
			"0 0 T.c.8.backward in 0 f32 2", "0 0 T.c.9.backward in 0 f32 2", NULL},
		"order 0=0, name 1=1, only-b -=2, order 2=3, only-b -=4, only-b -=5, only-a 3=-");
	check("forward calls do not", "name", &none, L{"0 0 T.a.0.forward in 0 f32 2", NULL},
		L{"0 0 T.a.1.forward in 0 f32 2", NULL}, "only-b -=0, only-a 0=-");
	check("nothing on the bench", "name", &none, L{"0 0 T.a.0.forward in 0 f32 2", NULL},
		L{NULL},
		"only-a 0=-, only the device has step 0 rank 0: 1 op calls unmatched "
		"(join them with --steps or --ranks)");
}

static void
steps_and_ranks(void)
{
	static const int64_t two[][2] = {{0, 7}}, swap[][2] = {{0, 1}, {1, 0}};
	static const int64_t lost[][2] = {{0, 9}}, twice[][2] = {{0, 1}, {0, 0}};
	static const int64_t taken[][2] = {{5, 1}};
	const struct acc_join shift = {.steps = taken, .nsteps = 1};
	const struct acc_join steps = {.steps = two, .nsteps = 1};
	const struct acc_join ranks = {.ranks = swap, .nranks = 2};
	const struct acc_join no_step = {.steps = lost, .nsteps = 1};
	const struct acc_join double_rank = {.ranks = twice, .nranks = 2};
	check("one of each pairs whatever its number", "name", &none,
		L{"0 p2016 T.a.0.forward in 0 f32 2", NULL},
		L{"7 3 T.a.0.forward in 0 f32 2", NULL}, "name 0=0");
	check("nor is a step or rank needed", "name", &none,
		L{"- - T.a.0.forward in 0 f32 2", NULL}, L{"7 3 T.a.0.forward in 0 f32 2", NULL},
		"name 0=0");
	check("of several, the equal ones", "name", &none,
		L{"1 0 T.a.0.forward in 0 f32 2", "2 0 T.a.0.forward in 0 f32 2", NULL},
		L{"2 0 T.a.0.forward in 0 f32 2", "3 0 T.a.0.forward in 0 f32 2", NULL},
		"only-a 0=-, name 1=0, only-b -=1, "
		"only the device has step 1 rank 0: 1 op calls unmatched (join them with "
		"--steps or --ranks), only the bench has step 3 rank 0: 1 op calls unmatched "
		"(join them with --steps or --ranks)");
	check("ranks join in each step", "name", &none,
		L{"0 0 T.a.0.forward in 0 f32 2", "0 1 T.a.0.forward in 0 f32 2",
			"1 4 T.a.0.forward in 0 f32 2", NULL},
		L{"0 1 T.a.0.forward in 0 f32 2", "0 0 T.a.0.forward in 0 f32 2",
			"1 5 T.a.0.forward in 0 f32 2", NULL},
		"name 0=1, name 1=0, name 2=2");
	check("as many processes pair in order of number", "name", &none,
		L{"0 p30 T.a.0.forward in 0 f32 2", "0 p4 T.a.0.forward in 0 f32 2", NULL},
		L{"0 0 T.a.0.forward in 0 f32 2", "0 1 T.a.0.forward in 0 f32 2", NULL},
		"name 0=1, name 1=0");
	check("also those of the bench", "name", &none,
		L{"0 0 T.a.0.forward in 0 f32 2", "0 1 T.a.0.forward in 0 f32 2", NULL},
		L{"0 p30 T.a.0.forward in 0 f32 2", "0 p4 T.a.0.forward in 0 f32 2", NULL},
		"name 0=1, name 1=0");
	check("another number of processes does not", "name", &none,
		L{"0 p3 T.a.0.forward in 0 f32 2", "0 p4 T.a.0.forward in 0 f32 2", NULL},
		L{"0 0 T.a.0.forward in 0 f32 2", NULL},
		"only-a 0=-, only-a 1=-, only-b -=0, "
		"only the device has step 0 procs 3-4: 2 op calls unmatched (join them with "
		"--steps or --ranks), only the bench has step 0 rank 0: 1 op calls unmatched "
		"(join them with --steps or --ranks)");
	check("--steps", "name", &steps,
		L{"0 0 T.a.0.forward in 0 f32 2", "1 0 T.a.0.forward in 0 f32 2", NULL},
		L{"1 0 T.a.0.forward in 0 f32 2", "7 0 T.a.0.forward in 0 f32 2", NULL},
		"name 0=1, name 1=0");
	check("--steps: a step goes nowhere else", "name", &shift,
		L{"1 0 T.a.0.forward in 0 f32 2", "5 0 T.a.0.forward in 0 f32 2", NULL},
		L{"1 0 T.a.0.forward in 0 f32 2", NULL},
		"only-a 0=-, name 1=0, only the device has step 1 rank 0: 1 op calls unmatched "
		"(join them with --steps or --ranks)");
	check("--ranks", "name", &ranks,
		L{"0 0 T.a.0.forward in 0 f32 2", "0 1 T.a.0.forward in 0 f32 2", NULL},
		L{"0 0 T.a.0.forward in 0 f32 2", "0 1 T.a.0.forward in 0 f32 2", NULL},
		"name 0=1, name 1=0");
	check("a step that does not exist", "name", &no_step,
		L{"0 0 T.a.0.forward in 0 f32 2", NULL}, L{"0 0 T.a.0.forward in 0 f32 2", NULL},
		"--steps: the bench has no step 9");
	check("a rank given twice", "name", &double_rank, L{"0 0 T.a.0.forward in 0 f32 2", NULL},
		L{"0 0 T.a.0.forward in 0 f32 2", "0 1 T.a.0.forward in 0 f32 2", NULL},
		"--ranks: rank 0 of the device is given twice");
}

static void
msprobe(void)
{
	check("msprobe: backward calls by order of appearance, forward ones by number", "msprobe",
		&none,
		L{"0 0 T.a.5.forward in 0 f32 2", "0 0 T.a.5.backward in 0 f32 2",
			"0 0 T.a.2.backward in 0 f32 2", "0 0 M.x.C.backward.1 in 0 f32 2", NULL},
		L{"0 0 T.a.4.forward in 0 f32 2", "0 0 T.a.4.backward in 0 f32 2",
			"0 0 M.x.C.backward.0 in 0 f32 2", "0 0 T.a.5.backward in 0 f32 2", NULL},
		"only-b -=0, only-a 0=-, msprobe 1=1, msprobe 2=3, msprobe 3=2");
	check("msprobe: gradients of parameters keep their numbers", "msprobe", &none,
		L{"0 0 M.a.C.parameters_grad.0 grad w f32 2", NULL},
		L{"0 0 M.a.C.parameters_grad.1 grad w f32 2", NULL}, "only-b -=0, only-a 0=-");
	check("msprobe: the gate of data types", "msprobe", &none,
		L{"0 0 T.a.0.forward in 0 torch.float16 2",
			"0 0 T.a.0.forward in 1 torch.bfloat16 2",
			"0 0 T.a.0.forward in 2 torch.float64 2",
			"0 0 T.a.0.forward in 3 torch.int64 2", "0 0 T.a.0.forward in 4 <int> -",
			"0 0 T.a.0.forward in 5 <None> -", "0 0 T.a.0.forward in 6 <None> -",
			"0 0 T.a.0.forward in 7 torch.int64 2", NULL},
		L{"0 0 T.a.0.forward in 0 torch.float32 2",
			"0 0 T.a.0.forward in 1 torch.float16 2",
			"0 0 T.a.0.forward in 2 torch.float32 2",
			"0 0 T.a.0.forward in 3 torch.int64 2", "0 0 T.a.0.forward in 4 <str> -",
			"0 0 T.a.0.forward in 5 <None> -", "0 0 T.a.0.forward in 6 torch.float32 2",
			"0 0 T.a.0.forward in 7 torch.int64 3", NULL},
		"msprobe 0=0 dtype, msprobe 1=1 dtype, only-a 2=-, msprobe 3=3, only-a 4=-, "
		"msprobe 5=5, only-a 6=-, msprobe 7=7 shape, only-b -=2, only-b -=4, only-b -=6");
}

static void
ptdbg(void)
{
	check("ptdbg: what comes before a match is given up", "ptdbg", &none,
		L{"- 0 T.a.0.forward in 0 torch.float32 2",
			"- 0 T.x.0.forward in 0 torch.float32 2",
			"- 0 T.b.0.forward in 0 torch.float32 2", NULL},
		L{"- 0 T.b.0.forward in 0 torch.float32 2",
			"- 0 T.a.0.forward in 0 torch.float32 2", NULL},
		/* Round 2: the newest of the device (x) fits nothing; the newest of the bench (a)
		 * fits the waiting a. With that, b of the bench is gone when b comes. */
		"only-b -=0, ptdbg 0=1, only-a 1=-, only-a 2=-");
	check("ptdbg: the newest of the device first", "ptdbg", &none,
		L{"- 0 T.a.0.forward in 0 torch.float32 2",
			"- 0 T.b.0.forward in 0 torch.float32 2", NULL},
		L{"- 0 T.b.0.forward in 0 torch.float32 2",
			"- 0 T.a.0.forward in 0 torch.float32 2", NULL},
		/* Round 2 could pair a with a or b with b: the device's newest is b. */
		"only-a 0=-, ptdbg 1=0, only-b -=1");
	check("ptdbg: shapes and data types must agree", "ptdbg", &none,
		L{"- 0 T.a.0.forward in 0 torch.float16 2",
			"- 0 T.a.0.forward out 0 torch.float16 2",
			"- 0 T.b.0.forward in 0 torch.float32 2",
			"- 0 T.b.0.forward out 0 torch.float32 2",
			"- 0 T.c.0.forward in 0 torch.float32 2",
			"- 0 T.d.0.forward in 0 torch.float32 2", NULL},
		L{"- 0 T.a.0.forward in 0 torch.float32 2",
			"- 0 T.a.0.forward out 0 torch.bfloat16 2",
			"- 0 T.b.0.forward in 0 torch.bfloat16 2",
			"- 0 T.b.0.forward out 0 torch.float32 2",
			"- 0 T.c.0.forward in 0 torch.float32 3",
			"- 0 T.d.0.forward in 0 torch.float16 2", NULL},
		"ptdbg 0=0 dtype, ptdbg 1=1 dtype, only-b -=2, only-b -=3, only-b -=4, only-b -=5, "
		"only-a 2=-, only-a 3=-, only-a 4=-, only-a 5=-");
	check("ptdbg: the names of all records must be equal", "ptdbg", &none,
		L{"- 0 T.a.0.forward in 0 torch.float32 2", NULL},
		L{"- 0 T.a.0.forward in 1 torch.float32 2", NULL}, "only-b -=0, only-a 0=-");
}

/* Many calls: the table, its lists of equal names, and both directions of lookup. */
static void
many(void)
{
	enum { N = 3000 };
	struct acc_err e = {0};
	struct acc_scratch *s = calloc(1, sizeof *s);
	uint64_t *a = malloc(N * sizeof *a), *b = malloc(N * sizeof *b);
	uint32_t *mate = malloc(N * sizeof *mate), bad = 0, unpaired = 0;
	uint32_t *used = calloc(N, sizeof *used);
	for (uint32_t i = 0; i < N; i++) {
		a[i] = i * 7919 % 1000;
		b[i] = i * 104729 % 900;
	}
	acc_pair_equal(s, a, N, b, N, mate, &e);
	for (uint32_t i = 0; i < N; i++) {
		/* The plain way: the first of b that is free and equal. */
		uint32_t k = 0;
		while (k < N && (used[k] || b[k] != a[i]))
			k++;
		bad += mate[i] != (k == N ? ACC_NOMATE : k);
		if (k < N)
			used[k] = 1;
		else
			unpaired++;
	}
	ok(bad == 0 && unpaired == 300, "many: as by plain search (%u differ, %u unpaired)", bad,
		unpaired);
	free(a);
	free(b);
	free(mate);
	free(used);
	acc_scratch_free(s);
}

static void
refused(void)
{
	struct acc_err e = {0};
	struct acc_rec r = {0};
	struct acc_align *al = acc_align_open("/tmp", &e);
	acc_rec_start(&r, ACC_STR("source"));
	ok(acc_align_add(al, ACC_A, &r, &e) == 0, "a source is not taken");
	acc_rec_start(&r, ACC_STR("x-mine"));
	ok(acc_align_add(al, ACC_A, &r, &e) == 0, "nor is an unknown kind");
	acc_rec_start(&r, ACC_STR("pair"));
	ok(acc_align_add(al, ACC_A, &r, &e) == ACC_EFORMAT, "a pair is refused: %s", e.msg);
	acc_align_close(al);
	acc_rec_release(&r);
	ok(acc_align_open("/nowhere", &e) == NULL, "no folder for temporary files");
	acc_align_close(NULL);
}

int
main(void)
{
	names();
	steps_and_ranks();
	msprobe();
	ptdbg();
	many();
	refused();
	return done();
}
