# SPDX-License-Identifier: Apache-2.0
# What a Python node does to its malloc: payloads of 1 MiB, and many small objects. Run it with and
# without weir, and with and without PYTHONMALLOC=malloc; doc/ros.md has a table.
import resource, time

def payload():                         # a message of 1 MiB
    received = bytearray(1 << 20)      # what the middleware hands over
    image = bytes(received)            # the copy that the callback keeps

def objects():                         # 100,000 tuples, strings and numbers
    return [(i, str(i)) for i in range(100000)]

def measure(work, count):
    for i in range(10):
        work()
    faults, start = resource.getrusage(resource.RUSAGE_SELF).ru_minflt, time.process_time()
    for i in range(count):
        work()
    seconds = time.process_time() - start
    faults = resource.getrusage(resource.RUSAGE_SELF).ru_minflt - faults
    print('%-8s %7.1f page faults, %7.3f ms of CPU time' %
          (work.__name__, faults / count, 1000 * seconds / count))

measure(payload, 1000)
measure(objects, 50)
