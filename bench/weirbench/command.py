# SPDX-License-Identifier: Apache-2.0
"""A user's own command under every arm, reported for each process it makes. bench/procwatch follows
the processes; it stops them only for events, so the command runs at its own speed. Memory calls are
counted in a repetition of their own."""

import json
import os
import shutil
import subprocess
import tempfile

from . import stats
from . import tables

MOST_ROWS = 30
METRICS = [("minor_faults", "Page faults", lambda value: f"{value:.0f}"),
           ("calls", "Memory system calls", lambda value: f"{value:.0f}"),
           ("rss_peak_kib", "Peak RSS", stats.kib),
           ("wall_ns", "Wall time", stats.duration)]
NOT_PERMITTED = 125  # procwatch's own status


class CannotFollow(Exception):
    pass


class Watcher:
    def __init__(self, program, environment, inherited_preload, command, seconds, show):
        self.program, self.environment = program, environment
        self.preload, self.command = inherited_preload, command
        self.seconds, self.show = seconds, show

    def run(self, arm, counted):
        """One run; its processes in the order they began, and the command's status."""
        with tempfile.TemporaryDirectory(prefix="weir-compare-") as folder:
            report = os.path.join(folder, "processes")
            words = [self.program, "-o", report]
            for key, value in arm.variables(self.preload).items():
                words += ["-E", f"{key}={value}"]
            words += ["--calls"] if counted else []
            words += ["--seconds", str(self.seconds)] if self.seconds else []
            target = None if self.show else subprocess.DEVNULL
            # The complaint channel of the command is its own; procwatch's is told by its status.
            process = subprocess.Popen(words + ["--", *self.command], env=self.environment,
                                       stdin=subprocess.DEVNULL, stdout=target, stderr=target)
            try:
                status = process.wait()
            except KeyboardInterrupt:
                process.wait()
                raise
            processes = []
            if os.path.exists(report):
                with open(report, encoding="utf-8", errors="replace") as lines:
                    processes = [json.loads(line) for line in lines]
            if status == NOT_PERMITTED and not processes:
                raise CannotFollow()
            return sorted(processes, key=lambda one: one["start_ns"]), status


def labelled(processes):
    """A label for each process that is the same in every run: its command and, where several have
    the same, its number among them."""
    names = [one["command"] or "(not started)" for one in processes]
    seen = {}
    for name, one in zip(names, processes):
        seen[name] = seen.get(name, 0) + 1
        yield (name if names.count(name) == 1 else f"{name} #{seen[name]}"), one


def collapsed(processes):
    """The same for a command of very many processes: one row a name, values added up."""
    rows = {}
    for one in processes:
        rows.setdefault(one["command"] or "(not started)", []).append(one)
    for name, group in rows.items():
        one = dict(group[0])
        for key in ("minor_faults", "wall_ns"):
            one[key] = sum(other[key] for other in group)
        one["rss_peak_kib"] = max(other["rss_peak_kib"] for other in group)
        if "calls" in one:
            one["calls"] = {kind: sum(other["calls"][kind] for other in group)
                            for kind in one["calls"]}
        yield (name if len(group) == 1 else f"{name} (x{len(group)}, sum)"), one


class Comparison:
    def __init__(self, watcher, arms, reps, progress):
        self.watcher, self.arms, self.reps, self.progress = watcher, arms, reps, progress
        self.runs = []  # (arm name, counted, processes)
        self.statuses = {arm.name: [] for arm in arms}

    def run(self):
        # The uncounted repetitions first, then one that counts calls; the order of arms rotates.
        for rep in range(self.reps + 1):
            counted = rep == self.reps
            turn = rep % len(self.arms)
            for arm in self.arms[turn:] + self.arms[:turn]:
                self.progress.begin(arm.name + (", counting calls" if counted else ""))
                processes, status = self.watcher.run(arm, counted)
                self.runs.append((arm.name, counted, processes))
                self.statuses[arm.name].append(status)
                self.progress.end(1)
        self.progress.clear()

    def table(self):
        """{label: {arm: {metric: Spread}}}, labels in order of first start."""
        many = any(len(processes) > MOST_ROWS for _, _, processes in self.runs)
        values = {}
        for arm, counted, processes in self.runs:
            for label, one in (collapsed if many else labelled)(processes):
                own = values.setdefault(label, {}).setdefault(arm, {})
                if counted:
                    own.setdefault("calls", []).append(sum(one["calls"].values()))
                    continue
                for key in ("minor_faults", "major_faults", "rss_peak_kib", "wall_ns"):
                    own.setdefault(key, []).append(one[key])
        return {label: {arm: {key: stats.Spread.of(list_) for key, list_ in metrics.items()}
                        for arm, metrics in by_arm.items()} for label, by_arm in values.items()}

    def _signals(self, expected):
        counts = {}
        for arm, _, processes in self.runs:
            for one in processes:
                if one.get("signal", 0) and one["signal"] not in expected:
                    key = arm, one["command"], one["signal"]
                    counts[key] = counts.get(key, 0) + 1
        for (arm, name, number), count in counts.items():
            yield f"{arm}: {name} was ended by signal {number}, {count} times"

    def bad_endings(self, ended_by_us):
        """Lines on commands that failed, and on processes below them that a signal ended: a launch
        may well return 0 when one of its nodes has crashed."""
        yield from self._signals({2, 9, 15} if ended_by_us else set())
        for arm, statuses in self.statuses.items():
            expected = {0, 130, 137, 143} if ended_by_us else {0}
            bad = [status for status in statuses if status not in expected]
            if bad:
                kinds = ", ".join(str(status) for status in sorted(set(bad)))
                yield (f"{arm}: the command ended with status {kinds} "
                       f"in {len(bad)} of {len(statuses)} runs")


def show(table, arms, out):
    heads = [arm.name for arm in arms]
    for key, title, write in METRICS:
        rows = []
        for label, by_arm in table.items():
            spreads = [by_arm.get(name, {}).get(key) for name in heads]
            rows.append((label, [write(s.median) if s else "-" for s in spreads]))
        tables.render(f"{title} a process, median", heads, rows, out)
        if key != "wall_ns":
            continue
        first = next(iter(table.values()), {})
        reference = first.get(tables.REFERENCE, {}).get(key)
        if reference:
            relative = []
            for name in heads:
                spread = first.get(name, {}).get(key)
                apart = "*" if spread and spread.disjoint(reference) else " "
                relative.append(stats.times(spread.median / reference.median) + apart
                                if spread else "-")
            ranges = [stats.duration_range(s.low, s.high) if s else "-" for s in
                      (first.get(name, {}).get(key) for name in heads)]
            tables.render("The whole command's wall time", heads,
                          [("relative to glibc (* ranges disjoint)", relative),
                           ("range of the runs", ranges)], out)


def as_json(table, comparison):
    processes = [{"process": label,
                  "arms": {arm: {key: spread.as_dict() for key, spread in metrics.items()}
                           for arm, metrics in by_arm.items()}} for label, by_arm in table.items()]
    return {"processes": processes, "statuses": comparison.statuses}


def runnable(command):
    return shutil.which(command[0]) is not None
