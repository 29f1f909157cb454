"""Tools that a case declares: the model may call them, and nobody runs them. Inline, or in a JSON file of their own."""

from collections.abc import Generator

import msgspec

from sightline.catalog.problem import quote_word
from sightline.evals.core.place import SuiteProblem
from sightline.evals.core.reading.findings import SuiteFindings
from sightline.evals.core.reading.node import Node
from sightline.evals.core.reading.paths import candidates, refusal_of
from sightline.evals.core.reading.requests import Need
from sightline.evals.core.reading.yaml_text import read_yaml
from sightline.evals.core.suite import Case
from sightline.model.tools import CustomTool, FunctionTool, OpaqueTool, Tool
from sightline.wire.jsontext import MISFIT

_EXAMPLE = "Write {name: …, description: …, parameters: {type: object, …}}."
_KEYS = ("type", "name", "description", "parameters", "input_schema", "schema", "strict", "namespace")
_SCHEMAS = ("parameters", "input_schema", "schema")
_OTHERS = {"custom": CustomTool, "opaque": OpaqueTool}


def with_tools(case: Case, owner: Node, file: str, findings: SuiteFindings) -> Generator[Need, bytes | None, Case]:
    """The case with its tools. Each name stands once: a model could not say which of two it means. Where their file is
    missing, this case cannot be sent, and the others can."""
    listed = owner.get("tools")
    if listed is None:
        return case
    if listed.text is not None:
        found = yield from _in_file(listed, listed.text, file, findings, case.id)
        if found is None:
            return msgspec.structs.replace(case, missing=listed.text)
        listed = found
    tools = _read(listed, findings)
    return msgspec.structs.replace(case, tools=tools) if tools else case


def _read(listed: Node, findings: SuiteFindings) -> tuple[Tool, ...]:
    read = [(each, _tool(each, findings)) for each in findings.items(listed, "tools", _EXAMPLE)]
    names: set[str] = set()
    for node, tool in read:
        name = getattr(tool, "name", "")
        if name and name in names:
            findings.wrong(node, f"the tool {quote_word(name)} stands here twice", "Remove one of them.")
        names.add(name)
    return tuple(tool for _, tool in read if tool is not None)


def _in_file(
    node: Node, path: str, file: str, findings: SuiteFindings, case: str
) -> Generator[Need, bytes | None, Node | None]:
    refusal = refusal_of(path)
    if refusal is not None:
        findings.wrong(node, *refusal)
        return None
    for found in dict.fromkeys((*candidates(node.place.file, path), *candidates(file, path))):
        data = yield Need(found)
        if data is not None:
            document = read_yaml(data, found)
            if isinstance(document, SuiteProblem):
                findings.add([document])
                return None
            return document
    hint = "Name a JSON file with a list of tools, or list them here."
    findings.wrong_at(node.place, node.path, f"there is no file {quote_word(path)}", hint, case=case)
    return None


def _tool(node: Node, findings: SuiteFindings) -> Tool | None:
    if not findings.is_mapping(node, "a tool", _EXAMPLE):
        return None
    kind = findings.choice(node, "type", ("function", *_OTHERS))
    if kind in _OTHERS:
        try:
            tool: CustomTool | OpaqueTool = msgspec.convert(node.json, _OTHERS[kind])
        except MISFIT as error:
            findings.wrong(node, f"it is no {kind} tool: {error}", "Declare a function in its place.")
            return None
        return tool
    inner = node.get("function")
    if inner is not None:
        findings.check_keys(node, ("type", "function"), "a tool")
        if not findings.is_mapping(inner, "function", _EXAMPLE):
            return None
        node = inner
    return _function(node, findings)


def _function(node: Node, findings: SuiteFindings) -> FunctionTool | None:
    findings.check_keys(node, _KEYS, "a tool")
    name = findings.text(node, "name")
    if not name.strip():
        findings.wrong(node, "the tool has no name", _EXAMPLE)
        return None
    schemas = [each for key in _SCHEMAS if (each := node.get(key)) is not None]
    if len(schemas) > 1:
        findings.wrong(node, "the tool has two schemas", "Keep parameters.")
    schema = None
    if schemas and findings.is_mapping(schemas[0], "the schema of a tool", "Write {type: object, properties: …}."):
        schema = {key: each.json for key, each in schemas[0].members.items()}
    return FunctionTool(
        name=name,
        description=findings.text(node, "description") or None,
        schema=schema,
        strict=findings.flag(node, "strict"),
        namespace=findings.text(node, "namespace") or None,
    )
