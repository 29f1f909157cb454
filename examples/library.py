"""A model that may use a function of this program, as one call.

Run it as `python examples/library.py`. It asks the model that `[ask] model` in sightline.toml names, else that of the
first provider whose key is in the environment. The embedded model cannot call tools.
"""

import sys
from datetime import date

import sightline


def days_between(first: date, last: date) -> int:
    """Count the days from one date to another."""
    return (last - first).days


def main() -> None:
    """Ask once."""
    question = "How many days are there from 2026-02-01 to 2026-03-01?"
    result = sightline.run(question, tools=[days_between], approve="yes", limits=sightline.Limits(requests=5))
    print(result.text)
    print(f"{result.run}: {result.why}, {len(result.rounds)} rounds, {result.usage.input_tokens} in", file=sys.stderr)


if __name__ == "__main__":
    main()
