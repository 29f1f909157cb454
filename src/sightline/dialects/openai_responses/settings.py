"""Reads and writes options, tools and tool choice of the Responses API: plain options by table, and structured ones.

Tools are flat here; the nested form of Chat Completions is read too. A namespace is read as an opaque tool that holds
everything except its tools, followed by its tools: its description is written back from there, and is a loss in any
other dialect. Tools in an `additional_tools` item are tools of the request as well; when it is written, their item is
written and they are not.
"""

from collections.abc import Iterable, Mapping

from sightline.catalog.fitting import effort_for
from sightline.dialects.fields import as_list, as_object, compact, merge, opt_object, opt_str, rest, str_of
from sightline.dialects.json_schemas import fit_strict
from sightline.dialects.losses import describe
from sightline.dialects.openai_chat.settings import (
    FORMATS,
    RESPONSE_NAME,
    lose_reasoning,
    read_function,
    read_schema_format,
)
from sightline.dialects.openai_responses.client_tools import read_tool
from sightline.dialects.openai_responses.names import LOGPROBS, NAME
from sightline.dialects.option_table import (
    OF_RESPONSES,
    Table,
    fit_openai_ids,
    fit_tier,
    lose_default,
    options_of,
    read_options,
    reasoning_of,
    same_names,
    top_level_keys,
    write_options,
)
from sightline.dialects.tool_names import fit_choice, tool_names
from sightline.model.json import Json, JsonObject
from sightline.model.report import Report
from sightline.model.request import (
    ADDED,
    CustomTool,
    FunctionTool,
    Grammar,
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
        "temperature", "top_p", "top_logprobs", "store", "include", "previous_response_id", "metadata", "user"
    ),
    **same_names("safety_identifier", "service_tier", "stream"),
    "max_tokens": (("max_output_tokens",),),
    "verbosity": (("text", "verbosity"),),
    "cache_key": (("prompt_cache_key",),),
    "cache_retention": (("prompt_cache_retention",),),
}

OPTION_KEYS = top_level_keys(TABLE) | {"text", "reasoning"}

_TEXT = frozenset({"format", "verbosity"})
_API_DEFAULTS: Mapping[str, object] = {
    "n": 1,
    "presence_penalty": 0,
    "frequency_penalty": 0,
    "stop": (),
    "logit_bias": {},
}
"""Options that have no place here, with the values that ask for what the API does anyway."""
_HANDLED_SEPARATELY = frozenset({"include_usage", "logprobs"})
"""Usage is always sent; logprobs are a word of `include`."""
_OFF = "none"


def read_all(document: JsonObject) -> tuple[Options, JsonObject]:
    """Read every option, and the other members of the `text` object."""
    found, places = read_options(document, TABLE)
    # The word of `include` that asks for logprobs is an option of its own in every other dialect.
    include = found.get("include")
    if isinstance(include, tuple) and LOGPROBS in include:
        place = include.index(LOGPROBS)
        found["include"] = (*include[:place], *include[place + 1 :]) or None
        found["logprobs"] = True
        if len(include) == 1:
            del places["include"]
        places["logprobs"] = f"/include/{place}"
    text = opt_object(document, "text", "")
    extras: JsonObject = {}
    if text is not None:
        spare = rest(text, _TEXT)
        output_format = read_format(text.get("format"), "/text/format")
        if output_format is not None:
            found["format"] = output_format
        elif text.get("format") is not None:
            spare = {**spare, "format": text["format"]}
        if spare or not text:
            extras = {"text": spare}
    found["reasoning"] = read_reasoning(document)
    return options_of(found, places), extras


def read_format(value: Json, at: str) -> OutputFormat | None:
    """Read `text.format`; None for an unknown kind."""
    if value is None:
        return None
    holder = as_object(value, at)
    kind = str_of(holder, "type", at)
    if kind in FORMATS:
        return FORMATS[kind](at=at, extras=rest(holder, frozenset({"type"})))
    if kind != "json_schema":
        return None
    return read_schema_format(as_object(holder.get("schema"), f"{at}/schema"), holder, at)


def read_reasoning(document: JsonObject) -> Reasoning | None:
    """Read `reasoning`. Its `mode` is not modelled and stays among the extras; effort `none` switches thinking off."""
    holder = opt_object(document, "reasoning", "")
    if holder is None:
        return None
    at = "/reasoning"
    effort = opt_str(holder, "effort", at)
    key = "summary" if holder.get("summary") is not None else "generate_summary"
    summary = opt_str(holder, key, at)
    mode = "off" if effort == _OFF else None
    return reasoning_of(
        at,
        rest(holder, frozenset({"effort", key})),
        mode=(mode, f"{at}/effort"),
        effort=(None if mode else effort, f"{at}/effort"),
        summary=(summary, f"{at}/{key}"),
    )


