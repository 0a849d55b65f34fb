# SPDX-License-Identifier: Apache-2.0
"""Many objects in Python: records of dicts, lists and strings are made, grouped, written as JSON
and read back, and dropped again, as a node does that keeps a map of what it has seen. Nothing is
random but what the generator below makes, so each run does the same work."""

import json

ROUNDS, RECORDS = 2, 7000


def numbers(state):
    while True:
        state = (state * 1103515245 + 12345) % 2147483648
        yield state >> 8


def record(number, draw):
    return {"id": number, "name": f"landmark-{next(draw) % 5000}", "tags": [
        f"t{next(draw) % 97}" for _ in range(next(draw) % 6)],
        "pose": [next(draw) / 977.0 for _ in range(3)],
        "note": "seen " * (next(draw) % 200)}


def grouped(records):
    groups = {}
    for one in records:
        groups.setdefault(one["name"], []).append(one)
    return {name: sorted(group, key=lambda one: one["pose"]) for name, group in groups.items()}


def one_round(draw):
    groups = grouped(record(number, draw) for number in range(RECORDS))
    text = json.dumps(groups)
    again = json.loads(text)
    if again != groups:
        raise SystemExit("objects.py: what was read is not what was written")
    words = {}
    for word in text.replace('"', " ").split():
        words[word] = words.get(word, 0) + 1
    return dict(list(groups.items())[:500]), len(words)


def main():
    draw = numbers(1)
    kept = [one_round(draw) for _ in range(ROUNDS)]
    if any(count < 1000 for _, count in kept):
        raise SystemExit("objects.py: words are missing")


main()
