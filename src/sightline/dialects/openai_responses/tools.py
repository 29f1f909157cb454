"""Tools and tool choice of the Responses API, in both directions.

Tools are flat here; the nested shape of Chat is read too. A namespace is read as an opaque tool that holds everything
but its tools, followed by those: its description is written back from there, and is a loss anywhere else. Tools that
are in an `additional_tools` item are tools of the request as well; their item is written, they are not.
"""

from collections.abc import Iterable, Mapping

from sightline.dialects.fields import as_list, as_object, compact, merge, opt_bool, opt_object, opt_str, rest, str_of
from sightline.dialects.json_schemas import fit_strict
from sightline.dialects.losses import describe
from sightline.dialects.openai_responses.client_tools import read_tool
from sightline.dialects.openai_responses.names import NAME
from sightline.model.json import Json, JsonObject
from sightline.model.report import Report, Severity
from sightline.model.request import Request
from sightline.model.tools import CustomTool, FunctionTool, Grammar, OpaqueTool, Tool, ToolChoice

_FUNCTION = frozenset({"type", "name", "description", "parameters", "strict"})
_CUSTOM = frozenset({"type", "name", "description", "format"})
_GRAMMAR = frozenset({"type", "syntax", "definition"})
_NAMESPACE = "namespace"

Spaces = Mapping[str, tuple[str, str | None]]
"""Name and namespace of tools, by the flat name that they have elsewhere."""


def read_tools(value: Json, at: str, namespace: str | None = None) -> list[Tool]:
    """A list of tools, those of its namespaces among them."""
    tools: list[Tool] = []
    if value is not None:
        for index, entry in enumerate(as_list(value, at)):
            tools.extend(_read_tool(as_object(entry, f"{at}/{index}"), f"{at}/{index}", namespace))
    return tools


def _read_tool(holder: JsonObject, at: str, namespace: str | None) -> list[Tool]:
    match holder.get("type"):
        case "function":
            return [_read_function(*_flat(holder, "function", at), at, namespace)]
        case "custom":
            return [_read_custom(*_flat(holder, "custom", at), at, namespace)]
        case "namespace" if namespace is None and holder.get("tools") is not None:
            head: JsonObject = {**holder, "tools": []}
            members = read_tools(holder["tools"], f"{at}/tools", str_of(holder, "name", at))
            return [OpaqueTool(NAME, head, at=at), *members]
        case _:
            return [read_tool(holder, at)]


def _flat(holder: JsonObject, kind: str, at: str) -> tuple[JsonObject, str]:
    """The tool itself, and where it stands: Chat holds it one level deeper."""
    inner = holder.get(kind)
    if isinstance(inner, dict) and "name" not in holder:
        return {**rest(holder, frozenset({kind})), **inner}, f"{at}/{kind}"
    return holder, at


def _read_function(holder: JsonObject, place: str, at: str, namespace: str | None) -> FunctionTool:
    return FunctionTool(
        str_of(holder, "name", place),
        opt_str(holder, "description", place),
        opt_object(holder, "parameters", place),
        opt_bool(holder, "strict", place),
        namespace,
        at=at,
        extras=rest(holder, _FUNCTION),
    )


def _read_custom(holder: JsonObject, place: str, at: str, namespace: str | None) -> CustomTool:
    extras = rest(holder, _CUSTOM)
    grammar: Grammar | None = None
    kept = opt_object(holder, "format", place)
    if kept is not None and kept.get("type") == "grammar":
        # Chat holds the grammar one level deeper.
        inner = opt_object(kept, "grammar", f"{place}/format") or kept
        grammar = Grammar(str_of(inner, "syntax", f"{place}/format"), str_of(inner, "definition", f"{place}/format"))
        kept = rest(inner, _GRAMMAR)
    if kept:
        extras = {**extras, "format": kept}
    return CustomTool(
        str_of(holder, "name", place),
        opt_str(holder, "description", place),
        grammar,
        namespace,
        at=at,
        extras=extras,
    )


def write_tools(tools: Iterable[Tool], report: Report, *, same: bool) -> list[Json]:
    """The list of tools."""
    return _ToolWriter(report, same=same).write(tools)


class _ToolWriter:
    def __init__(self, report: Report, *, same: bool) -> None:
        self._report = report
        self._same = same
        self._out: list[Json] = []
        self._spaces: dict[str, tuple[list[Json], str]] = {}
        self._heads: dict[str, list[Json]] = {}

    def write(self, tools: Iterable[Tool]) -> list[Json]:
        for tool in tools:
            if self._same and tool.at.startswith("/input/"):
                continue
            if tool.cache is not None:
                self._report.lose(tool.cache.at, "cache mark on a tool", f"{NAME} has no cache marks", "option")
            if isinstance(tool, OpaqueTool):
                value = tool.value
                if tool.dialect != NAME:
                    self._report.lose(tool.at, describe(tool), f"{NAME} has no such tool", "option")
                elif isinstance(value, dict) and value.get("type") == _NAMESPACE and value.get("tools") == []:
                    self._heads[tool.at] = self._open(value)
                else:
                    self._heads.get(tool.at.rpartition("/tools/")[0], self._out).append(value)
            else:
                into, at = self._out, "/tools"
                if tool.namespace is not None:
                    if tool.namespace not in self._spaces:  # it has no description yet
                        place = f"/tools/{len(self._out)}/description"
                        self._report.add(place, "description of a namespace", f"{NAME} demands one", "option")
                        self._open({"type": _NAMESPACE, "name": tool.namespace, "description": tool.namespace})
                    into, at = self._spaces[tool.namespace]
                document = _write_tool(tool, f"{at}/{len(into)}", self._report, same=self._same)
                into.append(merge(document, tool.extras) if self._same else document)
        return self._out

    def _open(self, head: JsonObject) -> list[Json]:
        members: list[Json] = []
        self._spaces[str(head.get("name"))] = members, f"/tools/{len(self._out)}/tools"
        self._out.append({**head, "tools": members})
        return members


