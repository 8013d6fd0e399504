/* Files beneath a folder, with and without openat2; folders in natural order; short reads. */
#include "acc/file.h"
#include "tap.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/filter.h>
#include <linux/openat2.h>
#include <linux/seccomp.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

static char top[] = "/tmp/t_file-XXXXXX";
static const char *const inside[] = {"rank10", "rank2", "rank02", "rank1", "Rank3", "a b", "9",
	"10"};

static void
put(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY | O_CREAT, 0600);
	ok(fd >= 0 && acc_file_write(fd, text, strlen(text), NULL) == 0, "made %s", path);
	close(fd);
}

static void
furnish(void)
{
	ok(mkdtemp(top) != NULL && chdir(top) == 0, "a folder of our own");
	put("secret", "no");
	ok(mkdir("d", 0700) == 0 && mkdir("d/sub", 0700) == 0, "folders");
	put("d/sub/f", "yes");
	for (size_t i = 0; i < sizeof inside / sizeof *inside; i++) {
		char path[64];
		snprintf(path, sizeof path, "d/%s", inside[i]);
		put(path, "yes");
	}
	ok(symlink("sub/f", "d/link") == 0 && symlink("sub", "d/dirlink") == 0 &&
			symlink("../secret", "d/up") == 0 && symlink("/etc/passwd", "d/abs") == 0 &&
			symlink("/", "d/root") == 0 && symlink("loop", "d/loop") == 0 &&
			mkfifo("d/fifo", 0600) == 0,
		"links and a FIFO");
}

/* `code` < 0 is expected, or 0 for a descriptor that reads "yes". */
static void
expect(int dir, const char *how, const char *path, int code)
{
	struct acc_err e = {0};
	char text[8] = "";
	int fd = acc_file_beneath(dir, acc_str(path), &e);
	bool good = code < 0 ? fd == code && e.code == code && strstr(e.msg, path) != NULL
			     : fd >= 0 && read(fd, text, 7) == 3 && strcmp(text, "yes") == 0;
	ok(good, "%s: %s: %s", how, path, code < 0 ? e.msg : "opens");
	if (fd >= 0)
		close(fd);
}

static void
beneath(int dir, const char *how, int links)
{
	expect(dir, how, "rank1", 0);
	expect(dir, how, "sub/f", 0);
	expect(dir, how, "./sub//f", 0);
	expect(dir, how, "link", links);
	expect(dir, how, "dirlink/f", links);
	expect(dir, how, "up", ACC_EREFUSED);
	expect(dir, how, "abs", ACC_EREFUSED);
	expect(dir, how, "root/etc/passwd", ACC_EREFUSED);
	expect(dir, how, "loop", ACC_EREFUSED);
	expect(dir, how, "..", ACC_EREFUSED);
	expect(dir, how, "../secret", ACC_EREFUSED);
	expect(dir, how, "sub/../rank1", ACC_EREFUSED);
	expect(dir, how, "/etc/passwd", ACC_EREFUSED);
	expect(dir, how, "fifo", ACC_EREFUSED);
	expect(dir, how, "sub", ACC_EREFUSED);
	expect(dir, how, ".", ACC_EREFUSED);
	expect(dir, how, "", ACC_EREFUSED);
	expect(dir, how, "absent", ACC_EIO);
	expect(dir, how, "sub/absent", ACC_EIO);
	expect(dir, how, "rank1/f", ACC_EIO);
	struct acc_str cut = {"rank1\0x", 7};
	ok(acc_file_beneath(dir, cut, NULL) == ACC_EREFUSED, "%s: a NUL in a name", how);
	static char deep[PATH_MAX + 10];
	memset(deep, 'x', sizeof deep - 1);
	ok(acc_file_beneath(dir, acc_str(deep), NULL) == ACC_EREFUSED, "%s: a long path", how);
	deep[300] = '\0';
	ok(acc_file_beneath(dir, acc_str(deep), NULL) == ACC_EIO, "%s: a long name", how);
	/* Nothing is left open: the next descriptor has the same number as before. */
	int next = dup(dir);
	close(next);
	ok(next == dir + 1, "%s: no descriptor is left open", how);
}

/* From here on the kernel has no openat2. */
static bool
forbid_openat2(void)
{
	struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_openat2, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | ENOSYS),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog prog = {sizeof code / sizeof *code, code};
	return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
	       prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &prog) == 0;
}

