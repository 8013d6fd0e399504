#include "dump/weight/dcp_st.h"

#include <unistd.h>

struct dcp_st_file {
	struct dcp_st_file *next;
	bool is; /* in safetensors */
	struct acc_st st;
	struct acc_file_info info;
	struct acc_map names; /* -> place in st */
};

/* Its header, read once. */
static int
hold(struct dcp_st *s, struct dcp_st_file *h, int dirfd, struct acc_str file, struct acc_err *e)
{
	uint8_t head[16];
	int fd = acc_file_beneath(dirfd, file, e);
	if (fd < 0)
		return fd;
	int rc = acc_file_stat(fd, &h->info, e);
	int64_t n = rc < 0 ? rc : acc_file_peek(fd, head, sizeof head, 0, e);
	h->is = n > 0 && acc_st_is(head, (size_t)n);
	rc = n < 0 ? (int)n : h->is ? acc_st_read(fd, &h->st, &s->mem, e) : 0;
	close(fd);
	for (size_t i = 0; i < h->st.n && rc == 0; i++)
		if (acc_map_put(&h->names, h->st.t[i].name, i) == NULL)
			rc = acc_nomem(e);
	return rc;
}

int
acc_dcp_st_find(struct dcp_st *s, int dirfd, struct acc_str file, struct acc_str name,
	const struct acc_st_tensor **t, struct acc_file_info *info, struct acc_err *e)
{
	const uint64_t *known = acc_map_get(&s->files, file);
	struct dcp_st_file *h = known == NULL ? acc_alloc(&s->mem, sizeof *h)
					      : (struct dcp_st_file *)(uintptr_t)*known;
	if (h == NULL)
		return acc_nomem(e);
	if (known == NULL) {
		*h = (struct dcp_st_file){.is = false};
		int rc = hold(s, h, dirfd, file, e);
		if (rc == 0 && acc_map_put(&s->files, file, (uint64_t)(uintptr_t)h) == NULL)
			rc = acc_nomem(e);
		if (rc < 0) {
			acc_map_release(&h->names);
			return rc;
		}
		h->next = s->first;
		s->first = h;
	}
	const uint64_t *at = h->is ? acc_map_get(&h->names, name) : NULL;
	*t = at == NULL ? NULL : &h->st.t[*at];
	*info = h->info;
	return h->is;
}

void
acc_dcp_st_release(struct dcp_st *s)
{
	for (struct dcp_st_file *h = s->first; h != NULL; h = h->next)
		acc_map_release(&h->names);
	acc_map_release(&s->files);
	acc_arena_release(&s->mem);
}
