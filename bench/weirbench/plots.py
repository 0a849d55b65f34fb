# SPDX-License-Identifier: Apache-2.0
"""The plots, as scripts for gnuplot. Each takes from a file of compare what it shows, as a file of
the same shape, and nothing else goes into its picture: the same figures make the same picture."""

import math
import shlex

from . import facts, stats
from .cells import KIB, MARK, MIB

TEXT, FAINT, GRID = "#222222", "#555555", "#dddddd"

# Colour, dash type and line width of each arm: colours that stay apart for the colour-blind (most
# are Okabe's and Ito's), dashes for the tuned arms. An allocator looks the same in all plots. Lines
# that are drawn later are thinner, so that what lies under them shows at both sides.
LOOKS = {
    "glibc": ("#d55e00", 1, 4.5), "glibc-pinned": ("#b38600", 2, 3),
    "glibc-mmap-only": ("#8c510a", 4, 2), "jemalloc": ("#009e73", 1, 3.2),
    "jemalloc-keep": ("#44bb99", 2, 2.5), "mimalloc": ("#cc79a7", 1, 2),
    "tcmalloc": ("#56b4e9", 1, 2), "weir": ("#0072b2", 1, 5.5),
}
OTHERS = ("#555555", "#888888", "#aaaaaa")  # for arms that --arm added


def quoted(text):
    return "'" + str(text).replace("'", "''") + "'"


def looks(names):
    others = [name for name in names if name not in LOOKS]
    return {name: LOOKS.get(name) or (OTHERS[others.index(name) % len(OTHERS)], 1, 2)
            for name in names}


def weir_last(names):
    """The order to draw in: weir lies over whatever coincides with it."""
    return [name for name in names if name != "weir"] + ["weir"] * ("weir" in names)


class Script:
    """Commands for gnuplot: what every plot has around its axes, and the curves in data blocks."""

    def __init__(self, title, subtitle, figures, left=0.095, right=0.96):
        self.lines, self.curves = [], []
        self.add(f"set lmargin at screen {left}; set rmargin at screen {right}",
                 "set tmargin at screen 0.85; set bmargin at screen 0.21",
                 f"set border 3 linecolor rgb '{TEXT}'",
                 f"set tics nomirror textcolor rgb '{TEXT}'",
                 f"set grid xtics ytics linetype 1 linewidth 1 linecolor rgb '{GRID}'",
                 "set key off")
        self.text(title, "screen 0.02", "screen 0.955", size=17)
        self.text(subtitle, "screen 0.02", "screen 0.905", size=11)
        self.text(facts.machine_line(figures["machine"]), "screen 0.02", "screen 0.062", size=9,
                  colour=FAINT)
        self.text(facts.arms_line(figures["arms"]), "screen 0.02", "screen 0.027", size=9,
                  colour=FAINT)

    def add(self, *lines):
        self.lines += lines

    def text(self, text, x, y, size=11, colour=TEXT, how="left"):
        self.add(f"set label {quoted(text)} at {x}, {y} {how} font ',{size}' "
                 f"textcolor rgb '{colour}' front")

    def curve(self, rows, how):
        name = f"$data{len(self.curves)}"
        self.add(f"{name} << EOD",
                 *(" ".join("NaN" if value is None else f"{value:.7g}" for value in row)
                   for row in rows), "EOD")
        self.curves.append(f"{name} {how}")

    def commands(self):
        return "\n".join([*self.lines, "plot " + ", ".join(self.curves), ""])


def excerpt(content, cells, keys=(), series=()):
    """The part of a file that a plot is made of; None where no arm has a figure. Arms without any
    are dropped."""
    kept = []
    for cell in cells:
        by_arm = {}
        for name, arm in cell["arms"].items():
            metrics = {key: {part: arm["metrics"][key][part] for part in ("median", "min", "max")}
                       for key in keys if key in arm["metrics"]}
            lists = {key: arm["series"][key] for key in series if key in arm.get("series", {})}
            if metrics or lists:
                by_arm[name] = {"metrics": metrics, **({"series": lists} if lists else {})}
        told = ("workload", "cell", "program", "arguments", "tags")
        kept.append({**{key: cell[key] for key in told}, "arms": by_arm})
    shown = [name for name in content["arms"] if any(name in cell["arms"] for cell in kept)]
    return {"suite": content["suite"], "reps": content["reps"], "machine": content["machine"],
            "arms": {name: content["arms"][name] for name in shown}, "cells": kept} \
        if shown else None


