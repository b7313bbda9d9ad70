# Shared code of the package builders. Source it after tools/lib/common.bash.

version=$(git show HEAD:Cargo.toml | sed -n 's/^version = "\(.*\)"/\1/p')
# Packages need a tilde to sort a -dev version before its release.
# shellcheck disable=SC2034 # the builders use it
package_version=${version/-/\~} revision=${REVISION:-1}

# From packaging/OWNER of the commit, or from the file $OWNER. Unset values are empty.
owned() { if [ -n "${OWNER:-}" ]; then cat "$OWNER"; else git show HEAD:packaging/OWNER; fi | sed -n "s/^$1 *= *\(.*[^ ]\) *$/\1/p"; }
# shellcheck disable=SC2034 # the builders use it
repository=$(owned repository)
owner=$(owned name) address=$(owned address)
[ -z "$owner" ] || [ -n "$address" ] || die "packaging/OWNER: there is a name, but no address"
[ -n "$owner" ] || [ -z "$address" ] || die "packaging/OWNER: there is an address, but no name"
# shellcheck disable=SC2034
maintainer=${owner:+$owner <$address>}

# shellcheck disable=SC2034 # the builders use it
packages=$(realpath -m "${PACKAGES:-target/packages}")
# Names of the packages. The directory can contain packages of other versions.
declare -A names=(
    [deb]="*hugeinfo*_$package_version-*.deb"
    [rpm]="*hugeinfo*-$package_version-*.rpm"
    [oci]="*hugeinfo-$version-*.oci.tar"
    [pgxn]="pg_hugeinfo-$version.zip"
    [wheel]="hugeinfo-${version/-dev/.dev0}-*.whl"
    [sbom]="*hugeinfo-$version-*.cdx.json"
)
work=${WORK:-$PWD/target/packages/build}
source=$work/pg_hugeinfo-$version

# Makes builds reproducible.
SOURCE_DATE_EPOCH=$(git log -1 --format=%ct)
# `hugeinfo --version` prints it.
HUGEINFO_VERSION="$version ($(git rev-parse HEAD | cut -c 1-12))"
export SOURCE_DATE_EPOCH HUGEINFO_VERSION TZ=UTC LC_ALL=C.UTF-8
umask 022

# Separate from the developer's target directory, because the environment differs.
export CARGO_TARGET_DIR=${CARGO_TARGET_DIR:-$PWD/target/packages/cargo}

# Exports the last commit to $source, only once per commit, because cargo recompiles newer files.
# Files get the present time; builders replace it with the commit's time.
export_source() {
    local commit
    commit=$(git rev-parse HEAD)
    [ "$(cat "$work/commit" 2>/dev/null)" != "$commit" ] || return 0
    rm -rf "$source"
    mkdir -p "$source"
    git -c tar.umask=022 archive HEAD | tar -C "$source" -xm
    echo "$commit" >"$work/commit"
}

# Lists the packages in a directory, one per line.
made() { # DIRECTORY KIND…
    local kind
    for kind in "${@:2}"; do
        find "$1" -maxdepth 1 -type f -name "${names[$kind]}" | sort
    done
}

reproducible_tar() { # DIRECTORY
    tar -C "$1" --sort=name --mtime="@$SOURCE_DATE_EPOCH" --owner=0 --group=0 --numeric-owner --format=gnu -cf - .
}

# Maps each installed major version of PostgreSQL that has headers to its pg_config.
declare -A pg_configs=()
find_postgres() {
    local pg_config major
    for pg_config in /usr/{lib/postgresql/*,pgsql-*}/bin/pg_config; do
        [ -e "$("$pg_config" --includedir-server 2>/dev/null)/postgres.h" ] || continue
        major=$(major_of "$pg_config")
        [[ $major != @(15|16|17|18|19) ]] || pg_configs[$major]=$pg_config
    done
    ((${#pg_configs[@]})) || die "headers of PostgreSQL 15 to 19 are missing. Run: tools/setup"
}
find_postgres
