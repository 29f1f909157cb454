"""The grader that looks for a regular expression in the answer.

A pattern whose work on this answer is bounded is looked for here. Any other is handed to a command of its own, which
can be stopped: a pattern that never ends costs the grader its word, not the run its life.
"""

import re

from sightline.errors import Fault
from sightline.evals.core.graders.fields import Fields
from sightline.evals.core.graders.finding import (
    UNSPENT,
    Asking,
    GraderFinding,
    GradingCost,
    Run,
    finding_without_score,
    of_one,
)
from sightline.evals.core.graders.repetition import compile_quietly, is_bounded
from sightline.evals.core.graders.steps import PYTHON, Execute, Executed, StepFailed, unfit
from sightline.evals.core.graders.subject import GradingSubject
from sightline.wire.jsontext import decode, encode

PATTERN_SECONDS = 5.0

_FLAGS = {
    "i": re.IGNORECASE,
    "m": re.MULTILINE,
    "s": re.DOTALL,
    "g": re.NOFLAG,
    "u": re.NOFLAG,
}
_JAVASCRIPT_NAME = re.compile(r"\(\?<(?=[A-Za-z_])")
_PROGRAM = (
    "import json,re,sys;"
    "pattern,flags,text=json.load(sys.stdin);"
    "found=re.search(pattern,text,flags);"
    "json.dump(found and found[0],sys.stdout)"
)
_LONGEST_EVIDENCE = 200


def regex(fields: Fields) -> Run:
    """The answer has something in it that fits this pattern."""
    value = fields.text("value", "pattern", needed=True, why="Give the pattern to look for.")
    letters = fields.text("flags")
    fields.close()
    flags = re.NOFLAG
    for letter in letters:
        if letter in _FLAGS:
            flags |= _FLAGS[letter]
        else:
            fields.tell("flags", f"there is no flag {letter!r}", f"Known: {', '.join(_FLAGS)}.")
    pattern = _JAVASCRIPT_NAME.sub("(?P<", value)
    try:
        compile_quietly(pattern, flags)
    except (re.error, OverflowError, RecursionError) as error:
        fields.tell("value", f"this is no pattern: {error}", "Patterns are those of Python's re module.")
    what = f"matches /{value}/{letters}"

    def run(subject: GradingSubject) -> Asking:
        if is_bounded(pattern, flags, subject.text):
            found = compile_quietly(pattern, flags).search(subject.text)
            return _finding_of_match(what, found[0] if found else None)
        step = Execute(
            argv=(PYTHON, "-c", _PROGRAM), stdin=encode([pattern, int(flags), subject.text]), timeout=PATTERN_SECONDS
        )
        match (yield step):
            case Executed() as ended:
                return _read(what, ended)
            case StepFailed(fault):
                return finding_without_score(f"the pattern could not be looked for: {fault.message}")
            case other:
                raise unfit(step, other)

    return run


def _read(what: str, ended: Executed) -> GraderFinding:
    try:
        found = decode(ended.stdout) if ended.code == 0 else False
    except Fault:
        found = False
    if found is not None and not isinstance(found, str):
        return finding_without_score(f"the pattern could not be looked for: the command ended with {ended.code}")
    return _finding_of_match(what, found, GradingCost(seconds=ended.seconds))


def _finding_of_match(what: str, found: str | None, spent: GradingCost = UNSPENT) -> GraderFinding:
    seen = of_one(what, held=found is not None, evidence=(found or "")[:_LONGEST_EVIDENCE])
    return GraderFinding(score=seen.score, checks=seen.checks, spent=spent)
