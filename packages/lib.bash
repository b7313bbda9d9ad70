# What the builders of packages share. Comes after scripts/lib/common.bash.

version=$(git show HEAD:Cargo.toml | sed -n 's/^version = "\(.*\)"/\1/p')
# 0.2.0-dev comes before 0.2.0: packages say that with a tilde.
# shellcheck disable=SC2034 # the builders use it
package_version=${version/-/\~} revision=${REVISION:-1}

# shellcheck disable=SC2034 # so do these
packages=$(realpath -m "${PACKAGES:-target/packages}")
# Their names. The directory may also have what is not this version's.
declare -A names=(
    [deb]="*pg-hugeinfo*_$package_version-*.deb"
    [rpm]="pg_hugeinfo*-$package_version-*.rpm"
    [oci]="pg_hugeinfo-$version-pg*.oci.tar"
    [pgxn]="pg_hugeinfo-$version.zip"
    [sbom]="pg_hugeinfo-$version.cdx.json"
)
work=${WORK:-$PWD/target/packages/build}
source=$work/pg_hugeinfo-$version

# Two builds of a commit have the same bytes.
SOURCE_DATE_EPOCH=$(git log -1 --format=%ct)
export SOURCE_DATE_EPOCH TZ=UTC LC_ALL=C.UTF-8
umask 022

# Apart from the developer's: the environment differs.
export CARGO_TARGET_DIR=${CARGO_TARGET_DIR:-$PWD/target/packages/cargo}

# The last commit in $source, once: cargo compiles again what is newer. Every file is newer than
# the commit; builders then put the commit's time in its place.
export_source() {
    local commit
    commit=$(git rev-parse HEAD)
    [ "$(cat "$work/commit" 2>/dev/null)" != "$commit" ] || return 0
    rm -rf "$source"
    mkdir -p "$source"
    git -c tar.umask=022 archive HEAD | tar -C "$source" -xm
    echo "$commit" >"$work/commit"
}

# The packages in a directory, one a line.
made() { # DIRECTORY KIND…
    local kind
    for kind in "${@:2}"; do
        find "$1" -maxdepth 1 -type f -name "${names[$kind]}" | sort
    done
}

# What CREATE and ALTER EXTENSION read.
sql_files() {
    (
        cd "$source/sql"
        { compgen -G 'pg_hugeinfo--*.sql' || true; } | cat - <(echo "pg_hugeinfo--$version.sql") | LC_ALL=C sort -u
    )
}

reproducible_tar() { # DIRECTORY
    tar -C "$1" --sort=name --mtime="@$SOURCE_DATE_EPOCH" --owner=0 --group=0 --numeric-owner --format=gnu -cf - .
}

# Each major version of PostgreSQL here that has headers, with its pg_config.
declare -A pg_configs=()
find_postgres() {
    local pg_config major
    for pg_config in /usr/{lib/postgresql/*,pgsql-*}/bin/pg_config; do
        [ -e "$("$pg_config" --includedir-server 2>/dev/null)/postgres.h" ] || continue
        major=$("$pg_config" --version | sed 's/^PostgreSQL \([0-9]*\).*/\1/')
        [[ $major != @(15|16|17|18|19) ]] || pg_configs[$major]=$pg_config
    done
    ((${#pg_configs[@]})) || die "no PostgreSQL 15 to 19 has its headers here. Run: scripts/setup"
}
find_postgres
