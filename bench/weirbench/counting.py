# SPDX-License-Identifier: Apache-2.0
"""Memory system calls of the steady part: how strace is asked for them, and how its output is
counted. A program marks the steady part by two calls that nothing else makes (bench.h)."""

import os
import re
import shutil
import subprocess

KINDS = ("brk", "mmap", "munmap", "madvise", "mprotect", "mremap")
MARK_BEGIN, MARK_END = 0x77656972, 0x77656973
CALL = re.compile(r"^(?:\[pid +)?\d*\]? *(\w+)\((?:PRIO_PROCESS, (\d+))?")


def strace(output, variables):
    """The words before a command whose calls are to go to `output`. The variables are for the
    command and not for strace itself."""
    words = ["strace", "--seccomp-bpf", "-f", "-qq",
             "-e", "trace=" + ",".join(KINDS + ("getpriority",)), "-e", "signal=none", "-o", output]
    for name, value in variables.items():
        words += ["-E", f"{name}={value}"]
    return words


def problem():
    """Why system calls cannot be counted here, or None."""
    if not shutil.which("strace"):
        return "strace is not installed"
    try:
        run = subprocess.run(strace(os.devnull, {}) + ["true"], capture_output=True, text=True,
                             timeout=30, check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        return str(error)
    if run.returncode != 0:
        return "strace: " + (run.stderr.strip().splitlines() or ["no permission"])[-1]
    return None


def steady_calls(path):
    """Count the memory calls of all threads between the two marks. None where the marks are not
    there, for then nothing was counted and a zero would mislead."""
    counts = dict.fromkeys(KINDS, 0)
    steady, marks = False, set()
    with open(path, encoding="utf-8", errors="replace") as lines:
        for line in lines:
            found = CALL.match(line)
            if not found:
                continue
            if found[1] == "getpriority":
                mark = int(found[2] or 0)
                marks.add(mark)
                steady = mark == MARK_BEGIN or (steady and mark != MARK_END)
            elif steady and found[1] in counts:
                counts[found[1]] += 1
    return counts if {MARK_BEGIN, MARK_END} <= marks else None
