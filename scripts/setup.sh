#!/bin/bash
# Installs what a target of the Makefile needs beyond the Rust tool chain: scripts/setup.sh demo|test|bench|costs|profiled
# As root on a system with apt the missing packages are installed. Otherwise they are named, and what can be
# done without them is done: exit code 0, unless nothing can be built at all.
set -euo pipefail

target=${1:-test}

# command that must be there : Debian package that has it
needs=(cc:gcc git:git)
case $target in
demo) ;;
test) needs+=(python3:python3 zstd:zstd tshark:tshark tcpdump:tcpdump tcptrace:tcptrace ip:iproute2 node:nodejs npm:npm chromium:chromium tmux:tmux prometheus:prometheus) ;;
costs) needs+=(python3:python3 ip:iproute2 nginx:nginx wrk:wrk) ;;
profiled) needs+=(python3:python3 llvm-bolt-16:bolt-16) ;;
bench) needs+=(python3:python3 zstd:zstd tshark:tshark tcpdump:tcpdump tcptrace:tcptrace taskset:util-linux) ;;
*)
    echo "setup: demo, test, bench, costs or profiled" >&2
    exit 2
    ;;
esac

missing=()
for need in "${needs[@]}"; do
    command -v "${need%%:*}" >/dev/null || missing+=("${need#*:}")
done
# a C library to link against comes with the compiler only if recommended packages are installed
if command -v cc >/dev/null && ! echo 'int main(void){return 0;}' | cc -x c -o /dev/null - 2>/dev/null; then
    missing+=(libc6-dev)
elif ! command -v cc >/dev/null; then
    missing+=(libc6-dev)
fi

if ((${#missing[@]})); then
    if [[ $(id -u) == 0 ]] && command -v apt-get >/dev/null; then
        echo "setup: installing ${missing[*]}"
        export DEBIAN_FRONTEND=noninteractive
        install=(apt-get install -y -q --no-install-recommends "${missing[@]}")
        if ! "${install[@]}" >/dev/null 2>&1; then
            apt-get update -q >/dev/null || true
            "${install[@]}" >/dev/null || echo "setup: could not install all of: ${missing[*]}"
        fi
    else
        echo "setup: missing: ${missing[*]}"
        echo "setup: as root: apt-get install ${missing[*]}"
        echo "setup: going on with what can be done without them"
    fi
fi

if ! command -v cargo >/dev/null; then
    echo "setup: cargo is missing; the Rust tool chain comes from https://rustup.rs" >&2
    exit 1
fi
if [[ $target == test ]]; then
    cargo fmt --version >/dev/null 2>&1 && cargo clippy --version >/dev/null 2>&1 ||
        rustup component add rustfmt clippy >/dev/null 2>&1 ||
        echo "setup: rustfmt or clippy is missing: rustup component add rustfmt clippy"
    here=$(dirname "$0")
    tools=${CARGO_TARGET_DIR:-$here/../target}/tools
    if ! cmp -s "$here/tools.txt" "$tools/installed.txt"; then
        { python3 -m venv "$tools" && "$tools/bin/pip" install --quiet --requirement "$here/tools.txt" &&
            cp "$here/tools.txt" "$tools/installed.txt"; } >/dev/null 2>&1 ||
            echo "setup: not all of scripts/tools.txt could be installed: some checks are left out (Debian: python3-venv; a network)"
    fi
fi
