# SPDX-License-Identifier: Apache-2.0
"""Which cells of a suite can run here, and a line for what cannot."""

import functools
import os
import shutil
import subprocess

from . import facts, messages, stats


@functools.lru_cache(maxsize=None)
def _has_module(name):
    try:
        return subprocess.run([messages.PYTHON, "-c", f"import {name}"], capture_output=True,
                              timeout=60, check=False).returncode == 0
    except (OSError, subprocess.TimeoutExpired):
        return False


def _left_out(cell, available, folder):
    """Why a cell cannot run on this machine, or None."""
    if cell.needs_kib > available:
        return (f"it needs {stats.kib(cell.needs_kib)} of memory, {stats.kib(available)} are "
                "available")
    missing = [name for name in cell.needs if not shutil.which(name)]
    missing += [f"{name} for {messages.PYTHON}" for name in cell.modules if not _has_module(name)]
    if missing:
        return f"not installed: {', '.join(missing)}" + (f" (install {cell.packages})" if
                                                         cell.packages else "")
    for name in cell.built:
        if not os.access(os.path.join(folder, name), os.X_OK):
            return (f"bench/{name} was not built: install {cell.packages}, then configure and "
                    "build again")
    return None


def choose(cells, workloads, folder, say):
    """The cells of these workloads, or of all, that can run with the programs in `folder`. Cells of
    one workload that lack the same thing are told of by one line."""
    available = facts.memory_available_kib()
    chosen, without = [], {}
    for cell in cells:
        if workloads and cell.workload not in workloads:
            continue
        problem = _left_out(cell, available, folder)
        if problem:
            without.setdefault((cell.workload, problem), []).append(cell.name)
        else:
            chosen.append(cell)
    for (workload, problem), names in without.items():
        many = len(names) > 1
        say(f"{f'{workload}: {len(names)} cells are' if many else f'{names[0]} is'} left out: "
            f"{problem}")
    return chosen
