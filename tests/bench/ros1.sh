#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# Where ROS 1 is installed, its two beds pass messages to and fro under weir, and tell of both ends;
# bad use is one line and status 2.
so=${REPLACE_SO:?"set by run.sh"}
. "$srcdir/tests/bench/lib.sh"
ran=0

passes() { # PROGRAM OPTION...
  ran=1 common="--size 300K --messages 20 --warmup 20"
  program=$1
  shift
  "${PYTHON3:-python3}" "$srcdir/bench/endpoints" -E LD_PRELOAD="$so" --programs bench \
    --service 'rosmaster --core -p 11411' --echo "$program --role echo $common $*" \
    --ping "$program --role ping --hz 100 $common $*" >"$work/out" 2>"$work/err" ||
    { complain_with_output "$program $*"; return; }
  holds '(got["ns_p50"] > 0 and got["messages"] == 20 and got["size"] == 300 << 10 and
    {"ping_faults_per_message", "echo_faults_per_message"} <= got.keys())' ||
    complain_with_output "$program $*: printed"
}

refuses() { # FILE ARGUMENT...
  "$@" >"$work/out" 2>"$work/err"
  test $? = 2 && test "$(wc -l <"$work/err")" = 1 || complain_with_output "$*"
}

command -v rosmaster >/dev/null || { echo 'rosmaster is not installed'; exit 77; }
if test -x bench/roscpp; then
  passes roscpp
  passes roscpp --message cloud
  refuses bench/roscpp
  refuses bench/roscpp --role echo --message sound
  refuses bench/roscpp --role echo --message image --size 1M
fi
if /usr/bin/python3 -c 'import rospy, std_msgs' 2>/dev/null; then
  passes rospy_bed.py
  passes rospy_bed.py --buff-size 16M
  refuses /usr/bin/python3 "$srcdir/bench/rospy_bed.py" --role nobody
  refuses /usr/bin/python3 "$srcdir/bench/rospy_bed.py" --size 1T
fi
test $ran = 1 || { echo 'neither roscpp nor rospy is installed'; exit 77; }
exit $failed
