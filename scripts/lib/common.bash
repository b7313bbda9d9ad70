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

# A calling make sets these, but its job server is not open to us: cargo and make would complain.
unset MAKEFLAGS MFLAGS MAKELEVEL
