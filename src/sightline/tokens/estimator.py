"""Estimate the tokens of a request before it is sent, with a band that contains what the provider will report."""

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple, assert_never, get_args

from msgspec.structs import replace

from sightline.catalog.facts import Facts
from sightline.dialects.dialect import TokenRules
from sightline.dialects.registry import dialect as find_dialect
from sightline.model.json import Json, JsonObject
from sightline.model.parts import (
    Audio,
    CacheBreakpoint,
    Document,
    Image,
    Inline,
    Opaque,
    Part,
    Refusal,
    Source,
    Text,
    Thinking,
    ToolCall,
    ToolResult,
)
from sightline.model.request import (
    CustomTool,
    FunctionTool,
    JsonFormat,
    Message,
    OpaqueTool,
    OutputFormat,
    PlainFormat,
    Request,
    Role,
    SchemaFormat,
    Tool,
    is_same_text,
    parts_of,
)
from sightline.tokens.calibration import Ratio, exact_bytes
from sightline.tokens.estimate import NOTHING, Estimate, between, exactly, sum_estimates
from sightline.tokens.media_count import count_image, count_media, image_size
from sightline.tokens.text_count import TextCounter, TextKind, declaration, declarations, kind_of
from sightline.wire.cache import BoundedCache

_UNKNOWN_FRAME = between(0, 4, 8)
_UNFRAMED = between(0, 0, 4)
_DECLARING = frozenset({"o200k_base", "cl100k_base", "gpt_oss"})
_SERVER_TOOL = 4000
_HIDDEN_SPREAD = 0.4
_UNKNOWN_INSTRUCTIONS = (0, 100, 700)
_AROUND_A_TOOL = (0, 4, 12)
_CALLING = frozenset({ToolCall, ToolResult})


