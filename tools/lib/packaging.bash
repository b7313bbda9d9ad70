# Programs that build packages, and programs that check them.

# Both functions add to $missing, like check() in tools/setup.
check_builders() {
    need git command -v git
    need dpkg-dev command -v dpkg-buildpackage
    need fakeroot command -v fakeroot
    need postgresql-server-dev-all test -e /usr/share/perl5/Debian/Debhelper/Sequence/pgxs_loop.pm
    need debhelper command -v dh
    need rpm command -v rpmbuild
    need umoci command -v umoci
    need python3-venv python3 -m ensurepip --version
}

check_judges() {
    need lintian command -v lintian
    need rpmlint command -v rpmlint
    need man-db command -v man
    need unzip command -v unzip
}

# A program from PyPI, installed at the first use.
use_maturin() {
    local version=1.16.0 home
    home=${XDG_CACHE_HOME:-$HOME/.cache}/pg_hugeinfo/maturin-$version
    if ! "$home/bin/maturin" --version >/dev/null 2>&1; then
        say "pip install maturin $version into $home"
        python3 -m venv --clear "$home"
        "$home/bin/pip" install --quiet --disable-pip-version-check "maturin==$version"
    fi
    PATH=$PATH:$home/bin
}

# Programs from crates.io, installed at the first use.
declare -A crates=([cargo-cyclonedx]=0.5.9 [cargo-deny]=0.20.2 [pgxn_meta]=0.7.0)

# Not optimized, like cargo-pgrx: this halves the time to compile, and the programs do little work.
use_crate() { # NAME
    local version=${crates[$1]} home
    home=${XDG_CACHE_HOME:-$HOME/.cache}/pg_hugeinfo/$1-$version
    # cargo-cyclonedx has no --version.
    if ! "$home/bin/$1" --help >/dev/null 2>&1; then
        say "cargo install $1 $version into $home"
        CARGO_PROFILE_DEV_DEBUG=0 tools/cargo install --debug --locked --force "$1" --version "=$version" \
            --root "$home" --target-dir "$home/build"
        rm -rf "$home/build"
    fi
    PATH=$home/bin:$PATH
}
