# Programs that build packages, and those that judge them.

# Adds to $missing, as check() in scripts/setup does.
check_packaging() {
    need dpkg-dev command -v dpkg-buildpackage
    need fakeroot command -v fakeroot
    need postgresql-server-dev-all test -e /usr/share/perl5/Debian/Debhelper/Sequence/pgxs_loop.pm
    need debhelper command -v dh
    need lintian command -v lintian
    need rpm command -v rpmbuild
    need rpmlint command -v rpmlint
    need umoci command -v umoci
    need python3 command -v python3
    need unzip command -v unzip
}

required_cyclonedx=0.5.9
cyclonedx_home=${XDG_CACHE_HOME:-$HOME/.cache}/pg_hugeinfo/cargo-cyclonedx-$required_cyclonedx

# Not optimized, as cargo-pgrx: it compiles in half the time, and has little to do.
install_cyclonedx() {
    [ ! -x "$cyclonedx_home/bin/cargo-cyclonedx" ] || return 0
    say "setup: cargo install cargo-cyclonedx $required_cyclonedx into $cyclonedx_home"
    CARGO_PROFILE_DEV_DEBUG=0 scripts/cargo install --debug --locked cargo-cyclonedx --version "=$required_cyclonedx" \
        --root "$cyclonedx_home" --target-dir "$cyclonedx_home/build"
    rm -rf "$cyclonedx_home/build"
}
