# What every script here starts with: strict, in the root of the sources, with a voice.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."

say() { printf '==> %s\n' "$*"; }

die() {
    printf '==> %s\n' "$*" >&2
    exit 1
}

# Of the make that may have called: its job server is not open to us, and cargo and make would
# complain.
unset MAKEFLAGS MFLAGS MAKELEVEL