static bool
has_openat2(int dir)
{
	struct open_how how = {.flags = O_PATH | O_CLOEXEC};
	long fd = syscall(SYS_openat2, dir, ".", &how, sizeof how);
	if (fd >= 0)
		close((int)fd);
	return fd >= 0;
}

static void
listing(int dir)
{
	static const char *const want[] = {"9", "10", "Rank3", "a b", "abs", "dirlink", "fifo",
		"link", "loop", "rank1", "rank02", "rank2", "rank10", "root", "sub", "up"};
	const int64_t n = sizeof want / sizeof *want;
	struct acc_arena m = {0};
	const char **got;
	for (int round = 0; round < 2; round++) {
		ok(acc_dir_list(dir, &got, &m, NULL) == n, "%d entries", (int)n);
		bool same = true;
		for (int64_t i = 0; i < n; i++)
			same = same && strcmp(got[i], want[i]) == 0;
		ok(same, "in natural order");
	}
	acc_arena_release(&m);
	int fd = open("d/rank1", O_RDONLY);
	struct acc_err e = {0};
	ok(acc_dir_list(fd, &got, &m, &e) == ACC_EIO && e.code == ACC_EIO, "no folder: %s", e.msg);
	close(fd);
	e = (struct acc_err){0};
	ok(acc_dir_open("d/rank1", &e) == ACC_EIO, "no folder: %s", e.msg);
}

static void
reading(void)
{
	char buf[8];
	struct acc_err e = {0};
	struct acc_file_info info;
	int fd = open("secret", O_RDONLY), dir = open("d", O_RDONLY);
	ok(acc_file_stat(fd, &info, NULL) == 0 && info.size == 2 &&
			info.mtime_ns > 1600000000 * INT64_C(1000000000),
		"size and time");
	ok(acc_file_stat(dir, &info, &e) == ACC_EREFUSED, "a folder is refused: %s", e.msg);
	ok(acc_file_pread(fd, buf, 1, 1, NULL) == 0 && buf[0] == 'o', "one byte in the middle");
	e = (struct acc_err){0};
	ok(acc_file_pread(fd, buf, 4, 1, &e) == ACC_ETRUNC && e.has_pos && e.pos == 2,
		"too short: byte %d: %s", (int)e.pos, e.msg);
	ok(acc_file_pread(fd, buf, 4, UINT64_MAX - 1, NULL) == ACC_EFORMAT,
		"offset beyond 63 bits");
	ok(acc_file_pread(dir, buf, 4, 0, NULL) == ACC_EIO, "reading a folder");
	close(fd);
	close(dir);
	int full = open("/dev/full", O_WRONLY);
	e = (struct acc_err){0};
	ok(acc_file_write(full, "x", 1, &e) == ACC_EIO && strstr(e.msg, "No space") != NULL,
		"a full disk: %s", e.msg);
	close(full);
	int tmp = acc_file_temp(".", NULL);
	struct stat st;
	ok(tmp >= 0 && acc_file_write(tmp, "yes", 3, NULL) == 0 && fstat(tmp, &st) == 0 &&
			st.st_nlink == 0 && acc_file_pread(tmp, buf, 3, 0, NULL) == 0 &&
			memcmp(buf, "yes", 3) == 0,
		"an unlinked temporary file");
	close(tmp);
	e = (struct acc_err){0};
	ok(acc_file_temp("/absent", &e) == ACC_EIO, "nowhere: %s", e.msg);
}

static void
natural(const char *a, const char *b, int want)
{
	int ab = acc_natural_cmp(a, b), ba = acc_natural_cmp(b, a);
	ok((ab > 0) - (ab < 0) == want && (ba > 0) - (ba < 0) == -want, "'%s' against '%s'", a, b);
}

static size_t
resident(void)
{
	size_t all = 0, now = 0;
	FILE *f = fopen("/proc/self/statm", "re");
	if (f == NULL || fscanf(f, "%zu %zu", &all, &now) != 2)
		now = 0;
	if (f != NULL)
		fclose(f);
	return now * (size_t)sysconf(_SC_PAGESIZE);
}

