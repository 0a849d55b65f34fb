#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# The round trip of two processes under weir: no fault and no memory call a message at either end,
# whatever a take deserialises from and whatever either end allocated before. Under the C library's
# own malloc the same trips fault by the hundred, so the gate is one.
python=${PYTHON3:-python3}
command -v "$python" >/dev/null || { echo "no python3"; exit 77; }
test -x bench/roundtrip || { echo "bench/roundtrip was not built"; exit 77; }
failed=0

refuses() {
  program=$1
  shift
  "$program" "$@" >/dev/null 2>roundtrip.err
  status=$?
  test $status = 2 && test "$(wc -l <roundtrip.err)" = 1 ||
    { echo "FAIL $program $*: status $status"; cat roundtrip.err; failed=1; }
  rm -f roundtrip.err
}
for program in bench/roundtrip "$srcdir/bench/roundtrip.py"; do
  case $program in *.py) test -x /usr/bin/python3 || continue ;; esac
  refuses "$program"
  refuses "$program" --role both
  refuses "$program" --role ping --size 3
  refuses "$program" --role ping --buffer no-such
  refuses "$program" --role ping --messages 0
  refuses "$program" --role ping --no-such-option
done

trips() {
  common='--messages 40 --warmup 20 --hz 0'
  for size in 256K 1M; do
    for buffer in in-place wide exact; do
      for histories in none:none large:large none:large large:none; do
        case $size$histories in 256Knone:large | 256Klarge:none) continue ;; esac
        rest="--size $size --buffer $buffer $common"
        echo "still; roundtrip --role ping --history ${histories%:*} $rest;" \
          "roundtrip --role echo --history ${histories#*:} $rest"
      done
    done
  done
  rest="--size 1M $common"
  echo "still; roundtrip --role ping --transport unix $rest;" \
    "roundtrip --role echo --transport unix $rest"
  echo "faulty; roundtrip --role ping $rest; roundtrip --role echo $rest"
  echo "faulty; roundtrip --role ping $rest --buffer in-place;" \
    "roundtrip --role echo $rest --buffer in-place"
}

trips | "$python" "$srcdir/tests/bench/steady.py" "$srcdir" bench "$REPLACE_SO"
status=$?
test $status = 0 || exit $status
exit $failed
