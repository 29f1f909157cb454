"""What a request asks for that its model cannot do. Either the request is refused, or it is fitted to the model by
leaving out, and reporting, what the model is known to reject with an error. Also the tools that are built into an API.

The facts come from the catalogue, per model; what is not known of a model is allowed. One list of misfits serves both
readers: a translation drops them, and a held request shows them as problems. Of the tools, `local_shell` asks the
client to run a command, and `web_search` is run by the provider; whether a model has one is a fact (`tool_kinds`).
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Literal, TypeAlias

import msgspec

from sightline.catalog.facts import Facts, Modality, ThinkingMode
from sightline.errors import Code, Fault
from sightline.model.json import JsonObject
from sightline.model.parts import Audio, Document, Image, Inline, Link, Part, Text, ToolResult
from sightline.model.report import Report, Severity
from sightline.model.request import Message, OpaqueTool, Options, Reasoning, Request, SchemaFormat, Tool, ToolChoice

_MODALITIES: dict[Modality, str] = {"image": "an image", "pdf": "a PDF", "audio": "audio"}


@dataclass(frozen=True, slots=True)
class UnsupportedFeature:
    """Something that the model cannot do: where it is requested, what it is, and what to do instead."""

    pointer: str
    message: str
    hint: str


def refusals(request: Request, facts: Facts) -> Iterator[UnsupportedFeature]:
    """Everything that the model cannot do, in the order of the request."""
    yield from _attachment_refusals(request, facts)
    options = request.options
    if facts.tools is False and request.tools:
        hint = "Leave the tools out, or choose a model that calls them."
        yield UnsupportedFeature("/tools", "it cannot call tools", hint)
    if facts.structured_output is False and isinstance(options.format, SchemaFormat):
        at = options.format.at or "/options/format"
        yield UnsupportedFeature(at, "it cannot keep to an output schema", "Describe the form in words instead.")
    if facts.reasoning is False and options.reasoning is not None and _is_wanted(options.reasoning):
        hint = "Leave out effort and summary, or choose a model that reasons."
        yield UnsupportedFeature(options.reasoning.at or "/options/reasoning", "it does not reason", hint)
    if facts.max_output is not None and options.max_tokens is not None and options.max_tokens > facts.max_output:
        at = options.places.get("max_tokens", "/options/max_tokens")
        message = f"it cannot write {options.max_tokens} tokens"
        yield UnsupportedFeature(at, message, f"Ask for {facts.max_output} tokens at most.")


def refuse(request: Request, facts: Facts, model: str) -> None:
    """Raise a Fault that names everything that the model cannot do, if there is anything."""
    found = list(refusals(request, facts))
    if found:
        message = "; ".join(dict.fromkeys(refusal.message for refusal in found))
        hint = " ".join(dict.fromkeys(refusal.hint for refusal in found))
        raise Fault(
            Code.INVALID_REQUEST, f"{model} cannot do what is asked: {message}", hint=hint, pointer=found[0].pointer
        )


def _attachment_refusals(request: Request, facts: Facts) -> Iterator[UnsupportedFeature]:
    """Attachments of kinds that the model cannot read."""
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
"""How our own requests name each tool before it is known in which dialect it will be offered."""

_NEUTRAL = "openai-responses"
"""The dialect of `HOSTED_TOOLS`, the only one that has all of them."""


def make_native_tool(kind: HostedTool) -> OpaqueTool:
    """The tool before it is known in which dialect it will be offered."""
    return OpaqueTool(_NEUTRAL, HOSTED_TOOLS[kind])


def native_tool_kind(tool: Tool, dialect: str, forms: Mapping[HostedTool, JsonObject]) -> HostedTool | None:
    """Which built-in tool this is, as made by `make_native_tool` or in this dialect's form; None for any other tool."""
    if isinstance(tool, OpaqueTool):
        for kind, neutral in HOSTED_TOOLS.items():
            if (tool.dialect, tool.value) in ((_NEUTRAL, neutral), (dialect, forms.get(kind))):
                return kind
    return None


ReasoningForm: TypeAlias = Literal["effort", "mode", "level"]
"""How a dialect sets the amount of reasoning: by an effort word alone, by a mode beside one, or by a level or a
budget."""

LADDER = ("none", "minimal", "low", "medium", "high", "xhigh", "max")
"""The effort words, from least to most."""

