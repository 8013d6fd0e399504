/* Which mesh of ranks is it, and does it explain enough? */
#include "fold/impl.h"
#include "fold/weights.h"

#include <math.h>
#include <stdlib.h>

/* More parts than this are refused: the parts of a tensor are held. */
enum { MOST_RANKS = 1 << 16 };
/* Op calls by which one of many pairs of meshes is chosen: those of some layers. */
enum { BRIEF = 1024 };
/* So many op calls of all ranks choose one of many meshes, and at least those of some layers of each rank: there are
 * more meshes the more ranks there are, and each would be tried on all calls. */
enum { TRIED = 1 << 16, TRIED_LEAST = 256 };

/* Does one rank of a reference reduce over ranks? Those that it has records of are it alone. */
static bool
reduces_alone(const struct acc_fold *f)
{
	for (uint32_t i = 0; i < f->reference.ncall; i++)
		if (f->reference.call[i].sums && f->reference.call[i].late)
			return true;
	return false;
}

/* Steps and their ranks are the same for every mesh. */
static const struct fold_mesh no_mesh = {.stages = 0, .micro = 1};

/* What all meshes of as many stages and micro-batches may explain at most: the parts that they join are the same. */
enum { CEILINGS = 64 };
struct ceiling {
	uint32_t stages, micro, apart, turns;
	double most;
};

struct trial {
	struct acc_fold *f;
	int (*use)(struct trial *t, const struct fold_mesh *m);
	uint32_t stages; /* so many; 0: any number */
	struct fold_mesh best,
		device; /* device: of a reference that is several ranks, that of the device */
	uint32_t apart, turns; /* of the best */
	double score;
	bool shares;                      /* each stage of it has a part of the reference */
	struct ceiling ceiling[CEILINGS]; /* of the first that were tried */
	uint32_t nceiling;
	struct acc_err *e;
};

static double
total(const struct acc_fold *f)
{
	double sum = 0;
	for (uint32_t i = 0; i < f->nstep; i++)
		sum += f->step[i].score;
	return sum;
}

/* Does every stage do a part of what the reference does? Else its ranks are no stages, but have what
 * others have, too. A tenth: each may make all weights before it takes its own. */
static bool
stages_share(const struct acc_fold *f, const struct fold_mesh *m)
{
	for (uint32_t n = 0; n < f->nstep; n++) {
		const struct fold_step *t = &f->step[n];
		for (uint32_t s = 0; s < m->stages && t->reference != FOLD_NONE; s++) {
			uint32_t all = 0, matched = 0;
			for (uint32_t i = 0; i < t->nv; i++) {
				const struct fold_call *k = &f->device.call[t->call[t->v[i].rank]];
				bool counts = t->v[i].stage == s && k->dir == FOLD_FORWARD &&
					      !k->talks;
				all += counts;
				matched += counts && t->v[i].mate != FOLD_NONE;
			}
			if (10 * matched < all)
				return false;
		}
	}
	return true;
}

/* That of this mesh; NULL: there are too many. */
static struct ceiling *
ceiling_of(struct trial *t, const struct fold_mesh *m)
{
	const struct acc_fold *f = t->f;
	uint32_t i = 0;
	while (i < t->nceiling &&
		(t->ceiling[i].stages != m->stages || t->ceiling[i].micro != m->micro ||
			t->ceiling[i].apart != f->apart || t->ceiling[i].turns != f->turns))
		i++;
	if (i == t->nceiling && i < CEILINGS)
		t->ceiling[t->nceiling++] = (struct ceiling){m->stages, m->micro, f->apart,
			f->turns, INFINITY};
	return i < CEILINGS ? &t->ceiling[i] : NULL;
}

/* No mesh explains a forward tensor of the reference twice. */
static double
explained_at_most(const struct acc_fold *f)
{
	const struct fold_side *r = &f->reference;
	double n = 0;
	for (uint32_t i = 0; i < f->nstep; i++) {
		if (f->step[i].reference == FOLD_NONE)
			continue;
		const struct fold_segment *g = &r->segment[f->step[i].reference];
		for (uint32_t c = g->first; c < g->first + g->n; c++)
			for (uint32_t x = 0; x < r->call[c].n; x++)
				n += r->call[c].dir == FOLD_FORWARD &&
				     r->item[r->call[c].first + x].tensor;
	}
	return n;
}

