/* The names of runs, which no two have alike: run-20260102_030405-a1b2c3d4, Jan02_03-04-05_host,
 * version_3, 441d22a8d425439eb89aea491ffb04cc. */
#include "acc/operand.h"

static bool
is_digit(char c)
{
	return c >= '0' && c <= '9';
}

static bool
is_hex(char c)
{
	return is_digit(c) || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F');
}

static bool
is_word(char c)
{
	return is_digit(c) || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

/* What a run of letters and digits is. */
struct token {
	uint32_t n, digits, hex;
};

static struct token
token_at(struct acc_str s, uint32_t at)
{
	struct token t = {0};
	for (; at + t.n < s.n && is_word(s.p[at + t.n]); t.n++) {
		t.digits += is_digit(s.p[at + t.n]);
		t.hex += is_hex(s.p[at + t.n]);
	}
	return t;
}

/* A long number, or eight and more of hexadecimal digits with a number among them. */
static bool
is_id(const struct token *t)
{
	return (t->digits == t->n && t->n >= 6) || (t->n >= 8 && t->digits > 0 && t->hex == t->n);
}

/* Three numbers and more make a date or a time. */
static bool
has_time(struct acc_str s)
{
	uint32_t numbers = 0, digits = 0, longest = 0;
	for (uint32_t at = 0; at < s.n;) {
		const struct token t = token_at(s, at);
		const uint32_t tail = t.n > 0 && t.digits < t.n ? 0 : t.digits;
		numbers += tail > 0;
		digits += tail;
		longest = tail > longest ? tail : longest;
		at += t.n > 0 ? t.n : 1;
	}
	return (numbers >= 3 && digits >= 6) || (numbers >= 2 && longest >= 8);
}

/* Mmmdd_hh-mm-ss_host, as SummaryWriter calls its folders. */
static bool
is_month(struct acc_str s)
{
	static const char months[] = "JanFebMarAprMayJunJulAugSepOctNovDec";
	if (s.n < 14 || !is_digit(s.p[3]) || !is_digit(s.p[4]) || s.p[5] != '_')
		return false;
	for (const char *m = months; *m != '\0'; m += 3)
		if (memcmp(s.p, m, 3) == 0)
			return true;
	return false;
}

/* version_3, exp2, run-4: numbered as they came. */
static bool
is_numbered(struct acc_str s, uint32_t *word)
{
	static const char *const words[] = {"version", "exp", "run", "try", "trial", "train"};
	for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
		uint32_t n = (uint32_t)strlen(words[i]);
		if (!acc_str_starts(s, words[i]))
			continue;
		*word = n;
		n += n < s.n && (s.p[n] == '_' || s.p[n] == '-');
		while (n < s.n && is_digit(s.p[n]))
			n++;
		if (n == s.n)
			return true;
	}
	return false;
}

/* Those of a step or a rank say what belongs together. */
static bool
is_place(struct acc_str s)
{
	static const char *const words[] = {"step", "checkpoint", "ckpt", "iter", "epoch", "rank"};
	for (size_t i = 0; i < sizeof words / sizeof *words; i++)
		if (memmem(s.p, s.n, words[i], strlen(words[i])) != NULL)
			return true;
	return false;
}

/* One component, its ids as #. Those of W&B and SwanLab are eight characters, perhaps letters alone. */
enum { TRACKED = 8 };
static int
shape(struct acc_buf *b, struct acc_str s)
{
	uint32_t word = 0;
	const bool tracker = acc_str_starts(s, "run-") || acc_str_starts(s, "offline-run-");
	const bool timed = has_time(s) || tracker, place = is_place(s);
	int rc = 0;
	if (is_month(s))
		return acc_buf_add(b, "#", 1);
	if (is_numbered(s, &word))
		return acc_buf_add(b, s.p, word) < 0 ? ACC_ENOMEM : acc_buf_add(b, "#", 1);
	for (uint32_t at = 0; at < s.n && rc == 0;) {
		const struct token t = token_at(s, at);
		const uint32_t n = t.n > 0 ? t.n : 1;
		const bool own = t.n > 0 && !place &&
				 (is_id(&t) || (timed && t.digits == t.n) ||
					 (tracker && t.n == TRACKED && at > 0));
		rc = own ? acc_buf_add(b, "#", 1) : acc_buf_add(b, s.p + at, n);
		at += n;
	}
	return rc;
}

const char *
acc_held_shape(struct acc_arena *m, const char *name)
{
	struct acc_buf b = {0};
	int rc = 0;
	for (const char *at = name; rc == 0;) {
		const size_t n = strcspn(at, "/");
		rc = shape(&b, (struct acc_str){at, (uint32_t)n});
		at += n;
		if (*at == '\0')
			break;
		rc = rc < 0 ? rc : acc_buf_add(&b, "/", 1);
		at++;
	}
	const char *out = rc < 0 ? NULL : acc_arena_copy(m, (const char *)b.p, b.n);
	acc_buf_release(&b);
	return out;
}
