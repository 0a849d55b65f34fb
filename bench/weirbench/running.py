# SPDX-License-Identifier: Apache-2.0
"""Runs one program under one arm, plainly or counted by strace, and repeats that for all cells and
arms: interleaved, with the order of the arms rotated from repetition to repetition, so that a
machine that warms up or is disturbed treats all of them alike."""

import json
import os
import shutil
import subprocess
import tempfile
import time

from . import counting, stats
from .cells import ROLES, TOPOLOGIES

CORES = len(os.sched_getaffinity(0))

# What a program's line repeats of its command line, which is no result.
PARAMETERS = {"size", "live", "iterations", "warmup", "rounds", "pause_ms", "history", "seed",
              "batch", "pairs", "threads", "ops", "min", "max", "blocks", "depth", "total", "block",
              "hot_size", "hot_live", "settle_ms", "live_mib", "runs", "at_once", "backlog", "big",
              "big_every", "consumers", "count", "generations", "group", "keep", "left", "limit",
              "loops", "messages", "objects", "payload", "percent", "producers", "scale", "vectors",
              "writes", "hz", "nodes", "run_ms", "publishers", "subscribers", "lead_ms", "hold_ms",
              "sample_ms"}


# These start a command, and the arm's environment is for that and not for themselves.
LAUNCHERS = ("startup", "program", "endpoints")
HERE = os.path.dirname(os.path.realpath(__file__))


class Failure(Exception):
    """A run that gave no figures; the text says why."""


class Bench:
    """A cell under an arm. Commands of real programs run in the folder `workspace`."""

    def __init__(self, folder, environment, workspace):
        self.folder = os.path.abspath(folder)
        self.environment = environment
        self.workspace = workspace

    def _command(self, cell, arm, by_option):
        program = os.path.join(self.folder, cell.program)
        arguments = [str(argument) for argument in cell.arguments]
        # Files of ours stand in a cell without the folder, which is not for the results.
        arguments = [os.path.join(HERE, os.pardir, argument) if argument.startswith(TOPOLOGIES)
                     else argument for argument in arguments]
        if cell.program == "endpoints":
            program = os.path.join(HERE, os.pardir, cell.program)
            limit = str(int(self.limit(cell) - 10))
            arguments = ["--programs", self.folder, "--limit", limit, *arguments]
        if cell.program not in LAUNCHERS:
            return [program, *arguments]
        words = [program, *by_option(cell, arm), *arguments]
        return words + ["--", shutil.which("true") or "true"] * (cell.program == "startup")

    @staticmethod
    def limit(cell):
        """Seconds after which a run is taken to hang."""
        return 60 + 20 * cell.seconds

    @staticmethod
    def _variables(cell, arm):
        variables = arm.variables()
        if cell.program == "program":
            # A program may bring an allocator of its own as a library, as some redis-server does;
            # where the arm has none to put before that, libc's is the one that is meant.
            variables.setdefault("LD_PRELOAD", "libc.so.6")
        return variables

    def _options(self, cell, arm):
        return [word for key, value in self._variables(cell, arm).items()
                for word in ("-E", f"{key}={value}")]

    def start(self, cell, arm):
        environment = self.environment
        if cell.program not in LAUNCHERS:
            environment = {**environment, **arm.variables()}
        return subprocess.Popen(self._command(cell, arm, self._options), env=environment,
                                cwd=self.workspace if cell.program == "program" else None,
                                stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                stderr=subprocess.PIPE, text=True)

    def start_counted(self, cell, arm, output):
        """Traced by strace, which writes to `output`, or to a file for each endpoint."""
        if cell.program == "endpoints":
            command = self._command(cell, arm, lambda *about: ["--trace", output,
                                                               *self._options(*about)])
        else:
            command = counting.strace(output, self._variables(cell, arm))
            command += self._command(cell, arm, lambda *_: [])
        return subprocess.Popen(command, env=self.environment, stdin=subprocess.DEVNULL,
                                stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)

    @staticmethod
    def finish(process, limit):
        try:
            output, complaint = process.communicate(timeout=limit)
        except subprocess.TimeoutExpired:
            process.kill()
            process.communicate()
            raise Failure(f"it ran for more than {limit:.0f} s") from None
        if process.returncode != 0:
            last = (complaint.strip().splitlines() or [""])[-1]
            status = process.returncode
            how = f"signal {-status}" if status < 0 else f"status {status}"
            raise Failure(f"it ended with {how}" + (f": {last}" if last else ""))
        try:
            return json.loads(output)
        except ValueError:
            raise Failure("it printed no JSON line") from None


