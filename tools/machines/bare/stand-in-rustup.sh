#!/bin/sh
# Replaces the script of https://sh.rustup.rs: accepts only the arguments that setup passes, and
# installs fake programs that answer like a toolchain and cargo-pgrx.
set -eu
echo "stand-in: called with $*"

version=$(sed -n 's/^rust-version = "\(.*\)"/\1/p' Cargo.toml)
pgrx=$(sed -n 's/^pgrx = .*"=\([0-9.]*\)".*/\1/p' Cargo.toml)
home=$HOME/.cache/pg_hugeinfo/rust

[ "$*" = "-y --no-modify-path --profile default --default-toolchain $version" ]
[ "$RUSTUP_HOME" = "$home/rustup" ]
[ "$CARGO_HOME" = "$home/cargo" ]

bin=$RUSTUP_HOME/toolchains/$version-stand-in/bin
mkdir -p "$bin" "$CARGO_HOME/bin"
cat >"$bin/rustc" <<END
#!/bin/sh
echo "rustc $version.0 (stand-in)"
END
cat >"$bin/cargo" <<END
#!/bin/sh
case \$1 in
pgrx) echo "cargo-pgrx $pgrx" ;;
--version | clippy | fmt) echo "\$1 $version.0 (stand-in)" ;;
*) exit 1 ;;
esac
END
chmod +x "$bin/rustc" "$bin/cargo"
