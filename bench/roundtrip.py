#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""One end of a round trip between two processes, as a Python node over rmw_zenoh has it. The
middleware is that of the C++ endpoint, in a library. What comes on top is what rclpy does: a message
that was taken becomes a bytes object and from that an array, and is freed; an array that is published
is copied into a message first."""

import array
import ctypes
import os
import sys
import time

# The source tree may be read-only, and should stay clean in any case.
sys.dont_write_bytecode = True
HERE = os.path.dirname(os.path.realpath(__file__))
sys.path.insert(0, HERE)

from weirbench import endpoint  # noqa: E402

BENCH = "roundtrip.py"
TRANSPORTS, BUFFERS = ("tcp", "unix"), ("in-place", "wide", "exact")  # as in the C++ endpoint
LARGE = 16 << 20
FOLDER = os.path.join(HERE, os.pardir, "build", "bench")


def parse(words):
    parser = endpoint.Parser(BENCH, __doc__, messages=400, warmup=100, least_warmup=0)
    parser.set_defaults(role=None)
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
    options = parser.parse_args(words)
    if options.role is None:
        parser.error("--role ping or --role echo must be given")
    return options


class Library:
    """The middleware, with messages in and out as arrays."""

    def __init__(self, options):
        path = os.path.join(options.programs, ".libs", "libroundtrip.so")
        try:
            library = ctypes.CDLL(path)
        except OSError as error:
            endpoint.stop(BENCH, error)
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
            endpoint.stop(BENCH, "the other end has ended early")
        taken = array.array("B")
        taken.frombytes(ctypes.string_at(data.value, size.value))
        self.library.roundtrip_release(message)
        return number.value, taken


def check(number, taken, wanted, end):
    if (number, len(taken), taken[0], taken[-1]) != (wanted, end.size, wanted & 255, wanted & 255):
        end.stop(f"message {wanted} came as {number} with {len(taken)} bytes, or was altered")


def done(end, number):
    """A message's part ends, and the next one's begins, where nothing of either is there."""
    end.end(number)
    end.begin(number + 1)


def ping(library, end, hz):
    data = array.array("B", bytes(end.size))
    due = time.monotonic_ns()
    for number in range(end.count):
        if hz:
            # What could not be sent in time is not made up for.
            due = max(due + 1000000000 // hz, time.monotonic_ns())
            time.sleep(max(0, due - time.monotonic_ns()) / 1e9)
        data[0] = data[-1] = number & 255
        end.sends()
        library.publish(number, data)
        came, taken = library.take()
        end.returned(number)
        check(came, taken, number, end)
        del taken
        done(end, number)


def echo(library, end):
    for number in range(end.count):
        came, taken = library.take()
        check(came, taken, number, end)
        library.publish(came, taken)
        del taken
        done(end, number)


def main():
    options = parse(sys.argv[1:])
    if options.history == "large":
        block = bytearray(b"\1") * LARGE
        del block
    library = Library(options)
    end = endpoint.Endpoint(BENCH, options)
    end.begin(0)
    if options.role == "ping":
        ping(library, end, options.hz)
    else:
        echo(library, end)
    end.print()


if __name__ == "__main__":
    main()
