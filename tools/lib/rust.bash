# Chooses a Rust toolchain and a cargo-pgrx and adds them to the environment. Each script chooses
# again, which takes a fraction of a second, because a stored choice would become outdated.

required_rust=$(sed -n 's/^rust-version = "\(.*\)"/\1/p' Cargo.toml)
required_pgrx=$(sed -n 's/^pgrx = .*"=\([0-9.]*\)".*/\1/p' Cargo.toml)

# At the end of PATH, to keep the user's order. cargo searches its own bin first only if PATH does
# not contain it.
HOME=~
export HOME PATH="$PATH:${CARGO_HOME:-$HOME/.cargo}/bin"

pgrx_home=${XDG_CACHE_HOME:-$HOME/.cache}/pg_hugeinfo/cargo-pgrx-$required_pgrx

# Directory for a Rust that tools/setup installs with rustup, separate from the user's own.
rust_home=${XDG_CACHE_HOME:-$HOME/.cache}/pg_hugeinfo/rust

at_least() { # VERSION MINIMUM
    [ "$(printf '%s\n' "$1" "$2" | sort -V | head -n 1)" = "$2" ]
}

# Sets $rust_version.
rust_will_do() {
    cargo --version >/dev/null 2>&1 || return
    rust_version=$(rustc --version 2>/dev/null) || return
    rust_version=${rust_version#rustc }
    rust_version=${rust_version%%[ -]*}
    at_least "$rust_version" "$required_rust"
}

# Sets $rust_choice to the choice and its reason.
# shellcheck disable=SC2034 # tools/setup prints it
choose_rust() {
    [ -z "${rust_choice:-}" ] || return 0
    local toolchains nightlies directory rust_version=none too_old
    if rust_will_do; then
        rust_choice="Rust $rust_version, the default"
        return
    fi
    too_old="the default is $rust_version and $required_rust is needed"

    # Nightly toolchains are the last resort.
    mapfile -t toolchains < <(rustup toolchain list 2>/dev/null | sed '/^nightly/d; s/ .*//' | sort -V)
    mapfile -t nightlies < <(rustup toolchain list 2>/dev/null | sed '/^nightly/!d; s/ .*//' | sort -V)
    ! choose_toolchain "${toolchains[@]}" || return 0

    # The packages of Debian and Ubuntu, which a rustup in PATH can hide, and our own. Uses the
    # programs of the toolchain itself, because those of rustup would use the user's home.
    for directory in /usr/bin /usr/lib/rust-*/bin "$rust_home"/rustup/toolchains/*/bin; do
        if PATH=$directory:$PATH rust_will_do; then
            PATH=$directory:$PATH
            rust_choice="Rust $rust_version of $directory: $too_old"
            return
        fi
    done

    choose_toolchain "${nightlies[@]}"
}

choose_toolchain() { # RUSTUP'S TOOLCHAINS…
    local toolchain
    for toolchain in "$@"; do
        if RUSTUP_TOOLCHAIN=$toolchain rust_will_do; then
            export RUSTUP_TOOLCHAIN=$toolchain
            rust_choice="Rust $rust_version, rustup's toolchain $toolchain: $too_old"
            return
        fi
    done
    return 1
}

# The target of the program in packages. Its libraries have licenses like those of the crates;
# that of glibc is the LGPL.
musl=$(uname -m)-unknown-linux-musl

has_musl() {
    [ -d "$(rustc --print target-libdir --target "$musl")" ]
}

# Only rustup's toolchains can have it.
install_musl() {
    local sysroot
    sysroot=$(rustc --print sysroot)
    say "setup: rustup target add $musl"
    RUSTUP_HOME=${sysroot%/toolchains/*} PATH=$PATH:$rust_home/cargo/bin \
        rustup target add --toolchain "${sysroot##*/}" "$musl" || true
    has_musl || die "setup: packages need Rust from rustup with the target $musl. In use: $rust_choice"
}

pgrx_will_do() {
    [ "$(cargo pgrx --version 2>/dev/null)" = "cargo-pgrx $required_pgrx" ]
}

choose_pgrx() {
    pgrx_will_do && return
    PATH=$pgrx_home/bin:$PATH
    pgrx_will_do
}

# Installs into its own directory, because the user might have another version. Not optimized: this
# halves the time to compile, and the program does little work.
install_pgrx() {
    say "setup: cargo install cargo-pgrx $required_pgrx into $pgrx_home"
    # With --force, because cargo skips an installed version even if it does not run.
    CARGO_PROFILE_DEV_DEBUG=0 cargo install --debug --locked --force cargo-pgrx --version "=$required_pgrx" --root "$pgrx_home" \
        --target-dir "$pgrx_home/build"
    rm -rf "$pgrx_home/build"
    choose_pgrx || die "setup: cargo-pgrx $required_pgrx does not run from $pgrx_home"
}