_DEFAULTS: Mapping[str, object] = {
    "temperature": 1,
    "top_p": 1,
    "stop": (),
    "presence_penalty": 0,
    "frequency_penalty": 0,
    "logit_bias": {},
    "logprobs": False,
    "top_logprobs": 0,
}
"""Values that are the default of every API: leaving them out does not change the answer."""

# How Google's own OpenAI-compatible endpoint maps an effort for models that take a budget
# (ai.google.dev/gemini-api/docs/openai, "Thinking", seen 2026-11). Claude models with a budget get the same.
_BUDGETS: Mapping[str, int] = {"minimal": 1024, "low": 1024, "medium": 8192, "high": 24_576}

GO_ON = "Continue."
"""The user message that is added if a model does not continue an answer that has been begun."""

_EFFORTS = ((2048, "low"), (8192, "medium"))


@dataclass(frozen=True, slots=True)
class Misfit:
    """Something that the model refuses: where it is, what it is, and why it cannot stay.

    `field` is what it belongs to: the name of an option, or `mode`, `budget` or `effort` of reasoning, or all of
    `reasoning`, or `tool_choice`, or a `document` or the `citations` of a text. `instead` is the nearest value that the
    model accepts, None if there is none and it is left out. `is_default` means that the model does what is requested
    without being told.
    """

    field: str
    pointer: str
    what: str
    why: str
    instead: str | int | None = None
    is_default: bool = False


def fit_to_model(request: Request, facts: Facts, form: ReasoningForm, report: Report) -> Request:
    """The request without what the model refuses; everything that is left out is reported."""
    for misfit in misfits(request, facts, form):
        severity: Severity = "identity" if misfit.is_default else "content" if misfit.field == "document" else "option"
        report.lose(misfit.pointer, misfit.what, misfit.why, severity)
        request = _without(request, misfit)
    return _with_user_turn(_within_output(request, facts, report), facts, report)


def _within_output(request: Request, facts: Facts, report: Report) -> Request:
    """The request with a token limit that the model supports: the API refuses a higher one instead of lowering it."""
    options = request.options
    if options.max_tokens is None or facts.max_output is None or options.max_tokens <= facts.max_output:
        return request
    why = f"{request.model or 'the model'} writes {facts.max_output} at most"
    place = options.places.get("max_tokens", "/max_tokens")
    report.lose(place, f"a limit of {options.max_tokens} tokens", why, "option")
    lowered = msgspec.structs.replace(options, max_tokens=facts.max_output)
    return msgspec.structs.replace(request, options=lowered)


def _with_user_turn(request: Request, facts: Facts, report: Report) -> Request:
    """The request with a user message after an answer that has been begun, which the model would refuse to continue."""
    last = request.messages[-1] if request.messages else None
    if facts.prefill is not False or last is None or not is_begun(last):
        return request
    why = f"{request.model or 'the model'} takes no last message of the assistant's"
    report.lose(last.at, "that the answer is begun", why, "content")
    report.add(last.at, f"a user's message behind it: {GO_ON}", why, "content")
    return msgspec.structs.replace(request, messages=(*request.messages, Message("user", (Text(GO_ON),))))


def is_begun(message: Message) -> bool:
    """Whether the client has begun the answer itself. A turn that ends in a server's tool is the model's own."""
    return message.role == "assistant" and bool(message.parts) and isinstance(message.parts[-1], Text)


def misfits(request: Request, facts: Facts, form: ReasoningForm) -> Iterator[Misfit]:
    """Everything that the model refuses, without duplicates."""
    model = request.model or "the model"
    reasoning = request.options.reasoning
    if reasoning is not None:
        yield from _reasoning_misfits(reasoning, facts, form, model)
    yield from _option_misfits(request.options, facts, model)
    yield from _part_misfits(request, facts)
    choice = request.tool_choice
    if facts.forced_tools is False and choice is not None and choice.mode in ("required", "named"):
        why = f"{model} decides itself whether it calls a tool"
        yield Misfit("tool_choice", choice.at or "/tool_choice", "a forced tool call", why)


def is_reasoning(options: Options, facts: Facts) -> bool:
    """Whether the model reasons on this request, as far as that is known; if it is not known, it is assumed to."""
    reasoning = options.reasoning or Reasoning()
    effort = "none" if reasoning.mode == "off" else reasoning.effort
    if facts.efforts is not None and "none" not in facts.efforts:
        return True
    if effort is None:
        return facts.reasons_unasked is not False
    return effort != "none"


