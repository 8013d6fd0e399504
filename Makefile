# acctools: see README.md. A new .c file needs no edit here.
#   make            all programs, in bin/
#   make deps       install what building and testing need (Debian, Ubuntu)
#   make check      all tests;   SAN=address,undefined  WERROR=1  CC=clang
#   make check-torch the recorder under today's PyTorch, in a venv that pip fills
#   make check-tools what other people's packages do, with the versions seen or NEWEST=1
#   make check-long the faults of the machine, one by one; random dumps, compilers
#   make demo       the main job on the example data
#   make po         the messages of the sources into the catalogue of translations
#   make wheel      for pip: dist/*.whl; ARCH=aarch64
#   make lint bench fuzz fuzz-report install deb static dist clean;   V=1 shows commands

VERSION := $(shell sed -n 's/^.define ACC_VERSION "\(.*\)"/\1/p' include/acc/base.h)

# Package and its reason: to build,
DEPS := build-essential pkg-config
MSGPACK := libmsgpack-dev# the record stream is MessagePack; newer releases: libmsgpack-c-dev
DEPS += zlib1g-dev       # inflating zip members and gzip'd streams
DEPS += libdeflate-dev   # CRC-32 of tensors, three times as fast as zlib's
DEPS += libxxhash-dev    # content hashes
DEPS += libpcre2-dev     # the user's regular expressions: logs, renaming
DEPS += libyaml-dev      # mapping files are YAML
DEPS += libxlsxwriter-dev # accfmt --xlsx: its header; the library is loaded when one is written
DEPS += libexpat1-dev    # spreadsheets that are read: its header; the library is loaded then
DEPS += libsqlite3-dev   # databases of other tools: its header; the library is loaded when one is read
DEPS += libzstd-dev      # Orbax: its header; the library is loaded when something is so compressed
DEPS += gnuplot-nox      # accplot draws with it, at run time only
BUILD_DEPS := $(DEPS)
# and to test.
DEPS += bats jq          # the tests of the programs
DEPS += python3          # the writer of streams in acc-by-hand(7), as it stands there
DEPS += mandoc           # checks the man pages
DEPS += shellcheck       # checks the scripts
DEPS += gettext          # make po, and the test that no message lacks its translation

CFLAGS ?= -O2# for a debugger: CFLAGS="-O2 -g"
CC ?= cc
PREFIX ?= /usr/local
BINDIR ?= $(PREFIX)/bin
MANDIR ?= $(PREFIX)/share/man
DATADIR ?= $(PREFIX)/share/acctools
DOCDIR ?= $(PREFIX)/share/doc/acctools
LIBDIR ?= $(PREFIX)/lib
INCLUDEDIR ?= $(PREFIX)/include
# Where the system's Python looks beneath PREFIX, if it does.
SYSTEM_PYTHON = $(firstword $(wildcard /usr/bin/python3) python3)
PYTHONDIR ?= $(or $(shell $(SYSTEM_PYTHON) -I share/install/python-folder.py $(PREFIX) 2>/dev/null),$(PREFIX)/lib/python3/dist-packages)
# Where zsh does: Debian's packages have a folder of their own.
ZSHDIR ?= $(PREFIX)/share/zsh/$(if $(filter /usr,$(PREFIX)),vendor-completions,site-functions)

B ?= build$(if $(SAN),-san)$(if $(filter clang%,$(notdir $(CC))),-clang)
# The tests' environment says the same folder with its path; dependencies are kept by one name.
override B := $(patsubst $(CURDIR)/%,%,$(B))
BIN ?= $(if $(filter build,$(B)),bin,$(B)/bin)

STD := -std=c11 -D_GNU_SOURCE -D_FILE_OFFSET_BITS=64
WARN := -Wall -Wextra -Wpedantic -Wshadow -Wstrict-prototypes -Wmissing-prototypes -Wvla \
	-Wundef -Wformat=2 -Wwrite-strings -Wpointer-arith $(if $(WERROR),-Werror)
