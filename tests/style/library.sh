#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The shared libraries need nothing but the C library, can be loaded by dlopen however little room
# for thread-local data is left, and run no code from writable memory.
status=0
complain() {
  echo "$1"
  status=1
}

check() {
  others=$(readelf -dW "$1" | sed -nE 's/.*\(NEEDED\).*\[(.*)\]/\1/p' |
    grep -vE '^(libc\.so\.[0-9]+|ld-linux[-a-z0-9_]*\.so\.[0-9]+)$')
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
exit $status
