"""The calls of an assistant message, in each of the ways in which people write them."""

from sightline.catalog.problem import quote_word
from sightline.evals.core.reading.findings import SuiteFindings
from sightline.evals.core.reading.node import Node
from sightline.evals.core.suite import CallSegment, CaseMessage, TextSegment
from sightline.model.json import Json
from sightline.wire import jsontext

_KEYS = ("name", "tool", "arguments", "input", "args", "output", "id", "type", "function", "status", "duration_ms")
_FUNCTION_KEYS = ("name", "arguments")
_TYPES = ("function", "tool_call")
_EXAMPLE = "Write {name: …, arguments: {…}}."


def read_calls(message: Node, findings: SuiteFindings) -> tuple[tuple[CallSegment, ...], tuple[CaseMessage, ...]]:
    """The calls, and a tool message for each of them whose output stands with it."""
    node = message.get("tool_calls")
    calls: list[CallSegment] = []
    results: list[CaseMessage] = []
    for each in [] if node is None else findings.items(node, "tool_calls", _EXAMPLE):
        call = _read_call(each, findings)
        if call is None:
            continue
        output = each.get("output")
        if output is not None:
            text = output.text if output.text is not None else jsontext.encode(output.json).decode()
            said = TextSegment(text, output.place)
            results.append(
                CaseMessage(role="tool", segments=(said,), name=call.name, call_id=call.id, place=output.place)
            )
        calls.append(call)
    return tuple(calls), tuple(results)


def _read_call(node: Node, findings: SuiteFindings) -> CallSegment | None:
    if not findings.is_mapping(node, "a call", _EXAMPLE):
        return None
    findings.check_keys(node, _KEYS, "a call")
    kind = findings.text(node, "type")
    if kind and kind not in _TYPES:
        findings.wrong(node, f"there is no call of type {quote_word(kind)}", "Leave the type out.")
    for key in ("status", "duration_ms"):
        if node.get(key) is not None:
            findings.odd(node, f"{key} of a call is not sent: no provider takes it", "Leave it out.")
    inner = node.get("function")
    if inner is not None:
        if not findings.is_mapping(inner, "function", _EXAMPLE):
            return None
        findings.check_keys(inner, _FUNCTION_KEYS, "function")
    holder = inner or node
    name = findings.text(holder, "name") or findings.text(holder, "tool")
    if not name:
        findings.wrong(node, "the call names no tool", _EXAMPLE)
        return None
    given = [key for key in ("arguments", "input", "args") if holder.get(key) is not None]
    if len(given) > 1:
        findings.wrong(node, f"the call has {' and '.join(given)}", "Keep arguments, and leave the others out.")
    return CallSegment(name, _arguments(holder, given, findings), findings.text(node, "id"), node.place)


def _arguments(holder: Node, given: list[str], findings: SuiteFindings) -> Json:
    node = holder.get(given[0]) if given else None
    if node is None:
        return {}
    if not isinstance(node.value, str | dict):
        findings.wrong(node, f"arguments have to be a mapping or text, and this is {node.kind}", _EXAMPLE)
    return node.json
