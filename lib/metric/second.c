/* Metrics that need the means and ranges of both sides before they can be formed: by a second
 * pass over the pair, which one of the pool's threads does. */
#include "metric/measurer.h"

#include <stdlib.h>

static void
chunk(void *arg, const double *a, const double *b, size_t n)
{
	struct second *p = arg;
	for (int i = 0; i < p->m->nsecond; i++)
		if (!p->over[i])
			p->m->second[i]->chunk(p->state[i], a, b, n);
}

static void
run(void *arg)
{
	struct slot *s = arg;
	struct second *p = s->second;
	for (int i = 0; i < p->m->nsecond; i++)
		p->m->second[i]->begin(p->state[i], &p->got, &s->a.ref, &s->b.ref);
	for (bool again = p->m->nsecond > 0; again && p->rc >= 0;) {
		p->rc = acc_side_walk(p->m->roots, &s->a, &s->b, false, chunk, p, &p->got.err_a,
			&p->got.err_b);
		again = false;
		for (int i = 0; i < p->m->nsecond && p->rc >= 0; i++) {
			const struct acc_second *pass = p->m->second[i];
			int rc = p->over[i] || pass->more == NULL ? 0 : pass->more(p->state[i]);
			p->over[i] = rc <= 0;
			again |= rc > 0;
			if (rc < 0)
				p->rc = acc_nomem(&p->got.err_a);
		}
	}
	if (p->rc >= 0 && acc_reach_due(s, &p->got))
		p->rc = acc_reach_measure(p->m, s, &p->got.err_a, &p->got.err_b);
}

int
acc_second_begin(struct acc_measurer *m, struct slot *s)
{
	struct acc_err e = {0};
	if (!m->reading.has_two || m->reading.two.n == 0 ||
		(m->nsecond == 0 && !acc_reach_due(s, &m->reading)))
		return 0;
	struct second *p = s->second = calloc(1, sizeof *p);
	if (p == NULL)
		return ACC_ENOMEM;
	p->m = m;
	p->got = m->reading;
	for (int i = 0; i < m->nsecond; i++)
		if ((p->state[i] = calloc(1, m->second[i]->size)) == NULL)
			return ACC_ENOMEM;
	return acc_pool_add_task(m->pool, run, s, &e) < 0 ? ACC_ENOMEM : 1;
}

void
acc_second_end(struct slot *s)
{
	for (int i = 0; s->second != NULL && i < MAX_SECOND; i++) {
		void *state = s->second->state[i];
		if (state != NULL && s->second->m->second[i]->end != NULL)
			s->second->m->second[i]->end(state);
		free(state);
	}
	free(s->second);
	s->second = NULL;
}
