# SPDX-License-Identifier: Apache-2.0
"""The results as text: for each workload, tables with a row for each cell and a column for each
arm. Faults come first, because they are exact and because they are what a node feels."""

from . import cells as cells_module
from . import messages
from . import stats

REFERENCE = "glibc"


def render(title, heads, rows, out):
    """Align a table. A head breaks at its first hyphen into two lines; rows are (label, texts)."""
    parts = [head.partition("-") for head in heads]
    two_lines = any(tail for _, _, tail in parts)
    grid = [[""] + [first if tail else "" for first, _, tail in parts]] if two_lines else []
    grid.append([""] + [tail or first for first, _, tail in parts])
    grid += [[label, *texts] for label, texts in rows]
    widths = [max(len(line[column]) for line in grid) for column in range(len(heads) + 1)]
    out(f"\n{title}")
    for line in grid:
        cells = [line[0].ljust(widths[0])]
        cells += [text.rjust(width) for text, width in zip(line[1:], widths[1:])]
        out("  " + "  ".join(cells).rstrip())


class Tables:
    def __init__(self, cells, arms, results, out):
        self.cells, self.results, self.out = cells, results, out
        self.heads = [arm.name for arm in arms]

    def _row(self, index, key, write):
        texts = []
        for name in self.heads:
            spread = self.results.spread(index, name, key)
            failed = (self.cells[index].name, name) in self.results.failures
            texts.append(write(spread, name) if spread else "failed" if failed else "-")
        return texts

    def _table(self, title, indexes, key, write):
        rows = [(self.cells[index].name,
                 self._row(index, key, lambda s, n, i=index: write(i, s, n))) for index in indexes]
        if any(text != "-" for _, texts in rows for text in texts):
            render(title, self.heads, rows, self.out)

    def _relative(self, key):
        def write(index, spread, _):
            reference = self.results.spread(index, REFERENCE, key)
            if reference is None:
                return "-"
            apart = "*" if spread.disjoint(reference) else " "
            return stats.times(stats.ratio(spread.median, reference.median)) + apart
        return write

    def by_metric(self, workload, heading):
        """A table for each metric; times also relative to glibc and with their range."""
        indexes = [i for i, cell in enumerate(self.cells) if cell.workload == workload]
        if not indexes:
            return
        self.out(f"\n== {heading} ==")
        for key in self.cells[indexes[0]].shows:
            title, write = cells_module.SHOWS[key]
            self._table(f"{title}, median", indexes, key, lambda i, s, n, w=write: w(s.median))
            if not key.startswith(("ns_", "cpu_")):
                continue
            if REFERENCE in self.heads:
                self._table(f"{title}, relative to glibc (* the ranges of the runs are disjoint)",
                            indexes, key, self._relative(key))
            self._table(f"{title}, range of the runs", indexes, key,
                        lambda i, s, n: stats.duration_range(s.low, s.high))

    def by_cell(self, workload, heading):
        """One table with a row for each cell and metric, where cells differ in what they show."""
        rows = []
        for index, cell in enumerate(self.cells):
            if cell.workload != workload:
                continue
            for key in cell.shows:
                title, write = cells_module.SHOWS[key]
                rows.append((f"{cell.name}: {title}",
                             self._row(index, key, lambda s, n, w=write: w(s.median))))
        if rows:
            self.out(f"\n== {heading} ==")
            render("median", self.heads, rows, self.out)

    def print(self):
        self.by_metric("reuse", "Payload reuse: take, write, free")
        self.by_metric("speed", "General speed")
        self.by_metric("programs", "Real programs")
        for bed in messages.BEDS:
            self.by_metric(bed.name, bed.heading)
        self.by_metric("cliffs", "Faults by payload size")
        self.by_cell("burst", "Burst")
        self.by_cell("timeline", "RSS through a burst")
        self.by_cell("footprint", "Footprint and start")
