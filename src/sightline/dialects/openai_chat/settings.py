"""Reads and writes options, tools and tool choice of Chat Completions: plain options by table, the two structured ones
(output format and reasoning), and the legacy `functions`."""

from collections.abc import Mapping

from msgspec.structs import replace

from sightline.catalog.fitting import effort_for
from sightline.dialects.fields import (
    as_list,
    as_object,
    as_str,
    compact,
    merge,
    nest_extras,
    opt_bool,
    opt_object,
    opt_str,
    rest,
    str_of,
    unknown,
)
from sightline.dialects.json_schemas import fit_strict
from sightline.dialects.losses import describe
from sightline.dialects.openai_chat.names import NAME
from sightline.dialects.option_table import Table, same_names, top_level_keys
from sightline.dialects.tool_names import fit_choice, tool_names
from sightline.model.json import Json, JsonObject
from sightline.model.report import Report, Severity
from sightline.model.request import (
    CustomTool,
    FunctionTool,
    Grammar,
    JsonFormat,
    OpaqueTool,
    Options,
    OutputFormat,
    PlainFormat,
    Reasoning,
    Request,
    SchemaFormat,
    Tool,
    ToolChoice,
)

TABLE: Table = {
    **same_names(
        "temperature", "top_p", "stop", "seed", "presence_penalty", "frequency_penalty", "logit_bias", "logprobs"
    ),
    **same_names(
        "top_logprobs", "n", "verbosity", "store", "metadata", "user", "safety_identifier", "service_tier", "stream"
    ),
    "max_tokens": (("max_completion_tokens",), ("max_tokens",)),
    "cache_key": (("prompt_cache_key",),),
    "cache_retention": (("prompt_cache_retention",),),
    "include_usage": (("stream_options", "include_usage"),),
}

READ_TABLE: Table = {**TABLE, **same_names("top_k")}
"""Many servers of this dialect take `top_k`; the vendor's own refuses it, so it is read but never introduced."""

OPTION_KEYS = top_level_keys(READ_TABLE)

RENAMED: Mapping[str, tuple[str, ...]] = {"max_tokens_field": tuple(path[0] for path in TABLE["max_tokens"])}
"""The quirks that rename a field, each with all names of the field, the usual one first. Each of them is read."""
OTHER_NAMES = tuple((name, path[0]) for name, paths in READ_TABLE.items() for path in paths[1:])
"""The second names of options."""

MOST_STOPS = 4
RESPONSE_NAME = "response"
FORMATS: Mapping[str, type[PlainFormat | JsonFormat]] = {"text": PlainFormat, "json_object": JsonFormat}
_SCHEMA = frozenset({"type", "name", "schema", "strict", "description"})


def read_format(value: Json, at: str) -> tuple[OutputFormat | None, JsonObject]:
    """Read `response_format`. Returns the format, and the unmodelled fields beside its schema."""
    if value is None:
        return None, {}
    holder = as_object(value, at)
    kind = str_of(holder, "type", at)
    if kind in FORMATS:
        return FORMATS[kind](at=at, extras=rest(holder, frozenset({"type"}))), {}
    if kind != "json_schema":
        raise unknown(kind, f"{at}/type", "response format", ("text", "json_object", "json_schema"))
    inner_at = f"{at}/json_schema"
    inner = as_object(holder.get("json_schema"), inner_at)
    output = read_schema_format(opt_object(inner, "schema", inner_at) or {}, inner, inner_at)
    return output, rest(holder, frozenset({"type", "json_schema"}))


def read_schema_format(schema: JsonObject, holder: JsonObject, at: str) -> SchemaFormat:
    """The format for a schema, with the fields beside it."""
    return SchemaFormat(
        schema,
        opt_str(holder, "name", at),
        opt_str(holder, "description", at),
        opt_bool(holder, "strict", at),
        at=at,
        extras=rest(holder, _SCHEMA),
    )


def write_format(value: OutputFormat, report: Report, *, same: bool) -> JsonObject:
    """The format as `response_format`."""
    extras = value.extras if same else {}
    if not isinstance(value, SchemaFormat):
        return {"type": "text" if isinstance(value, PlainFormat) else "json_object", **extras}
    inner: JsonObject = {
        "name": value.name,
        "description": value.description,
        "strict": value.strict if same else fit_strict(value, report, NAME),
        "schema": value.schema or None,
    }
    if value.name is None:
        inner["name"] = RESPONSE_NAME
        report.add("/response_format/json_schema/name", "name of the schema", f"{NAME} demands one", "identity")
    return {"type": "json_schema", "json_schema": merge(compact(inner), extras)}


