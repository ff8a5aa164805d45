#!/usr/bin/env bash
# Runs a fuzz target: run.sh PROGRAM RUNS GROWN FOLDER... -- OPTION...
#
# As a rule with a new seed, on the folders and on what earlier runs put into GROWN. With TAIYEN_RUN_SEED the run is to be repeated: a seed that follows from it, the folders' inputs in the
# order of their names (a directory has another order on each disk), nothing of GROWN, addresses that come again, and an end after RUNS executions. So a slower machine, which the time limit
# stops first, does the beginning of what a faster one does.
set -euo pipefail

program=$1 runs=$2 grown=$3
shift 3
folders=()
while [ "$1" != -- ]; do
    folders+=("$1")
    shift
done
shift

if [ -z "${TAIYEN_RUN_SEED:-}" ]; then
    unset TAIYEN_RUN_SEED
    exec "$program" "$grown" "${folders[@]}" "$@"
fi
seed=$(printf '%s' "$(basename "$program") $TAIYEN_RUN_SEED" | cksum | cut -d ' ' -f 1)
[ "$seed" != 0 ] || seed=1 # libFuzzer takes 0 for none
list=$(mktemp)
trap 'rm -f "$list"' EXIT
find "${folders[@]}" -type f | LC_ALL=C sort | paste -s -d , | tr -d '\n' >"$list"
fixed=()
! setarch -R true 2>/dev/null || fixed=(setarch -R)
"${fixed[@]}" "$program" -seed="$seed" -runs="$runs" -seed_inputs="@$list" "$@"