class MessageAndToolCounter:
    """Counts messages, tools and output formats for one model and one dialect."""

    def __init__(self, facts: Facts, rules: TokenRules, texts: TextCounter) -> None:
        self._facts = facts
        self._rules = rules
        self._texts = texts
        self._files: BoundedCache[tuple[str, str], Estimate] = BoundedCache(32)
        self._frames = {
            (role, has_calls): self._frame(role, has_calls=has_calls)
            for role in get_args(Role)
            for has_calls in (False, True)
        }

    def message(self, message: Message) -> Estimate:
        """A message with its framing."""
        template = self._facts.template
        if template is not None and self._texts.is_exact:
            texts = [part.text for part in message.parts if isinstance(part, Text)]
            if len(texts) == len(message.parts):
                role = "system" if message.role == "developer" else message.role
                return self._texts.count(template.frame(role, "\n".join(texts)))
        has_calls = message.role == "tool" or not _CALLING.isdisjoint(map(type, message.parts))
        total = self._frames[message.role, has_calls]
        if message.name is not None and total is not _UNFRAMED and total is not _UNKNOWN_FRAME:
            total += exactly(self._facts.name_tokens or 0) + self._texts.count(message.name)
        for part in message.parts:
            total += self.part(part)
        return total

    def part(self, part: Part) -> Estimate:
        """One part."""
        match part:
            case Text():
                counted = self._texts.count(part.text)
                return counted + self._signature(part.signature) if part.signature else counted
            case Refusal():
                return self._texts.count(part.text)
            case Image():
                size = image_size(part.source.data) if isinstance(part.source, Inline) else None
                return count_image(self._facts.image, size, part.detail) + between(*self._rules.picture)
            case Document():
                described = self._texts.count(part.title or "") + self._texts.count(part.context or "")
                return self._file(part.source) + described
            case Audio():
                transcript = self._texts.count(part.transcript or "")
                return transcript if part.source is None else self._file(part.source) + transcript
            case Thinking():
                # Earlier thinking is sent, but which of it the provider keeps, and in which form, is not known.
                read, signed = (
                    self._texts.count(part.text or "\n\n".join(part.summary)),
                    self._signature(part.signature),
                )
                return between(0, read.tokens or signed.high / 2, max(read.high, signed.high) + 10, read.how)
            case ToolCall():
                called = self._texts.count(part.name) + self._texts.count(part.arguments)
                # Each provider puts the arguments into a form of its own: JSON may lose or gain braces and quotes.
                called = between(called.low * 0.6, called.tokens, called.high * 1.25, called.how)
                return called + between(*self._rules.call) + self._signature(part.signature)
            case ToolResult():
                return self._result(part)
            case CacheBreakpoint():
                return NOTHING
            case Opaque():
                return self.json(part.value)
            case unreachable:
                assert_never(unreachable)

    def json(self, value: Json) -> Estimate:
        """A value that its provider turns into text in its own way: approximately its JSON."""
        written = self._texts.count(json.dumps(value, ensure_ascii=False))
        least, usual, most = self._rules.json_share
        return between(written.low * least, written.tokens * usual, written.high * most + 10, written.how)

    def _frame(self, role: Role, *, has_calls: bool) -> Estimate:
        """What a provider adds to a message of this role, without its name."""
        facts = self._facts
        if role == "system" and not self._rules.frames_system:
            return _UNFRAMED
        if facts.message_tokens is None:
            return _UNKNOWN_FRAME
        tokens = facts.message_tokens + 1  # the role
        if role == "assistant":
            tokens += facts.assistant_tokens or 0
        is_known = self._texts.frames_are_known and not has_calls
        return exactly(tokens) if is_known else between(0, tokens, tokens + 2)

    def _file(self, source: Source) -> Estimate:
        if not isinstance(source, Inline):
            return count_media(source, self._rules, self._texts)
        # Each edit counts the whole request again, and decoding a file of several megabytes would be noticeable at
        # every keystroke.
        key = source.media_type, source.data
        known = self._files.get(key)
        if known is None:
            known = count_media(source, self._rules, self._texts)
            self._files.put(key, known)
        return known

    def _signature(self, signature: str | None) -> Estimate:
        """A signature may contain thinking, which some endpoints count and some do not."""
        return between(0, 0, len(signature) / 4) if signature else NOTHING

    def _result(self, part: ToolResult) -> Estimate:
        total = between(*self._rules.result)
        if part.structured is not None:
            total += self.json(part.structured)
        for inner in part.parts:
            total += self.part(inner)
        return total

    @property
    def _declares(self) -> bool:
        """Whether this is one of OpenAI's models, counted by its own vocabulary and not by a nearest one."""
        facts = self._facts
        return facts.tokenizer in _DECLARING or (facts.nearest_tokenizer in _DECLARING and facts.token_ratio is None)

    @property
    def _has_template(self) -> bool:
        """Whether everything that the model reads is known; tools and schemas are not part of it."""
        return self._facts.template is not None and self._texts.is_exact

    def tools(self, tools: tuple[Tool, ...]) -> Estimate:
        """All tools together, with the text that is added once if there are any."""
        if not tools or self._has_template:
            return NOTHING
        functions = tuple(tool for tool in tools if isinstance(tool, FunctionTool))
        total = self._tool_instructions()
        if functions and self._declares:
            written = self._texts.count(declarations(functions))
            doubt = 4 + 3 * len(functions)
            total += between(written.low * 0.85 - doubt, written.tokens, written.high * 1.15 + doubt, written.how)
        else:
            for function in functions:
                total += self.json(
                    {"name": function.name, "description": function.description, "parameters": function.schema}
                )
        for tool in tools:
            if isinstance(tool, CustomTool):
                total += between(*_AROUND_A_TOOL)
                for text in (tool.name, tool.description, tool.grammar and tool.grammar.definition):
                    total += self._texts.count(text or "")
            elif isinstance(tool, OpaqueTool):
                # A provider's own tool brings instructions of an unpublished length.
                total += self.json(tool.value) + between(0, 0, _SERVER_TOOL)
        return total

    def output(self, form: OutputFormat | None) -> Estimate:
        """The output schema, as the model sees it."""
        if self._has_template:
            return NOTHING
        match form:
            case SchemaFormat():
                return self._estimate_hidden(self._facts.schema_tokens or 0) + self._schema(form.schema)
            case JsonFormat():
                return between(0, 0, 10)
            case PlainFormat() | None:
                return NOTHING
            case unreachable:
                assert_never(unreachable)

    def _tool_instructions(self) -> Estimate:
        facts = self._facts
        if self._rules.has_chat_tools and facts.chat_tools_tokens is not None:
            return self._estimate_hidden(facts.chat_tools_tokens)
        return (
            between(*_UNKNOWN_INSTRUCTIONS) if facts.tools_tokens is None else self._estimate_hidden(facts.tools_tokens)
        )

    def _estimate_hidden(self, tokens: int) -> Estimate:
        return between(tokens * (1 - _HIDDEN_SPREAD), tokens, tokens * (1 + _HIDDEN_SPREAD)) if tokens else NOTHING

    def _schema(self, schema: JsonObject) -> Estimate:
        """Gemini only constrains the answer; the others also show the schema to the model, whole or as a type."""
        whole = self.json(schema)
        if not self._rules.shows_schema:
            return between(0, 0, whole.high)
        if not self._declares:
            return whole
        short = self._texts.count(declaration(schema))
        return between(short.low * 0.7, whole.tokens, whole.high + 20, whole.how)