def write_reasoning(options: Options, report: Report) -> str | None:
    """The effort; anything else in the reasoning settings has no field here."""
    reasoning = options.reasoning
    if reasoning is None:
        return None
    effort = "none" if reasoning.mode == "off" and reasoning.effort is None else reasoning.effort
    if effort is None and reasoning.budget is not None:
        effort = effort_for(reasoning.budget)
    lose_reasoning(reasoning, report, NAME, summary=True)
    return effort


def lose_reasoning(reasoning: Reasoning, report: Report, dialect: str, *, summary: bool) -> None:
    """Report the reasoning settings that an effort does not express."""

    def lose(name: str, what: str, why: str, severity: Severity = "option") -> None:
        report.lose(reasoning.places.get(name, reasoning.at), what, f"{dialect} {why}", severity)

    if reasoning.budget is not None:
        why = f"takes an effort; the nearest effort is {effort_for(reasoning.budget)}"
        lose("budget", f"reasoning budget of {reasoning.budget} tokens", why)
    if reasoning.mode in ("on", "adaptive") and reasoning.effort is None and reasoning.budget is None:
        lose("mode", f"reasoning {reasoning.mode}", "takes an effort only")
    elif reasoning.mode is not None and reasoning.effort is not None:
        lose("mode", f"reasoning {reasoning.mode}", "says it by the effort", "identity")
    if summary and reasoning.summary not in (None, "none"):
        lose("summary", "reasoning summary", "cannot ask for one")


_FUNCTION = frozenset({"name", "description", "parameters", "strict"})
_CUSTOM = frozenset({"name", "description", "format"})
_MODES = ("auto", "none", "required")


def read_tools(document: JsonObject) -> tuple[Tool, ...]:
    """Read `tools`, then the legacy `functions`."""
    tools: list[Tool] = []
    for index, value in enumerate(as_list(document.get("tools") or [], "/tools")):
        tools.append(_read_tool(value, f"/tools/{index}"))
    for index, value in enumerate(as_list(document.get("functions") or [], "/functions")):
        at = f"/functions/{index}"
        inner = as_object(value, at)
        tools.append(read_function(inner, at, at, rest(inner, _FUNCTION)))
    return tuple(tools)


def _read_tool(value: Json, at: str) -> Tool:
    holder = as_object(value, at)
    kind = holder.get("type")
    inner = holder.get(str(kind))
    if kind not in ("function", "custom") or not isinstance(inner, dict):
        return OpaqueTool(NAME, value, at=at)
    inner_at = f"{at}/{kind}"
    extras = rest(holder, frozenset({"type", kind}))
    if kind == "function":
        return read_function(inner, inner_at, at, nest_extras(extras, kind, rest(inner, _FUNCTION)))
    grammar, spare = _read_grammar(inner.get("format"), f"{inner_at}/format")
    unread = rest(inner, _CUSTOM)
    return CustomTool(
        str_of(inner, "name", inner_at),
        opt_str(inner, "description", inner_at),
        grammar,
        at=at,
        extras=nest_extras(extras, kind, nest_extras(unread, "format", spare)),
    )


def read_function(
    inner: JsonObject, place: str, at: str, extras: JsonObject, namespace: str | None = None
) -> FunctionTool:
    """Read a function whose fields are at `place` in the tool at `at`."""
    return FunctionTool(
        str_of(inner, "name", place),
        opt_str(inner, "description", place),
        opt_object(inner, "parameters", place),
        opt_bool(inner, "strict", place),
        namespace,
        at=at,
        extras=extras,
    )


def _read_grammar(value: Json, at: str) -> tuple[Grammar | None, JsonObject]:
    """The grammar and its unmodelled fields; free text, whether stated or not, is None."""
    if value is None or value == {"type": "text"}:
        return None, {}
    holder = as_object(value, at)
    if holder.get("type") != "grammar":
        return None, holder
    inner = as_object(holder.get("grammar"), f"{at}/grammar")
    grammar = Grammar(str_of(inner, "syntax", f"{at}/grammar"), str_of(inner, "definition", f"{at}/grammar"))
    unread = rest(inner, frozenset({"syntax", "definition"}))
    return grammar, nest_extras(rest(holder, frozenset({"type", "grammar"})), "grammar", unread)


def write_tools(request: Request, document: JsonObject, report: Report, *, same: bool) -> None:
    """Write `tools`, and `functions` for those that were read from there."""
    tools: list[Json] = []
    functions: list[Json] = []
    for tool in request.tools:
        if tool.cache is not None:
            report.lose(tool.cache.at, "cache mark on a tool", f"{NAME} has no cache marks", "option")
        extras = tool.extras if same else {}
        match tool:
            case FunctionTool() if same and tool.at.startswith("/functions/"):
                functions.append(merge(_write_function(tool), extras))
            case FunctionTool():
                if not same:
                    tool = replace(tool, strict=fit_strict(tool, report, NAME))
                tools.append(merge({"type": "function", "function": _write_function(tool)}, extras))
            case CustomTool():
                custom = compact({"name": tool.name, "description": tool.description})
                if tool.grammar is not None:
                    grammar: JsonObject = {"syntax": tool.grammar.syntax, "definition": tool.grammar.definition}
                    custom["format"] = {"type": "grammar", "grammar": grammar}
                tools.append(merge({"type": "custom", "custom": custom}, extras))
            case OpaqueTool(dialect, value) if dialect == NAME:
                tools.append(value)
            case _:
                report.lose(tool.at, describe(tool), f"{NAME} has no such tool", "option")
    if tools:
        document["tools"] = tools
    if functions:
        document["functions"] = functions


