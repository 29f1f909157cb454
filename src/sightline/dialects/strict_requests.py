"""Requests of our own whose tools or output schema are strict, with schemas that OpenAI's strict mode takes."""

from collections.abc import Mapping
from dataclasses import dataclass

import msgspec

from sightline.dialects.strict_schema import strict_schema
from sightline.model.json import JsonObject
from sightline.model.options import SchemaFormat
from sightline.model.report import Report
from sightline.model.request import Request
from sightline.model.tools import FunctionTool, Tool

WHY = "strict schemas require it"


@dataclass(frozen=True, slots=True)
class _Places:
    """Where a dialect has what belongs to a tool, and the schema of the answer."""

    tool: str
    output: str


_PLACES: Mapping[str, _Places] = {
    "openai-responses": _Places("/tools/{}", "/text/format/schema"),
    "openai-chat": _Places("/tools/{}/function", "/response_format/json_schema/schema"),
}


def with_strict_schemas(request: Request, dialect: str, report: Report) -> Request:
    """The request with its strict schemas made valid, each change reported as an addition. One that cannot be made so
    is not strict any more, which is reported as a loss. What was read from this dialect stays as it was written."""
    places = _PLACES.get(dialect)
    if places is None or request.dialect == dialect:
        return request
    tools = tuple(_tool(tool, places.tool.format(n), report) for n, tool in enumerate(request.tools))
    options = request.options
    if isinstance(options.format, SchemaFormat) and options.format.strict:
        made = _schema(options.format.schema, places.output, report)
        changed = {"strict": False} if made is None else {"schema": made}
        options = msgspec.structs.replace(options, format=msgspec.structs.replace(options.format, **changed))
    return msgspec.structs.replace(request, tools=tools, options=options)


def _tool(tool: Tool, at: str, report: Report) -> Tool:
    if not isinstance(tool, FunctionTool) or not tool.strict:
        return tool
    made = _schema(tool.schema or {}, f"{at}/parameters", report)
    if made is None:
        return msgspec.structs.replace(tool, strict=False)
    description = tool.description
    if not (description or "").strip():
        description = f"The tool {tool.name}."
        report.add(f"{at}/description", "added", "strict tools need a description")
    return msgspec.structs.replace(tool, schema=made, description=description)


def _schema(schema: JsonObject, at: str, report: Report) -> JsonObject | None:
    made = strict_schema(schema)
    if made.obstacle is not None:
        place, why = made.obstacle
        report.lose(f"{at}{place}", "strict", f"the schema cannot be strict here: {why}", "option")
        return None
    for place, what in made.changes:
        report.add(f"{at}{place}", what, WHY)
    return made.schema
