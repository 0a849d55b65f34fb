#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""One end of a round trip between two processes, as a Python node over rmw_zenoh has it. The
middleware is that of the C++ endpoint, in a library. What comes on top is what rclpy does: a message
that was taken becomes a bytes object and from that an array, and is freed; an array that is published
is copied into a message first."""

import argparse
import array
import ctypes
import json
import os
import resource
import sys
import time

MARK_BEGIN, MARK_END = 0x77656972, 0x77656973  # as in bench.h
TRANSPORTS, BUFFERS = ("tcp", "unix"), ("in-place", "wide", "exact")  # as in the C++ endpoint
LARGE = 16 << 20
SUFFIXES = {"K": 10, "M": 20, "G": 30}
FOLDER = os.path.join(os.path.dirname(os.path.realpath(__file__)), os.pardir, "build", "bench")


def stop(line, status=2):
    print(f"roundtrip.py: {line}", file=sys.stderr)
    sys.exit(status)


class Parser(argparse.ArgumentParser):
    def error(self, message):
        stop(message + " (--help lists the options)")


def count(least):
    def read(text):
        if not text.isdigit() or not least <= int(text) <= 10000000:
            raise argparse.ArgumentTypeError(f"'{text}' is not a whole number from {least} on")
        return int(text)
    return read


def size_of(text):
    digits, shift = text, 0
    if text[-1:].upper() in SUFFIXES:
        digits, shift = text[:-1], SUFFIXES[text[-1].upper()]
    if not digits.isdigit() or not 16 <= int(digits) << shift <= 1 << 30:
        raise argparse.ArgumentTypeError(f"'{text}' is not a number of bytes from 16 to 1G")
    return int(digits) << shift


def parse():
    parser = Parser(prog="roundtrip.py", description=__doc__, allow_abbrev=False)
    parser.add_argument("--role", choices=("ping", "echo"), required=True)
    parser.add_argument("--size", type=size_of, default=1 << 20, help="payload (default 1M)")
    parser.add_argument("--hz", type=count(0), default=200,
                        help="messages a second; 0: the next as soon as the echo is back "
                        "(default 200; ping only)")
    parser.add_argument("--messages", type=count(1), default=400,
                        help="messages measured (default 400)")
    parser.add_argument("--warmup", type=count(0), default=100,
                        help="messages before measuring starts (default 100)")
    parser.add_argument("--transport", choices=TRANSPORTS, default="tcp")
    parser.add_argument("--address", default="roundtrip.address",
                        help="file of the socket, or which tells the port (default "
                        "roundtrip.address)")
    parser.add_argument("--buffer", choices=BUFFERS, default="exact",
                        help="what a take deserialises from (default exact)")
    parser.add_argument("--history", choices=("none", "large"), default="none",
                        help="large: this end has freed a block of 16 MiB before")
    parser.add_argument("--programs", default=os.environ.get("BENCH_PROGRAMS", FOLDER),
                        help="folder of the benchmarks as they were built")
    return parser.parse_args()


def faults():
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt


def mark(which):
    try:
        os.getpriority(os.PRIO_PROCESS, which)
    except ProcessLookupError:
        pass


class Library:
    """The middleware, with messages in and out as arrays."""

    def __init__(self, options):
        path = os.path.join(options.programs, ".libs", "libroundtrip.so")
        try:
            library = ctypes.CDLL(path)
        except OSError as error:
            stop(error, 1)
        library.roundtrip_open.restype = ctypes.c_void_p
        library.roundtrip_take.restype = ctypes.c_void_p
        library.roundtrip_take.argtypes = [ctypes.c_void_p] * 4
        library.roundtrip_release.argtypes = [ctypes.c_void_p]
        library.roundtrip_publish.argtypes = [ctypes.c_void_p, ctypes.c_uint32, ctypes.c_void_p,
                                              ctypes.c_size_t]
        self.library = library
        self.handle = library.roundtrip_open(
            options.role == "echo", TRANSPORTS.index(options.transport),
            os.fsencode(options.address), BUFFERS.index(options.buffer))

    def publish(self, number, data):
        address, length = data.buffer_info()
        self.library.roundtrip_publish(self.handle, number, address, length)

    def take(self):
        """The number and the bytes of the next message."""
        number, data = ctypes.c_uint32(), ctypes.c_void_p()
        size = ctypes.c_size_t()
        message = self.library.roundtrip_take(self.handle, ctypes.byref(number),
                                              ctypes.byref(data), ctypes.byref(size))
        if not message:
            stop("the other end has ended early", 1)
        taken = array.array("B")
        taken.frombytes(ctypes.string_at(data.value, size.value))
        self.library.roundtrip_release(message)
        return number.value, taken


class Steady:
    """The steady part: faults and marks where one message is done with and the next not begun."""

    def __init__(self, options):
        self.warmup, self.total = options.warmup, options.warmup + options.messages
        self.handled = self.first_faults = self.faults = 0
        faults()
        self._look()

    def _look(self):
        if self.handled == self.warmup:
            mark(MARK_BEGIN)
            self.first_faults = faults()
        if self.handled == self.total:
            self.faults = faults() - self.first_faults
            mark(MARK_END)

    def done(self):
        self.handled += 1
        self._look()


def check(number, taken, wanted, options):
    if (number, len(taken), taken[0], taken[-1]) != (wanted, options.size, wanted & 255,
                                                    wanted & 255):
        stop(f"message {wanted} came as {number} with {len(taken)} bytes, or was altered", 1)


def ping(library, options):
    """The line's figures of time. Results go into an array that is there before."""
    data = array.array("B", bytes(options.size))
    times = array.array("Q", bytes(8 * (options.warmup + options.messages)))
    steady = Steady(options)
    due = time.monotonic_ns()
    for number in range(steady.total):
        if options.hz:
            due = max(due + 1000000000 // options.hz, time.monotonic_ns())
            time.sleep(max(0, due - time.monotonic_ns()) / 1e9)
        data[0] = data[-1] = number & 255
        start = time.monotonic_ns()
        library.publish(number, data)
        came, taken = library.take()
        times[number] = time.monotonic_ns() - start
        check(came, taken, number, options)
        del taken
        steady.done()
    ordered = sorted(times[options.warmup:])

    def percentile(percent):
        return ordered[max(0, (len(ordered) * percent + 99) // 100 - 1)]
    return steady, {"size": options.size, "hz": options.hz, "messages": options.messages,
                    "warmup": options.warmup, "ns_p50": percentile(50), "ns_p90": percentile(90),
                    "ns_p99": percentile(99), "ns_mean": sum(ordered) // len(ordered),
                    "ns_max": ordered[-1]}


def echo(library, options):
    steady = Steady(options)
    for number in range(steady.total):
        came, taken = library.take()
        check(came, taken, number, options)
        library.publish(came, taken)
        del taken
        steady.done()
    return steady, {}


def main():
    options = parse()
    if options.history == "large":
        block = bytearray(b"\1") * LARGE
        del block
    library = Library(options)
    steady, figures = (ping if options.role == "ping" else echo)(library, options)
    print(json.dumps({"bench": "roundtrip.py", "role": options.role, **figures,
                      "faults_per_message": steady.faults / options.messages,
                      "first_faults": steady.first_faults,
                      "rss_peak_kib": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss}))


if __name__ == "__main__":
    main()