def _write_tool(tool: FunctionTool | CustomTool, at: str, report: Report, *, same: bool) -> JsonObject:
    if isinstance(tool, CustomTool):
        custom = compact({"type": "custom", "name": tool.name, "description": tool.description})
        if tool.grammar is not None:
            syntax, definition = tool.grammar.syntax, tool.grammar.definition
            custom["format"] = {"type": "grammar", "syntax": syntax, "definition": definition}
        return custom
    document = compact(
        {
            "type": "function",
            "name": tool.name,
            "description": tool.description,
            "parameters": tool.schema,
            "strict": tool.strict if same else fit_strict(tool, report, NAME),
        }
    )
    if not same and tool.schema is None:
        document["parameters"] = None
        report.add(f"{at}/parameters", "parameters of a tool", f"{NAME} demands the field; null says none", "identity")
    if not same and tool.strict is None:
        document["strict"] = False
        report.add(f"{at}/strict", "strict: false", "here a tool is strict unless it says that it is not", "option")
    return document


def read_tool_choice(value: Json, tools: list[Tool]) -> ToolChoice | None:
    """`tool_choice`."""
    at = "/tool_choice"
    if value is None:
        return None
    if isinstance(value, str):
        if value in ("auto", "none", "required"):
            return ToolChoice(value, at=at)  # type: ignore[arg-type] # it is one of these modes
        return ToolChoice("opaque", value=value, at=at)
    holder = as_object(value, at)
    kind = holder.get("type")
    if kind in ("function", "custom"):
        inner, place = _flat(holder, kind, at)
        name = str_of(inner, "name", place)
        extras = rest(inner, frozenset({"type", "name"}))
        if kind != _kind_of(name, tools):
            extras = {**extras, "type": kind}
        return ToolChoice("named", (name,), at=at, extras=extras)
    return _read_allowed(holder, tools, at) or ToolChoice(
        "opaque", _find_forced_built_in(kind, tools), value=value, at=at
    )


def _find_forced_built_in(kind: Json, tools: list[Tool]) -> tuple[str, ...]:
    """The name of the function that stands for the built-in tool which a choice forces."""
    names = [
        tool.functions[0].name
        for tool in tools
        if isinstance(tool, OpaqueTool) and tool.functions and isinstance(tool.value, dict)
        if tool.value.get("type") == kind
    ]
    return tuple(names[:1])


def _read_allowed(holder: JsonObject, tools: list[Tool], at: str) -> ToolChoice | None:
    """An allowed set of client tools; None for anything that could not be written back as it is."""
    nested = holder.get("allowed_tools")
    inner = nested if isinstance(nested, dict) else holder
    mode, allowed = inner.get("mode"), inner.get("tools")
    if holder.get("type") != "allowed_tools" or not isinstance(allowed, list) or mode not in ("auto", "required"):
        return None
    names: list[str] = []
    for entry in allowed:
        kind = entry.get("type") if isinstance(entry, dict) else None
        if not isinstance(entry, dict) or kind not in ("function", "custom"):
            return None
        tool, _ = _flat(entry, kind, at)
        name = tool.get("name")
        if not isinstance(name, str) or kind != _kind_of(name, tools) or len(tool) > len(("type", "name")):
            return None
        names.append(name)
    extras = rest(inner, frozenset({"type", "mode", "tools"}))
    return ToolChoice("auto" if mode == "auto" else "required", tuple(names), at=at, extras=extras) if names else None


def _kind_of(name: str, tools: list[Tool] | tuple[Tool, ...]) -> str:
    return "custom" if any(isinstance(tool, CustomTool) and tool.name == name for tool in tools) else "function"


def write_tool_choice(request: Request, spaces: Spaces, report: Report, *, same: bool) -> Json:
    """The choice; None where there is none to write. A foreign one is kept only as far as its tools are."""
    choice = request.tool_choice
    if choice is None:
        return None
    if choice.mode == "opaque":
        if same:
            return choice.value
        report.lose(choice.at, "tool choice", f"{NAME} has no such choice", "option")
        return None
    names = choice.names if same else _names_in_request(choice, request.tools, spaces, report)
    if names is None:
        return None
    named: list[Json] = [
        {"type": _kind_of(name, request.tools), "name": spaces.get(name, (name, None))[0]} for name in names
    ]
    if choice.mode == "named":
        return {**as_object(named[0], choice.at), **(choice.extras if same else {})}
    if not named:
        return choice.mode
    allowed: JsonObject = {"type": "allowed_tools", "mode": choice.mode, "tools": named}
    return merge(allowed, choice.extras) if same else allowed


def _names_in_request(
    choice: ToolChoice, tools: tuple[Tool, ...], spaces: Spaces, report: Report
) -> tuple[str, ...] | None:
    """The names of a choice that are tools of the request; None if nothing is left to choose."""
    if not spaces and all(isinstance(tool, OpaqueTool) and tool.dialect != NAME for tool in tools):
        severity: Severity = "option" if choice.names or choice.mode == "required" else "identity"
        report.lose(choice.at, "tool choice", "there is no tool to choose", severity)
        return None
    known = {*spaces, *(tool.name for tool in tools if not isinstance(tool, OpaqueTool))}
    for name in choice.names:
        if name not in known:
            report.lose(choice.at, f"choice of the tool {name!r}", "there is no such tool", "option")
    kept = tuple(name for name in choice.names if name in known)
    return None if choice.names and not kept else kept
