#include "io/regex.h"
#include "base/order.h"

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>
#include <stdlib.h>

/* Steps that one line may take: a pattern such as (a+)+b needs 2^n of them. */
enum { MATCH_LIMIT = 1000000, PATTERN_LIMIT = 64 << 10 };

struct group {
	struct acc_str name;
	uint32_t number;
};

struct acc_regex {
	pcre2_code *code;
	pcre2_match_data *match;
	pcre2_match_context *limits;
	struct group *group;
	uint32_t n;
};

ACC_ORDER(by_number, struct group, number)

/* The groups by their numbers: as many as have names here. */
static int
number_groups(struct acc_regex *r, const char *const *names, struct acc_err *e)
{
	uint32_t groups = 0;
	pcre2_pattern_info(r->code, PCRE2_INFO_CAPTURECOUNT, &groups);
	while (r->n < groups && names[r->n] != NULL)
		r->n++;
	if (r->n < groups)
		return acc_fail(e, ACC_EUSAGE,
			"the pattern has %u groups without names, at most %u", groups, r->n);
	r->group = calloc((size_t)r->n + 1, sizeof *r->group);
	if (r->group == NULL)
		return acc_nomem(e);
	for (uint32_t i = 0; i < r->n; i++)
		r->group[i] = (struct group){acc_str(names[i]), i + 1};
	return 0;
}

/* PCRE2 lists names by alphabet: two bytes of number, the name, a zero. */
static int
list_groups(struct acc_regex *r, const char *const *names, struct acc_err *e)
{
	PCRE2_SPTR table = NULL;
	uint32_t entry = 0;
	pcre2_pattern_info(r->code, PCRE2_INFO_NAMECOUNT, &r->n);
	if (r->n == 0 && names != NULL && number_groups(r, names, e) < 0)
		return e == NULL ? ACC_EUSAGE : e->code;
	if (r->group != NULL && r->n > 0)
		return 0;
	if (r->n == 0)
		return acc_fail(e, ACC_EUSAGE,
			"the pattern has no named group, such as "
			"(?<loss>[0-9.]+)");
	pcre2_pattern_info(r->code, PCRE2_INFO_NAMETABLE, &table);
	pcre2_pattern_info(r->code, PCRE2_INFO_NAMEENTRYSIZE, &entry);
	r->group = calloc(r->n, sizeof *r->group);
	if (r->group == NULL)
		return acc_nomem(e);
	for (uint32_t i = 0; i < r->n; i++, table += entry)
		r->group[i] = (struct group){acc_str((const char *)table + 2),
			(uint32_t)table[0] << 8 | table[1]};
	qsort(r->group, r->n, sizeof *r->group, by_number);
	return 0;
}

struct acc_regex *
acc_regex_open(const char *pattern, struct acc_err *e)
{
	return acc_regex_open_names(pattern, NULL, e);
}

struct acc_regex *
acc_regex_open_names(const char *pattern, const char *const *names, struct acc_err *e)
{
	struct acc_regex *r = acc_regex_open_plain(pattern, e);
	if (r == NULL || list_groups(r, names, e) == 0)
		return r;
	acc_regex_close(r);
	return NULL;
}

struct acc_regex *
acc_regex_open_plain(const char *pattern, struct acc_err *e)
{
	int code;
	PCRE2_SIZE at;
	PCRE2_UCHAR what[120];
	struct acc_regex *r = calloc(1, sizeof *r);
	if (r == NULL) {
		acc_nomem(e);
		return NULL;
	}
	if (strlen(pattern) > PATTERN_LIMIT) {
		acc_fail(e, ACC_ELIMIT, "the pattern is too long");
		free(r);
		return NULL;
	}
	r->code = pcre2_compile((PCRE2_SPTR)pattern, PCRE2_ZERO_TERMINATED, PCRE2_NEVER_BACKSLASH_C,
		&code, &at, NULL);
	if (r->code == NULL) {
		pcre2_get_error_message(code, what, sizeof what);
		acc_fail_at(e, ACC_EUSAGE, at, "the pattern is wrong: %s", (const char *)what);
	} else {
		pcre2_jit_compile(r->code, PCRE2_JIT_COMPLETE); /* slower without, not wrong */
		r->match = pcre2_match_data_create_from_pattern(r->code, NULL);
		r->limits = pcre2_match_context_create(NULL);
		if (r->match != NULL && r->limits != NULL) {
			pcre2_set_match_limit(r->limits, MATCH_LIMIT);
			return r;
		}
		acc_nomem(e);
	}
	acc_regex_close(r);
	return NULL;
}

void
acc_regex_close(struct acc_regex *r)
{
	if (r == NULL)
		return;
	pcre2_match_data_free(r->match);
	pcre2_match_context_free(r->limits);
	pcre2_code_free(r->code);
	free(r->group);
	free(r);
}

size_t
acc_regex_names(const struct acc_regex *r)
{
	return r->n;
}

struct acc_str
acc_regex_name(const struct acc_regex *r, size_t i)
{
	return r->group[i].name;
}

int
acc_regex_find(struct acc_regex *r, struct acc_str s, struct acc_err *e)
{
	return acc_regex_find_from(r, s, 0, e);
}

int
acc_regex_find_from(struct acc_regex *r, struct acc_str s, size_t at, struct acc_err *e)
{
	int rc = pcre2_match(r->code, (PCRE2_SPTR)s.p, s.n, at, 0, r->match, r->limits);
	if (rc == PCRE2_ERROR_NOMATCH)
		return 0;
	if (rc < 0)
		return acc_fail(e, rc == PCRE2_ERROR_NOMEMORY ? ACC_ENOMEM : ACC_ELIMIT,
			"the pattern takes too long on this text");
	/* \K in a lookaround, where the library has it. */
	const PCRE2_SIZE *match = pcre2_get_ovector_pointer(r->match);
	if (match[0] < at || match[0] > match[1])
		return acc_fail(e, ACC_EUSAGE, "the pattern matches backwards");
	return 1;
}

struct acc_str
acc_regex_group(const struct acc_regex *r, struct acc_str s, size_t i)
{
	return acc_regex_number(r, s, r->group[i].number);
}

struct acc_str
acc_regex_number(const struct acc_regex *r, struct acc_str s, uint32_t g)
{
	const PCRE2_SIZE *at = pcre2_get_ovector_pointer(r->match);
	if (g >= pcre2_get_ovector_count(r->match) || at[2 * g] == PCRE2_UNSET)
		return (struct acc_str){NULL, 0};
	return (struct acc_str){s.p + at[2 * g], (uint32_t)(at[2 * g + 1] - at[2 * g])};
}