def write_all(options: Options, document: JsonObject, report: Report, *, same: bool) -> None:
    """Write every option in its place, and report the ones that have none."""
    if not same:
        options = fit_tier(fit_openai_ids(options, report, NAME), OF_RESPONSES, report, NAME)
    if options.include_usage is not None and not same:
        place = options.place("include_usage")
        report.lose(place, "token counts requested", f"{NAME} always sends them", "identity")
    write_options(
        options, TABLE, document, report, dialect=NAME, same=same, skip=_HANDLED_SEPARATELY, defaults=_API_DEFAULTS
    )
    if options.logprobs is False:
        lose_default(options, "logprobs", report, NAME)
    if options.places.get("include") == ADDED:
        for word in options.include or ():
            report.add("/include", word, "without it the model's reasoning could not come back with the next turn")
    if options.logprobs:
        include: list[Json] = list(options.include or ())
        index = options.places.get("logprobs", "").removeprefix("/include/")
        include.insert(int(index) if index.isdigit() else len(include), LOGPROBS)
        document["include"] = include
    if options.format is not None:
        text = as_object(document.setdefault("text", {}), "/text")
        text["format"] = write_format(options.format, report, same=same)
    if options.reasoning is not None:
        reasoning = write_reasoning(options.reasoning, report, same=same)
        if reasoning or same:
            document["reasoning"] = reasoning


def write_format(value: OutputFormat, report: Report, *, same: bool) -> JsonObject:
    """The format as `text.format`."""
    extras = value.extras if same else {}
    if not isinstance(value, SchemaFormat):
        return {"type": "text" if isinstance(value, PlainFormat) else "json_object", **extras}
    document: JsonObject = {
        "type": "json_schema",
        "name": value.name,
        "description": value.description,
        "strict": value.strict if same else fit_strict(value, report, NAME),
    }
    if value.name is None and not same:
        document["name"] = RESPONSE_NAME
        report.add("/text/format/name", "name of the schema", f"{NAME} demands one", "identity")
    return merge({**compact(document), "schema": value.schema}, extras)


def write_reasoning(reasoning: Reasoning, report: Report, *, same: bool) -> JsonObject:
    """The settings as `reasoning`: an effort, and a summary unless none is wanted."""
    effort = reasoning.effort
    if effort is None and reasoning.mode == "off":
        effort = _OFF
    elif effort is None and reasoning.budget is not None:
        effort = effort_for(reasoning.budget)
    if same:
        key = reasoning.places.get("summary", "summary").rpartition("/")[2]
        return merge(compact({"effort": effort, key: reasoning.summary}), reasoning.extras)
    lose_reasoning(reasoning, report, NAME, summary=False)
    if reasoning.places.get("summary") == ADDED:
        report.add("/reasoning/summary", f"reasoning summary {reasoning.summary!r}", "the client shows what it thinks")
    return compact({"effort": effort, "summary": None if reasoning.summary == _OFF else reasoning.summary})


_FUNCTION = frozenset({"type", "name", "description", "parameters", "strict"})
_CUSTOM = frozenset({"type", "name", "description", "format"})
_GRAMMAR = frozenset({"type", "syntax", "definition"})
_NAMESPACE = "namespace"

Spaces = Mapping[str, tuple[str, str | None]]
"""Name and namespace of tools, by the flat name that they have in other dialects."""


def read_tools(value: Json, at: str, namespace: str | None = None) -> list[Tool]:
    """Read a list of tools, including those of its namespaces."""
    tools: list[Tool] = []
    if value is not None:
        for index, entry in enumerate(as_list(value, at)):
            tools.extend(_read_tool(as_object(entry, f"{at}/{index}"), f"{at}/{index}", namespace))
    return tools


def _read_tool(holder: JsonObject, at: str, namespace: str | None) -> list[Tool]:
    match holder.get("type"):
        case "function":
            # The API itself refuses the nested form (400, "Missing required parameter: 'tools[0].name'"), but clients
            # that were written for Chat Completions send it (dspy#9943, any-llm#1310).
            inner, place = _flat(holder, "function", at)
            return [read_function(inner, place, at, rest(inner, _FUNCTION), namespace)]
        case "custom":
            return [_read_custom(*_flat(holder, "custom", at), at, namespace)]
        case "namespace" if namespace is None and holder.get("tools") is not None:
            head: JsonObject = {**holder, "tools": []}
            members = read_tools(holder["tools"], f"{at}/tools", str_of(holder, "name", at))
            return [OpaqueTool(NAME, head, at=at), *members]
        case _:
            return [read_tool(holder, at)]


