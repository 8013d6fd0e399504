#include "diff_side.h"
#include "acc/say.h"
#include "cli.h"

#include <fts.h>
#include <stdlib.h>
#include <sys/stat.h>

static const char *const kinds[ACC_NHOLDS] = {"configurations", "logs", "samples", "dumps",
	"dumps"};

/* --- looking --- */

struct heard {
	const char *side;
	struct acc_buf text;
};

static void
hear(void *arg, const struct acc_err *e)
{
	struct heard *h = arg;
	char what[1024];
	acc_err_said(e, what, sizeof what);
	const char *line = diff_text("accdiff: %s: %s\n", acc_tr(h->side), what);
	if (acc_buf_add(&h->text, line, strlen(line)) < 0)
		cli_nomem();
}

/* A side of which nothing can be read is said before hours go by over the other. */
static void
look(struct plan *p, struct side *s)
{
	struct heard heard = {.side = s->name};
	const struct acc_glance_opt opt = {.sel = &p->opt->sel,
		.regex = p->opt->regex,
		.name_regex = p->opt->name_regex,
		.format = s->form,
		.trouble = hear,
		.arg = &heard};
	struct acc_err e = {0};
	struct stat st;
	if (stat(s->path, &st) < 0 || !(S_ISREG(st.st_mode) || S_ISDIR(st.st_mode)))
		return;
	if (acc_glance(&s->g, s->path, &opt, &e) < 0)
		cli_die_err(&e);
	if (s->g.n == 0) {
		fwrite(heard.text.p, 1, heard.text.n, stderr);
		exit(2);
	}
	acc_buf_release(&heard.text);
	s->looked = true;
}

/* What the first side holds, the others must. The norms of gradients in numbered files are local
 * norms, as logs have them. */
static void
agree(struct plan *p, const struct side *s, bool first)
{
	enum acc_holds holds = s->g.holds;
	if (!s->looked)
		return;
	if (s->g.settings && p->opt->settings)
		holds = ACC_HOLDS_CONFIGURATION;
	if (first)
		p->holds = holds;
	/* A log that prints its arguments against a configuration. */
	if (holds == ACC_HOLDS_LOG && s->g.settings && p->holds == ACC_HOLDS_CONFIGURATION)
		holds = p->holds;
	if (holds == ACC_HOLDS_CONFIGURATION && p->holds == ACC_HOLDS_LOG &&
		p->side[DEVICE].g.settings)
		p->holds = holds;
	if (holds != p->holds && holds >= ACC_HOLDS_LOG && p->holds >= ACC_HOLDS_LOG) {
		bool norms = false;
		for (size_t i = 0; i < NSIDES; i++)
			norms |= p->side[i].g.norms;
		if (norms) {
			p->gradients = true;
			p->holds = holds = ACC_HOLDS_LOG;
		}
	}
	if (holds != p->holds)
		cli_die("nothing to compare: the device is of %s, the %s of %s",
			acc_tr(kinds[p->holds]), acc_tr(s->name), acc_tr(kinds[holds]));
}

static void
check(const struct plan *p)
{
	const struct diff_opt *o = p->opt;
	const char *tensors = o->preset != NULL ? "--preset" : "";
	if (p->holds == ACC_HOLDS_DUMP)
		return;
	if (o->tensors != NULL)
		tensors = diff_text("%s%s", tensors, o->tensors);
	else if (o->no_audit || o->no_fold)
		tensors = diff_text("%s%s", tensors, o->no_audit ? "--no-audit" : "--no-fold");
	if (tensors[0] != '\0')
		cli_die("%s: only for dumps, and these are %s", tensors, acc_tr(kinds[p->holds]));
	if (o->noise != NULL && p->holds == ACC_HOLDS_CONFIGURATION)
		cli_die("--noise does not apply to configurations");
}

void
side_look(struct plan *p, const char *device, const char *bench)
{
	static const char *const names[NSIDES] = {"device", "bench", "second bench"};
	static const char *const judges[ACC_NHOLDS] = {"acccheck", "acccurve", "acctoken",
		"accfirstbad", "accfirstbad"};
	const char *const path[NSIDES] = {device, bench, p->opt->noise};
	bool first = true;
	p->holds = ACC_HOLDS_DUMP;
	for (size_t i = 0; i < NSIDES; i++) {
		struct side *s = &p->side[i];
		s->name = names[i];
		s->path = path[i];
		s->form = p->opt->form[i == SECOND ? BENCH : i];
		if (s->path == NULL)
			continue;
		look(p, s);
		agree(p, s, first);
		first = first && !s->looked;
	}
	p->judge = judges[p->holds];
	check(p);
}