class Results:
    """values[cell index][arm name][metric] is a list, one value a repetition; so is what series
    has for an object in a program's line, which is kept as it is."""

    def __init__(self, cells, arms):
        self.values = [{arm.name: {} for arm in arms} for _ in cells]
        self.series = [{arm.name: {} for arm in arms} for _ in cells]
        self.calls = [{} for _ in cells]  # arm name: counts by kind, or role: counts by kind
        self.failures = {}  # (cell name, arm name): why

    def add(self, index, arm, line):
        for key, value in line.items():
            if isinstance(value, dict):
                self.series[index][arm.name].setdefault(key, []).append(value)
                continue
            parts = ([(f"{key}_{at}", part) for at, part in enumerate(value, 1)]
                     if isinstance(value, list) else [(key, value)])
            for name, part in parts:
                if isinstance(part, (int, float)) and not isinstance(part, bool) \
                        and name not in PARAMETERS:
                    self.values[index][arm.name].setdefault(name, []).append(part)

    def add_calls(self, index, arm, cell, counts):
        """`counts`: role to counts by kind; one role of no name where there is but one process."""
        self.calls[index][arm.name] = counts.get("", counts)
        for role, by_kind in counts.items():
            key = f"{role}_calls_per_message" if role else "calls_per_message"
            self.values[index][arm.name][key] = [sum(by_kind.values()) / cell.messages]

    def spread(self, index, arm_name, key):
        values = self.values[index].get(arm_name, {}).get(key)
        return stats.Spread.of(values) if values else None


class Campaign:
    """All runs of a suite. `budget` is the number of seconds after which no further repetition is
    begun, once there are two; None for no limit."""

    def __init__(self, bench, cells, arms, reps, counted, progress, budget=None, separate=True):
        self.bench, self.cells, self.arms = bench, cells, arms
        self.reps, self.counted, self.progress = reps, counted, progress
        self.separate = separate  # do two beds at once not see each other?
        self.budget, self.started = budget, time.monotonic()
        self.results = Results(cells, arms)
        self.done = 0  # repetitions

    @staticmethod
    def plan(cells, arm_count, reps, counting_too):
        """How many runs, and the guess at their time in seconds."""
        runs, seconds = 0, 0.0
        for cell in cells:
            timed = min(reps, cell.most_reps)
            counted = 1 if counting_too and cell.messages else 0
            runs += (timed + counted) * arm_count
            seconds += timed * arm_count * Campaign._share(cell, arm_count, False)
            seconds += counted * arm_count * Campaign._share(cell, arm_count, True)
        return runs, seconds

    @staticmethod
    def _share(cell, arm_count, counted):
        """The guess at what one run adds to the whole: less where several run at once."""
        if cell.staggered:
            return (cell.seconds + (0 if counted else cell.pause_ms / 1000)) / arm_count
        if counted:
            return 0.05 + cell.seconds / CORES
        return cell.seconds / CORES if cell.counts_only else cell.seconds

    def run(self):
        for rep in range(self.reps):
            if rep >= 2 and self._short_of_time():
                break
            for index, cell in enumerate(self.cells):
                if rep < cell.most_reps:
                    self._round(index, cell, rep + index, counted=False)
            self.done += 1
            if rep == 0 and self.counted:
                for index, cell in enumerate(self.cells):
                    if cell.messages:
                        self._round(index, cell, index, counted=True)
        self.progress.clear()
        return self.results

    def _short_of_time(self):
        """Would one more repetition, at the pace so far, go beyond the budget?"""
        elapsed = time.monotonic() - self.started
        return self.budget is not None and elapsed * (1 + 0.7 / self.done) > self.budget

    def _groups(self, cell, order, counted):
        """Which arms run at once. Times want a machine to themselves, unless a long pause leaves
        room for all; counts do not depend on time."""
        apart = self.separate or cell.program != "endpoints"
        if cell.staggered and apart:
            return [order]
        step = CORES if (counted or cell.counts_only) and apart else 1
        return [order[at:at + step] for at in range(0, len(order), step)]

    def _round(self, index, cell, turn, counted):
        """One repetition of one cell under every arm, each in a fresh process."""
        turn %= len(self.arms)
        order = self.arms[turn:] + self.arms[:turn]
        share = self._share(cell, len(order), counted)
        with tempfile.TemporaryDirectory(prefix="weir-compare-") as folder:
            for group in self._groups(cell, order, counted):
                self.progress.begin(f"{cell.name}, {', '.join(arm.name for arm in group)}"
                                    + (", counting calls" if counted else ""))
                started = []
                for arm in group:
                    started.append((arm, self._start(cell, arm, folder, counted)))
                    if cell.staggered and not counted:
                        time.sleep(cell.pause_ms / 1000 / len(group))
                for arm, process in started:
                    self._finish(index, cell, arm, process, folder, counted)
                    self.progress.end(share)

    def _start(self, cell, arm, folder, counted):
        if counted:
            return self.bench.start_counted(cell, arm, os.path.join(folder, arm.name))
        return self.bench.start(cell, arm)

    def _finish(self, index, cell, arm, process, folder, counted):
        try:
            line = self.bench.finish(process, self.bench.limit(cell))
        except Failure as failure:
            self.results.failures[cell.name, arm.name] = str(failure)
            return
        if not counted:
            self.results.add(index, arm, line)
            return
        trace = os.path.join(folder, arm.name)
        if cell.program == "endpoints":
            files = {role: f"{trace}.{role}" for role in ROLES}
        else:
            files = {"": trace}
        counts = {role: counting.steady_calls(file) for role, file in files.items()}
        if None in counts.values():
            self.results.failures[cell.name, arm.name] = "its trace does not show a steady part"
            return
        self.results.add_calls(index, arm, cell, counts)
