#!/bin/sh
# Applies each mutation to a copy of the tree and runs seeds until one fails, or small cases. Every mutation must be caught.
# One that no seed reaches names a small case (`Small case: …`), which is run for it in place of seeds.
# Usage: run.sh [mutation or patch file...]
# Environment: SEEDS (at most, 3000), JOBS (2), WORK (where the copy and its target folder go); SMALL (names of small cases, or
# `all`: they are run in place of seeds), FAULTS (in one of their schedules, 1).
set -u
here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../../.." && pwd)
work=${WORK:-${TMPDIR:-/tmp}/fanfold-mutations}
seeds=${SEEDS:-3000}
cases=${SMALL:-}
# The product's own crates are compiled quickly, what they depend on well: most time goes to waiting for either. Only the
# former are named, so that the rest is as any release build leaves it: `cp -a target/release $WORK/target/` saves minutes.
build="cargo build --quiet --release -p fanfold-simulation --target-dir $work/target"
own=$(sed -n 's/^name = "\(fanfold[a-z-]*\)"$/--config profile.release.package.\1.opt-level=0/p' "$root/Cargo.lock")
[ $# -gt 0 ] || set -- "$here"/*.patch
began=$PWD
# With times of now (`m`): what the run before built of other patches must not count as up to date.
rm -rf "$work/tree"
mkdir -p "$work/tree"
(cd "$root" && tar cf - --exclude=./target --exclude=./.git --exclude=./.aws-sam .) | (cd "$work/tree" && tar xmf -)
cd "$work/tree" || exit 1
survivors=0
for patch in "$@"; do
    name=$(basename "$patch" .patch)
    case $patch in
    /*) ;;
    */*) patch="$began/$patch" ;;
    *) patch="$here/$name.patch" ;;
    esac
    small=${cases:-$(sed -n 's/^Small case: //p' "$patch")}
    if [ -n "$small" ]; then
        what=schedules
        [ "$small" = all ] && small=
        runs="--faults ${FAULTS:-1} --small $small"
    else
        what=seeds
        runs="--seeds $seeds"
    fi
    if ! patch --quiet -p1 <"$patch"; then
        echo "$name: DOES NOT APPLY"
        survivors=$((survivors + 1))
    elif ! CARGO_INCREMENTAL=1 $build $own 2>"$work/build.log"; then
        echo "$name: DOES NOT COMPILE, see $work/build.log"
        survivors=$((survivors + 1))
    else
        "$work/target/release/fanfold-simulation" --jobs "${JOBS:-2}" --stop $runs >"$work/$name.log" 2>&1
        code=$?
        ran=$(sed -n "s/^\([0-9]*\) $what .*/\1/p" "$work/$name.log")
        # Only what failed counts: a process that was ended, or that could not run, has caught nothing.
        if [ "$code" -eq 1 ] && [ -n "$ran" ] && grep -q '^\(seed\|case\) [^ ]* FAILS' "$work/$name.log"; then
            echo "$name: caught within $ran $what:" \
                "$(grep -A1 FAILS "$work/$name.log" | sed -n '2s/^ *//p' | cut -c1-110)"
        elif [ "$code" -eq 0 ] && [ -n "$ran" ]; then
            echo "$name: SURVIVED $ran $what"
            survivors=$((survivors + 1))
        else
            echo "$name: BROKE OFF with exit code $code, see $work/$name.log"
            survivors=$((survivors + 1))
        fi
    fi
    patch --quiet -R -p1 <"$patch" >/dev/null 2>&1
done
exit "$survivors"