const struct acc_err *
side_failed(const struct side *s)
{
	return s->g.failed.code != 0 ? &s->g.failed : NULL;
}

/* --- what is done before --- */

void
side_measure_bare(struct plan *p)
{
	for (size_t i = DEVICE; i < NSIDES; i++)
		p->side[i].measured |= p->side[i].g.bare;
}

static void
measure(struct plan *p, bool yes)
{
	p->side[DEVICE].measured = p->side[BENCH].measured = yes;
}

static bool
aligned_by(const struct plan *p, const char *option)
{
	const struct words *w = &p->opt->aligning;
	for (size_t i = 0; i < w->n; i++)
		if (strncmp(w->v[i], option, strlen(option)) == 0)
			return true;
	return false;
}

/* Who joins ranks or steps by hand, or chose a rank, has said what belongs together. */
static bool
joined_by_hand(const struct plan *p)
{
	return p->opt->rank != NULL || p->opt->no_fold || aligned_by(p, "--ranks=") ||
	       aligned_by(p, "--steps=");
}

/* Weights under other names are found by what is in them, if that is measured before; where each has its
 * namesake, nothing is left to be told by values, unless the names are numbers. */
static void
by_names(struct plan *p)
{
	const struct acc_glance *a = &p->side[DEVICE].g, *b = &p->side[BENCH].g;
	if (a->names.n == 0 || b->names.n == 0 || p->opt->aligning.n > 0 || p->opt->preset != NULL)
		return;
	if (2 * acc_nameset_common(&a->wholes, &b->wholes) < a->wholes.n)
		measure(p, true);
	if (a->names.n < ACC_GLANCE_NAMES && acc_nameset_equal(&a->wholes, &b->wholes))
		measure(p, acc_nameset_numbers(&a->wholes));
}

static bool
is_folder(const char *path)
{
	struct stat st;
	return stat(path, &st) == 0 && S_ISDIR(st.st_mode);
}

/* A file that is read as often as it takes. */
static bool
is_stream(const struct side *s)
{
	unsigned char head[16];
	struct stat st;
	FILE *f = stat(s->path, &st) == 0 && S_ISREG(st.st_mode) ? fopen(s->path, "re") : NULL;
	const size_t n = f == NULL ? 0 : fread(head, 1, sizeof head, f);
	if (f != NULL)
		fclose(f);
	return acc_is_stream(head, n);
}

/* The ranks of a side become one, or as many as the other has, if that is a folder or a stream, too, and has
 * fewer. */
static int
by_ranks(struct plan *p, struct acc_err *e)
{
	struct side *a = &p->side[DEVICE], *b = &p->side[BENCH];
	if (p->opt->preset != NULL || joined_by_hand(p) || !(is_folder(a->path) || is_stream(a)) ||
		!(is_folder(b->path) || is_stream(b)))
		return 0;
	const int64_t na = acc_ranks_count(a->path, e), nb = acc_ranks_count(b->path, e);
	if (na < 0 || nb < 0)
		return -1;
	a->folded = na > nb && na % nb == 0;
	b->folded = nb > na && nb % na == 0 && p->opt->noise == NULL;
	p->both_ranked = na > 1 && nb > 1 && p->opt->noise == NULL;
	if (a->folded || b->folded)
		side_measure_bare(p);
	return 0;
}

/* Weights that are in parts, over ranks or in a distributed checkpoint, become whole, but where both
 * sides have the same parts. */
static int
by_parts(struct plan *p, struct acc_err *e)
{
	struct side *s = p->side;
	struct acc_nameset places[2] = {{0}, {0}};
	int rc = 0;
	if (joined_by_hand(p) || (s[DEVICE].g.names.n == 0 && s[BENCH].g.names.n == 0))
		return 0;
	for (size_t i = DEVICE; i <= BENCH && rc == 0; i++)
		if (is_folder(s[i].path))
			rc = acc_ranks_places(s[i].path, s[i].g.flat, &places[i], e);
	const bool same = s[DEVICE].g.whole == s[BENCH].g.whole &&
			  acc_nameset_equal(&places[DEVICE], &places[BENCH]) &&
			  acc_nameset_equal(&s[DEVICE].g.names, &s[BENCH].g.names);
	for (size_t i = DEVICE; i <= BENCH; i++) {
		s[i].parted = !same && (s[i].g.whole || places[i].n >= 2);
		acc_nameset_release(&places[i]);
	}
	return rc;
}

/* Arrays by the names of tensors, as an engine's session gives them, against calls: made by such. What is in
 * them tells by which. */