/* How much it explains, or less where that is not more than `least` of the best. */
static int
explain(struct trial *t, const struct fold_mesh *m, double least, double *score)
{
	struct acc_fold *f = t->f;
	struct ceiling *c = ceiling_of(t, m);
	const double enough = least * t->score - 1e-6; /* sums of shares of 0.01 are not exact */
	*score = 0;
	if ((c != NULL && c->most < enough) || (t->score > 0 && explained_at_most(f) < enough))
		return 0;
	f->enough = enough;
	int rc = acc_fold_steps(f, m, t->e);
	f->enough = 0;
	if (rc == 0)
		*score = total(f);
	if (rc == 0 && c != NULL && f->most < c->most)
		c->most = f->most;
	return rc;
}

static int
try_mesh(struct trial *t, const struct fold_mesh *m)
{
	double score;
	int rc = explain(t, m, t->shares ? 1.02 : 1 / 1.1, &score);
	if (rc < 0 || score == 0)
		return rc;
	/* Those with fewer axes come first; another must explain more than chance does, and a tenth more if a
	 * stage of it shares nothing: so does a rank seem to be that is wrong from the start. */
	const bool shares = stages_share(t->f, m);
	const double least = shares == t->shares ? 1.02 : shares ? 1 / 1.1 : 1.1;
	if (score > least * t->score) {
		t->score = score;
		t->shares = shares;
		t->best = *m;
		t->apart = t->f->apart;
		t->turns = t->f->turns;
	}
	return rc;
}

/* All ways to split `left` ranks side by side over the axes from `axis` on. */
static int
try_splits(struct trial *t, struct fold_mesh *m, uint32_t left, uint32_t axis)
{
	m->size[axis] = left;
	if (axis + 1 == m->n)
		return left > 1 || m->n == 1 ? t->use(t, m) : 0;
	int rc = 0;
	for (uint32_t k = 2; k < left && rc == 0; k++)
		if (left % k == 0) {
			m->size[axis] = k;
			rc = try_splits(t, m, left / k, axis + 1);
		}
	return rc;
}

/* Parts of the batch, as the first rank takes them. */
static uint32_t
batches(const struct acc_fold *f, uint32_t ranks)
{
	uint32_t n = f->device.nsegment > 0 ? acc_fold_micro(&f->runs[0]) : 1;
	return (uint64_t)n * ranks <= MOST_RANKS ? n : 1;
}

/* All meshes of so many axes where the batch is taken in `micro` parts, which are one of them. */
static int
try_axes(struct trial *t, uint32_t ranks, uint32_t axes, uint32_t micro)
{
	int rc = 0;
	for (uint32_t stages = 1; stages <= ranks && rc == 0; stages++) {
		struct fold_mesh m = {.stages = stages,
			.ranks = ranks / stages,
			.micro = micro,
			.zip = ranks / stages * micro,
			.n = axes};
		if (ranks % stages != 0 || (t->stages > 0 && stages != t->stages))
			continue;
		if (micro == 1) {
			rc = try_splits(t, &m, m.ranks, 0);
			continue;
		}
		m.size[0] = micro;
		if (axes == 1 && m.ranks == 1)
			rc = t->use(t, &m);
		else if (axes > 1 && m.ranks > 1)
			rc = try_splits(t, &m, m.ranks, 1);
	}
	return rc;
}

/* The same steps in groups of ranks that are so far apart, and with so many neighbours that are stages. */
static int
regroup(struct acc_fold *f, uint32_t apart, uint32_t turns, struct acc_err *e)
{
	if (f->apart == apart && f->turns == turns && f->nstep > 0)
		return 0;
	acc_fold_steps_free(f);
	f->apart = apart;
	f->turns = turns;
	return acc_fold_steps(f, &no_mesh, e);
}

