#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The documents are not behind the sources: the tables of doc/options.md are those of the lists that
# the library is built from, weir(7) names every option, and the page of each public header its
# functions, each of which has a page that leads there: weir_AREA(3) for weir/AREA.h, or weir(3)
# where there is no such page. So it is with weir_AREA(3) for weir/AREA.hpp and its classes. Pages
# without a function or a class have been forgotten.
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

# describe HEADER PAGE: the page describes the functions of the header.
describe() {
  # A declaration begins in the first column, a comment does not.
  functions=$(sed -nE 's/^[a-z].*\<(weir_[a-z0-9_]+)\(.*/\1/p' "$1")
  test -n "$functions" || complain "no declaration found in $1"
  for function in $functions; do
    grep -q "^\.Nm $function\( ,\)\{0,1\}\$" "$2" && grep -q "^\.Fn $function " "$2" ||
      complain "$2 does not describe $function"
    test "$(cat "doc/$function.3")" = ".so man3/${2#doc/}" || complain "doc/$function.3 leads nowhere"
    grep -q "^  doc/$function\.3\( \\\\\)\{0,1\}\$" doc/local.mk ||
      complain "doc/local.mk does not install doc/$function.3"
  done
  all="$all ${2#doc/} $(printf '%s.3 ' $functions)"
}

pages='doc/weir.3 doc/weir.7' all=
for header in include/weir/*.h; do
  page=doc/weir_$(basename "$header" .h).3
  test -e "$page" || page=doc/weir.3
  describe "$header" "$page"
  test "$page" = doc/weir.3 || pages="$pages $page"
done

# The page of a class that gave the header its name is the one that the others lead to.
for header in include/weir/*.hpp; do
  area=weir_$(basename "$header" .hpp)
  page=doc/$area.3
  classes=$(sed -nE 's/^(template <.*> )?class (__attribute__\(\(.*\)\) )?([a-z_]+) .*/\3/p' "$header")
  test -n "$classes" || complain "no class found in $header"
  for class in $classes; do
    grep -q "^\.Nm weir::$class\( ,\)\{0,1\}\$" "$page" && grep -q "class $class\>" "$page" ||
      complain "$page does not describe $class"
    test "weir_$class" = "$area" ||
      test "$(cat "doc/weir_$class.3")" = ".so man3/$area.3" ||
      complain "doc/weir_$class.3 leads nowhere"
    grep -q "^  doc/weir_$class\.3\( \\\\\)\{0,1\}\$" doc/local.mk ||
      complain "doc/local.mk does not install doc/weir_$class.3"
  done
  all="$all $(printf 'weir_%s.3 ' $classes)"
  pages="$pages $page"
done

for page in doc/weir_*.3; do
  case " $all " in
    *" ${page#doc/} "*) ;;
    *) complain "$page has no function" ;;
  esac
done

# What a page complains of is not there to be read. Where there is no man, nothing is lost.
if command -v man >/dev/null 2>&1; then
  for page in $pages; do
    warnings=$(LC_ALL=C.UTF-8 man --warnings -E UTF-8 -l "$page" 2>&1 >/dev/null)
    test -z "$warnings" || complain "$page: $warnings"
  done
fi
exit $status
