"""What the Python clients of a reverse proxy share: named checks, and what they compare."""

import hashlib
import traceback

from upstream import pattern


class Failed(Exception):
    """A check did not hold."""


def expect(what, seen, wanted):
    if seen != wanted:
        raise Failed(f"{what}: expected {wanted!r}, came {seen!r}")


def pattern_hash(length):
    digest = hashlib.sha256()
    for piece in pattern(length):
        digest.update(piece)
    return digest.hexdigest()


def same(what, answer, length):
    """That an answer is the upstream's pattern of this length."""
    expect(f"the status of {what}", answer.status, 200)
    expect(f"the length of {what}", answer.length, length)
    expect(f"the hash of {what}", answer.digest.hexdigest(), pattern_hash(length))


class Suite:
    """Checks in the order of their definition."""

    def __init__(self):
        self.checks = []

    def add(self, name, function):
        self.checks.append((name.replace("_", " "), function))

    def check(self, function):
        self.add(function.__name__, function)
        return function

    def run(self):
        """Runs all and says how each went; the program's exit code."""
        failed = 0
        for name, function in self.checks:
            try:
                function()
                print(f"ok {name}", flush=True)
            except Exception as error:
                failed += 1
                print(f"FAILED {name}: {type(error).__name__}: {error}", flush=True)
                if not isinstance(error, Failed):
                    traceback.print_exc()
        return 1 if failed else 0
