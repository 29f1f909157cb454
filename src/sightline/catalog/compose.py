"""Turns what our own callers want (ask, chat, loop, evals) into a request to one model of one provider.

Nothing is added in secret: what the caller left out is left out, unless the model's family or the provider's quirks
define what to send. What cannot be requested from the model or in its dialect is refused here, before anything is sent.
"""

import hashlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

import msgspec

from sightline.catalog.choose import ModelChoice
from sightline.catalog.facts import Facts, Family
from sightline.catalog.fitting import LADDER, HostedTool, native_tool_kind, refuse
from sightline.catalog.provider import Quirks
from sightline.errors import Code, Fault
from sightline.model.json import JsonObject
from sightline.model.parts import CacheBreakpoint, Part, Refusal, Text, Thinking
from sightline.model.request import (
    CustomTool,
    Message,
    OpaqueTool,
    Options,
    Reasoning,
    Request,
    SchemaFormat,
    Tool,
    ToolChoice,
)

OUTPUT_NAME = "response"
PATCH_TOOL = "apply_patch"
VERBOSITIES = ("low", "medium", "high")


@dataclass(frozen=True, slots=True)
class Prompt:
    """What a caller wants. None, or an empty string, means: not requested.

    `instructions` replace the family's base instructions; an empty string means that there are none.
    `user_instructions` follow either. `effort`, `summary` and `verbosity` are the model's own words; `conversation` is
    the id under which a provider may cache.
    """

    messages: tuple[Message, ...]
    tools: tuple[Tool, ...] = ()
    instructions: str | None = None
    user_instructions: str = ""
    output_schema: JsonObject | None = None
    output_name: str = OUTPUT_NAME
    output_strict: bool = True
    effort: str | None = None
    summary: str | None = None
    verbosity: str | None = None
    max_tokens: int | None = None
    temperature: float | None = None
    top_p: float | None = None
    top_k: int | None = None
    stop: tuple[str, ...] | None = None
    seed: int | None = None
    presence_penalty: float | None = None
    frequency_penalty: float | None = None
    tool_choice: ToolChoice | None = None
    parallel_tool_calls: bool | None = None
    conversation: str = ""
    stream: bool = True


StatedWhen: TypeAlias = Literal["always", "if_known", "never"]
"""Whether our own requests state an option: always, only to providers that are known to accept it, or never."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DialectSupport:
    """What a dialect can express: these sampling options, these efforts (None: any word), these summaries.

    `strict_schemas`: an output schema has a name and may be strict or not. `one_call`: calls can be limited to one at a
    time. `custom_tools`: tools may take free text. `hosted_tools`: the tools built into its API, as it writes them.
    `cache_key`: a request names its conversation. `store`: a request says whether it may be stored.
    `reasoning_include`: what requests the reasoning that the provider does not keep; None if nothing does.
    `summary_mode`: the reasoning mode with which summaries are shown. It excludes a forced tool call and the options
    that `options_thinking_excludes` returns. `states_defaults`: our own requests state what the API would assume.
    `asks_for_usage`: a stream reports its usage only on request.
    """

    options: frozenset[str] = frozenset()
    efforts: tuple[str, ...] | None = ()
    summaries: tuple[str, ...] = ()
    verbosity: bool = False
    strict_schemas: bool = False
    one_call: bool = False
    custom_tools: bool = False
    hosted_tools: Mapping[HostedTool, JsonObject] = field(default_factory=dict)
    cache_key: StatedWhen = "never"
    store: StatedWhen = "never"
    reasoning_include: tuple[str, ...] | None = None
    summary_mode: str | None = None
    options_thinking_excludes: Callable[[Options], tuple[str, ...]] = lambda _options: ()
    states_defaults: bool = False
    asks_for_usage: bool = False


_INSTEAD: Mapping[HostedTool, str] = {
    "local_shell": "Offer run_command, which any model that calls functions can use.",
    "web_search": "Leave it out, or choose a model that searches.",
}

_SAMPLING = ("max_tokens", "temperature", "top_p", "top_k", "stop", "seed", "presence_penalty", "frequency_penalty")


def compose(prompt: Prompt, choice: ModelChoice, support: DialectSupport) -> Request:
    """The request that asks this model for it, in the terms of the dialect in which it will be written. Raises a Fault
    if the input is empty, or if the model cannot do it."""
    if all(_is_empty(message) for message in prompt.messages):
        raise Fault(Code.INVALID_REQUEST, "the input is empty", hint="Write something for the model to answer.")
    composing = _Composing(prompt, choice, support)
    request = Request(
        model=choice.model,
        messages=(*composing.instructions(), *prompt.messages),
        tools=composing.tools(),
        tool_choice=composing.tool_choice(),
        parallel_tool_calls=composing.parallel(),
        options=composing.options(),
    )
    refuse(request, choice.facts, choice.model)
    return request


def complete(request: Request, choice: ModelChoice, support: DialectSupport, conversation: str) -> Request:
    """A request that a caller wrote completely, with what all our own requests state: whether the provider may store
    it, that it returns its reasoning, and the conversation that it belongs to. What the caller has set stays."""
    quirks, given = choice.provider.quirks, request.options
    options = msgspec.structs.replace(
        given,
        store=_store(quirks, support) if given.store is None else given.store,
        include=_include(choice.facts, given.reasoning, support) if given.include is None else given.include,
        cache_key=_cache_key(conversation, quirks, support) if given.cache_key is None else given.cache_key,
    )
    return msgspec.structs.replace(request, options=options)


def base_instructions(family: Family, tools: tuple[Tool, ...]) -> str:
    """The family's instructions, for callers that have none."""
    needs_more = family.needs_special_apply_patch_instructions and PATCH_TOOL not in _tool_names(tools)
    return "\n".join(filter(None, (family.base_instructions, family.tool_instructions if needs_more else "")))


