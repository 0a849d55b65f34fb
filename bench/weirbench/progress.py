# SPDX-License-Identifier: Apache-2.0
"""One line on stderr that is rewritten as the run goes on: what is done, what runs, how long it
will take. Nothing at all is written where stderr is not a terminal."""

import shutil
import sys
import time

from . import stats


class Progress:
    def __init__(self, estimate, count):
        self.estimate = max(estimate, 0.001)
        self.count = count
        self.done = 0
        self.done_estimate = 0.0
        self.started = time.monotonic()
        self.shown = sys.stderr.isatty()

    def _write(self, text):
        if self.shown:
            width = shutil.get_terminal_size((80, 24)).columns
            sys.stderr.write("\r" + text[:width - 1].ljust(width - 1))
            sys.stderr.flush()

    def begin(self, what):
        """Say what runs now. The rest is guessed from how the estimate has held so far."""
        elapsed = time.monotonic() - self.started
        pace = elapsed / self.done_estimate if self.done_estimate > 0.02 * self.estimate else 1.0
        left = (self.estimate - self.done_estimate) * pace
        self._write(f"{self.done}/{self.count} done, {stats.clock(left)} left: {what}")

    def end(self, estimate):
        self.done += 1
        self.done_estimate += estimate

    def clear(self):
        if self.shown:
            self._write("")
            sys.stderr.write("\r")
            sys.stderr.flush()
