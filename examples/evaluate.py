"""Run a suite of cases and print the verdict of each.

Run it as `python examples/evaluate.py [SUITE] [TARGET]`. The suite beside it needs no key.
"""

import sys
from pathlib import Path

import sightline

suite = Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).with_name("evals") / "support.eval.yaml"
outcome = sightline.evaluate(suite, targets=sys.argv[2:3])

for result in outcome.results:
    print(f"{result.case}: {result.score.verdict}")
print(f"{outcome.run}: {'passed' if outcome.is_passed else 'not passed'}", file=sys.stderr)