/* Where neighbours do different things: the ranks of a stage may stand apart, and its batch be split over them. */
static int
try_turns(struct trial *t, uint32_t ranks, uint32_t micro)
{
	struct acc_fold *f = t->f;
	int rc = 0;
	if (f->groups > 1 || acc_fold_abreast(f) != 1)
		return 0;
	for (uint32_t stages = 2; stages < ranks && rc == 0; stages++) {
		if (ranks % stages != 0)
			continue;
		t->stages = stages;
		rc = regroup(f, 1, stages, t->e);
		for (uint32_t axes = 1; axes <= 2 && rc == 0; axes++) {
			rc = try_axes(t, ranks, axes, 1);
			if (rc == 0 && micro > 1)
				rc = try_axes(t, ranks, axes + 1, micro);
		}
	}
	t->stages = 0;
	return rc;
}

static int
find_mesh(struct acc_fold *f, uint32_t ranks, struct acc_err *e)
{
	struct trial t = {.f = f, .use = try_mesh, .apart = 1, .turns = 1, .e = e};
	int rc = 0;
	uint32_t micro = batches(f, ranks);
	f->brief = TRIED / ranks > TRIED_LEAST ? TRIED / ranks : TRIED_LEAST;
	for (uint32_t axes = 1; axes <= ACC_MESH_DIMS && rc == 0; axes++)
		for (uint32_t apart = 1; apart <= f->groups && rc == 0; apart++) {
			if (f->groups % apart != 0)
				continue;
			rc = regroup(f, apart, 1, e);
			rc = rc < 0 ? rc : try_axes(&t, ranks, axes, 1);
			if (rc == 0 && micro > 1)
				rc = try_axes(&t, ranks, axes, micro);
		}
	rc = rc < 0 ? rc : try_turns(&t, ranks, micro);
	f->brief = 0;
	f->mesh = t.best;
	rc = rc < 0 ? rc : regroup(f, t.apart, t.turns, e);
	return rc < 0 ? rc : t.score > 0;
}

__attribute__((format(printf, 2, 3))) static int
refuse(struct acc_fold *f, const char *fmt, ...)
{
	va_list ap;
	va_start(ap, fmt);
	vsnprintf(f->why, sizeof f->why, fmt, ap);
	va_end(ap);
	return 0;
}

/* --- a reference of several ranks that becomes one, too --- */

/* The ranks of a step, as many in each; *ranks: how many. 1, 0, < 0. */
static int
count_ranks(struct acc_fold *f, uint32_t *ranks, struct acc_err *e)
{
	int rc = acc_fold_steps(f, &no_mesh, e);
	if (rc < 0)
		return rc;
	*ranks = f->nstep > 0 ? f->step[0].nrank : 0;
	for (uint32_t i = 0; i < f->nstep; i++) {
		const struct fold_step *t = &f->step[i];
		if (t->nrank != *ranks)
			return refuse(f, "step %lld has %u ranks, step %lld %u",
				(long long)f->step[0].step, *ranks, (long long)t->step, t->nrank);
		for (uint32_t k = 1; k < t->nrank; k++)
			if (f->device.segment[t->segment[k]].rank ==
				f->device.segment[t->segment[k - 1]].rank)
				return refuse(f, "the records of rank %lld do not stand together",
					(long long)f->device.segment[t->segment[k]].rank);
	}
	/* One rank that takes the batch in parts is several, one after another. */
	if (*ranks > MOST_RANKS || (*ranks < 2 && batches(f, 1) < 2))
		return refuse(f, *ranks < 2 ? "there are no several ranks" : "too many ranks");
	return 1;
}

/* For the parts of a tensor, and behind them for those of one copy, each with what its axes join. */
static int
make_room(struct acc_fold *f, uint32_t ranks, uint32_t micro, struct acc_err *e)
{
	f->part = calloc((ACC_MESH_DIMS + 2) * (size_t)ranks * micro + 2, sizeof *f->part);
	return f->part == NULL ? acc_nomem(e) : 0;
}

