"""From the string that a model wrote to arguments that a tool can be given, or to words that help the model write it.

A call that is refused is answered, never run: the text names each wrong place and says how often it may be tried again.
"""

from dataclasses import dataclass

from sightline.agent.core.repair import Repair, repair_value, unwrap, without_nulls
from sightline.agent.core.schema import Mismatch, validate
from sightline.agent.core.tool import Definition, Toolbox
from sightline.dialects.tool_names import free_text
from sightline.errors import Fault
from sightline.model.json import Json, JsonObject
from sightline.model.parts import ToolCall
from sightline.wire.jsontext import decode

MOST_MISMATCHES = 10

TRY_AGAIN = "Please check your input and try again."


@dataclass(frozen=True, slots=True)
class AcceptedArguments:
    """Arguments for a tool: an object, or the text of a tool for free text."""

    arguments: JsonObject | str
    repairs: tuple[Repair, ...] = ()


@dataclass(frozen=True, slots=True)
class RefusedArguments:
    """Why a call cannot be run, for the model."""

    text: str


def read(call: ToolCall, toolbox: Toolbox) -> AcceptedArguments | RefusedArguments:
    """The arguments of a call, if its tool can be used and they are such as it takes."""
    definition = toolbox.find(call.name)
    if definition is None:
        return RefusedArguments(f"The tool {call.name!r} does not exist.{_instead(call.name, toolbox)}")
    if not definition.is_enabled:
        return RefusedArguments(
            f"The tool {call.name!r} is disabled and cannot be called.{_instead(call.name, toolbox)}"
        )
    if definition.is_remote:
        return RefusedArguments(f"The tool {call.name!r} is run by the provider, and cannot be called here.")
    if definition.kind == "custom":
        # Where an API has functions only, one with a single text stood for the tool.
        return AcceptedArguments(call.arguments if call.kind == "custom" else free_text(call.arguments))
    try:
        value = decode(call.arguments) if call.arguments.strip() else {}
    except Fault as fault:
        return RefusedArguments(f"The arguments of {call.name!r} are invalid: {fault.message}.\n{TRY_AGAIN}")
    value, repairs = unwrap(value)
    return _check_schema(definition, value, repairs)


def check_edited(arguments: JsonObject | str, definition: Definition) -> AcceptedArguments | RefusedArguments:
    """Arguments that a person wrote: held to the same schema, and never changed."""
    if (definition.kind == "custom") is not isinstance(arguments, str):
        wanted = "text" if definition.kind == "custom" else "an object"
        return RefusedArguments(f"{definition.name!r} takes {wanted}.")
    if definition.schema is not None and isinstance(arguments, dict):
        verdict = validate(definition.schema, arguments)
        if verdict.count:
            return RefusedArguments(_complaint(definition.name, verdict.mismatches))
    return AcceptedArguments(arguments)


def _check_schema(
    definition: Definition, value: Json, before: tuple[Repair, ...]
) -> AcceptedArguments | RefusedArguments:
    if definition.strict and definition.schema is not None:
        value, repairs = without_nulls(value, definition.schema)
        before = (*before, *repairs)
    if definition.schema is not None:
        value, verdict, repairs = repair_value(value, definition.schema)
        before = (*before, *repairs)
        if verdict.count:
            return RefusedArguments(f"{_complaint(definition.name, verdict.mismatches)}\n{TRY_AGAIN}")
    if not isinstance(value, dict):
        return RefusedArguments(
            f"The arguments of {definition.name!r} are invalid: they must be a JSON object.\n{TRY_AGAIN}"
        )
    return AcceptedArguments(value, before)


def _complaint(name: str, mismatches: tuple[Mismatch, ...]) -> str:
    lines = [f"- {each.pointer or 'the arguments'}: {each.message}" for each in mismatches[:MOST_MISMATCHES]]
    if len(mismatches) > MOST_MISMATCHES:
        lines.append(f"- and {len(mismatches) - MOST_MISMATCHES} more")
    return "\n".join([f"The arguments of {name!r} are invalid:", *lines])


def _instead(name: str, toolbox: Toolbox) -> str:
    nearest = toolbox.nearest(name)
    return f" Tools that can be called: {', '.join(nearest)}." if nearest else " No tool can be called."
