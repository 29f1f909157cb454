"""Runs by the beginnings of their names."""

from sightline.errors import Code, Fault
from sightline.evals.service.eval_log import PREFIX
from sightline.evals.service.evaluation import Evaluation

LAST = "last"


async def resolve_run(evaluation: Evaluation, text: str) -> str:
    """The run whose id begins so, or the newest for `last`; a fault if none does, or several do."""
    if text == LAST:
        newest = await evaluation.list_runs(1)
        if newest:
            return newest[0].run
    found = [log.name.removeprefix(PREFIX) for log in await evaluation.logbook.logs(PREFIX + text)] if text else []
    if text in found:
        return text
    if len(found) == 1:
        return found[0]
    what = f"{len(found)} runs begin with {text!r}" if found else f"there is no run {text!r} of a suite"
    raise Fault(Code.USAGE, what, hint="`sightline eval show` lists them.")