/* All meshes of up to two axes and the stages, without micro-batches and with so many. */
static int
try_all(struct trial *t, uint32_t ranks, uint32_t micro)
{
	int rc = 0;
	for (uint32_t axes = 1; axes <= 2 && rc == 0; axes++) {
		rc = try_axes(t, ranks, axes, 1);
		if (rc == 0 && micro > 1)
			rc = try_axes(t, ranks, axes, micro);
	}
	return rc;
}

/* Of the reference: by what the device's best is against it. */
static int
try_reference(struct trial *t, const struct fold_mesh *m)
{
	struct acc_fold *f = t->f;
	struct trial own = {.f = f, .use = try_mesh, .stages = f->nstages, .e = t->e};
	int rc = acc_fold_both_build(f, m, t->e);
	if (rc == 0) {
		acc_fold_steps_free(f);
		rc = acc_fold_steps(f, &no_mesh, t->e);
	}
	if (rc == 0)
		rc = try_all(&own, f->step[0].nrank, batches(f, f->step[0].nrank));
	if (rc == 0 && own.score > 1.02 * t->score) {
		t->score = own.score;
		t->best = *m;
		t->device = own.best;
	}
	return rc;
}

/* Ranks that stand behind each other, as far as what they do shows it. */
static uint32_t
stages_of(const struct acc_fold *f)
{
	return f->step[0].nrank / acc_fold_abreast(f);
}

/* Both meshes, and the reference's layouts. 1, 0, < 0. */
static int
find_both(struct acc_fold *f, struct acc_err *e)
{
	struct acc_fold *g = f->both;
	uint32_t ranks;
	int rc = count_ranks(g, &ranks, e);
	if (rc <= 0) {
		memcpy(f->why, g->why, sizeof f->why);
		return rc;
	}
	struct trial t = {.f = f, .use = try_reference, .stages = stages_of(g), .apart = 1, .e = e};
	const uint32_t micro = batches(g, ranks);
	f->nstages = stages_of(f);
	rc = make_room(g, ranks, micro, e);
	f->brief = BRIEF;
	rc = rc < 0 ? rc : try_all(&t, ranks, micro);
	f->brief = 0;
	if (rc < 0 || t.score == 0)
		return rc;
	f->mesh = t.device;
	rc = acc_fold_both_build(f, &t.best, e);
	rc = rc < 0 ? rc : acc_fold_steps(f, &f->mesh, e);
	rc = rc < 0 ? rc : acc_fold_experts(f, e);
	if (rc > 0) {
		t.best = g->mesh;
		rc = acc_fold_both_build(f, &t.best, e);
		rc = rc < 0 ? rc : acc_fold_steps(f, &f->mesh, e);
	}
	rc = rc < 0 ? rc : acc_fold_both_settle(f, e);
	return rc < 0 ? rc : 1;
}

struct share {
	uint64_t tensors,
		laid;  /* forward tensors of the reference; of them, laid out on the ranks */
	uint64_t like; /* of these, the same as the reference */
	uint64_t own;  /* those of the device */
	uint64_t both; /* of the reference, known, and in op calls that the device has, too */
	uint64_t
		silent; /* of the reference, of which the ranks recorded no value, in no known layout */
	uint64_t
		unknown; /* of the reference, whose ranks have parts in a layout that is not known */
};

/* The first gradient of the reference, or the end: what is updated then consists of flat shards and of
 * gradients, which are summands, and tells little of the layout. */
static uint32_t
forward_end(const struct acc_fold *f, const struct fold_step *t)
{
	if (t->reference == FOLD_NONE)
		return 0;
	const struct fold_segment *g = &f->reference.segment[t->reference];
	uint32_t i = g->first;
	while (i < g->first + g->n && f->reference.call[i].dir != FOLD_BACKWARD)
		i++;
	return i;
}

