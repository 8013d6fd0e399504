#include "io/pysafe.h"

/* Called by the picklers of Python, numpy and torch to make plain values. '*' ends a prefix,
 * which takes one name, not a path of names. */
static const char *const inert[] = {"torch._utils _rebuild_*", "collections *",
	"torch._tensor _rebuild_*", "torch_npu.utils.storage _rebuild_*", "torch device",
	"torch.return_types *", "torch.storage _load_from_bytes", "torch.serialization _get_layout",
	"torch.nested._internal.nested_tensor _rebuild_njt", "torch.jit._pickle build_*",
	"torch.jit._pickle restore_type_tag", "torch_xla.core.xla_model _rebuild_*",
	"torch_npu.utils._utils _rebuild_*", "torch_npu.utils.tensor_methods _rebuild_*",
	"numpy dtype", "numpy ndarray", "numpy.core.multiarray scalar",
	"numpy.core.multiarray _reconstruct", "numpy.core.numeric _frombuffer",
	"numpy._core.multiarray scalar", "numpy._core.multiarray _reconstruct",
	"numpy._core.numeric _frombuffer", "numpy.random._pickle *", "_codecs encode",
	"builtins set", "builtins frozenset", "builtins dict", "builtins list", "builtins tuple",
	"builtins bytearray", "builtins bytes", "builtins complex", "builtins int",
	"builtins float", "builtins str", "builtins bool", "builtins slice", "builtins range",
	"builtins object", "__builtin__ set", "__builtin__ frozenset", "__builtin__ dict",
	"__builtin__ list", "__builtin__ tuple", "__builtin__ bytearray", "__builtin__ bytes",
	"__builtin__ complex", "__builtin__ int", "__builtin__ long", "__builtin__ float",
	"__builtin__ str", "__builtin__ unicode", "__builtin__ bool", "__builtin__ slice",
	"__builtin__ xrange", "__builtin__ object", "copyreg _reconstructor", "copyreg __newobj__",
	"copyreg __newobj_ex__", "copy_reg _reconstructor", "copy_reg __newobj__",
	"copy_reg __newobj_ex__", "datetime date", "datetime datetime", "datetime time",
	"datetime timedelta", "datetime timezone", "io BytesIO", "io StringIO", "_io BytesIO",
	"_io StringIO", "logging getLogger", "re _compile", "types SimpleNamespace",
	"types MappingProxyType"};

/* Modules, with all below them, whose classes do more than hold values when they are made. */
static const char *const acting[] = {"_ctypes", "_io", "_operator", "_pickle", "_posixsubprocess",
	"_socket", "_winapi", "asyncio", "bdb", "builtins", "__builtin__", "cProfile", "code",
	"codeop", "concurrent", "ctypes", "dill", "distutils", "doctest", "fileinput", "ftplib",
	"functools", "http", "imaplib", "imp", "importlib", "inspect", "io", "joblib", "lzma",
	"marshal", "mmap", "multiprocessing", "nt", "operator", "os", "pdb", "pickle", "pip",
	"pkgutil", "popen2", "poplib", "posix", "profile", "pty", "pydoc", "requests", "runpy",
	"setuptools", "shelve", "shutil", "signal", "smtplib", "socket", "socketserver", "sqlite3",
	"ssl", "subprocess", "sys", "tarfile", "telnetlib", "tempfile", "threading", "timeit",
	"torch.hub", "torch.multiprocessing", "torch.package", "torch.utils.cpp_extension", "types",
	"urllib", "venv", "webbrowser", "xmlrpc", "zipapp", "zipfile", "zipimport"};

static bool
listed(struct acc_str s)
{
	for (size_t i = 0; i < sizeof inert / sizeof *inert; i++) {
		size_t n = strlen(inert[i]);
		bool prefix = inert[i][n - 1] == '*';
		n -= prefix;
		if ((prefix ? s.n > n : s.n == n) && memcmp(s.p, inert[i], n) == 0)
			return !prefix || memchr(s.p + n, '.', s.n - n) == NULL;
	}
	return false;
}

static bool
acts(struct acc_str module)
{
	for (size_t i = 0; i < sizeof acting / sizeof *acting; i++) {
		size_t n = strlen(acting[i]);
		if (acc_str_starts(module, acting[i]) && (module.n == n || module.p[n] == '.'))
			return true;
	}
	return false;
}

/* Does every part of a dotted name look like a class? "Outer.Inner", "_Box"; but not what goes
 * through a module, as "os.Popen" in the module torch would. */
static bool
class_like(struct acc_str name)
{
	bool start = true;
	for (uint32_t i = 0; i < name.n; i++) {
		char c = name.p[i];
		if (start && c != '_' && (c < 'A' || c > 'Z'))
			return false;
		start = c == '.' || (start && c == '_');
	}
	return !start;
}

bool
acc_pysafe(struct acc_str s, bool newobj)
{
	const char *blank = s.n == 0 ? NULL : memchr(s.p, ' ', s.n);
	if (blank == NULL)
		return false;
	if (listed(s))
		return true;
	struct acc_str module = {s.p, (uint32_t)(blank - s.p)};
	struct acc_str name = {blank + 1, s.n - module.n - 1};
	/* What is built in and named like a class is an exception. */
	bool builtin = acc_str_is(module, "builtins") || acc_str_is(module, "__builtin__");
	if (acts(module) && !(builtin && class_like(name)))
		return false;
	bool dotted = name.n > 0 && memchr(name.p, '.', name.n) != NULL;
	return class_like(name) || (newobj && !dotted);
}

bool
acc_pysafe_kept(struct acc_str s)
{
	const char *blank = s.n == 0 ? NULL : memchr(s.p, ' ', s.n);
	if (blank == NULL)
		return false;
	struct acc_str module = {s.p, (uint32_t)(blank - s.p)};
	struct acc_str name = {blank + 1, s.n - module.n - 1};
	/* torch.load and its like load what they are given. */
	return !acts(module) && memchr(name.p, '.', name.n) == NULL && !acc_str_is(name, "load");
}

bool
acc_pysafe_applies(struct acc_str s)
{
	return acc_str_is(s, "torch._tensor _rebuild_from_type_v2") ||
	       acc_str_is(s, "torch._tensor _rebuild_from_type") ||
	       acc_str_is(s, "torch._utils _rebuild_from_type_v2");
}