def _flat(holder: JsonObject, kind: str, at: str) -> tuple[JsonObject, str]:
    """The tool itself, and its place: Chat Completions has it one level deeper."""
    inner = holder.get(kind)
    if isinstance(inner, dict) and "name" not in holder:
        return {**rest(holder, frozenset({kind})), **inner}, f"{at}/{kind}"
    return holder, at


def _read_custom(holder: JsonObject, place: str, at: str, namespace: str | None) -> CustomTool:
    extras = rest(holder, _CUSTOM)
    grammar: Grammar | None = None
    kept = opt_object(holder, "format", place)
    if kept is not None and kept.get("type") == "grammar":
        # Chat Completions has the grammar one level deeper.
        inner = opt_object(kept, "grammar", f"{place}/format") or kept
        grammar = Grammar(str_of(inner, "syntax", f"{place}/format"), str_of(inner, "definition", f"{place}/format"))
        kept = rest(inner, _GRAMMAR)
    if kept:
        extras = {**extras, "format": kept}
    return CustomTool(
        str_of(holder, "name", place), opt_str(holder, "description", place), grammar, namespace, at=at, extras=extras
    )


def write_tools(tools: Iterable[Tool], report: Report, *, same: bool) -> list[Json]:
    """A list of tools; those of a namespace are written inside it."""
    out: list[Json] = []
    spaces: dict[str, tuple[list[Json], str]] = {}
    heads: dict[str, list[Json]] = {}

    def open_namespace(head: JsonObject) -> list[Json]:
        members: list[Json] = []
        spaces[str(head.get("name"))] = members, f"/tools/{len(out)}/tools"
        out.append({**head, "tools": members})
        return members

    for tool in tools:
        if same and tool.at.startswith("/input/"):
            continue
        if tool.cache is not None:
            report.lose(tool.cache.at, "cache mark on a tool", f"{NAME} has no cache marks", "option")
        if isinstance(tool, OpaqueTool):
            value = tool.value
            if tool.dialect != NAME:
                report.lose(tool.at, describe(tool), f"{NAME} has no such tool", "option")
            elif isinstance(value, dict) and value.get("type") == _NAMESPACE and value.get("tools") == []:
                heads[tool.at] = open_namespace(value)
            else:
                heads.get(tool.at.rpartition("/tools/")[0], out).append(value)
        else:
            into, at = out, "/tools"
            if tool.namespace is not None:
                if tool.namespace not in spaces:  # it has no description yet
                    place = f"/tools/{len(out)}/description"
                    report.add(place, "description of a namespace", f"{NAME} demands one", "option")
                    open_namespace({"type": _NAMESPACE, "name": tool.namespace, "description": tool.namespace})
                into, at = spaces[tool.namespace]
            document = _write_tool(tool, f"{at}/{len(into)}", report, same=same)
            into.append(merge(document, tool.extras) if same else document)
    return out


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
    """Read `tool_choice`."""
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
    """The name of the function that replaces the built-in tool which a choice forces; empty if there is none."""
    names = [
        tool.functions[0].name
        for tool in tools
        if isinstance(tool, OpaqueTool) and tool.functions and isinstance(tool.value, dict)
        if tool.value.get("type") == kind
    ]
    return tuple(names[:1])


def _read_allowed(holder: JsonObject, tools: list[Tool], at: str) -> ToolChoice | None:
    """An allowed set of client tools; None for anything that could not be written back unchanged."""
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
    """The choice, or None if there is none to write. A foreign choice is kept only as far as its tools exist."""
    choice = request.tool_choice
    if not same:
        has_tools = bool(spaces) or any(not isinstance(t, OpaqueTool) or t.dialect == NAME for t in request.tools)
        choice = fit_choice(choice, {*spaces, *tool_names(request.tools)}, report, NAME, has_tools=has_tools)
    if choice is None:
        return None
    if choice.mode == "opaque":
        return choice.value
    named: list[Json] = [
        {"type": _kind_of(name, request.tools), "name": spaces.get(name, (name, None))[0]} for name in choice.names
    ]
    if choice.mode == "named":
        return {**as_object(named[0], choice.at), **(choice.extras if same else {})}
    if not named:
        return choice.mode
    allowed: JsonObject = {"type": "allowed_tools", "mode": choice.mode, "tools": named}
    return merge(allowed, choice.extras) if same else allowed
