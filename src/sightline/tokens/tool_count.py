"""Tokens of what a model may call, and of the form that its answer must have."""

from typing import assert_never

from sightline.catalog.facts import Facts
from sightline.model.json import JsonObject
from sightline.model.options import JsonFormat, OutputFormat, PlainFormat, SchemaFormat
from sightline.model.tools import CustomTool, FunctionTool, OpaqueTool, Tool
from sightline.tokens.estimate import NOTHING, Estimate, between
from sightline.tokens.message_count import MessageCounter
from sightline.tokens.schema_text import declaration, declarations
from sightline.tokens.text_count import TextCounter

_DECLARING = frozenset({"o200k_base", "cl100k_base", "gpt_oss"})
_SERVER_TOOL = 4000
_HIDDEN_SPREAD = 0.4
_UNKNOWN_INSTRUCTIONS = (0, 100, 700)
_AROUND_A_TOOL = (0, 4, 12)


class ToolCounter:
    """Counts tools and output formats for one model and one dialect."""

    def __init__(self, facts: Facts, dialect: str, texts: TextCounter, messages: MessageCounter) -> None:
        self._facts = facts
        self._dialect = dialect
        self._texts = texts
        self._messages = messages

    @property
    def _declares(self) -> bool:
        """Whether it is one of OpenAI's models; the vocabulary tells, unless it only stands in for a stranger's."""
        facts = self._facts
        return facts.tokenizer in _DECLARING or (facts.nearest_tokenizer in _DECLARING and facts.token_ratio is None)

    def tools(self, tools: tuple[Tool, ...]) -> Estimate:
        """All tools together, with what is said once because there are any."""
        if not tools:
            return NOTHING
        functions = tuple(tool for tool in tools if isinstance(tool, FunctionTool))
        total = self._once()
        if functions and self._declares:
            written = self._texts.count(declarations(functions))
            doubt = 4 + 3 * len(functions)
            total += between(written.low * 0.85 - doubt, written.tokens, written.high * 1.15 + doubt, written.how)
        else:
            for function in functions:
                total += self._function(function)
        for tool in tools:
            if isinstance(tool, CustomTool):
                total += self._custom(tool)
            elif isinstance(tool, OpaqueTool):
                # A provider's own tool brings instructions of a length that nobody publishes.
                total += self._messages.json(tool.value) + between(0, 0, _SERVER_TOOL)
        return total

    def output(self, form: OutputFormat | None) -> Estimate:
        """The form of the answer, as the model is told of it."""
        match form:
            case SchemaFormat():
                return self._hidden_estimate(self._facts.schema_tokens or 0) + self._schema(form.schema)
            case JsonFormat():
                return between(0, 0, 10)
            case PlainFormat() | None:
                return NOTHING
            case unreachable:
                assert_never(unreachable)

    def _once(self) -> Estimate:
        facts = self._facts
        if self._dialect == "openai-chat" and facts.chat_tools_tokens is not None:
            return self._hidden_estimate(facts.chat_tools_tokens)
        return (
            between(*_UNKNOWN_INSTRUCTIONS) if facts.tools_tokens is None else self._hidden_estimate(facts.tools_tokens)
        )

    def _hidden_estimate(self, tokens: int) -> Estimate:
        return between(tokens * (1 - _HIDDEN_SPREAD), tokens, tokens * (1 + _HIDDEN_SPREAD)) if tokens else NOTHING

    def _function(self, tool: FunctionTool) -> Estimate:
        value: JsonObject = {"name": tool.name, "description": tool.description, "parameters": tool.schema}
        return self._messages.json(value)

    def _custom(self, tool: CustomTool) -> Estimate:
        total = between(*_AROUND_A_TOOL)
        for text in (tool.name, tool.description, tool.grammar and tool.grammar.definition):
            total += self._texts.count(text or "")
        return total

    def _schema(self, schema: JsonObject) -> Estimate:
        """Gemini only constrains the answer; the others also show the schema to the model, whole or as a type."""
        whole = self._messages.json(schema)
        if self._dialect == "gemini":
            return between(0, 0, whole.high)
        if not self._declares:
            return whole
        short = self._texts.count(declaration(schema))
        return between(short.low * 0.7, whole.tokens, whole.high + 20, whole.how)
