#!/bin/sh
# Writes the patches anew against the tree as it is, so that each applies at its lines and without guessing.
# Usage: refresh.sh           writes those anew that still apply by guessing; names those that do not apply
#        refresh.sh --check   only names the patches that do not apply exactly
set -u
here=$(cd "$(dirname "$0")" && pwd)
cd "$here/../../.." || exit 1
copy=$(mktemp -d)
trap 'rm -rf "$copy"' EXIT
bad=0
for patch in "$here"/*.patch; do
    name=$(basename "$patch" .patch)
    patch --dry-run --silent --force --fuzz=0 -p1 <"$patch" >/dev/null && continue
    if [ "${1:-}" != --check ] && patch --dry-run --silent --force -p1 <"$patch" >/dev/null; then
        files=$(sed -n 's/^+++ b\///p' "$patch")
        rm -rf "$copy"/*
        for side in a b; do
            for file in $files; do
                mkdir -p "$copy/$side/$(dirname "$file")"
                cp "$file" "$copy/$side/$file"
            done
        done
        (cd "$copy/b" && patch --silent --no-backup-if-mismatch -p1 <"$patch")
        sed -n '/^diff --git/q;p' "$patch" >"$copy/new"
        for file in $files; do
            echo "diff --git a/$file b/$file" >>"$copy/new"
            (cd "$copy" && diff -u --label "a/$file" --label "b/$file" "a/$file" "b/$file") >>"$copy/new"
        done
        cp "$copy/new" "$patch"
        patch --dry-run --silent --force --fuzz=0 -p1 <"$patch" >/dev/null && continue
    fi
    echo "$name does not apply"
    bad=$((bad + 1))
done
[ "$bad" -eq 0 ]