def of_workload(content, name):
    return [cell for cell in content["cells"] if cell["workload"] == name]


def after(words, option):
    """The word that follows an option, or None."""
    return words[words.index(option) + 1] if option in words[:-1] else None


class Cliffs:
    """Faults a message by payload size."""

    name, needs = "cliffs", "cells of the workload cliffs (compare --suite plots)"
    least, lane = -2, 0.29  # the lowest power of ten, and the height of a lane

    @staticmethod
    def figures(content):
        return excerpt(content, of_workload(content, "cliffs"), ["faults_per_iteration"])

    def script(self, figures):
        """The axis is logarithmic and has no place for 0. So below it each arm has a lane, where it
        is while it does not fault; lines that would all lie on 0 can be told apart there."""
        names = list(figures["arms"])
        script = Script("Page faults a message, by payload size", "A message takes, writes and "
                        "frees two buffers of that size. An allocator in its lane at the bottom "
                        "makes no fault at all.", figures, left=0.17)
        top = self.least - 0.15
        bottom = top - self.lane * len(names)
        lanes = {name: top - self.lane * (at + 0.5) for at, name in enumerate(weir_last(names))}
        sizes = sorted(((int(after(cell["arguments"], "--size")), cell["arms"])
                        for cell in figures["cells"]), key=lambda pair: pair[0])
        self._axes(script, sizes[0][0], sizes[-1][0], bottom, top)
        for name, lane in lanes.items():
            script.text(name, "graph -0.012", f"first {lane:g}", 10, looks(names)[name][0], "right")
        for name in weir_last(names):
            colour, dash, width = looks(names)[name]
            rows = [(size, self._height(arms.get(name), lanes[name])) for size, arms in sizes]
            script.curve(rows, f"using 1:2 with lines linecolor rgb '{colour}' dashtype {dash} "
                         f"linewidth {width}")
        return script.commands()

    def _axes(self, script, smallest, largest, bottom, top):
        sizes = ", ".join(f"{quoted(stats.size(4 * KIB << step))} {4 * KIB << step}"
                          for step in range(0, 15, 2))
        counts = ", ".join(f"{quoted(f'{10 ** power:,}' if power >= 0 else f'{10.0 ** power:g}')} "
                           f"{power}" for power in range(self.least, 5))
        script.add("set logscale x 2", f"set xrange [{smallest}:{largest * 1.001:.0f}]",
                   f"set yrange [{bottom:g}:4.75]", f"set xtics ({sizes})", f"set ytics ({counts})",
                   "set xlabel 'size of each of the two buffers'",
                   f"set object 1 rectangle from graph 0, first {bottom:g} to graph 1, "
                   f"first {top:g} behind fillcolor rgb '#f0f0f0' fillstyle solid noborder")
        half = MARK // 2
        script.add(f"set arrow from {half}, graph 0 to {half}, graph 1 nohead dashtype 3 "
                   f"linewidth 1.5 linecolor rgb '{TEXT}'")
        script.text(f"together {stats.size(MARK)}, the mark of weir", f"first {half * 0.94:.0f}",
                    "graph 0.97", 10, how="right")
        script.text("faults a message", "screen 0.025", "graph 0.68", how="center rotate by 90")
        script.text("no fault", "screen 0.025", f"first {(top + bottom) / 2:g}",
                    how="center rotate by 90")

    def _height(self, arm, lane):
        if arm is None:
            return None
        faults = arm["metrics"]["faults_per_iteration"]["median"]
        return max(math.log10(faults), self.least) if faults > 0 else lane


