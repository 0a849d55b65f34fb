# SPDX-License-Identifier: Apache-2.0
"""What the two ends of a bed share where they are programs in Python, as endpoint.h has it for those
in C and C++: options, the pace of the messages, the steady part and its marks, the line at the end.
Standard library only, because the system's own Python runs it."""

import argparse
import json
import mmap
import os
import resource
import sys
import time

from .counting import MARK_BEGIN, MARK_END

LEAST = 16  # bytes of payload: a number at its beginning and a byte at its end
LAST = (1 << 64) - 1  # the number of the message that tells echo to end; it is not counted
WARMUP_HZ = 200  # the least rate of the warm-up: at the cell's it might take longer than the rest
PATIENCE_S = 20  # without an answer for so long, the other end is given up
SUFFIXES = {"K": 10, "M": 20, "G": 30}


def read_count(least, most):
    def read(text):
        if not (text.isascii() and text.isdigit()):
            raise argparse.ArgumentTypeError(f"'{text}' is not a whole number")
        if not least <= int(text) <= most:
            raise argparse.ArgumentTypeError(f"{text} is outside {least} to {most}")
        return int(text)
    return read


def read_bytes(least, most):
    def read(text):
        digits, shift = text, SUFFIXES.get(text[-1:].upper(), 0)
        if shift:
            digits = text[:-1]
        if not (digits.isascii() and digits.isdigit()):
            raise argparse.ArgumentTypeError(
                f"'{text}' is not a number of bytes (such as 64, 4K, 1M, 2G)")
        if not least <= int(digits) << shift <= most:
            raise argparse.ArgumentTypeError(f"{text} is outside {least} to {most}")
        return int(digits) << shift
    return read


class Parser(argparse.ArgumentParser):
    """The options that all beds have, with a bed's own defaults; a bed adds its own."""

    def __init__(self, bench, about, messages=200, warmup=20, least_warmup=1):
        super().__init__(prog=bench, description=about, allow_abbrev=False)
        for name, kind, default, text in (
                ("--size", read_bytes(LEAST, 1 << 30), 1 << 20, "payload of a message"),
                ("--hz", read_count(0, 100000), 200,
                 "messages a second; 0: the next one when the echo is back"),
                ("--messages", read_count(1, 10000000), messages, "measured messages"),
                ("--warmup", read_count(least_warmup, 1000000), warmup,
                 "messages before measuring starts")):
            self.add_argument(name, type=kind, default=default, metavar="N",
                              help=f"{text} (default {default})")
        self.add_argument("--role", choices=("ping", "echo"), default="ping",
                          help="which of the two ends (default ping)")

    def error(self, message):
        stop(self.prog, message + " (--help lists the options)", 2)


def stop(bench, line, status=1):
    """From any thread: the other ones may be somebody else's, and may not end by themselves."""
    print(f"{bench}: {line}", file=sys.stderr, flush=True)
    sys.stdout.flush()
    os._exit(status)


class Endpoint:
    """One end. `options` are what a Parser has read."""

    def __init__(self, bench, options):
        self.bench, self.options = bench, options
        self.role, self.size, self.warmup = options.role, options.size, options.warmup
        self.count = options.warmup + options.messages
        self.handled = 0
        self._first_faults = self._faults = 0
        self._begun_ns = self._sent_ns = 0
        # Results lie in memory that is not the allocator's, and has been written to.
        area = mmap.mmap(-1, 8 * options.messages)
        area.write(bytes(8 * options.messages))
        self._times = memoryview(area).cast("Q")
        self._body = b""  # what is alike in all payloads; the rest is put around it
        # Once before it counts, so that no page of the interpreter's is first touched in the steady
        # part because of what is measured.
        self._mark(0)
        self._count_faults()
        self.sends()
        self._record(0)

    @staticmethod
    def _mark(which):
        try:
            os.getpriority(os.PRIO_PROCESS, which)
        except ProcessLookupError:
            pass

    @staticmethod
    def _count_faults():
        return resource.getrusage(resource.RUSAGE_SELF).ru_minflt

    def stop(self, line):
        stop(self.bench, line)

    def begin(self, number):
        """Just before message `number`, counted from 0, is handled."""
        if number == self.warmup:
            self._mark(MARK_BEGIN)
            self._first_faults = self._count_faults()

    def end(self, number):
        """When it is handled and its memory is freed, as far as that can be told."""
        self.handled += 1
        if number + 1 == self.count:
            self._faults = self._count_faults() - self._first_faults
            self._mark(MARK_END)

    # ---- ping's clock ----

    def wait(self, number):
        """Sleep until message `number` is due. A late one delays no other."""
        if self.options.hz == 0:
            return
        steady = number >= self.warmup
        hertz = self.options.hz if steady else max(self.options.hz, WARMUP_HZ)
        since = number - self.warmup if steady else number
        if since == 0:
            self._begun_ns = time.monotonic_ns()
        left = self._begun_ns + since * 1000000000 // hertz - time.monotonic_ns()
        if left > 0:
            time.sleep(left / 1e9)

    def sends(self):
        """Before the message is made."""
        self._sent_ns = time.monotonic_ns()

    def returned(self, number):
        """When its echo is there as a message again."""
        if number >= self.warmup:
            self._record(number - self.warmup)

    def _record(self, index):
        self._times[index] = time.monotonic_ns() - self._sent_ns

    # ---- payloads ----

    def payload(self, number, size=None):
        """A new payload of `size` bytes, or as many as the options say."""
        if not self._body:
            self._body = bytes(range(256)) * (self.size // 256 + 1)
        inner = memoryview(self._body)[:(size or self.size) - 9]
        return b"".join((number.to_bytes(8, "little"), inner, bytes(((number ^ 0xff) & 0xff,))))

    def number(self, payload):
        """The number of a payload. One that is not as it was made ends the run."""
        if len(payload) < LEAST:
            self.stop(f"a message of {len(payload)} bytes came")
        number = int.from_bytes(payload[:8], "little")
        if payload[-1] != (number ^ 0xff) & 0xff or number != LAST and len(payload) != self.size:
            self.stop(f"message {number} came with wrong contents")
        return number

    # ---- the result ----

    def print(self):
        """The line, if all messages have been handled."""
        if self.handled != self.count:
            self.stop(f"the end came after {self.handled} of {self.count} messages")
        line = {"bench": self.bench}
        if self.role == "echo":
            line["role"] = "echo"
        else:
            times = sorted(self._times)
            messages = self.options.messages
            line.update(size=self.size, hz=self.options.hz, messages=messages, warmup=self.warmup)
            for percent in (50, 90, 99):
                line[f"ns_p{percent}"] = times[max(0, -(-messages * percent // 100) - 1)]
            line.update(ns_mean=sum(times) // messages, ns_max=times[-1])
        line.update(faults_per_message=round(self._faults / self.options.messages, 4),
                    first_faults=self._first_faults, rss_peak_kib=_peak_rss_kib())
        print(json.dumps(line), flush=True)


def _peak_rss_kib():
    with open("/proc/self/status", encoding="ascii", errors="replace") as file:
        for text in file:
            if text.startswith("VmHWM:"):
                return int(text.split()[1])
    return 0
