#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Every header compiles alone, without a warning: those of src/ as C, the public ones also as C++,
# both strictly by the standard; those of C++ alone (.hpp) by each standard that the compiler knows.
# CC and CXX name the compilers; CXX is empty where there is none. RCUTILS_CFLAGS lead to rcutils'
# headers, which one of ours is for.
warn='-Wall -Wextra -Werror'
status=0

# compile NAME COMPILER...: include the header of that name once, and a second time.
compile() {
  name=$1
  shift
  printf '#include <%s>\n#include <%s>\n' "$name" "$name" | "$@" -fsyntax-only - && return
  echo "$name does not compile alone with $*"
  status=1
}

# compile_cxx NAME STANDARD
compile_cxx() {
  # shellcheck disable=SC2086  # CXX and the warnings are lists of words
  test -z "$CXX" || compile "$1" $CXX -std=$2 -pedantic -Wshadow $warn -Iinclude \
    $RCUTILS_CFLAGS -x c++
}

# knows STANDARD: whether the C++ compiler does.
knows() {
  # shellcheck disable=SC2086
  echo 'int main() {}' | $CXX -std=$1 -fsyntax-only -x c++ - 2>/dev/null
}

cd "$srcdir" || exit 1
for header in src/*.h; do
  # shellcheck disable=SC2086  # CC and the warnings are lists of words
  compile "$PWD/$header" $CC -std=gnu11 $warn -DWR_CHECKS=2 -Iinclude -iquote src -x c
done
for header in src/adapter/*.h; do
  # shellcheck disable=SC2086
  compile "$PWD/$header" $CC -std=gnu11 $warn -Iinclude -x c
done
for header in include/weir/*.h; do
  # shellcheck disable=SC2086
  test "$header" != include/weir/rcutils.h ||
    echo '#include <rcutils/allocator.h>' | $CC $RCUTILS_CFLAGS -fsyntax-only -x c - 2>/dev/null ||
    continue
  # shellcheck disable=SC2086
  compile "weir/${header##*/}" $CC -std=c11 -pedantic $warn -Iinclude $RCUTILS_CFLAGS -x c
  compile_cxx "weir/${header##*/}" c++11
done
for standard in c++11 c++14 c++17 c++20 c++2b; do
  test -n "$CXX" && knows $standard || continue
  for header in include/weir/*.hpp; do
    compile_cxx "weir/${header##*/}" $standard
  done
done
exit $status
