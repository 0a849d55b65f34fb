# SPDX-License-Identifier: Apache-2.0
"""Runs a command with a library preloaded, and counts the memory calls of its steady part: status 1
when there are any, or no steady part; 77 where they cannot be counted.

Usage: calls.py SOURCE LIBRARY OUTPUT COMMAND..., where OUTPUT gets what the command prints."""

import os
import subprocess
import sys
import tempfile

sys.dont_write_bytecode = True
SOURCE, LIBRARY, OUTPUT, *COMMAND = sys.argv[1:]
sys.path.insert(0, os.path.join(SOURCE, "bench"))

from weirbench import counting  # noqa: E402


def main():
    problem = counting.problem()
    if problem:
        print(f"memory calls are not counted: {problem}")
        return 77
    with tempfile.TemporaryDirectory() as folder, open(OUTPUT, "wb") as output:
        trace = os.path.join(folder, "trace")
        subprocess.run(counting.strace(trace, {"LD_PRELOAD": LIBRARY}) + COMMAND, stdout=output,
                       timeout=60, check=True)
        counts = counting.steady_calls(trace)
    print(f"memory calls in the steady part: {counts}")
    return int(counts is None or any(counts.values()))


sys.exit(main())
