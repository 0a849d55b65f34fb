#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The documents are not behind the sources: the tables of doc/options.md are those of the lists that
# the library is built from, weir(7) names every option, and weir(3) every function, each of which
# has a page that leads there. Pages without a function have been forgotten.
cd "$srcdir" || exit 1
status=0
complain() {
  echo "$1"
  status=1
}

sh doc/tables.sh --check || status=1

options=$(sed -nE 's/^WR_OPTION\([^"]*"([A-Z_]+)".*/\1/p' src/options.def)
test -n "$options" || complain "no option found in src/options.def"
for option in $options; do
  grep -q "^\.It Ev $option " doc/weir.7 || complain "doc/weir.7 does not describe $option"
done

# A declaration begins in the first column, a comment does not.
functions=$(sed -nE 's/^[a-z].*\<(weir_[a-z0-9_]+)\(.*/\1/p' include/weir/weir.h)
test -n "$functions" || complain "no declaration found in include/weir/weir.h"
for function in $functions; do
  grep -q "^\.Nm $function\( ,\)\{0,1\}\$" doc/weir.3 && grep -q "^\.Fn $function " doc/weir.3 ||
    complain "doc/weir.3 does not describe $function"
  test "$(cat "doc/$function.3")" = '.so man3/weir.3' || complain "doc/$function.3 leads nowhere"
  grep -q "^  doc/$function\.3\( \\\\\)\{0,1\}\$" doc/local.mk ||
    complain "doc/local.mk does not install doc/$function.3"
done
for page in doc/weir_*.3; do
  name=${page#doc/}
  # shellcheck disable=SC2086  # a list of words
  printf '%s\n' $functions | grep -qx "${name%.3}" || complain "$page has no function"
done

# What a page complains of is not there to be read. Where there is no man, nothing is lost.
if command -v man >/dev/null 2>&1; then
  for page in doc/weir.3 doc/weir.7; do
    warnings=$(LC_ALL=C.UTF-8 man --warnings -E UTF-8 -l "$page" 2>&1 >/dev/null)
    test -z "$warnings" || complain "$page: $warnings"
  done
fi
exit $status
