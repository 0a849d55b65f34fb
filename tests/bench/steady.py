# SPDX-License-Identifier: Apache-2.0
"""The gates of a bed, on counts alone: under weir neither end makes a page fault or a memory call
for a message; and a control under the C library's own malloc, which shows that they are seen.

Usage: steady.py SOURCE PROGRAMS LIBRARY, with the beds on standard input, one a line:
still|faulty, the command of the ping, the command of the echo, separated by semicolons."""

import json
import os
import subprocess
import sys
import tempfile

sys.dont_write_bytecode = True
SOURCE, PROGRAMS, LIBRARY = sys.argv[1:]
sys.path.insert(0, os.path.join(SOURCE, "bench"))

from weirbench import counting  # noqa: E402
from weirbench.cells import ROLES  # noqa: E402


def run(ping, echo, variables, folder):
    """Faults a message and calls in all, by role."""
    trace = os.path.join(folder, "trace")
    words = [sys.executable, os.path.join(SOURCE, "bench", "endpoints"), "--programs", PROGRAMS,
             "--ping", ping, "--echo", echo, "--trace", trace, "--limit", "60"]
    for variable in variables:
        words += ["-E", variable]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        sys.exit(f"{ping}: {done.stderr.strip()}")
    line = json.loads(done.stdout)
    counts = {role: counting.steady_calls(f"{trace}.{role}") for role in ROLES}
    if None in counts.values():
        sys.exit(f"{ping}: the trace does not show a steady part")
    return ({role: line[f"{role}_faults_per_message"] for role in ROLES},
            {role: {kind: count for kind, count in counts[role].items() if count}
             for role in ROLES})


def main():
    problem = counting.problem()
    if problem:
        print(f"system calls cannot be counted: {problem}")
        return 77
    failed = 0
    with tempfile.TemporaryDirectory() as folder:
        for line in sys.stdin:
            kind, ping, echo = (part.strip() for part in line.split(";"))
            variables = [f"LD_PRELOAD={LIBRARY}"] if kind == "still" else []
            faults, calls = run(ping, echo, variables, folder)
            seen = f"faults a message {faults}, calls {calls}"
            if kind == "still" and (any(faults.values()) or any(calls.values())):
                print(f"FAIL {ping}; {echo}: {seen}")
                failed = 1
            elif kind == "faulty" and not (min(faults.values()) > 100 and all(calls.values())):
                print(f"FAIL the control does not fault at both ends, {ping}; {echo}: {seen}")
                failed = 1
    return failed


sys.exit(main())
