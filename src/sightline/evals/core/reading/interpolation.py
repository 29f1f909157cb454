"""`{{ name }}` from a case's variables and `${{ NAME }}` from the environment, in a tree of nodes."""

import re
from collections.abc import Callable, Mapping
from dataclasses import replace

from sightline.catalog.problem import likely, quote_word
from sightline.evals.core.reading.findings import SuiteFindings
from sightline.evals.core.reading.node import Node, node_of
from sightline.model.json import Json, JsonObject
from sightline.wire import jsontext

_ENVIRONMENT = re.compile(r"\$\{\{\s*([A-Za-z_][A-Za-z0-9_]*)\s*\}\}")
_VARIABLE = re.compile(r"(?<!\$)\{\{\s*([A-Za-z_][A-Za-z0-9_.]*)\s*\}\}")
_GRADERS = frozenset({"assertions", "evaluators", "assert"})
_NUMBER = re.compile(r"-?(?:0|[1-9][0-9]{0,15})(?:\.[0-9]+)?")

GRADERS_OWN = frozenset(
    {
        *("input", "output", "expected_output", "criteria", "metadata", "metadata_json"),
        *("rubrics", "rubrics_json", "file_changes", "tool_calls", "question", "answer", "reference_answer"),
    }
)
"""Names that a grader's prompt is filled with when it is graded; a variable of a case does not take their place."""


def with_environment(node: Node, environment: Mapping[str, str], findings: SuiteFindings) -> Node:
    """The tree with the environment's values. A text that is one reference becomes the number or truth that it names.

    A name that is not set is an error: an empty text in its place would be sent and believed.
    """

    def fill(node: Node, text: str) -> Node:
        found = list(_ENVIRONMENT.finditer(text))
        missing = [match[1] for match in found if match[1] not in environment]
        for name in missing:
            hint = likely(name, environment, alike=0.8) or f"Set it, or write the value in place of ${{{{ {name} }}}}."
            findings.wrong(node, f"the environment has no {name}", hint)
        if missing:
            return node
        if len(found) == 1 and found[0][0] == text.strip():
            return replace(node, value=_parse_scalar(environment[found[0][1]]))
        return replace(node, value=_ENVIRONMENT.sub(lambda match: environment[match[1]], text))

    return _map_texts(node, fill, "${{")


def with_variables(node: Node, variables: JsonObject, findings: SuiteFindings) -> Node:
    """The tree with a case's variables. A text that is one reference becomes the value itself, whatever its type.

    Without variables nothing is a reference. With them, a name that is not among them stays as it stands, and that is
    told. Within graders, the names that their own prompts are filled with are left alone.
    """
    if not variables:
        return node

    def fill(node: Node, text: str) -> Node:
        kept = frozenset() if _GRADERS.isdisjoint(node.path) else GRADERS_OWN
        found = [match for match in _VARIABLE.finditer(text) if match[1] not in kept]
        for match in found:
            if not _has(variables, match[1]):
                hint = likely(match[1], variables) or "Add it to vars, if it is meant to be one."
                findings.odd(node, f"vars has no {quote_word(match[1])}: it stays as it stands", hint)
        if len(found) == 1 and found[0][0] == text.strip() and _has(variables, found[0][1]):
            return node_of(_value(variables, found[0][1]), node.place, node.path)
        return replace(node, value=_VARIABLE.sub(lambda match: value_text(match, kept), text))

    def value_text(match: re.Match[str], kept: frozenset[str]) -> str:
        if match[1] in kept or not _has(variables, match[1]):
            return match[0]
        value = _value(variables, match[1])
        return value if isinstance(value, str) else jsontext.encode(value).decode()

    return _map_texts(node, fill, "{{")


def _has(variables: JsonObject, name: str) -> bool:
    return _value(variables, name) is not None


def _value(variables: JsonObject, name: str) -> Json:
    """What a name with dots leads to; a variable that is null is none."""
    value: Json = variables
    for step in name.split("."):
        value = value.get(step) if isinstance(value, dict) else None
    return value


def _parse_scalar(text: str) -> str | int | float | bool:
    if text in ("true", "false"):
        return text == "true"
    if _NUMBER.fullmatch(text):
        return float(text) if "." in text else int(text)
    return text


def _map_texts(node: Node, filled: Callable[[Node, str], Node], sign: str) -> Node:
    """The tree with every text that has the sign in it filled; what has none stays the same object."""
    match node.value:
        case str() as text:
            return filled(node, text) if sign in text else node
        case dict() as members:
            below = {key: _map_texts(each, filled, sign) for key, each in members.items()}
            is_same = all(below[key] is each for key, each in members.items())
        case list() as items:
            mapped = [_map_texts(each, filled, sign) for each in items]
            is_same = all(one is other for one, other in zip(mapped, items, strict=True))
            return node if is_same else replace(node, value=mapped)
        case _:
            return node
    return node if is_same else replace(node, value=below)