static void
by_outputs(struct plan *p)
{
	for (size_t i = DEVICE; i <= BENCH; i++) {
		const struct acc_glance *own = &p->side[i].g, *other = &p->side[BENCH - i].g;
		p->side[i].outputs = p->opt->preset == NULL && p->holds == ACC_HOLDS_DUMP &&
				     own->names.n > 0 && !own->calls && other->calls;
	}
	if (p->side[DEVICE].outputs || p->side[BENCH].outputs)
		measure(p, true);
	/* So may the second run of the bench be. */
	struct side *again = &p->side[SECOND];
	again->outputs = again->path != NULL && p->opt->noise == again->path &&
			 p->opt->preset == NULL && p->holds == ACC_HOLDS_DUMP &&
			 again->g.names.n > 0 && !again->g.calls && p->side[BENCH].g.calls;
	again->measured |= again->outputs;
}

bool
side_prepare(struct plan *p)
{
	const struct side *a = &p->side[DEVICE], *b = &p->side[BENCH];
	struct acc_err e = {0};
	int rc = 0;
	/* Operators of one framework pair with kernels of another by values. */
	if (p->opt->preset == NULL && strcmp(a->g.framework, b->g.framework) != 0)
		side_measure_bare(p);
	by_names(p);
	by_outputs(p);
	if (p->holds == ACC_HOLDS_DUMP) {
		rc = by_ranks(p, &e);
		rc = rc < 0 ? rc : by_parts(p, &e);
	}
	if (rc == ACC_ENOMEM || e.code == ACC_ENOMEM)
		cli_nomem();
	if (rc < 0)
		cli_warn_err(&e);
	return rc >= 0;
}

/* Two recordings of op calls as they are. */
static bool
is_plain(const struct plan *p)
{
	const struct side *a = &p->side[DEVICE], *b = &p->side[BENCH];
	return p->holds == ACC_HOLDS_DUMP && p->opt->preset == NULL && !a->measured &&
	       !b->measured && !a->folded && !b->folded && !a->parted && !b->parted &&
	       strcmp(a->path, "-") != 0 && strcmp(b->path, "-") != 0 && a->g.names.n == 0;
}

/* Two programs that compute the same hardly pair by names and lines of code, but do by values: where more than
 * one record in 20 has no partner, what is without statistics is measured before. Where it is more than one in
 * 5, recomputation tells most: of what one side does in one op call and the other in several, or not at all. */
bool
side_asks(const struct plan *p)
{
	return is_plain(p) && p->side[DEVICE].g.in_files && p->side[BENCH].g.in_files;
}

bool
side_asks_states(const struct plan *p)
{
	const struct side *a = &p->side[DEVICE], *b = &p->side[BENCH];
	return p->holds == ACC_HOLDS_DUMP && p->opt->preset == NULL && a->g.states && b->g.states &&
	       !a->measured && !b->measured && !a->folded && !b->folded && !a->parted &&
	       !b->parted && strcmp(a->path, "-") != 0 && strcmp(b->path, "-") != 0;
}

static int64_t
bytes_of(const char *path)
{
	char *const roots[] = {strdup(path), NULL};
	FTS *t = roots[0] == NULL ? NULL : fts_open(roots, FTS_PHYSICAL | FTS_NOCHDIR, NULL);
	int64_t all = 0;
	if (t == NULL)
		cli_nomem();
	for (FTSENT *x; (x = fts_read(t)) != NULL;)
		all += x->fts_info == FTS_F ? (int64_t)x->fts_statp->st_size : 0;
	fts_close(t);
	free(roots[0]);
	return all;
}

/* Of statistics, which are not read twice for nothing, the dump of who makes several passes is longer. */
bool
side_asks_parts(const struct plan *p)
{
	if (!is_plain(p))
		return false;
	if (p->side[DEVICE].g.in_files || p->side[BENCH].g.in_files)
		return true;
	const int64_t a = bytes_of(p->side[DEVICE].path), b = bytes_of(p->side[BENCH].path);
	return 3 * a > 4 * b || 3 * b > 4 * a;
}

void
side_unlike(struct plan *p, int share)
{
	/* What somebody named by hand is no operator that could be recomputed. */
	if (share >= 20 && p->side[DEVICE].g.operators) {
		measure(p, true);
		p->unlike = !p->opt->no_audit;
	} else if (share >= 5) {
		side_measure_bare(p);
	}
}

void
side_in_parts(struct plan *p, int side)
{
	p->side[side].folded = true;
	p->side[DEVICE].measured = p->side[BENCH].measured = p->unlike = false;
	side_measure_bare(p);
}
