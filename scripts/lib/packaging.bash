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
