"""Reasoning that survives a translation: asked for in the target's own way, so that it is there, can be shown to the
client, and can come back with its next request.

No provider needs to keep it. A reply brings it sealed (see `signatures`), and only if the request asked for it: the
Responses API hands it over if `include` says so, Anthropic's models think beside a thinking setting, and each shows
words of it on demand only.
"""

import msgspec

from sightline.catalog.facts import Facts
from sightline.catalog.fitting import budget_for, is_reasoning
from sightline.dialects.dialect import Dialect
from sightline.model.options import ADDED, Options, Reasoning
from sightline.model.request import Request


def ask_for_reasoning(request: Request, source: Dialect, target: Dialect, facts: Facts | None) -> Request:
    """The request of a client of `source` as `target` has to be asked; it is fitted to its model already.

    What this adds has `ADDED` for its place: by that the writers know it, and report it.
    """
    options = request.options
    if options.reasoning is not None and is_wanted(options.reasoning):
        reasoning = options.reasoning
        if target.reasoning == "mode" and not _forces_call(request):
            reasoning = _switch_on(reasoning, facts)
        if source.reasoning == "mode" and reasoning.summary is None and "auto" in target.support.summaries:
            # A client of Anthropic's gets to see what its model thinks unless it asks not to.
            reasoning = _with(reasoning, summary="auto")
        options = msgspec.structs.replace(options, reasoning=reasoning)
    if target.support.reasoning_include is not None and _reasons(options, facts):
        missing = tuple(word for word in target.support.reasoning_include if word not in (options.include or ()))
        if missing:
            places = options.places | {"include": ADDED}
            options = msgspec.structs.replace(options, include=(*(options.include or ()), *missing), places=places)
    return msgspec.structs.replace(request, options=options)


def is_wanted(reasoning: Reasoning) -> bool:
    """Whether it asks for any reasoning at all."""
    if reasoning.mode == "off" or reasoning.effort == "none" or reasoning.budget == 0:
        return False
    return reasoning.mode is not None or reasoning.effort is not None or reasoning.budget is not None


def _switch_on(reasoning: Reasoning, facts: Facts | None) -> Reasoning:
    """An effort alone as what makes the model think: adaptive thinking, or a budget where it knows nothing else."""
    if reasoning.mode is not None or reasoning.budget is not None:
        return reasoning
    modes = None if facts is None else facts.thinking
    if modes is None or "adaptive" in modes:
        return _with(reasoning, mode="adaptive")
    if "budget" in modes:
        return _with(reasoning, budget=budget_for(reasoning.effort or ""))
    return reasoning


def _with(reasoning: Reasoning, **added: str | int) -> Reasoning:
    places = reasoning.places | dict.fromkeys(added, ADDED)
    return msgspec.structs.replace(reasoning, **added, places=places)


def _forces_call(request: Request) -> bool:
    """Whether the request forces a call, beside which Anthropic refuses thinking."""
    return request.tool_choice is not None and request.tool_choice.mode in ("required", "named")


def _reasons(options: Options, facts: Facts | None) -> bool:
    """Whether the reply will hold reasoning: it is asked for, or the model is known to reason unasked."""
    if options.reasoning is not None and is_wanted(options.reasoning):
        return True
    return facts is not None and facts.reasoning is True and is_reasoning(options, facts)
