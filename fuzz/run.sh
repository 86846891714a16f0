#!/bin/sh
# Builds the fuzz targets with the stable compiler and runs them.
#
#   fuzz/run.sh [SECONDS] [TARGET...]   each target for SECONDS (default 60), default: all targets
#   fuzz/run.sh --planted [SECONDS]     must find the bug planted in `pipeline` (default: within 300 s)
#   fuzz/run.sh --build                 builds only
#
# Ends with 1 if a target found something; the input that shows it is left in fuzz/artifacts/ and is tried
# again with: fuzz/target/x86_64-unknown-linux-gnu/release/TARGET FILE
set -eu
cd "$(dirname "$0")"

triple=$(rustc -vV | sed -n 's/^host: //p')
out=target/$triple/release

# What `cargo fuzz` passes, less the address sanitizer: that alone needs a nightly compiler, and there is no
# unsafe code to check. Dead code stays linked, else the linker drops the coverage tables.
flags="-Awarnings --cfg fuzzing -Clink-dead-code -Cpasses=sancov-module -Ccodegen-units=1"
for pass in level=4 inline-8bit-counters pc-table trace-compares; do
    flags="$flags -Cllvm-args=-sanitizer-coverage-$pass"
done

build() { # extra flags, target directory
    echo "building $2"
    # --target keeps the flags away from build scripts, which would not link with them.
    RUSTFLAGS="$flags $1" cargo build --quiet --release --target "$triple" --target-dir "$2"
}

# Runs a target on a scratch copy of its corpus, so that the one in the repository stays small.
run() { # binary, name, seconds, log
    scratch=$(mktemp -d)
    status=0
    mkdir -p artifacts
    "$1" -max_total_time="$3" -timeout=10 -rss_limit_mb=2048 -max_len=4096 -use_value_profile=1 \
        -dict=capture.dict -print_final_stats=1 -artifact_prefix="artifacts/$2-" \
        "$scratch" "corpus/$2" >"$4" 2>&1 || status=$?
    rm -rf "$scratch"
    return "$status"
}

log=$(mktemp)
trap 'rm -f "$log"' EXIT

case "${1:-}" in
--build)
    build "" target
    exit 0
    ;;
--planted)
    build "--cfg planted_bug" target/planted
    if run "target/planted/$triple/release/pipeline" pipeline "${2:-300}" "$log"; then
        echo "NOT FOUND: the planted bug survived ${2:-300} s"
        exit 1
    fi
    if ! grep -q "shift left with overflow" "$log"; then
        tail -30 "$log"
        echo "FOUND SOMETHING ELSE than the planted bug"
        exit 1
    fi
    rm -f artifacts/pipeline-*
    echo "found the planted bug after $(sed -n 's/^stat::number_of_executed_units: *//p' "$log") executions"
    exit 0
    ;;
esac

seconds=${1:-60}
[ $# -gt 0 ] && shift
[ $# -gt 0 ] || set -- reader dissector options pipeline

build "" target
failed=0
for target; do
    if run "$out/$target" "$target" "$seconds" "$log"; then verdict=ok; else verdict=FOUND failed=1; fi
    runs=$(sed -n 's/^stat::number_of_executed_units: *//p' "$log")
    cov=$(sed -n 's/.* cov: \([0-9]*\) ft: \([0-9]*\) corp: \([0-9]*\).*/\1 edges, \2 features, \3 inputs/p' "$log" | tail -1)
    echo "$target: $verdict, ${runs:-?} executions, ${cov:-no coverage}"
    if [ "$verdict" != ok ]; then
        grep -aE "panicked|ERROR|SUMMARY|artifact_prefix|Test unit" -A2 "$log" | head -20
    fi
done
exit "$failed"