static void
count_call(struct acc_fold *f, struct fold_step *t, const struct fold_virtual *v, uint32_t end,
	struct share *n)
{
	const struct fold_call *k = &f->device.call[t->call[v->rank]];
	if (k->dir != FOLD_FORWARD || k->talks)
		return;
	for (uint32_t i = 0; i < k->n && !k->late; i++) {
		const struct fold_item *it = acc_fold_counterpart(f, t, v, i);
		n->own += f->device.item[k->first + i].tensor &&
			  (it == NULL || it->stat.ndim <= ACC_FOLD_NDIM);
	}
	if (v->mate == FOLD_NONE || v->mate >= end)
		return;
	for (uint32_t i = 0; i < k->n; i++) {
		const struct fold_item *own = &f->device.item[k->first + i],
				       *it = acc_fold_counterpart(f, t, v, i);
		struct acc_fold_stat whole;
		n->both += it != NULL && it->tensor && it->stat.ndim <= ACC_FOLD_NDIM;
		if (it == NULL || !acc_fold_gather(f, &f->mesh, t, v, i))
			continue;
		double tol = own->tol > it->tol ? own->tol : it->tol;
		struct acc_fold_layout l = acc_fold_choose(f, k, own, FOLD_STAT(it), tol);
		n->laid += l.n > 0;
		n->silent += l.n == 0 && f->part[0].known == 0 && f->part[0].count > 0;
		n->like += l.n > 0 && acc_fold_by_layout(f, &f->mesh, &l, tol, &whole) &&
			   acc_fold_same(&whole, 1, FOLD_STAT(it), tol) == 2;
	}
}

static void
count_reference(const struct acc_fold *f, const struct fold_step *t, uint32_t end, struct share *n)
{
	for (uint32_t i = end > 0 ? f->reference.segment[t->reference].first : 0; i < end; i++) {
		const struct fold_call *k = &f->reference.call[i];
		/* What is sent and received is another tensor on each rank. */
		for (uint32_t x = 0; x < k->n && k->dir == FOLD_FORWARD && !k->talks; x++) {
			const struct fold_item *it = &f->reference.item[k->first + x];
			n->tensors += it->tensor;
			/* What a side that is folded does for itself, as it exchanges parts, need not be known. */
			n->unknown += it->tensor && it->stat.ndim > ACC_FOLD_NDIM &&
				      (f->both == NULL || k->mated);
		}
	}
}

/* Steps, groups, and room for the parts of a tensor; *ranks: those of a group. 1, 0, < 0. */
static int
prepare(struct acc_fold *f, uint32_t *ranks, struct acc_err *e)
{
	uint32_t groups = acc_fold_reference_ranks(f), given = f->groups, apart = f->apart;
	f->groups = f->apart = 1;
	f->whole &= groups > 1;
	f->lone = groups == 1 && reduces_alone(f);
	if (f->whole) {
		int both = acc_fold_both(f, e);
		if (both < 0)
			return both;
		groups = 1;
	}
	int rc = count_ranks(f, ranks, e);
	if (rc <= 0)
		return rc;
	if (groups > 1 && (*ranks % groups != 0 || *ranks == groups))
		return refuse(f, "there are %u ranks, and the reference has %u", *ranks, groups);
	if (f->mesh_given && f->both != NULL)
		return refuse(f, "both sides become one rank: no layout is taken");
	if (f->mesh_given && given != groups)
		return refuse(f, "the layout given is for %u ranks of the reference, which has %u",
			given, groups);
	if (groups > 1) {
		acc_fold_steps_free(f);
		f->groups = groups;
		f->apart = f->mesh_given ? apart : 1;
		rc = acc_fold_steps(f, &no_mesh, e);
		if (rc < 0)
			return rc;
		*ranks /= groups;
	}
	int made = make_room(f, *ranks, f->mesh_given ? f->mesh.micro : batches(f, *ranks), e);
	return made < 0 ? made : 1;
}

