/* Messages: what a text was made of goes with it, and is shown in Chinese; what a stream claims to be
 * one does no harm. */
#include "acc/say.h"
#include "acc/terminal.h"
#include "base/message.h"
#include "tap.h"

#include <errno.h>
#include <stdlib.h>

static struct acc_arena mem;

/* A record's text as people read it, with these items as its message. */
static const char *
shown(const char *text, const char *const *item, uint32_t n)
{
	static struct acc_rec r, room;
	const struct acc_rec *out;
	struct acc_str *list = calloc(n + 1, sizeof *list);
	for (uint32_t i = 0; i < n; i++)
		list[i] = acc_str(item[i]);
	acc_rec_start(&r, ACC_STR("finding"));
	acc_put(&r, "", "text", acc_ctext(text));
	acc_put(&r, "", "text.msg", acc_texts(list, n));
	free(list);
	if (acc_rec_said(&r, &room, &out) < 0 || acc_get(out, "", "text.msg") != NULL)
		return "failed";
	struct acc_str s = acc_get_text(out, "", "text");
	return acc_arena_copy(&mem, s.p, s.n);
}

static bool
same(const char *got, const char *want)
{
	if (strcmp(got, want) == 0)
		return true;
	printf("# got  %s\n# want %s\n", got, want);
	return false;
}

static void
making(void)
{
	const char *eps = acc_say(&mem, ", %.2g eps of %s", 1.6, "f32");
	const char *text = acc_say(&mem, "its inputs agree to %.2g%s", 1.9e-7, eps);
	ok(same(text, "its inputs agree to 1.9e-07, 1.6 eps of f32"), "the text is English");
	struct acc_val v = acc_message(&mem, text);
	static const char *const want[] = {"%its inputs agree to %.2g%s", "=1.9e-07",
		"%, %.2g eps of %s", "=1.6", "=f32"};
	bool good = v.type == ACC_V_TEXTS && v.n == 5;
	for (uint32_t i = 0; good && i < 5; i++)
		good = acc_str_is(v.texts[i], want[i]);
	ok(good, "its message: formats and arguments, one within the other");
	struct acc_arena other = {0};
	const char *copy = acc_say_copy(&other, &mem, text);
	ok(acc_message(&other, copy).n == 5 && acc_message(&other, text).type == ACC_V_NIL,
		"a copy has it, too");
	acc_arena_release(&other);
	v = acc_message(&mem, acc_say(&mem, "%s: %.*s %zu %lld %5.1f%% %c", "bench", 3, "benchmark",
				      (size_t)7, -8LL, 9.25, 'x'));
	ok(v.n == 7 && acc_str_is(v.texts[1], "%bench") && acc_str_is(v.texts[2], "=ben") &&
			acc_str_is(v.texts[3], "=7") && acc_str_is(v.texts[4], "=-8") &&
			acc_str_is(v.texts[5], "=  9.2") && acc_str_is(v.texts[6], "=x"),
		"a word of the catalogue is a message, all else a text");
	ok(same(acc_tr("standard input"), "standard input"), "nothing is translated at first");
}

static void
showing(void)
{
	static const char *const item[] = {"%its inputs agree to %.2g%s", "=1.9e-07",
		"%, %.2g eps of %s", "=1.6", "=f32"};
	ok(same(shown("english", item, 5), "english"), "in English it is the text");
	ok(!acc_lang_use("xx") && !acc_lang_use("zh_TW") && acc_lang_use("zh_CN.UTF-8"),
		"languages there are");
	ok(same(shown("english", item, 5), "其输入一致, 相差 1.9e-07, f32 的 1.6 个 eps"),
		"in Chinese, in another order");
	ok(same(acc_tr("standard input"), "标准输入"), "a message by itself");
}

