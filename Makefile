# The entry point for people and CI. Everything that needs cargo goes through tools/cargo, so that
# toolchain and environment are always the same: in another environment, cargo rebuilds every
# dependency.

MACHINE := $(shell uname -s -m)
ifneq ($(filter-out Linux x86_64 aarch64,$(MACHINE)),)
$(error pg_hugeinfo reads /proc and /sys of Linux on x86-64 and arm64: it does not build on "$(MACHINE)")
endif
ifneq ($(findstring musl,$(shell ldd --version 2>&1)),)
$(error pg_hugeinfo needs glibc, whose allocator keeps memory ready for errors. It does not build with musl, as on Alpine)
endif

# Exported for the scripts, which search again if PostgreSQL is not installed yet.
ifeq ($(PG_CONFIG),)
PG_CONFIG := $(shell tools/pg-config)
endif
export PG_CONFIG

comma := ,
PGXS := $(if $(PG_CONFIG),$(shell $(PG_CONFIG) --pgxs))
PG_VERSION := $(if $(PG_CONFIG),$(shell $(PG_CONFIG) --version))
PG_MAJOR := $(filter 15 16 17 18 19,$(shell echo '$(PG_VERSION)' | sed 's/^PostgreSQL \([0-9]*\).*/\1/'))
# The reason why it cannot be built for this PostgreSQL. Empty if it can, or if there is none yet.
REFUSED := $(if $(PG_CONFIG),$(if $(PG_MAJOR),,$(if $(PG_VERSION),pg_hugeinfo needs PostgreSQL 15 to 19$(comma) but $(PG_CONFIG) belongs to "$(PG_VERSION)",$(PG_CONFIG) --version does not print a version of PostgreSQL). To choose another one: make PG_CONFIG=/path/to/pg_config))

.DELETE_ON_ERROR:
.PHONY: all build check demo test test-all bench experiment fuzz monitoring packages program setup
all: build

# The program needs no PostgreSQL to build.
setup demo fuzz program:
	@tools/$@

test:
	@tools/test test

# make test-all PART='kernels patroni' runs only these parts.
test-all:
	@tools/test all $(PART)

bench:
	@tools/setup bench
	@tools/bench/run

# Needs no PostgreSQL. CloudNativePG's exporter adds a prefix to the names of metrics.
monitoring:
	@tools/cargo run --quiet --package hugeinfo-monitoring target/monitoring
	@tools/cargo run --quiet --package hugeinfo-monitoring target/monitoring cnpg_

packages:
	@packaging/build

# Installs nothing. As arguments, because bash replaces SECONDS in the environment.
experiment:
	@command -v python3 >/dev/null || { echo '==> python3 is missing. Run: sudo tools/setup experiment' >&2; exit 1; }
	@tools/with-postgres tools/experiment/experiment SHARED_BUFFERS='$(SHARED_BUFFERS)' CLIENTS='$(CLIENTS)' SECONDS='$(SECONDS)' \
		ROUNDS='$(ROUNDS)' PAGES='$(PAGES)' OUTPUT='$(OUTPUT)'

# PGXS has a `check` target, which only prints that it is not supported.
ifeq ($(MAKECMDGOALS),check)

check:
	@tools/test check

else ifneq ($(wildcard $(PGXS)),)

ifneq ($(REFUSED),)
$(error $(REFUSED))
endif

# Below target/package-NN, cargo pgrx uses the same paths as below /, so two installations of one
# major version never share a build.
PACKAGE := target/package-$(PG_MAJOR)
LIBRARY := $(PACKAGE)$(shell $(PG_CONFIG) --pkglibdir)/pg_hugeinfo.so
EXTENSION_FILES := $(PACKAGE)$(shell $(PG_CONFIG) --sharedir)/extension/pg_hugeinfo
SOURCES := Makefile Cargo.toml Cargo.lock pg_hugeinfo.control $(wildcard crates/*/Cargo.toml sql/pg_hugeinfo--*.sql) \
	$(shell find src crates/host/src crates/advice/src crates/report/src)

build: $(LIBRARY)

# Emptied first, so that no file of an older version is installed. cargo pgrx creates the script of
# this version, and copies upgrade scripts from sql/.
$(LIBRARY): $(SOURCES)
	@rm -rf $(PACKAGE)
	tools/cargo pgrx package --package pg_hugeinfo --pg-config '$(PG_CONFIG)' --no-default-features --features pg$(PG_MAJOR) --out-dir $(PACKAGE)
	@touch $@

# EXTENSION and MODULES stay unset and install has its own recipe, because PGXS would install the
# control file of the sources, which contains a placeholder for the version.
NO_INSTALL = 1
REGRESS = $(basename $(notdir $(filter-out sql/pg_hugeinfo--%,$(sort $(wildcard sql/*.sql)))))
REGRESS_OPTS = --outputdir=target/regress
EXTRA_CLEAN = target
include $(PGXS)

# The program and its manual pages, if `make program` has built them. With an empty PREFIX, as for
# packages, only the extension is installed.
PREFIX ?= /usr/local
PROGRAM := $(if $(PREFIX),$(wildcard target/program/hugeinfo))

# Copies only, so that `sudo make install` after `make` needs no cargo.
install: $(LIBRARY)
	$(MKDIR_P) '$(DESTDIR)$(pkglibdir)' '$(DESTDIR)$(datadir)/extension'
	$(INSTALL_SHLIB) $(LIBRARY) '$(DESTDIR)$(pkglibdir)/'
	$(INSTALL_DATA) $(EXTENSION_FILES).control $(EXTENSION_FILES)--*.sql '$(DESTDIR)$(datadir)/extension/'
ifneq ($(PROGRAM),)
	$(MKDIR_P) '$(DESTDIR)$(PREFIX)/bin' '$(DESTDIR)$(PREFIX)/share/man/man1'
	$(INSTALL_SCRIPT) $(PROGRAM) '$(DESTDIR)$(PREFIX)/bin/'
	$(INSTALL_DATA) target/program/man/*.1 '$(DESTDIR)$(PREFIX)/share/man/man1/'
endif

uninstall:
	rm -f '$(DESTDIR)$(pkglibdir)/pg_hugeinfo.so' '$(DESTDIR)$(datadir)/extension/pg_hugeinfo.control'
	rm -f '$(DESTDIR)$(datadir)/extension/'pg_hugeinfo--*.sql
ifneq ($(PREFIX),)
	rm -f '$(DESTDIR)$(PREFIX)/bin/hugeinfo' '$(DESTDIR)$(PREFIX)/share/man/man1/hugeinfo.1'
	rm -f '$(DESTDIR)$(PREFIX)/share/man/man1/'hugeinfo-*.1
endif

installcheck: | target/regress
target/regress:
	@mkdir -p $@

else

.PHONY: install uninstall installcheck clean
build install uninstall installcheck:
	@echo '$(or $(REFUSED),The build files of PostgreSQL (PGXS) are missing$(if $(PGXS),: no $(PGXS)). Run: make setup)' >&2
	@exit 1

clean:
	rm -rf target

endif
