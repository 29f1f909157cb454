"""Tools as values: what the model sees of them, and what the loop knows besides."""

from collections import Counter
from difflib import get_close_matches

import msgspec

from sightline.agent.core.schema import schema_problems
from sightline.catalog.capabilities import HostedTool, make_native_tool
from sightline.dialects.registry import hosted_tool_kind
from sightline.errors import Code, Fault
from sightline.model.json import Json
from sightline.model.parts import ToolKind
from sightline.model.tools import CustomTool, FunctionTool, Grammar, OpaqueTool, Tool

_MOST_NAMES = 3
_LEAST_LIKENESS = 0.5


class Definition(msgspec.Struct, frozen=True, omit_defaults=True, kw_only=True):
    """One tool. Without a schema any JSON object is taken; a `custom` tool takes free text instead.

    With `is_parallel` it may run beside others. A tool that is not `is_enabled` is not offered, and a call of it is
    answered with that. `hosted` is one that the model's API has by itself. With `strict` the model is held to the
    schema.
    """

    name: str
    description: str = ""
    schema: dict[str, Json] | None = None
    kind: ToolKind = "function"
    grammar: Grammar | None = None
    is_parallel: bool = False
    is_enabled: bool = True
    hosted: HostedTool | None = None
    strict: bool | None = None

    @property
    def is_remote(self) -> bool:
        """Whether the provider runs it, so that no call of it comes here."""
        return self.hosted == "web_search"


class Toolbox(msgspec.Struct, frozen=True, omit_defaults=True):
    """The tools of a run."""

    definitions: tuple[Definition, ...] = ()

    def find(self, name: str) -> Definition | None:
        """The tool of this name, enabled or not."""
        return next((each for each in self.definitions if each.name == name), None)

    def nearest(self, name: str) -> tuple[str, ...]:
        """The enabled tools that may have been meant, the likeliest first; all of them where none is like it."""
        names = [each.name for each in self.definitions if each.is_enabled and each.name != name]
        folded = {each.casefold(): each for each in reversed(names)}
        close = get_close_matches(name.casefold(), list(folded), n=_MOST_NAMES, cutoff=_LEAST_LIKENESS)
        return tuple(folded[each] for each in close) or tuple(names)

    def tools_for(self, tools: tuple[Tool, ...] = ()) -> tuple[Tool, ...]:
        """The tools for a request that has these already: a tool that is there already stays as it is."""
        there = {hosted_tool_kind(tool) if isinstance(tool, OpaqueTool) else tool.name for tool in tools}
        fresh = (each for each in self.definitions if each.is_enabled and each.name not in there)
        return (*tools, *(_tool_of(each) for each in fresh))

    def check(self) -> None:
        """Refuse tools that could not be used, all of them in one fault."""
        found = [problem for each in self.definitions for problem in definition_problems(each)]
        counts = Counter(each.name for each in self.definitions)
        found += [f"there are {count} tools named {name!r}" for name, count in counts.items() if count > 1]
        if found:
            raise Fault(
                Code.CONFIG,
                f"tools that cannot be used: {'; '.join(found)}",
                hint="Correct these definitions, or leave the tools out.",
            )


def definition_problems(definition: Definition) -> list[str]:
    """What is wrong with a tool as it is defined."""
    if definition.schema is None:
        return []
    if definition.kind == "custom":
        return [f"{definition.name}: a tool for free text has no schema"]
    return [f"{definition.name}: {problem}" for problem in schema_problems(definition.schema)]


def _tool_of(definition: Definition) -> Tool:
    if definition.hosted is not None:
        return make_native_tool(definition.hosted)
    description = definition.description or None
    if definition.kind == "custom":
        return CustomTool(definition.name, description, definition.grammar)
    schema: dict[str, Json] = {"type": "object", "properties": {}} if definition.schema is None else definition.schema
    return FunctionTool(definition.name, description, schema, definition.strict)
