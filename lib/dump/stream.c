/* A stream of records as a dump: what was read once is selected from again. */
#include "acc/dump.h"
#include "acc/inflate.h"
#include "acc/stream.h"
#include "dump/stream_names.h"

/* gzip may hold anything. */
static bool
holds_stream(const struct acc_probe *p)
{
	uint8_t out[8];
	size_t nin = p->nhead, nout = sizeof out;
	struct acc_inflate *z = acc_inflate_open(ACC_INFLATE_GZIP, NULL);
	if (z == NULL)
		return true; /* no memory to look: to read it says so */
	bool yes = acc_inflate_run(z, p->head, &nin, out, &nout, NULL) >= 0 && out[0] != 0x1f &&
		   acc_is_stream(out, nout);
	acc_inflate_close(z);
	return yes;
}

static int
probe(const struct acc_probe *p)
{
	if (p->is_dir || !acc_is_stream(p->head, p->nhead))
		return 0;
	return p->head[0] != 0x1f || holds_stream(p) ? 100 : 0;
}

/* A data record goes to each tensor that has its bytes. */
static int
pass(struct acc_dump_ctx *c, struct acc_stream_names *names, struct acc_rec *r, struct acc_err *e)
{
	uint64_t at = 0;
	int64_t seq;
	const bool data = acc_rec_is(r, "data");
	int rc = acc_stream_names_resolve(names, r, e);
	const int64_t own = acc_get_int(r, "", "seq", -1);
	if (rc == 0)
		rc = acc_dump_pass(c, r, e);
	while (rc >= 0 && data && acc_stream_names_next(names, r, &at, &seq)) {
		rc = acc_put(r, "", "seq", acc_int(seq)) < 0 ? acc_nomem(e)
							     : acc_dump_pass(c, r, e);
		if (rc >= 0 && acc_put(r, "", "seq", acc_int(own)) < 0)
			rc = acc_nomem(e);
	}
	return rc;
}

static int
read_stream(struct acc_dump_ctx *c, const char *path, struct acc_err *e)
{
	struct acc_rd *rd = acc_rd_open(path, e);
	struct acc_stream_names *names = acc_stream_names_new(e);
	struct acc_rec *r;
	if (rd == NULL || names == NULL) {
		acc_stream_names_free(names);
		acc_rd_close(rd);
		return e != NULL ? e->code : ACC_EFORMAT;
	}
	int rc = acc_dump_heard(c, acc_rd_log(rd), 0);
	if (rc < 0)
		acc_nomem(e);
	while (rc >= 0 && (rc = acc_rd_next(rd, &r, e)) > 0)
		rc = pass(c, names, r, e);
	if (rc == 0)
		acc_dump_heard(c, NULL, acc_rd_status(rd));
	acc_stream_names_free(names);
	acc_rd_close(rd);
	return rc;
}

const struct acc_dump acc_dump_acc = {
	.name = "acc",
	.help = "a stream of these programs, a file or standard input, perhaps gzip'd",
	.probe = probe,
	.read = read_stream,
};