def conversation_of(model: str, prompt: Prompt) -> str:
    """An id for the conversation that begins with this prompt. It depends on nothing else, so that a preview and the
    request that is sent have the same id."""
    began = [model, prompt.instructions, prompt.user_instructions, msgspec.to_builtins(prompt.messages)]
    return f"c_{hashlib.sha256(msgspec.json.encode(began)).hexdigest()[:32]}"


def _store(quirks: Quirks, support: DialectSupport) -> bool | None:
    """The value of `store`. If the API stores nothing by default and many providers refuse the field, those that are
    known to accept it are asked not to store. What Azure's Responses API needs to find items again is not needed
    there."""
    if support.store == "always":
        return bool(quirks.store)
    return False if support.store == "if_known" and quirks.store is not None else None


def _include(facts: Facts, reasoning: Reasoning | None, support: DialectSupport) -> tuple[str, ...] | None:
    if support.reasoning_include is None:
        return None
    return support.reasoning_include if facts.reasoning or reasoning else ()


def _cache_key(conversation: str, quirks: Quirks, support: DialectSupport) -> str | None:
    """The conversation, if the provider accepts `prompt_cache_key`; otherwise None."""
    is_taken = support.cache_key == "always" if quirks.cache_key is None else quirks.cache_key
    return conversation or None if is_taken and support.cache_key != "never" else None


def _is_empty(message: Message) -> bool:
    """Whether this message needs no answer: it only instructs, or has no content."""
    return message.role in ("system", "developer") or all(_says_nothing(part) for part in message.parts)


def _says_nothing(part: Part) -> bool:
    if isinstance(part, Text | Refusal):
        return not part.text.strip()
    return isinstance(part, Thinking | CacheBreakpoint)


def _tool_names(tools: tuple[Tool, ...]) -> set[object]:
    """The names of the tools; for a tool that only its provider knows, its name or its type."""
    names: set[object] = set()
    for tool in tools:
        if not isinstance(tool, OpaqueTool):
            names.add(tool.name)
        elif isinstance(tool.value, dict):
            names.add(str(tool.value.get("name", tool.value.get("type"))))
    return names