# --- parts ------------------------------------------------------------------------------------------


def _part_misfits(request: Request, facts: Facts) -> Iterator[Misfit]:
    refused = facts.refuses_parts or ()
    for message in request.messages if refused else ():
        for part in message.parts:
            match part:
                case Document() if message.role == "assistant" and "assistant_documents" in refused:
                    why = "this version of the API takes none in a message of the assistant's"
                    yield Misfit("document", part.at, "a document", why)
                case Text() if message.role == "user" and part.citations and "user_citations" in refused:
                    why = "this version of the API takes none on the words of the user"
                    yield Misfit("citations", part.at, "citations", why)
                case _:
                    pass


def _without_part(request: Request, misfit: Misfit) -> Request:
    def fit(part: Part) -> Part | None:
        if part.at != misfit.pointer:
            return part
        return msgspec.structs.replace(part, citations=()) if isinstance(part, Text) else None

    messages = tuple(
        msgspec.structs.replace(message, parts=tuple(kept for part in message.parts if (kept := fit(part)) is not None))
        for message in request.messages
    )
    return msgspec.structs.replace(request, messages=messages)


# --- options ----------------------------------------------------------------------------------------


def _option_misfits(options: Options, facts: Facts, model: str) -> Iterator[Misfit]:
    refused: dict[str, str] = dict.fromkeys(facts.refuses or (), f"{model} does not take it")
    if facts.refuses_while_reasoning and is_reasoning(options, facts):
        why = f"{model} does not take it while it reasons"
        refused |= {name: why for name in facts.refuses_while_reasoning if name not in refused}
    is_pair = options.temperature is not None and options.top_p is not None
    if facts.one_sampler and is_pair and not refused.keys() & {"temperature", "top_p"}:
        refused["top_p"] = f"{model} takes temperature or top_p, not both"
    for name, why in refused.items():
        value = getattr(options, name)
        if value is not None:
            what = f"{name} {value}" if isinstance(value, int | float) else name
            is_default = name in _DEFAULTS and value == _DEFAULTS[name]
            yield Misfit(name, options.places.get(name, f"/{name}"), what, why, is_default=is_default)


# --- reasoning --------------------------------------------------------------------------------------


def _reasoning_misfits(reasoning: Reasoning, facts: Facts, form: ReasoningForm, model: str) -> Iterator[Misfit]:
    is_off = reasoning.mode == "off" or reasoning.effort == "none"
    if facts.reasoning is False:
        yield Misfit(
            "reasoning", reasoning.at or "/reasoning", "reasoning", f"{model} does not reason", is_default=is_off
        )
        return
    if form == "mode" and facts.thinking is not None:
        yield from _mode_misfits(reasoning, facts, facts.thinking, model, is_off=is_off)
    effort = "none" if is_off else reasoning.effort
    if form == "level" and is_off and facts.thinking is not None and "off" not in facts.thinking:
        place = reasoning.places.get("mode", reasoning.places.get("effort", reasoning.at or "/thinking"))
        yield Misfit("mode", place, "thinking switched off", f"{model} always thinks")
        return
    says_so_by_effort = form == "effort" or not is_off
    if effort is not None and facts.efforts is not None and effort not in facts.efforts and says_so_by_effort:
        yield _effort_misfit(reasoning, effort, facts, form, model)
    if effort is None and form == "effort" and facts.efforts is not None and reasoning.budget is not None:
        # A budget that corresponds to an effort which the model does not take.
        word = effort_for(reasoning.budget)
        if word not in facts.efforts:
            nearest = nearest_effort(word, facts.efforts)
            why = (
                f"{model} takes no effort" if nearest is None else f"the nearest effort that {model} takes is {nearest}"
            )
            at = reasoning.places.get("budget", reasoning.at or "/reasoning")
            yield Misfit("budget", at, f"reasoning budget of {reasoning.budget} tokens", why, nearest)


