#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The libraries export exactly: the functions that the public headers declare, with a version in
# libweir; in libweir_malloc, where no name may have one, also the names its map lists; and in
# libweir_rcutils the one that it stands in for.
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT

# A declaration begins in the first column, a comment does not; what is defined there is no export.
sed -nE '/^static /d; s/^[a-z].*\<(weir_[a-z0-9_]+)\(.*/\1/p' "$srcdir"/include/weir/*.h | LC_ALL=C sort -u \
  >"$work/api"
test -s "$work/api" || { echo "no declaration found in include/weir"; exit 1; }

sed -nE '/global:/,/local:/s/^ *([A-Za-z_][A-Za-z0-9_]*);.*/\1/p' "$srcdir/src/weir_malloc.map" |
  LC_ALL=C sort -u - "$work/api" >"$work/all"

exported() { # the dynamic symbols of a library, without those that name its versions
  nm -D --defined-only "$1" | awk '$2 != "A" { print $3 }' | LC_ALL=C sort
}

compare() {
  diff "$work/want" "$work/got" && return
  echo "$1 exports other names than it should (< should, > does)"
  exit 1
}

sed 's/$/@@WEIR_0/' "$work/api" >"$work/want"
exported .libs/libweir.so >"$work/got" || exit 1
compare libweir.so

if test -e .libs/libweir_malloc.so; then
  cp "$work/all" "$work/want"
  exported .libs/libweir_malloc.so >"$work/got" || exit 1
  compare libweir_malloc.so
fi

if test -e .libs/libweir_rcutils.so; then
  echo rcutils_get_default_allocator >"$work/want"
  exported .libs/libweir_rcutils.so >"$work/got" || exit 1
  compare libweir_rcutils.so
fi
