#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The shared libraries need nothing but the C library, can be loaded by dlopen however little room
# for thread-local data is left, and run no code from writable memory. libweir_rcutils needs libweir
# besides, keeps nothing for threads, and does nothing when it is loaded.
status=0
complain() {
  echo "$1"
  status=1
}

needs() { # LIBRARY: the names of the libraries that it needs
  readelf -dW "$1" | sed -nE 's/.*\(NEEDED\).*\[(.*)\]/\1/p'
}

check() { # LIBRARY [ALSO]: a pattern of what it may need besides the C library
  others=$(needs "$1" | grep -vE "^(libc|ld-linux[-a-z0-9_]*${2:+|$2})\.so\.[0-9]+\$")
  test -z "$others" || complain "$1 needs $others"

  room=$(readelf -lW "$1" | awk '$1 == "TLS" { print $6 }')
  test $((${room:-0})) -le 100 || complain "$1 has $((room)) bytes of thread-local data"

  readelf -dW "$1" | grep -q TEXTREL && complain "$1 has relocations in its code"
  readelf -lW "$1" | awk '$1 == "GNU_STACK" { print $7 }' | grep -q E &&
    complain "$1 asks for an executable stack"
  readelf -lW "$1" | awk '$1 == "LOAD" && /RWE/ { found = 1 } END { exit !found }' &&
    complain "$1 has a segment that is both writable and executable"
  return 0
}

for library in .libs/libweir.so .libs/libweir_malloc.so; do
  test ! -e "$library" || check "$library"
done

library=.libs/libweir_rcutils.so
if test -e "$library"; then
  check "$library" libweir
  needs "$library" | grep -q '^libweir\.so\.' || complain "$library does not need libweir"
  readelf -lW "$library" | grep -q '^ *TLS ' && complain "$library has thread-local data"
  # The compiler's own file at the start of each library has one.
  size=$(readelf -dW "$library" | awk '$2 == "(INIT_ARRAYSZ)" { print $3 }')
  test "${size:-0}" -le 8 || complain "$library has constructors"
fi
exit $status
