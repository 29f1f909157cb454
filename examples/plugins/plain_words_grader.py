"""A grader for evals: the share of an answer's words that are no jargon.

    [plugins]
    use = ["plain_words_grader.py"]

In a suite, all keys beside `type` and `timeout_seconds` are the grader's `config`:

    assertions:
      - type: plain-words
        jargon: [leverage, synergy]
"""

import re
from typing import Any

from sightline.errors import Code, Fault
from sightline.plugins import Plugin


def grade_words(case: dict[str, Any]) -> dict[str, Any]:
    """The score, with a check for each word of jargon."""
    jargon = (case["config"] or {}).get("jargon", ["leverage", "synergy"])
    if not isinstance(jargon, list):
        raise Fault(Code.USAGE, "jargon is not a list of words", hint="Write jargon: [leverage, synergy].")
    words = re.findall(r"\w+", case["output"].lower())
    checks = [{"text": f"does not say {word!r}", "passed": word.lower() not in words} for word in jargon]
    found = sum(words.count(word.lower()) for word in jargon)
    return {"score": 1 - found / len(words) if words else 0.0, "assertions": checks}


PLUGIN = Plugin(name="plain-words", graders={"plain-words": grade_words})
