/* yaml.h - a YAML file as a small tree
 *
 * For mapping files and configurations: scalars stay text (null as an empty plain scalar); what is
 * deeper than 64 levels or longer than 64 MiB is refused. Only the first document is read. An
 * alias is a node of its own that points to what it stands for: with aliases, a few lines can
 * stand for gigabytes, so that whoever follows them must count.
 */
#ifndef ACC_YAML_H
#define ACC_YAML_H

#include "acc/base.h"

#ifdef __cplusplus
extern "C" {
#endif

enum acc_yaml_kind { ACC_YAML_SCALAR, ACC_YAML_LIST, ACC_YAML_MAP, ACC_YAML_ALIAS };

struct acc_yaml {
	enum acc_yaml_kind kind;
	bool null;              /* a plain scalar that is empty, ~ or null */
	const char *text;       /* of a scalar; terminated */
	uint32_t line;          /* from 1 */
	struct acc_yaml *child; /* the first; of a map key, value, key, value; of an alias what it
				 * stands for, which is no alias and does not hold it */
	struct acc_yaml *next;
};

/* *out: the tree, in the arena; NULL for a file without a document. Anchors and aliases are
 * refused. 0 or negative. */
int acc_yaml_read(const char *path, struct acc_arena *m, struct acc_yaml **out, struct acc_err *e);
/* The same of n bytes, with aliases. */
int acc_yaml_parse(const void *text, size_t n, struct acc_arena *m, struct acc_yaml **out,
	struct acc_err *e);
/* The value of a key of a map, or NULL. y may be NULL or no map. */
const struct acc_yaml *acc_yaml_get(const struct acc_yaml *y, const char *key);
/* "key: value" and a newline, quoted where YAML needs it. < 0: out of memory. */
int acc_yaml_pair(struct acc_buf *out, struct acc_str key, struct acc_str value);

#ifdef __cplusplus
}
#endif

#endif