def _mode_misfits(
    reasoning: Reasoning, facts: Facts, modes: tuple[ThinkingMode, ...], model: str, *, is_off: bool
) -> Iterator[Misfit]:
    places, at = reasoning.places, reasoning.at or "/thinking"
    place = places.get("mode", places.get("effort", at))
    if is_off:
        if "off" not in modes:
            # Sonnet 5.5 cannot be switched off; the least it can do is to think only between tool calls.
            instead = "between_tools" if "between_tools" in modes else None
            why = f"the least that {model} takes is between_tools" if instead else f"{model} takes no such setting"
            unasked = facts.reasons_unasked is False
            yield Misfit("mode", place, "thinking switched off", why, instead, is_default=unasked)
        return
    budget = reasoning.budget
    if budget is not None and budget >= 0 and reasoning.mode != "adaptive":
        if "budget" not in modes:
            instead = "adaptive" if "adaptive" in modes else None
            why = f"{model} takes adaptive thinking only" if instead else f"{model} takes no budget"
            yield Misfit("budget", places.get("budget", at), f"a thinking budget of {budget}", why, instead)
    elif reasoning.mode is not None or budget is not None:
        word = reasoning.mode or "adaptive"
        if "adaptive" not in modes:
            yield Misfit("mode", place, f"thinking {word}", f"{model} thinks with a budget only")


def _effort_misfit(reasoning: Reasoning, effort: str, facts: Facts, form: ReasoningForm, model: str) -> Misfit:
    efforts = facts.efforts or ()
    place = reasoning.places.get("effort", reasoning.places.get("mode", reasoning.at or "/reasoning"))
    what = f"effort {effort!r}"
    takes_budget = form == "level" or (form == "mode" and "budget" in (facts.thinking or ()))
    if not efforts and takes_budget and effort in LADDER and reasoning.budget is None and reasoning.mode is None:
        budget = budget_for(effort)
        return Misfit("effort", place, what, f"{model} takes a budget; the nearest is {budget} tokens", budget)
    nearest = nearest_effort(effort, efforts)
    if nearest is None:
        return Misfit("effort", place, what, f"{model} takes no effort" if not efforts else f"{model} does not know it")
    return Misfit("effort", place, what, f"the nearest that {model} takes is {nearest}", nearest)


def budget_for(effort: str) -> int:
    """The number of tokens that is closest to an effort."""
    return _BUDGETS.get(effort, _BUDGETS["high"])


def effort_for(budget: int) -> str:
    """The effort that is closest to a number of tokens."""
    return next((word for limit, word in _EFFORTS if budget < limit), "high")


def nearest_effort(effort: str, efforts: tuple[str, ...]) -> str | None:
    """The highest of these efforts that is not above the requested one, otherwise the lowest; None for an unknown
    word."""
    if effort not in LADDER:
        return None
    wanted = LADDER.index(effort)
    known = [LADDER.index(word) for word in efforts if word in LADDER and word != "none"]
    below = [rank for rank in known if rank <= wanted]
    return LADDER[max(below)] if below else LADDER[min(known)] if known else None


# --- leaving out ------------------------------------------------------------------------------------


def _without(request: Request, misfit: Misfit) -> Request:
    options = request.options
    match misfit.field:
        case "tool_choice":
            choice = request.tool_choice
            at = "" if choice is None else choice.at
            return msgspec.structs.replace(request, tool_choice=ToolChoice("auto", at=at))
        case "document" | "citations":
            return _without_part(request, misfit)
        case "mode" | "budget" | "effort":
            reasoning = _reasoning_without(options.reasoning or Reasoning(), misfit)
            changed: dict[str, object] = {"reasoning": reasoning}
        case name:
            changed = {name: None}
    return msgspec.structs.replace(request, options=msgspec.structs.replace(options, **changed))


def _reasoning_without(reasoning: Reasoning, misfit: Misfit) -> Reasoning:
    instead = misfit.instead
    replace = msgspec.structs.replace
    match misfit.field:
        case "effort" if isinstance(instead, int):
            return replace(reasoning, effort=None, budget=instead)
        case "effort":
            # An effort of none may have been set by the mode.
            return replace(reasoning, effort=instead, mode=None if reasoning.mode == "off" else reasoning.mode)
        case "budget" if instead in LADDER:
            return replace(reasoning, budget=None, effort=instead)
        case "budget":
            return replace(reasoning, budget=None, mode=instead)
        case _:
            effort = None if reasoning.effort == "none" else reasoning.effort
            return replace(reasoning, mode=instead, budget=None, effort=effort)