@dataclass(frozen=True, slots=True)
class _Composing:
    """Composes a request from one prompt for one model."""

    prompt: Prompt
    choice: ModelChoice
    support: DialectSupport

    def instructions(self) -> tuple[Message, ...]:
        """All instructions as a first system message; empty if there are none."""
        prompt = self.prompt
        base = (
            base_instructions(self.choice.family, prompt.tools) if prompt.instructions is None else prompt.instructions
        )
        # Base instructions, followed by the user's own.
        text = "\n\n".join(text for text in (base, prompt.user_instructions) if text.strip())
        return (Message("system", (Text(text),), bare=True),) if text.strip() else ()

    def tools(self) -> tuple[Tool, ...]:
        """The tools, with those built into the model's API in the form of the dialect."""
        return tuple(self._tool(tool) for tool in self.prompt.tools)

    def _tool(self, tool: Tool) -> Tool:
        kinds = self.choice.facts.tool_kinds
        # In dialects without free-text tools they are written as functions, which any model accepts.
        if isinstance(tool, CustomTool) and self.support.custom_tools and kinds is not None and "custom" not in kinds:
            hint = "Offer it as a function, or choose a model that takes free text."
            raise self._refusal(f"the tool {tool.name!r} cannot be offered", "the model takes functions only", hint)
        kind = native_tool_kind(tool, self.choice.dialect, self.support.hosted_tools)
        if kind is None:
            return tool
        form = self.support.hosted_tools.get(kind)
        if form is None or (kinds is not None and kind not in kinds):
            what = f"the tool {kind!r} cannot be offered"
            raise self._refusal(what, "the model does not have it", _INSTEAD[kind])
        return OpaqueTool(self.choice.dialect, form)

    def tool_choice(self) -> ToolChoice | None:
        """The caller's choice; in the Responses API the default is stated explicitly."""
        choice, tools = self.prompt.tool_choice, self.prompt.tools
        if not tools:
            if choice is not None and (choice.mode not in ("auto", "none") or choice.names):
                raise self._refusal("no tool can be chosen", "there are none", "Offer a tool, or leave out the choice.")
            return None
        if choice is None:
            return ToolChoice("auto") if self.support.states_defaults else None
        known = _tool_names(tools)
        for name in choice.names:
            if name not in known:
                offered = ", ".join(sorted(str(each) for each in known))
                raise self._refusal(f"the tool {name!r} cannot be chosen", "it is not offered", f"Offered: {offered}.")
        return choice

    def parallel(self) -> bool | None:
        """Whether calls may be made in parallel; in the Responses API false unless the caller wants it."""
        wanted, choice = self.prompt.parallel_tool_calls, self.prompt.tool_choice
        can_call = bool(self.prompt.tools) and (choice is None or choice.mode != "none")
        if not can_call and not self.support.states_defaults:
            return None
        if self.support.one_call and self.choice.provider.quirks.parallel_tool_calls:
            return bool(wanted and can_call) if self.support.states_defaults else wanted
        if wanted is False and can_call:
            why = "the provider cannot be asked for it"
            raise self._refusal("calls cannot be held to one at a time", why, "Leave parallel_tool_calls out.")
        return None

    def options(self) -> Options:
        """Everything that is neither a message nor a tool."""
        prompt, quirks = self.prompt, self.choice.provider.quirks
        reasoning = self._reasoning()
        counts = self.support.asks_for_usage and prompt.stream and quirks.stream_usage
        sampling = {name: value for name in _SAMPLING if (value := getattr(self.prompt, name)) is not None}
        for name in sampling:
            if name not in self.support.options:
                why = f"{self.choice.dialect} has no such option"
                raise self._refusal(f"{name} cannot be set", why, "Leave it out, or choose a provider that takes it.")
        if reasoning is not None and reasoning.mode is not None:
            choice = prompt.tool_choice
            excluded = self.support.options_thinking_excludes(Options(**sampling))
            if excluded or (choice is not None and choice.mode in ("required", "named")):
                what = excluded[0] if excluded else "a forced tool call"
                why = "a summary needs thinking, which excludes it"
                raise self._refusal(f"{what} cannot be set", why, "Leave out one of the two.")
        return Options(
            **sampling,
            format=self._format(),
            reasoning=reasoning,
            verbosity=self._verbosity(),
            store=_store(quirks, self.support),
            include=_include(self.choice.facts, reasoning, self.support),
            cache_key=_cache_key(prompt.conversation, quirks, self.support),
            stream=prompt.stream,
            include_usage=True if counts else None,
        )

    def _format(self) -> SchemaFormat | None:
        prompt = self.prompt
        if prompt.output_schema is None:
            return None
        if not self.support.strict_schemas:
            return SchemaFormat(prompt.output_schema)
        return SchemaFormat(prompt.output_schema, prompt.output_name, strict=prompt.output_strict)

    def _verbosity(self) -> str | None:
        verbosity = self.prompt.verbosity or None
        can_say = bool(self.choice.facts.verbosity) and self.support.verbosity
        if verbosity is None:
            return (self.choice.family.default_verbosity or None) if can_say else None
        if not can_say:
            hint = (
                f'Leave it out. If the model does take one, set verbosity = true under [models."{self.choice.model}"].'
            )
            raise self._refusal("no verbosity can be set", "the model takes none", hint)
        return self._check_word(verbosity, VERBOSITIES, "verbosity")

    def _reasoning(self) -> Reasoning | None:
        """What is requested about reasoning: by the caller, otherwise by the family of a model that is known to
        reason."""
        prompt, facts, family = self.prompt, self.choice.facts, self.choice.family
        effort, summary = prompt.effort or None, prompt.summary or None
        if facts.reasoning is False:
            if effort in (None, "none") and summary in (None, "none"):
                return None
            return Reasoning(effort=effort, summary=summary)  # refused together with whatever else cannot be done
        if effort is not None:
            self._check_word(effort, self._efforts(), "effort")
        elif facts.reasoning and family.default_effort in self._efforts():
            effort = family.default_effort
        if summary is not None:
            self._check_word(summary, self.support.summaries, "summary")
        elif (
            facts.reasoning
            and self.choice.family.supports_reasoning_summaries
            and self.support.states_defaults
            and effort != "none"
        ):
            summary = "auto"
        if effort == "none" and summary not in (None, "none"):
            raise self._refusal("no summary can be given", "no reasoning is asked for", "Leave out one of the two.")
        if summary in (None, "none"):
            return None if effort is None else Reasoning(effort=effort)
        return Reasoning(mode=self.support.summary_mode, effort=effort, summary=summary)

    def _efforts(self) -> tuple[str, ...]:
        known, sayable = self.choice.facts.efforts, self.support.efforts
        known = LADDER if known is None else known
        return known if sayable is None else tuple(word for word in known if word in sayable)

    def _check_word(self, word: str, words: tuple[str, ...], what: str) -> str:
        if word in words:
            return word
        hint = f"It takes {', '.join(words)}." if words else f"Leave the {what} out."
        raise Fault(Code.INVALID_REQUEST, f"{self.choice.model} does not take the {what} {word!r}", hint=hint)

    def _refusal(self, what: str, why: str, hint: str) -> Fault:
        return Fault(Code.INVALID_REQUEST, f"{self.choice.model}: {what}: {why}", hint=hint)