int
acc_fold_find(struct acc_fold *f, struct acc_err *e)
{
	uint32_t ranks = 0;
	struct share n = {0};
	int rc = acc_weights_find(f, e);
	if (rc != 0 || f->why[0] != '\0')
		return rc;
	if (f->reference.nitem == 0)
		return refuse(f, "a reference is needed, except for parts of checkpoints");
	rc = prepare(f, &ranks, e);
	if (rc <= 0)
		return rc;
	if (f->mesh_given && f->mesh.stages * f->mesh.ranks != ranks)
		return refuse(f, "the layout given is of %u ranks, and there are %u",
			f->mesh.stages * f->mesh.ranks, ranks);
	rc = f->mesh_given ? 1 : f->both != NULL ? find_both(f, e) : find_mesh(f, ranks, e);
	if (rc == 0)
		return f->why[0] != '\0'
			       ? 0
			       : refuse(f,
					 "no tensor of the ranks is a part of one of the reference");
	if (rc > 0)
		rc = acc_fold_steps(f, &f->mesh, e);
	/* Of a reference that was several ranks nothing is known of experts. */
	if (rc == 0 && f->both == NULL)
		rc = acc_fold_alone(f, e);
	/* Whose tokens go where is another question on each side; of a split of both it is not asked. */
	if (rc > 0 && f->groups > 1)
		return refuse(f,
			"the ranks have experts of their own, and so have the reference's");
	if (rc > 0)
		rc = acc_fold_steps(f, &f->mesh, e);
	if (rc == 0 && f->both == NULL && f->mesh.stages > 1)
		rc = acc_fold_members(f, e);
	if (rc == 0)
		rc = acc_fold_vote(f, e);
	for (uint32_t i = 0; i < f->nstep && rc == 0; i++)
		rc = acc_fold_takers(f, &f->step[i], e);
	for (uint32_t i = 0; i < f->nstep && rc == 0; i++)
		acc_fold_count_sums(f, &f->step[i]);
	for (uint32_t i = 0; i < f->nstep && rc == 0; i++) {
		uint32_t end = forward_end(f, &f->step[i]);
		count_reference(f, &f->step[i], end, &n);
		for (uint32_t k = 0; k < f->step[i].nv; k++)
			count_call(f, &f->step[i], &f->step[i].v[k], end, &n);
	}
	if (rc < 0)
		return rc;
	if (!stages_share(f, &f->mesh))
		return refuse(f,
			"on some ranks fewer than a tenth of the op calls occur in the reference");
	/* Ranks of the reference, too, may do more for themselves than the other side does, as each gathers its
	 * weights, or makes those of all stages; but no more than what both do. */
	bool unknown = 4 * n.unknown > n.tensors;
	if (f->both != NULL && n.own < n.tensors)
		n.tensors = n.own;
	if (f->both != NULL)
		n.tensors = 2 * n.both > n.tensors ? n.both : n.tensors / 2;
	/* What has no value, as where a library traces a call before it makes it, tells of no layout; all that is compared
	 * must not be such. */
	if (2 * n.silent < n.tensors)
		n.tensors -= n.silent;
	/* Behind a fault nothing is like the reference; but where most has no place at all, or
	 * hardly a weight is the same, this is another network, or a layout that is not known. */
	/* On a mesh of several axes shapes alone decide nothing, and who is behind what is not known is
	 * the first to be seen: there an eighth may have no place. Runs with noise of tf32 have more, and
	 * were accused (tests/parallel). */
	bool several = f->mesh.n > 1;
	if ((several ? 8 * n.laid < 7 * n.tensors : 4 * n.laid < 3 * n.tensors) ||
		20 * n.like < n.tensors || unknown)
		return refuse(f,
			"of %llu forward tensors of the reference %llu are laid out on the ranks"
			" in a way that is known, %llu with its values",
			(unsigned long long)n.tensors, (unsigned long long)n.laid,
			(unsigned long long)n.like);
	f->found = true;
	rc = acc_fold_find_turned(f, e);
	rc = rc < 0 ? rc : acc_fold_orders(f, e);
	rc = rc < 0 ? rc : acc_fold_sight(f, e);
	return rc < 0 ? rc : 1;
}

const char *
acc_fold_why(const struct acc_fold *f)
{
	return f->why;
}