class Timeline:
    """RSS over time through a burst."""

    name, needs = "timeline", "a cell of the workload timeline (compare --suite plots)"
    phases = (("before", 0.6), ("taken", 1.1), ("held", 0.7), ("freed", 0.7))
    most = 3072  # MiB at the upper end of the axis

    @staticmethod
    def figures(content):
        """Of several runs of an arm the one in the middle by what stays, because the mean of curves
        is the curve of none."""
        found = excerpt(content, of_workload(content, "timeline")[:1], series=["timeline"])
        for arm in found["cells"][0]["arms"].values() if found else ():
            runs = sorted(arm["series"]["timeline"], key=lambda run: run["rss_kib"][-1])
            arm["series"]["timeline"] = [runs[(len(runs) - 1) // 2]]
        return found

    def script(self, figures):
        names = list(figures["arms"])
        script = Script("Resident memory through a burst", "1 GiB in blocks of 4 MiB is taken, "
                        "held for half a second and freed, while another thread works on with two "
                        "buffers of 1 MiB.", figures, right=0.83)
        curves = {}
        for name, arm in figures["cells"][0]["arms"].items():
            run = arm["series"]["timeline"][0]
            curves[name] = [(self._place(ms, run), kib / KIB)
                            for ms, kib in zip(run["ms"], run["rss_kib"])]
        last = math.floor(min(rows[-1][0] for rows in curves.values()) + 0.05)
        ticks = ", ".join(f"{quoted(stats.size(mib * MIB) if mib < KIB else '1 GiB')} {mib}"
                          for mib in (1, 4, 16, 64, 256, 1024))
        script.add("set logscale y 2", f"set yrange [1:{self.most}]", f"set ytics ({ticks})",
                   f"set xtics 0, 1, {last}", "set xlabel 'seconds since the last free returned'",
                   f"set arrow from graph 0, first {MARK // MIB} to graph 1, first {MARK // MIB} "
                   f"nohead dashtype 3 linewidth 1.5 linecolor rgb '{TEXT}'")
        end = 0
        for phase, width in reversed(self.phases):
            script.text(phase, f"first {end - width / 2:g}", "graph 0.975", 10, FAINT, "center")
            script.add(f"set arrow from first {end:g}, graph 0 to first {end:g}, graph 1 nohead "
                       f"linewidth 1 linecolor rgb '{GRID}' back")
            end -= width
        script.add(f"set xrange [{end:g}:{last}]")
        # Inside the burst, where no curve comes.
        script.text(f"the mark of weir, {stats.size(MARK)}", "first -1.5", "first 50", 10,
                    how="center")
        self._names(script, names, curves)
        for name in weir_last(names):
            colour, dash, width = looks(names)[name]
            script.curve(curves[name], f"using 1:2 with lines linecolor rgb '{colour}' "
                         f"dashtype {dash} linewidth {width}")
        return script.commands()

    def _place(self, ms, run):
        """Where a time stands: in seconds after the last free, and before that as a part of its
        phase. All arms are as wide there, because how long the kernel takes to hand out 1 GiB, and
        a busy machine to run that, is not what the plot is about."""
        if ms >= run["freed_ms"]:
            return (ms - run["freed_ms"]) / 1000
        ends = [min(run["ms"][0], 0), 0, run["full_ms"], run["freeing_ms"], run["freed_ms"]]
        place = -sum(width for _, width in self.phases)
        for (_, width), begin, end in zip(self.phases, ends, ends[1:]):
            if ms < end:
                return place + width * (ms - begin) / (end - begin)
            place += width
        return place

    @staticmethod
    def _names(script, names, curves):
        """Each arm is named where its line ends; names that would lie on each other move apart by
        as little as that takes: they become a group, which is centred on where they all belong."""
        step, groups = 0.055, []  # in heights of the graph; a group: its names, sum of their places
        for name in sorted(names, key=lambda name: (curves[name][-1][1], names.index(name))):
            groups.append(([name], math.log(curves[name][-1][1]) / math.log(Timeline.most)))
            while len(groups) > 1:
                (low, low_sum), (high, high_sum) = groups[-2:]
                apart = high_sum / len(high) - low_sum / len(low)
                if apart >= step * (len(low) + len(high)) / 2:
                    break
                groups[-2:] = [(low + high, low_sum + high_sum)]
        for group, places in groups:
            for at, name in enumerate(group):
                place = places / len(group) + step * (at - (len(group) - 1) / 2)
                script.text(name, "graph 1.01", f"graph {place:.4f}", 11, looks(names)[name][0])


class Rates:
    """p50 by allocator and rate, of the cells of one bed whose commands have the given words."""

    name = "p50"
    needs = "1 MiB cells of the workload roundtrip (compare --suite messages)"
    wanted = {"--size": str(MIB), "--buffer": "exact", "--transport": "tcp", "--history": "none"}
    program = "roundtrip"

    def figures(self, content):
        cells = [cell for cell in of_workload(content, "roundtrip") if self._rate(cell) is not None]
        return excerpt(content, cells, ["ns_p50"])

    def _rate(self, cell):
        words = shlex.split(after(cell["arguments"], "--ping") or "")
        if words[:1] != [self.program] or any(after(words, option) != value
                                              for option, value in self.wanted.items()):
            return None
        return int(after(words, "--hz"))

    def script(self, figures):
        names = list(figures["arms"])
        cells = sorted(figures["cells"], key=lambda cell: self._rate(cell) or math.inf)
        script = Script("Round trip of a 1 MiB message, median by rate", "Serialised, sent, taken, "
                        "deserialised and back, between two processes over TCP. Bars: median of "
                        f"{figures['reps']} runs of the p50; whiskers: their range.", figures,
                        right=0.83)
        width = 1 / (len(names) + 1.5)
        bars = {name: [(group - 0.5 + width * (at + 1.25), *self._milliseconds(cell, name))
                       for group, cell in enumerate(cells) if name in cell["arms"]]
                for at, name in enumerate(names)}
        top = max(high for rows in bars.values() for _, _, _, high in rows)
        rates = ", ".join(f"{quoted(f'{self._rate(cell)} Hz' if self._rate(cell) else 'flat out')} "
                          f"{group}" for group, cell in enumerate(cells))
        script.add(f"set xrange [-0.5:{len(cells) - 0.5}]", f"set yrange [0:{top * 1.12:g}]",
                   f"set xtics ({rates}) scale 0 font ',12'", "set grid noxtics",
                   f"set boxwidth {width * 0.86:g}", "set ylabel 'milliseconds'")
        for at, name in enumerate(names):
            self._arm(script, name, looks(names)[name], bars[name], 0.97 - 0.058 * at)
        return script.commands()

    @staticmethod
    def _milliseconds(cell, name):
        spread = cell["arms"][name]["metrics"]["ns_p50"]
        return [spread[part] / 1e6 for part in ("median", "min", "max")]

    @staticmethod
    def _arm(script, name, look, bars, height):
        """Its name in the legend, and a bar with a whisker and a figure in each group. The tuned
        arms are paler, as their lines are dashed in the other plots."""
        colour, dash, _ = look
        paint = (f"fillcolor rgb '{colour}' fillstyle solid {1 if dash == 1 else 0.4} "
                 f"border linecolor rgb '{colour}'")
        script.add(f"set object rectangle center graph 1.018, graph {height:.4f} "
                   f"size graph 0.022, graph 0.034 {paint}")
        script.text(name, "graph 1.037", f"graph {height:.4f}", 11, colour)
        script.curve(bars, f"using 1:2 with boxes {paint}")
        script.curve(bars, "using 1:3:(0):($4-$3) with vectors heads size screen 0.004,90 "
                     f"linewidth 1.2 linecolor rgb '{TEXT}'")
        for x, median, _, high in bars:
            script.text(f"{median:.2f}", f"first {x:.4f}", f"first {high:.5g}", 9,
                        colour if name == "weir" else TEXT, "left rotate by 90 offset 0, 0.6")


ALL = (Rates(), Cliffs(), Timeline())
