# Every script here starts with this: strict mode, the root of the sources, say and die.
set -euo pipefail
# Other users read what root makes here: servers' files, and the host's lock.
umask 022
cd "$(dirname "${BASH_SOURCE[0]}")/../.."

say() { printf '==> %s\n' "$*"; }

die() {
    printf '==> %s\n' "$*" >&2
    exit 1
}

# Root's files in somebody else's checkout would stop that user's next build.
give_back_target() {
    ((EUID)) || [ -O . ] || [ ! -d target ] ||
        chown --recursive --no-dereference --from=0 --reference=. target || true
}

# Root may work in somebody else's checkout.
if ! ((EUID)) && [ ! -O . ]; then
    export GIT_CONFIG_COUNT=1 GIT_CONFIG_KEY_0=safe.directory GIT_CONFIG_VALUE_0=$PWD
fi

# A calling make sets these, but its job server is not open to us: cargo and make would complain.
unset MAKEFLAGS MFLAGS MAKELEVEL