# The same bits from every compiler: no contraction of a*b+c, no -ffast-math, ever.
MATH := -ffp-contract=off -fno-math-errno
# The library's objects also make libaccrec.so, where no name is seen but those of acc/rec.h.
HARD := -fstack-protector-strong -fPIC -fvisibility=hidden $(if $(SAN),,-D_FORTIFY_SOURCE=2)
LDHARD := -pie -Wl,-z,relro,-z,now
SANF := $(if $(SAN),-g -fsanitize=$(SAN) -fno-sanitize-recover=all -fno-omit-frame-pointer)
# Checksums are not compared in what a fuzzer drives.
FUZZED := $(if $(findstring fuzzer,$(SAN)),-DFUZZING_BUILD_MODE_UNSAFE_FOR_PRODUCTION)
ALL_CFLAGS = $(FUZZED) $(STD) $(WARN) $(MATH) $(HARD) -Iinclude -Ilib -pthread $(SANF) $(CFLAGS)
# What asks a tool that "make deps" may only just have installed is asked when it is needed.
THIRD = $(or $(shell pkg-config --libs msgpack-c 2>/dev/null || pkg-config --libs msgpack 2>/dev/null),-lmsgpackc) -lz -ldeflate -lxxhash -lpcre2-8 -lyaml
# Linked in, so that a program is one file that runs where these packages are not installed;
# STATIC= links the shared ones.
STATIC ?= 1
LIBS = $(if $(STATIC),-Wl$(COMMA)-Bstatic) $(THIRD) $(if $(STATIC),-Wl$(COMMA)-Bdynamic) -lm -pthread
COMMA := ,
# One word a file; V=1 shows the commands.
ifneq ($(V),1)
.SILENT:
SAY = @printf '  %-4s %s\n'
else
SAY = @:
endif

