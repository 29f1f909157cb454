"""A grader as a program: the case and the answer come as JSON on stdin, and a score goes to stdout."""

import json
import sys


def main() -> None:
    """Whether the answer says thank you."""
    told = json.load(sys.stdin)
    words = json.dumps(told["output"]).lower()
    is_polite = "thank you" in words
    checks = [{"text": "it says thank you", "passed": is_polite}]
    sys.stdout.write(json.dumps({"score": 1 if is_polite else 0, "assertions": checks}))


if __name__ == "__main__":
    main()
