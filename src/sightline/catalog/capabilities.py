"""What a model cannot do of what a request asks, and the tools that an API has by itself.

What is not known is allowed. `local_shell` asks the client to run a command; `web_search` is run by the provider.
Whether a model has one is a fact of the catalogue (`tool_kinds`).
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Literal, TypeAlias

from sightline.catalog.facts import Facts, Modality
from sightline.errors import Code, Fault
from sightline.model.json import JsonObject
from sightline.model.parts import Audio, Document, Image, Inline, Link, Part, ToolResult
from sightline.model.request import OpaqueTool, Reasoning, Request, SchemaFormat, Tool

_MODALITIES: dict[Modality, str] = {"image": "an image", "pdf": "a PDF", "audio": "audio"}


@dataclass(frozen=True, slots=True)
class UnsupportedFeature:
    """One thing that the model cannot do: where it is asked for, what it is, and what to do instead."""

    pointer: str
    message: str
    hint: str


def refusals(request: Request, facts: Facts) -> list[UnsupportedFeature]:
    """Everything that the model cannot do, in the order of the request."""
    found = list(_unheard(request, facts))
    options = request.options
    if facts.tools is False and request.tools:
        found.append(
            UnsupportedFeature(
                "/tools", "it cannot call tools", "Leave the tools out, or choose a model that calls them."
            )
        )
    if facts.structured_output is False and isinstance(options.format, SchemaFormat):
        at = options.format.at or "/options/format"
        found.append(
            UnsupportedFeature(at, "it cannot keep to an output schema", "Describe the form in words instead.")
        )
    if facts.reasoning is False and options.reasoning is not None and _is_wanted(options.reasoning):
        at = options.reasoning.at or "/options/reasoning"
        found.append(
            UnsupportedFeature(
                at, "it does not reason", "Leave out effort and summary, or choose a model that reasons."
            )
        )
    if facts.max_output is not None and options.max_tokens is not None and options.max_tokens > facts.max_output:
        at = options.places.get("max_tokens", "/options/max_tokens")
        message = f"it cannot write {options.max_tokens} tokens"
        found.append(UnsupportedFeature(at, message, f"Ask for {facts.max_output} tokens at most."))
    return found


def refuse(request: Request, facts: Facts, model: str) -> None:
    """Raise a fault that names everything that the model cannot do."""
    found = refusals(request, facts)
    if found:
        message = "; ".join(dict.fromkeys(refusal.message for refusal in found))
        hint = " ".join(dict.fromkeys(refusal.hint for refusal in found))
        raise Fault(
            Code.INVALID_REQUEST, f"{model} cannot do what is asked: {message}", hint=hint, pointer=found[0].pointer
        )


def _unheard(request: Request, facts: Facts) -> Iterator[UnsupportedFeature]:
    """What is attached that the model cannot take in."""
    if facts.input is None:
        return
    for number, message in enumerate(request.messages):
        for part, at in _with_places(message.parts, f"/messages/{number}/parts"):
            modality = _modality_of(part)
            if modality is not None and modality not in facts.input:
                what = _MODALITIES[modality]
                yield UnsupportedFeature(
                    part.at or at, f"it cannot take {what}", f"Leave {what} out, or put it into words."
                )


def _with_places(parts: tuple[Part, ...], at: str) -> Iterator[tuple[Part, str]]:
    for index, part in enumerate(parts):
        yield part, f"{at}/{index}"
        if isinstance(part, ToolResult):
            yield from _with_places(part.parts, f"{at}/{index}/parts")


def _modality_of(part: Part) -> Modality | None:
    match part:
        case Image():
            return "image"
        case Audio():
            return "audio"
        case Document(source=Inline(media_type="application/pdf") | Link(media_type="application/pdf")):
            return "pdf"
        case _:
            return None


def _is_wanted(reasoning: Reasoning) -> bool:
    return (
        reasoning.mode in ("on", "adaptive")
        or reasoning.effort not in (None, "none")
        or bool(reasoning.budget)
        or reasoning.summary not in (None, "none")
    )


HostedTool: TypeAlias = Literal["local_shell", "web_search"]

HOSTED_TOOLS: Mapping[HostedTool, JsonObject] = {
    "local_shell": {"type": "local_shell"},
    "web_search": {"type": "web_search"},
}
"""Each of them as our own requests name it before it is known in which dialect it will be offered."""

_NEUTRAL = "openai-responses"
"""The dialect of `HOSTED_TOOLS`, the only one that has them all."""


def make_native_tool(kind: HostedTool) -> OpaqueTool:
    """The tool before it is known in which dialect it will be offered."""
    return OpaqueTool(_NEUTRAL, HOSTED_TOOLS[kind])


def native_tool_kind(tool: Tool, dialect: str, forms: Mapping[HostedTool, JsonObject]) -> HostedTool | None:
    """Which of these tools it is, as `make_native_tool` made it or in the form of this dialect; None for any other."""
    if isinstance(tool, OpaqueTool):
        for kind, neutral in HOSTED_TOOLS.items():
            if (tool.dialect, tool.value) in ((_NEUTRAL, neutral), (dialect, forms.get(kind))):
                return kind
    return None