/* An array that moves into a file as it grows keeps what it holds, and costs no memory at rest. */
static void
spilled(void)
{
	enum { N = 6 << 20 };
	struct acc_spill s = {.dir = "."}, none = {.dir = "/nowhere"};
	struct acc_err e = {0};
	uint64_t *v = NULL, wrong = 0;
	for (uint64_t i = 0; i < N; i++) {
		v = acc_spill_room(&s, (size_t)i + 1, sizeof *v, &e);
		if (v == NULL)
			break;
		v[i] = i * 3;
	}
	ok(v != NULL && s.mapped, "48 MiB lie in a file");
	for (uint64_t i = 0; v != NULL && i < N; i++)
		wrong += v[i] != i * 3;
	size_t before = resident();
	acc_spill_rest(&s);
	size_t after = resident();
	/* Emulators may keep it. */
#ifdef __x86_64__
	ok(after + (40U << 20) < before, "40 MiB of them leave memory: %zu to %zu bytes", before,
		after);
#else
	ok(after > 0 && before > 0, "%zu to %zu bytes", before, after);
#endif
	for (uint64_t i = 0; v != NULL && i < N; i++)
		wrong += v[i] != i * 3;
	ok(wrong == 0, "all that was put in is there, before and after");
	acc_spill_release(&s);
	v = acc_spill_room(&none, 1000, sizeof *v, &e);
	ok(v != NULL, "a small one needs no folder");
	ok(acc_spill_room(&none, N, sizeof *v, &e) == NULL && e.code == ACC_EIO && none.p == v,
		"a large one does, and what was there stays");
	e = (struct acc_err){0};
	ok(acc_spill_room(&none, SIZE_MAX / 8, sizeof *v, &e) == NULL && e.code == ACC_ENOMEM,
		"too many elements");
	acc_spill_release(&none);
}

/* Up to what is to be kept no folder is needed; what is settled lies in a file, and so does what comes. */
static void
kept(void)
{
	enum { N = 4 << 20, MORE = 6 << 20 };
	struct acc_spill s = {.dir = "/nowhere", .keep = N * sizeof(uint64_t)};
	struct acc_err e = {0};
	uint64_t *v = NULL, wrong = 0;
	for (uint64_t i = 0; i < N; i++) {
		v = acc_spill_room(&s, (size_t)i + 1, sizeof *v, &e);
		if (v == NULL)
			break;
		v[i] = i * 5;
	}
	ok(v != NULL, "32 MiB that are to be kept need no folder");
	ok(acc_spill_settle(&s, &e) == ACC_EIO && s.p == v, "to settle they do, and stay");
	s.dir = ".";
	size_t before = resident();
	ok(acc_spill_settle(&s, &e) == 0 && s.p != v, "in a folder");
	size_t after = resident();
#ifdef __x86_64__
	ok(after + (24U << 20) < before, "24 MiB of them leave memory: %zu to %zu bytes", before,
		after);
#else
	ok(after > 0 && before > 0, "%zu to %zu bytes", before, after);
#endif
	v = acc_spill_room(&s, MORE, sizeof *v, &e);
	for (uint64_t i = 0; v != NULL && i < N; i++)
		wrong += v[i] != i * 5;
	ok(v != NULL && wrong == 0, "all is there, and more");
	acc_spill_release(&s);
}

int
main(void)
{
	alarm(60); /* opening a FIFO must not wait for a writer */
	natural("", "", 0);
	natural("", "a", -1);
	natural("a", "a", 0);
	natural("rank2", "rank10", -1);
	natural("step2/rank9", "step10/rank1", -1);
	natural("a2b3", "a2b03", 1);
	natural("x1", "x01y", -1);
	natural("99999999999999999999999", "100000000000000000000000", -1);
	natural("0", "", 1);
	natural("a0", "a", 1);
	natural("1a", "a1", -1);
	natural("\xc3\xa9", "z", 1);
	furnish();
	spilled();
	kept();
	int dir = acc_dir_open("d", NULL);
	ok(dir >= 0, "opens");
	listing(dir);
	reading();
	beneath(dir, "openat2", has_openat2(dir) ? 0 : ACC_EREFUSED);
	/* An emulator may have neither it nor the means to take it away. */
	ok(!has_openat2(dir) || forbid_openat2(), "openat2 is taken away");
	beneath(dir, "walk", ACC_EREFUSED);
	char rm[64];
	snprintf(rm, sizeof rm, "rm -r %s", top);
	return system(rm) == 0 ? done() : 1;
}