_UNKNOWN_REPLY = between(0, 5, 90)
_UNSEEN_HISTORY = 100_000
_STATEFUL = frozenset({"conversation", "cachedContent", "prompt"})
_THINKING_OFF = frozenset({"off", "none"})


class CountedRequest(NamedTuple):
    """The beginning of a request, with its tools, and the tokens that the provider counted for it."""

    messages: tuple[Message, ...]
    tools: tuple[Tool, ...]
    tokens: int


_UNSEEN_KIND = 1.5
"""The least factor for the band if a conversation continues with content of a kind that was never counted."""
_NO_GROWTH: Mapping[TextKind, Ratio] = {}


class Estimator(MessageAndToolCounter):
    """Counts requests, with what the provider's past counts teach. It remembers the counts of texts."""

    def __init__(self, facts: Facts, *, dialect: str, calibration: Ratio | None = None) -> None:
        super().__init__(facts, find_dialect(dialect).tokens, TextCounter(facts))
        self._calibration = calibration
        self._growth: Mapping[TextKind, Ratio] = _NO_GROWTH
        self._nearest_counter: MessageAndToolCounter | None = None
        self._counted_request: CountedRequest | None = None
        self._latest_tools: tuple[bytes, Estimate] = (b"", NOTHING)
        self._latest_messages: tuple[tuple[Message, ...], tuple[Estimate, ...]] = ((), ())

    def calibrate(self, calibration: Ratio | None, growth: Mapping[TextKind, Ratio] = _NO_GROWTH) -> None:
        """Use newer corrections, for whole requests and for what conversations grew by; nothing is counted again. If
        they disprove that the vocabulary is the model's own, it is treated as only the nearest from then on."""
        self._calibration = calibration
        self._growth = growth
        words = growth.get("words")
        if words is None or not words.disproves or not self._texts.is_exact:
            self._nearest_counter = None
        elif self._nearest_counter is None:
            nearest = replace(self._facts, tokenizer="", nearest_tokenizer=self._facts.tokenizer, template=None)
            self._nearest_counter = MessageAndToolCounter(nearest, self._rules, TextCounter(nearest))

    def text(self, text: str) -> Estimate:
        """Tokens of a text by itself."""
        return self._texts.count(text)

    def tools(self, tools: tuple[Tool, ...]) -> Estimate:
        """Tokens of all tools together."""
        if self._latest_tools[0] != (written := exact_bytes(tools)):
            self._latest_tools = (written, super().tools(tools))
        return self._latest_tools[1]

    def messages(self, messages: tuple[Message, ...]) -> tuple[Estimate, ...]:
        """Tokens of each message. A message that is equal to the one at the same index of the latest request is not
        counted again: one keystroke in a thousand messages takes 0.1 ms instead of 0.8."""
        known, estimates = self._latest_messages
        kept = tuple(
            estimate if message is earlier or is_same_text(message, earlier) else self.message(message)
            for message, earlier, estimate in zip(messages, known, estimates, strict=False)
        )
        estimates = (*kept, *map(self.message, messages[len(kept) :]))
        self._latest_messages = messages, estimates
        return estimates

    def request(self, request: Request) -> Estimate:
        """Everything in the prompt, corrected by the provider's past counts."""
        return self.correct(self.estimate_by_rules(request))

    def estimate_continuation(self, request: Request, counted: int, tokens: int) -> Estimate:
        """The same if the provider has counted `tokens` for a request with the first `counted` messages of this one:
        its count, plus an estimate of what is new."""
        new, kind = self.growth(request.messages[counted:])
        if not new.tokens:
            return exactly(tokens, "counted by the provider")
        if (learned := self._growth.get(kind)) is not None:
            new = learned.correct(new)
        elif self._calibration is not None and not self._is_exact:
            new = self._calibration.scale(new, least_width=_UNSEEN_KIND)
        return exactly(tokens, "counted") + new

    def growth(self, messages: Sequence[Message]) -> tuple[Estimate, TextKind]:
        """What these messages add to a conversation, by the rules alone, and what they are mostly made of. With a known
        vocabulary, all texts are of one kind: what remains to be learned is how the provider frames them."""
        kind: TextKind = "words" if self._is_exact else kind_of(_texts_of(parts_of(tuple(messages))))
        counter = self._nearest_counter or self
        return sum_estimates(map(counter.message, messages)), kind

    @property
    def _is_exact(self) -> bool:
        """Whether the vocabulary is the model's own, and no count disproves that."""
        return self._nearest_counter is None and self._texts.is_exact

    def continue_from(self, counted: CountedRequest | None) -> None:
        """Set what the provider has counted of the current requests, if anything."""
        self._counted_request = counted

    def whole(self, request: Request, raw: Estimate) -> tuple[Estimate, bool]:
        """The estimate of a whole request that the rules alone estimate at `raw`, and whether it is based on the
        provider's own count."""
        known = self._counted_request
        if known is not None and request.tools == known.tools:
            count = len(known.messages)
            if request.messages[:count] == known.messages:
                return self.estimate_continuation(request, count, known.tokens), True
        return self.correct(raw), False

    def correct(self, raw: Estimate) -> Estimate:
        """The estimate of a whole request by the rules alone, corrected by the provider's past counts."""
        if self._calibration is None:
            return raw
        return self._calibration.correct(raw, within_band=self._is_exact)

    def estimate_by_rules(self, request: Request) -> Estimate:
        """Everything in the prompt, by the rules alone. A provider's count is compared with this."""
        return self.estimate_around_messages(request) + sum_estimates(self.messages(request.messages))

    def estimate_around_messages(self, request: Request) -> Estimate:
        """The same without the messages."""
        total = self._estimate_frame(request) + self.tools(request.tools) + self.output(request.options.format)
        if request.options.previous_response_id is not None or not _STATEFUL.isdisjoint(request.extras):
            unseen = self._facts.context_window or _UNSEEN_HISTORY
            total += Estimate(0, 0, unseen, "history that the provider keeps")
        return total

    def _estimate_frame(self, request: Request) -> Estimate:
        """What surrounds the messages: the usual system prompt, the beginning of the reply, how to think."""
        facts = self._facts
        if (template := facts.template) is not None and self._texts.is_exact:
            roles = [message.role for message in request.messages] or ["user"]
            count = self._texts.count
            has_system = roles[0] in ("system", "developer") or not template.system
            unsaid = "" if has_system else template.frame("system", template.system)
            if roles[-1] != "assistant":
                return count(unsaid + template.reply)
            return exactly(count(unsaid).tokens - count(template.end).tokens)  # the model continues its last message
        total = _UNKNOWN_REPLY
        if facts.reply_tokens is not None:
            tokens = facts.reply_tokens
            total = exactly(tokens) if self._texts.frames_are_known else between(0, tokens, tokens + 12)
        reasoning = request.options.reasoning
        if (
            facts.thinking_tokens
            and reasoning is not None
            and (reasoning.mode or reasoning.effort) not in _THINKING_OFF
        ):
            total += between(0, facts.thinking_tokens, facts.thinking_tokens * 1.5)
        return total


def _texts_of(parts: Sequence[Part]) -> Iterator[str]:
    """The texts among these parts, and in the calls and results among them."""
    for part in parts:
        if isinstance(part, Text | Refusal | Thinking):
            yield part.text
        elif isinstance(part, ToolCall):
            yield part.arguments
        elif isinstance(part, ToolResult):
            yield from _texts_of(part.parts)
            if part.structured is not None:
                yield json.dumps(part.structured, ensure_ascii=False)