def _write_function(tool: FunctionTool) -> JsonObject:
    return compact(
        {"name": tool.name, "description": tool.description, "parameters": tool.schema, "strict": tool.strict}
    )


def read_tool_choice(document: JsonObject) -> ToolChoice | None:
    """Read `tool_choice`, or the legacy `function_call`."""
    value, at = document.get("tool_choice"), "/tool_choice"
    if value is None:
        value, at = document.get("function_call"), "/function_call"
        if isinstance(value, dict):
            extras = rest(value, frozenset({"name"}))
            return ToolChoice("named", (str_of(value, "name", at),), at=at, extras=extras)
    if value is None:
        return None
    if isinstance(value, str):
        return ToolChoice(value, at=at) if value in _MODES else ToolChoice("opaque", value=value, at=at)  # type: ignore[arg-type] # checked against the modes
    return _read_choice(as_object(value, at), at)


def _read_choice(holder: JsonObject, at: str) -> ToolChoice:
    kind = holder.get("type")
    if kind in ("function", "custom") and isinstance(inner := holder.get(str(kind)), dict):
        unread = rest(inner, frozenset({"name"}))
        extras = nest_extras(rest(holder, frozenset({"type", str(kind)})), str(kind), unread)
        return ToolChoice("named", (str_of(inner, "name", f"{at}/{kind}"),), at=at, extras=extras)
    if kind == "allowed_tools" and isinstance(inner := holder.get("allowed_tools"), dict):
        mode = as_str(inner.get("mode"), f"{at}/allowed_tools/mode")
        names = _read_allowed_names(as_list(inner.get("tools"), f"{at}/allowed_tools/tools"))
        if mode in ("auto", "required") and names:
            unread = rest(inner, frozenset({"mode", "tools"}))
            extras = nest_extras(rest(holder, frozenset({"type", "allowed_tools"})), "allowed_tools", unread)
            return ToolChoice("auto" if mode == "auto" else "required", names, at=at, extras=extras)
    return ToolChoice("opaque", value=holder, at=at)


def _read_allowed_names(tools: list[Json]) -> tuple[str, ...]:
    """The names of an allowed set; empty if it holds anything but names of functions and custom tools."""
    names: list[str] = []
    for tool in tools:
        kind = tool.get("type") if isinstance(tool, dict) else None
        inner = tool.get(kind) if isinstance(tool, dict) and kind in ("function", "custom") else None
        name = inner.get("name") if isinstance(inner, dict) else None
        if not isinstance(name, str) or tool != {"type": kind, kind: {"name": name}}:
            return ()
        names.append(name)
    return tuple(names)


def write_tool_choice(request: Request, document: JsonObject, report: Report, *, same: bool) -> None:
    """Write the choice as `tool_choice`, or as `function_call` if it was read from there."""
    choice = request.tool_choice
    if not same:
        choice = fit_choice(choice, tool_names(request.tools), report, NAME, has_tools="tools" in document)
    if choice is None:
        return
    key = "function_call" if same and choice.at == "/function_call" else "tool_choice"
    extras = choice.extras if same else {}
    custom = {tool.name for tool in request.tools if isinstance(tool, CustomTool)}

    def write_forced_tool(name: str) -> JsonObject:
        kind = "custom" if name in custom else "function"
        return {"type": kind, kind: {"name": name}}

    if choice.mode == "opaque":
        document[key] = choice.value
    elif choice.mode == "named":
        name = choice.names[0]
        document[key] = merge({"name": name} if key == "function_call" else write_forced_tool(name), extras)
    elif choice.names:
        allowed: JsonObject = {"mode": choice.mode, "tools": [write_forced_tool(name) for name in choice.names]}
        document[key] = merge({"type": "allowed_tools", "allowed_tools": allowed}, extras)
    else:
        document[key] = choice.mode


def write_parallel(request: Request, document: JsonObject, report: Report, *, same: bool) -> None:
    """Write `parallel_tool_calls`, which the API takes only together with tools."""
    parallel = request.parallel_tool_calls
    if parallel is None:
        return
    if same or "tools" in document:
        document["parallel_tool_calls"] = parallel
    else:
        report.lose(request.parallel_at, "whether calls may be parallel", "there is no tool to call", "identity")