static void
hostile(void)
{
	static const char *const none[] = {"%no such message: %s", "=a"},
				 *const less[] = {"%its inputs agree to %.2g%s", "=1"},
				 *const more[] = {"%its inputs agree exactly", "=1"},
				 *const odd[] = {"%its inputs agree to %.2g%s", "=1", "text"},
				 *const empty[] = {"%its inputs agree to %.2g%s", "=1", ""},
				 *const inner[] = {"%its inputs agree to %.2g%s",
					 "=%n%s%999999999s",
					 ("%%n%%"
					  "%1$s"),
					 "=b"};
	ok(same(shown("text", none, 2), "text"), "an id that is not known");
	ok(same(shown("text", less, 2), "text"), "an argument too few");
	ok(same(shown("text", more, 2), "text"), "one too many");
	ok(same(shown("text", odd, 3), "text") && same(shown("text", empty, 3), "text"),
		"items that are neither");
	const char *got = shown("text", inner, 4);
	ok(strstr(got, "%n%s%999999999s") != NULL || same(got, "text"), "formats are not obeyed");
	enum { DEEP = 20000 };
	const char **deep = calloc(DEEP * 2, sizeof *deep);
	for (int i = 0; i < DEEP; i++) {
		deep[2 * i] = "%its inputs agree to %.2g%s";
		deep[2 * i + 1] = "=1";
	}
	deep[2 * DEEP - 2] = "=x";
	ok(same(shown("text", deep, DEEP * 2 - 1), "text"), "messages in messages without end");
	free(deep);
}

/* With a text for each argument, each translation can be made of what its id takes. */
static void
catalogue(void)
{
	size_t bad = 0;
	for (size_t i = 0; i < acc_nmessages; i++) {
		struct acc_str item[ACC_SAID_ARGS + 1];
		struct acc_arena m = {0};
		struct acc_buf out = {0};
		struct conversion c;
		uint32_t n = 1;
		int next = 1;
		item[0] = acc_str(acc_arena_printf(&m, "%%%s", acc_messages[i].id));
		for (const char *p = acc_messages[i].id;
			n < ACC_SAID_ARGS && acc_conversion(p, &next, &c); p = c.end)
			item[n++] = ACC_STR("=0");
		if (!acc_message_show(item, n, &out)) {
			printf("# %s\n", acc_messages[i].id);
			bad++;
		}
		acc_buf_release(&out);
		acc_arena_release(&m);
	}
	ok(bad == 0 && acc_nmessages > 1000, "all %zu messages", acc_nmessages);
}

static void
failures(void)
{
	char text[200];
	struct acc_err e = {0};
	errno = ENOENT;
	acc_fail(&e, ACC_EIO, "cannot open:");
	acc_err_in(&e, "standard input");
	acc_err_said(&e, text, sizeof text);
	ok(same(text, "标准输入: 无法打开: 没有那个文件或目录"), "a failure, and why");
	acc_err_text(&e, text, sizeof text);
	ok(same(text, "standard input: cannot open: No such file or directory"), "and in English");
	e = (struct acc_err){0};
	acc_fail_at(&e, ACC_EFORMAT, 12, "member %.*s: compression method %d is not supported", 3,
		"a\033bc", 99);
	acc_err_said(&e, text, sizeof text);
	ok(same(text, "字节 12: 成员 a?b: 不支持压缩方法 99"),
		"what a terminal would obey is masked");
	struct acc_rec r = {0};
	acc_put_err(&r, "a.", &e);
	ok(acc_str_is(acc_get_text(&r, "a.", "err"),
		   "byte 12: member a?b: compression method 99 is not "
		   "supported") &&
			acc_get(&r, "a.", "err.msg") != NULL,
		"a record has it in English, and its message");
	acc_rec_release(&r);
}

static void
wrapping(void)
{
	static const char text[] =
		"输入 0 与标杆的值相差达 0.08 (rms 0.011), 最差处 [0, 1]; 其输入一致。";
	char *out = NULL;
	size_t n, widest = 0;
	FILE *f = open_memstream(&out, &n);
	acc_text_wrap(f, acc_str(text), 20, 0, 2);
	fclose(f);
	bool closing = false;
	for (char *line = out, *end; line != NULL; line = end) {
		end = strchr(line, '\n');
		size_t w = acc_text_width((struct acc_str){line,
			(uint32_t)(end == NULL ? strlen(line) : (size_t)(end++ - line))});
		widest = w > widest ? w : widest;
		line += strspn(line, " ");
		closing |= strchr(",;)]", *line) != NULL || strncmp(line, "。", strlen("。")) == 0;
	}
	ok(widest <= 20 && widest > 16, "Chinese is broken between characters, %zu columns",
		widest);
	ok(!closing, "and not before what closes");
	free(out);
}

int
main(void)
{
	making();
	showing();
	hostile();
	catalogue();
	failures();
	wrapping();
	acc_arena_release(&mem);
	return done();
}