LIB_SRC := $(sort $(wildcard lib/*/*.c lib/*/*/*.c))
CMD_SRC := $(sort $(wildcard cmd/acc*.c))
PROGS := $(patsubst cmd/%.c,$(BIN)/%,$(CMD_SRC))
UNIT := $(patsubst tests/unit/%.c,$(B)/unit/%,$(sort $(wildcard tests/unit/t_*.c)))
REPLAY := $(patsubst tests/fuzz/%.c,$(B)/fuzz/%,$(sort $(wildcard tests/fuzz/fuzz_*.c)))

# The recorder, for other programs to link: it takes what it needs of the library, and shows
# nothing of that.
REC_SO := $(BIN)/libaccrec.so.0
REC_LIBS := -ldeflate -lxxhash -lz -lm -pthread
REC_OBJ := $(patsubst %.c,$(B)/%.o,$(sort $(wildcard lib/rec/*.c)))

all: $(PROGS) $(REC_SO) $(B)/libaccrec.a

$(B)/%.o: %.c
	@mkdir -p $(@D)
	$(SAY) CC $@
	$(CC) $(ALL_CFLAGS) -MMD -MP -c -o $@ $<

# What the kernels are compared with gets the same optimisation.
$(B)/tests/bench/%.o: ALL_CFLAGS += -O3

# The loops of the kernels, once for every instruction set; chosen at run time.
$(B)/lib/kernel/%.o: ALL_CFLAGS += -O3
X86 = $(filter x86_64%,$(or $(MACHINE),$(shell $(CC) -dumpmachine)))
$(B)/lib/kernel/avx2.o: ALL_CFLAGS += $(if $(X86),-mavx2 -mfma -mf16c -mpopcnt)
$(B)/lib/kernel/avx512.o: ALL_CFLAGS += $(if $(X86),-mavx512f -mavx512bw -mavx512dq -mavx512cd -mfma -mf16c -mpopcnt)
$(B)/lib/kernel/audit_avx2.o: ALL_CFLAGS += $(if $(X86),-mavx2)
$(B)/lib/kernel/audit_avx512.o: ALL_CFLAGS += $(if $(X86),-mavx512f -mavx512bw -mavx512dq -mavx512vl -mprefer-vector-width=512)

# Rule files are part of the library: a program must work as a single copied file.
RULES := $(sort $(wildcard share/rules/*.rules))
$(B)/gen/presets.c: share/rules/embed.sh $(RULES)
	@mkdir -p $(@D)
	sh share/rules/embed.sh presets $(RULES) >$@.tmp && mv $@.tmp $@
# The first is acccurve's default.
CURVES := share/curves/guide.rules $(filter-out %/guide.rules,$(sort $(wildcard share/curves/*.rules)))
$(B)/gen/curve_presets.c: share/rules/embed.sh $(CURVES)
	@mkdir -p $(@D)
	sh share/rules/embed.sh curve_presets $(CURVES) >$@.tmp && mv $@.tmp $@
CHECKS := $(sort $(wildcard share/checks/*.checks))
$(B)/gen/check_lists.c: share/rules/embed.sh $(CHECKS)
	@mkdir -p $(@D)
	sh share/rules/embed.sh check_lists $(CHECKS) >$@.tmp && mv $@.tmp $@
NAMES := $(sort $(wildcard share/names/*.names))
$(B)/gen/names.c: share/rules/embed.sh $(NAMES)
	@mkdir -p $(@D)
	sh share/rules/embed.sh names $(NAMES) >$@.tmp && mv $@.tmp $@
PROFILES := $(sort $(wildcard share/profiles/*.profile))
$(B)/gen/profiles.c: share/rules/embed.sh $(PROFILES)
	@mkdir -p $(@D)
	sh share/rules/embed.sh profiles $(PROFILES) >$@.tmp && mv $@.tmp $@
REPORT := $(sort $(wildcard share/report/*.html share/report/*.css share/report/*.js))
$(B)/gen/report.c: share/rules/embed.sh $(REPORT)
	@mkdir -p $(@D)
	sh share/rules/embed.sh report $(REPORT) >$@.tmp && mv $@.tmp $@
# What accdump-read --list says of logs and configurations is what tests/forms.bats reads.
$(B)/gen/forms.c: share/install/forms.sh tests/forms/table
	@mkdir -p $(@D)
	sh share/install/forms.sh tests/forms/table >$@.tmp && mv $@.tmp $@
# So are the words in Chinese.
$(B)/gen/messages.c: po/embed.sh po/zh_CN.po share/known.sh share/behaviours
	@mkdir -p $(@D)
	sh share/known.sh po | cat po/zh_CN.po - >$@.po && sh po/embed.sh $@.po >$@.tmp && mv $@.tmp $@
# What tools really do, which acc-tools(7) is made of, too.
$(B)/gen/behaviours.c: share/known.sh share/behaviours
	@mkdir -p $(@D)
	sh share/known.sh c >$@.tmp && mv $@.tmp $@
pages:
	sh share/known.sh en >man/acc-tools.7
	sh share/known.sh zh >man/zh_CN/acc-tools.7
$(B)/gen/%.o: $(B)/gen/%.c
	$(SAY) CC $@
	$(CC) $(ALL_CFLAGS) -MMD -MP -c -o $@ $<

$(B)/libacc.a: $(LIB_SRC:%.c=$(B)/%.o) $(patsubst %,$(B)/gen/%.o,presets curve_presets check_lists names profiles report \
	messages behaviours forms)
	$(SAY) AR $@
	@rm -f $@
	$(AR) rcs $@ $^

EXPORTS := lib/rec/exports.map
$(REC_SO): $(REC_OBJ) $(B)/libacc.a $(EXPORTS)
	@mkdir -p $(@D)
	$(SAY) LD $@
	$(CC) $(SANF) -shared -Wl,-soname,$(@F) -Wl,-z,relro,-z,now -Wl,--version-script=$(EXPORTS) \
		$(filter-out -static%,$(LDFLAGS)) -o $@ $(filter-out $(EXPORTS),$^) $(REC_LIBS)

$(B)/libaccrec.a: $(REC_OBJ) $(B)/libacc.a
	$(SAY) AR $@
	@rm -f $@
	$(CC) -nostdlib -r -o $(B)/accrec.o $^
	$(shell $(CC) -print-prog-name=objcopy) --localize-hidden $(B)/accrec.o
	$(AR) rcs $@ $(B)/accrec.o

$(BIN)/%: $(B)/cmd/%.o $(B)/cmd/cli.o $(B)/cmd/cli_out.o $(B)/cmd/cli_rules.o $(B)/libacc.a
	@mkdir -p $(@D)
	$(SAY) LD $@
	$(CC) $(SANF) $(LDHARD) $(LDFLAGS) -o $@ $(filter %.o,$^) $(B)/libacc.a $(LIBS)

# What is linked statically loads no library: NO_LOADER=1 leaves the loaders out.
$(PROGS): $(if $(NO_LOADER),$(B)/cmd/no_loader.o)
$(BIN)/accfirstbad $(BIN)/accfold: $(B)/cmd/expect.o
$(BIN)/accfirstbad: $(B)/cmd/beside.o
$(BIN)/accreplace: $(B)/cmd/replace_run.o
$(BIN)/accaudit $(BIN)/acccurve $(BIN)/accfirstbad: $(B)/cmd/profile.o
$(BIN)/accalign: $(B)/cmd/align_input.o
$(BIN)/accfmt: $(patsubst %.c,$(B)/%.o,$(sort $(wildcard cmd/fmt_*.c)))
$(BIN)/accdiff: $(patsubst %.c,$(B)/%.o,$(sort $(wildcard cmd/diff*.c)))

$(B)/unit/%: $(B)/tests/unit/%.o $(B)/libacc.a
	@mkdir -p $(@D)
	$(SAY) LD $@
	$(CC) $(SANF) $(LDFLAGS) -pie -o $@ $^ $(LIBS)

$(B)/bench/%: $(B)/tests/bench/%.o $(B)/libacc.a
	@mkdir -p $(@D)
	$(SAY) LD $@
	$(CC) $(SANF) $(LDFLAGS) -pie -o $@ $^ $(LIBS)

# A fuzz target with a plain main: replays the files named, with any compiler.
$(B)/fuzz/%: $(B)/tests/fuzz/%.o $(B)/tests/fuzz/replay.o $(B)/libacc.a
	@mkdir -p $(@D)
	$(SAY) LD $@
	$(CC) $(SANF) $(LDFLAGS) -pie -o $@ $^ $(LIBS)

-include $(shell find $(B) -type f -name '*.d' 2>/dev/null)
.SECONDARY:

ifneq ($(shell id -u),0)
SUDO := sudo
endif
ifneq ($(filter deps%,$(MAKECMDGOALS)),)
.NOTPARALLEL:
endif
# deps-build: without what only tests and lint need.
deps-build: DEPS = $(BUILD_DEPS)
deps deps-build:
	$(SUDO) apt-get update -q
	m=$(MSGPACK); apt-cache show libmsgpack-c-dev >/dev/null 2>&1 && m=libmsgpack-c-dev; \
	$(SUDO) env DEBIAN_FRONTEND=noninteractive apt-get install -qy --no-install-recommends $$m $(DEPS)

# Faults of the machine, for tests; a sanitizer's own preloaded library bears no other.
FAULTS := $(if $(SAN),,$(B)/faults/fault.so $(B)/faults/inject)
$(B)/faults/fault.so: tests/faults/fault.c
	@mkdir -p $(@D)
	$(CC) -D_GNU_SOURCE $(WARN) $(CFLAGS) -std=gnu11 -shared -fPIC -o $@ $< -ldl
$(B)/faults/inject: tests/faults/inject.c
	@mkdir -p $(@D)
	$(CC) -D_GNU_SOURCE $(WARN) $(CFLAGS) -std=c11 -o $@ $<

tests: $(UNIT) $(REPLAY) $(FAULTS)

# Everything compiled and nothing linked; with CFLAGS=-fsyntax-only, to see what another compiler warns of.
objects: $(patsubst %.c,$(B)/%.o,$(LIB_SRC) $(wildcard cmd/*.c tests/unit/*.c tests/fuzz/*.c tests/bench/*.c))

check: all tests
	BIN=$(abspath $(BIN)) B=$(abspath $(B)) tests/run $(TESTS)

# The recorder under the PyTorch of today, which pip gets once: see there.
check-torch: all
	BIN=$(abspath $(BIN)) B=$(abspath $(B)) tests/torch/run $(TESTS)

# What share/behaviours says, seen again: TOOLS="torch_cpu ms-relu-nan", NEWEST=1. See tests/tools/run.
check-tools:
	NEWEST=$(NEWEST) tests/tools/run $(TOOLS)

PYTHON ?= python3
# Each call of each program to the system fails once, and members of the pipeline are killed; what
# must hold of any dump is tried on random ones; gcc and clang give the same bytes; the metrics of
# random tensors are those of exact arithmetic (where PYTHON has numpy); all tests under sanitizers, what each reader
# makes of the fixtures through each program and format, what reports say to type next, threads under ThreadSanitizer,
# and 10 minutes of each fuzz target; and for 64-bit ARM (where there is an emulator).
check-long: all $(FAULTS)
	BIN=$(abspath $(BIN)) B=$(abspath $(B)) tests/faults/sweep
	BIN=$(abspath $(BIN)) tests/faults/kill 1000
	BIN=$(abspath $(BIN)) tests/faults/full
	BIN=$(abspath $(BIN)) python3 tests/properties.py 1000
	$(MAKE) CC=gcc B=build-gcc all
	$(MAKE) CC=clang B=build-clang all
	BIN=$(abspath build-gcc/bin) tests/said >build-gcc/said
	BIN=$(abspath build-clang/bin) tests/said | cmp - build-gcc/said
	if $(PYTHON) -c 'import numpy' 2>/dev/null; then \
		BIN=$(abspath $(BIN)) $(PYTHON) tests/metrics/exact.py; \
	else echo "skipped: tests/metrics/exact.py, which needs python3-numpy"; fi
	$(MAKE) SAN=address,undefined B=build-san all tests
	$(MAKE) SAN=address,undefined B=build-san check
	if command -v clang; then $(MAKE) CC=clang SAN=address,undefined B=build-san-clang all && \
		BIN=$(abspath build-san-clang/bin) tests/through; else BIN=$(abspath build-san/bin) tests/through; fi
	BIN=$(abspath build-san/bin) $(PYTHON) tests/hostile 600 1 build-san/hostile
	BIN=$(abspath $(BIN)) tests/nexts
	$(MAKE) SAN=thread B=build-thread all
	BIN=$(abspath build-thread/bin) B=$(abspath build-thread) tests/threads
	if command -v clang; then $(MAKE) fuzz TIME=600; else echo "skipped: make fuzz, which needs clang"; fi
	if command -v aarch64-linux-gnu-gcc && command -v qemu-aarch64-static; then .ci/arm64; \
	else echo "skipped: .ci/arm64, which needs gcc-aarch64-linux-gnu and qemu-user-static"; fi

# accdiff exits with 1 because it finds what is wrong: that is the demo's success.
demo: all
	@echo "Two dumps of one training step. The device's loss is off by 2.5e-4 only. Which"
	@echo "operator went wrong? accdiff examples/demo/device examples/demo/bench says:"
	@echo
	@$(BIN)/accdiff examples/demo/device examples/demo/bench; test $$? -eq 1

# The judge's score on 268 simulated faults, and on the same without tensors; needs Python with
# torch, numpy and msgpack. A part of it that needs none is in "make check". Of the six networks
# three only report: see tests/regress.
regress: all
	$(PYTHON) tests/data/make_regress.py $(B)/regress/tensor 300
	BIN=$(abspath $(BIN)) tests/regress $(B)/regress/tensor 258
	$(PYTHON) tests/data/make_regress.py $(B)/regress/statistics 192 statistics
	BIN=$(abspath $(BIN)) tests/regress $(B)/regress/statistics 160
	$(PYTHON) tests/data/make_networks.py $(B)/regress/networks
	BIN=$(abspath $(BIN)) tests/audit-networks $(B)/regress/networks
	rm -rf $(B)/regress

# The judge on dumps of real networks; needs torch and torchvision. NETWORKS="--quick" takes
# three minutes; see tests/networks/README.md.
networks: all
	BIN=$(abspath $(BIN)) nice $(PYTHON) tests/networks/run $(B)/networks $(NETWORKS)

# SIZE=2147483648 bytes a side, ROUNDS=5, ONLY="warm stats ...", BASE=COMMIT: see tests/bench/run.
BENCH := $(patsubst tests/bench/%.c,$(B)/bench/%,$(sort $(wildcard tests/bench/*.c)))
bench: all $(BENCH)
	@BIN=$(abspath $(BIN)) B=$(abspath $(B)) tests/bench/run

lint: all $(B)/libacc.a
	B=$(B) tests/lint

install: all install-run
	install -D -m 644 -t $(DESTDIR)$(LIBDIR) $(B)/libacc.a $(B)/libaccrec.a
	install -D -m 644 -t $(DESTDIR)$(INCLUDEDIR)/acc include/acc/*.h
	install -d $(DESTDIR)$(LIBDIR)/pkgconfig
	ln -sf $(notdir $(REC_SO)) $(DESTDIR)$(LIBDIR)/libaccrec.so
	for p in acctools accrec; do \
		sed 's#@libdir@#$(LIBDIR)#; s#@includedir@#$(INCLUDEDIR)#; s#@version@#$(VERSION)#; s#@libs@#$(THIRD)#' \
			share/$$p.pc.in >$(DESTDIR)$(LIBDIR)/pkgconfig/$$p.pc || exit; done
	@[ -n "$(DESTDIR)" ] || sh share/install/exports.sh $(PREFIX) $(BINDIR) $(LIBDIR) $(PYTHONDIR) $(ZSHDIR) $(SYSTEM_PYTHON)

# What programs are built with stays out. The completions are made of what the programs in HELP_BIN say,
# which run here where those that are installed may not.
HELP_BIN ?= $(BIN)
INSTALL_STRIP ?= -s
install-run: $(PROGS) $(REC_SO)
	install -d $(DESTDIR)$(BINDIR)
	install $(INSTALL_STRIP) $(PROGS) $(DESTDIR)$(BINDIR)
	for f in man/*.[1-9]; do install -D -m 644 -t $(DESTDIR)$(MANDIR)/man$${f##*.} $$f; done
	install -D -m 644 -t $(DESTDIR)$(MANDIR)/zh_CN/man7 man/zh_CN/*.7
	install -D -m 644 -t $(DESTDIR)$(LIBDIR) $(REC_SO)
	install -D -m 644 -t $(DESTDIR)$(PYTHONDIR)/accrecord python/accrecord/*.py
	install -D -m 644 -t $(DESTDIR)$(PYTHONDIR)/accrecord/aliases python/accrecord/aliases/*.py
	install -D -m 644 -t $(DESTDIR)$(PYTHONDIR)/accrecord/aliases/maca_tools python/accrecord/aliases/maca_tools/*.py
	install -D -m 644 -t $(DESTDIR)$(PYTHONDIR)/accengine python/accengine/*.py
	ln -srf $(DESTDIR)$(LIBDIR)/$(notdir $(REC_SO)) $(DESTDIR)$(PYTHONDIR)/accrecord
	install -d $(DESTDIR)$(DOCDIR)
	install -m 644 LICENSE THIRD-PARTY NEWS README.md README.zh.md $(DESTDIR)$(DOCDIR)
	for s in bash:$(PREFIX)/share/bash-completion/completions/acctools zsh:$(ZSHDIR)/_acctools \
		fish:$(PREFIX)/share/fish/vendor_completions.d/acctools.fish; do \
		f=$(DESTDIR)$${s#*:}; install -d $${f%/*}; \
		sh share/completions/make.sh $${s%%:*} $(HELP_BIN) >$$f || exit; done
	for p in $(notdir $(PROGS)); do \
		ln -sf acctools $(DESTDIR)$(PREFIX)/share/bash-completion/completions/$$p; done
	cd share && find behaviours checks curves names profiles report rules -xtype f ! -name '*.sh' \
		-exec install -D -m 644 {} $(abspath $(DESTDIR)$(DATADIR))/{} \;

# A folder of programs, pages and completions that runs on any Linux of this architecture: nothing
# is loaded at run time, not even the C library.
STATIC_DIR = acctools-$(VERSION)-$(firstword $(subst -, ,$(shell $(CC) -dumpmachine)))
STATIC_BUILD = BIN=$(B)/static-bin STATIC= NO_LOADER=1 LDHARD="-static-pie -Wl,-z,relro,-z,now"
static:
	$(MAKE) $(STATIC_BUILD) all
	rm -rf $(B)/$(STATIC_DIR)
	$(MAKE) $(STATIC_BUILD) PREFIX= DESTDIR=$(abspath $(B))/$(STATIC_DIR) install-run
	rm -r $(B)/$(STATIC_DIR)/lib
	tar -C $(B) --owner=0 --group=0 -czf $(B)/$(STATIC_DIR).tar.gz $(STATIC_DIR)
	@du -h $(B)/$(STATIC_DIR).tar.gz

# For pip, as share/wheel/make.sh says: for machines with no compiler, and for another architecture.
ARCH ?= $(shell uname -m)
wheel: all
	share/wheel/make.sh $(ARCH) build-wheel/$(ARCH) $(abspath $(BIN))

# A Debian package of this machine's architecture, in $(B).
DEB = acctools_$(VERSION)_$(shell dpkg --print-architecture)
deb: all
	rm -rf $(B)/$(DEB)
	$(MAKE) PREFIX=/usr DESTDIR=$(abspath $(B))/$(DEB) install
	gzip -9n $(B)/$(DEB)/usr/share/man/man*/* $(B)/$(DEB)/usr/share/man/zh_CN/man*/*
	install -d $(B)/$(DEB)/DEBIAN
	sed 's#@version@#$(VERSION)#; s#@arch@#$(shell dpkg --print-architecture)#; s#@libc@#$(shell \
		ldd --version | sed -n '1s/.* //p')#' share/deb-control.in >$(B)/$(DEB)/DEBIAN/control
	dpkg-deb --root-owner-group --build $(B)/$(DEB) $(B)/$(DEB).deb

dist:
	@mkdir -p $(B)
	git archive --prefix=acctools-$(VERSION)/ -o $(B)/acctools-$(VERSION).tar.gz HEAD

# TIME seconds or RUNS runs for each target; new inputs stay in build-fuzz/corpus, findings in
# build-fuzz. fuzz-report: runs so far, and what the corpora cover, of each reader.
TIME ?= 60
RUNS ?= 0
FUZZ := $(or $(TARGET:%=fuzz_%),$(patsubst tests/fuzz/%.c,%,$(sort $(wildcard tests/fuzz/fuzz_*.c))))
fuzz: all
	$(MAKE) CC=clang SAN=fuzzer-no-link,address,undefined B=build-fuzz $(FUZZ:%=build-fuzz/%)
	BIN=$(abspath $(BIN)) tests/fuzz/run build-fuzz $(TIME) $(RUNS) $(FUZZ:fuzz_%=%)
fuzz-report: all
	$(MAKE) CC=clang B=build-cov CFLAGS="-O1 -g -fprofile-instr-generate -fcoverage-mapping \
		-DFUZZING_BUILD_MODE_UNSAFE_FOR_PRODUCTION" LDFLAGS=-fprofile-instr-generate \
		$(REPLAY:$(B)/%=build-cov/%)
	BIN=$(abspath $(BIN)) tests/fuzz/report build-cov build-fuzz/runs

$(B)/fuzz_%: $(B)/tests/fuzz/fuzz_%.o $(B)/libacc.a
	$(CC) -fsanitize=fuzzer,address,undefined $(LDFLAGS) -pie -o $@ $^ $(LIBS)

# The messages of the sources into the catalogue, which then wants what is new, or fuzzy, translated.
po:
	@mkdir -p $(B)
	po/template.sh >$(B)/acctools.pot
	msgmerge --quiet --no-wrap --update --backup=none po/zh_CN.po $(B)/acctools.pot
	msgattrib --no-wrap --no-obsolete -o po/zh_CN.po po/zh_CN.po
	msgfmt -c --statistics -o /dev/null po/zh_CN.po

clean:
	rm -rf build build-* bin dist

.PHONY: all po pages deps tests objects check check-torch check-tools check-long regress networks demo bench lint install install-run wheel dist fuzz fuzz-report clean
