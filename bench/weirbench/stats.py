# SPDX-License-Identifier: Apache-2.0
"""Medians and ranges over repetitions, and how they are written: exact zeros stay recognisable,
because "no fault at all" and "one fault in a thousand messages" are different answers."""

import statistics
from dataclasses import dataclass


@dataclass
class Spread:
    median: float
    low: float
    high: float
    values: list

    @classmethod
    def of(cls, values):
        return cls(statistics.median(values), min(values), max(values), list(values))

    def disjoint(self, other):
        """No run of the one reaches into the range of the other; a single run has no range."""
        if min(len(self.values), len(other.values)) < 2:
            return False
        return self.high < other.low or self.low > other.high

    def as_dict(self):
        return {"median": self.median, "min": self.low, "max": self.high, "values": self.values}


def ratio(value, reference):
    """None where the reference is zero and a quotient would say nothing."""
    return value / reference if reference else None


def best(medians, peers):
    """The least of the peers' medians, and whose it is; None twice where no peer has one."""
    return min(((medians[name], name) for name in peers if medians.get(name)),
               default=(None, None))


def per_message(value):
    if value == 0:
        return "0.00"
    if value < 0.01:
        return "<0.01"
    return f"{value:.2f}" if value < 100 else f"{value:.0f}"


def _scaled(value, units, step):
    for unit in units[:-1]:
        if value < step * 0.9995:
            break
        value /= step
    else:
        unit = units[-1]
    digits = 2 if value < 10 else 1 if value < 100 else 0
    return f"{value:.{digits}f}", unit


def duration(ns):
    number, unit = _scaled(ns, ("ns", "us", "ms", "s"), 1000)
    return number + unit


def duration_range(low, high):
    """Both ends in the unit of the upper one, so that the cell stays narrow."""
    upper, unit = _scaled(high, ("ns", "us", "ms", "s"), 1000)
    scale = {"ns": 1, "us": 1e3, "ms": 1e6, "s": 1e9}[unit]
    digits = len(upper.partition(".")[2])
    return f"{low / scale:.{digits}f}-{upper}{unit}"


def kib(value):
    number, unit = _scaled(value, ("K", "M", "G"), 1024)
    return (f"{value:.0f}" if unit == "K" else number) + unit


def times(value):
    if value is None:
        return "-"
    return f"{value:.3f}x" if value < 0.1 else f"{value:.2f}x" if value < 100 else f"{value:.0f}x"


def size(number):
    """A size as the grid names it: "64 B", "7.5 MiB", "8 MiB + 64"."""
    if number > 4096 and number % 4096 == 64:
        return size(number - 64) + " + 64"
    for unit, shift in (("MiB", 20), ("KiB", 10)):
        if number >= 1 << shift:
            return f"{number / (1 << shift):g} {unit}"
    return f"{number} B"


def clock(seconds):
    seconds = int(seconds + 0.5)
    if seconds >= 3600:
        return f"{seconds // 3600} h {seconds % 3600 // 60:02} min"
    return f"{seconds // 60}:{seconds % 60:02}"
