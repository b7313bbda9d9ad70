# Strict mode, the root of the sources, say and die. Every script here starts with this file.
set -euo pipefail
# Other users read files that root creates here: servers' files, and the host's lock.
umask 022
cd "$(dirname "${BASH_SOURCE[0]}")/../.."

say() { printf '==> %s\n' "$*"; }

die() {
    printf '==> %s\n' "$*" >&2
    exit 1
}

# The major version of a PostgreSQL.
major_of() { # PG_CONFIG
    "$1" --version | sed 's/^PostgreSQL \([0-9]*\).*/\1/'
}

# Files of root in another user's checkout would break that user's next build.
restore_target_owner() {
    ((EUID)) || [ -O . ] || [ ! -d target ] ||
        chown --recursive --no-dereference --from=0 --reference=. target || true
}

# Lets root use git in another user's checkout.
if ! ((EUID)) && [ ! -O . ]; then
    export GIT_CONFIG_COUNT=1 GIT_CONFIG_KEY_0=safe.directory GIT_CONFIG_VALUE_0=$PWD
fi

# A calling make sets these, but scripts have no access to its job server, so cargo and make would
# warn.
unset MAKEFLAGS MFLAGS MAKELEVEL
