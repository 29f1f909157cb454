"""One case of a suite, from its node."""

from collections.abc import Sequence
from typing import Literal, cast
from unicodedata import category

import msgspec

from sightline.evals.core.reading.execution import read_execution
from sightline.evals.core.reading.findings import SuiteFindings
from sightline.evals.core.reading.grader_specs import read_graders
from sightline.evals.core.reading.includes import LISTS
from sightline.evals.core.reading.interpolation import with_variables
from sightline.evals.core.reading.messages import read_files, read_messages
from sightline.evals.core.reading.node import Node
from sightline.evals.core.reading.old_names import OF_CASE, rename_old_keys
from sightline.evals.core.suite import Aggregation, Case, CaseMessage, CaseTurn, GraderSpec, TextSegment
from sightline.model.json import Json, JsonObject

KEYS = (
    *("id", "vars", "criteria", "input", "input_files", "expected_output", "assertions", "execution", "workspace"),
    *("metadata", "conversation_id", "suite", "depends_on", "on_dependency_failure", "mode", "turns", "aggregation"),
    *("on_turn_failure", "window_size", "guideline_patterns", "tags", "note", "tools"),
)
_TURN_KEYS = ("input", "expected_output", "assertions", "note")
_HINTS = {
    "prompt": 'Did you mean "input"?',
    "question": 'Did you mean "input"?',
    "messages": 'Did you mean "input"?',
    "expected": 'Did you mean "expected_output"?',
    "answer": 'Did you mean "expected_output"?',
    "rubrics": "Write each as a sentence in assertions.",
    "target": "Write it under execution.",
    "threshold": "Write it under execution.",
    "conversation": 'Did you mean "turns"?',
}


class Shared(msgspec.Struct, frozen=True, kw_only=True):
    """What a suite says once for all of its cases. `graders` are the mappings that have them under `assertions`."""

    input: Node | None = None
    files: Node | None = None
    graders: tuple[Node, ...] = ()
    tags: tuple[str, ...] = ()
    guideline_patterns: tuple[str, ...] = ()


def read_case(written: Node, shared: Shared, findings: SuiteFindings) -> Case | None:
    """The case, with what the suite says in it; None where it has no name to be called by."""
    if not findings.is_mapping(written, "a test", "Write {id: …, input: …}."):
        return None
    node = rename_old_keys(written, OF_CASE, findings)
    findings.check_keys(node, KEYS, "a test", _HINTS)
    name = findings.text(node, "id")
    if not name.strip():
        findings.wrong(node, "the test has no id", "Write id: …, another for every test.")
        return None
    if any(category(letter) == "Cc" for letter in name):
        findings.wrong(node.members["id"], "the id has control characters in it", "Take them out.")
    variables = _object(node, "vars", findings)
    node = _fill_variables(node, variables, findings)
    turns = _turns(node, findings)
    messages = _messages(node, shared, variables, findings, has_turns=bool(turns))
    expected, value = _read_expected(node, findings)
    execution = read_execution(node, findings)
    graders = _graders(node, shared, variables, findings, skips=execution.skip_defaults)
    metadata = _object(node, "metadata", findings)
    criteria = findings.text(node, "criteria")
    if not graders and not any(turn.graders or turn.expected for turn in turns):
        graders = _default_graders(node, criteria, is_judgeable=bool(expected), findings=findings)
    if node.get("workspace") is not None:
        findings.odd(node, "workspace is not set up: the case runs without one", "Use a target that prepares it.")
    window = findings.number(node, "window_size", least=1, is_whole=True)
    return Case(
        id=name,
        messages=messages,
        turns=turns,
        expected=expected,
        expected_value=value,
        criteria=criteria,
        graders=graders,
        group=findings.text(node, "conversation_id"),
        tags=tuple(dict.fromkeys((*shared.tags, *findings.texts(node, "tags"), *_tags(metadata)))),
        system_prompt=_system_prompt(node, findings),
        guideline_patterns=(*shared.guideline_patterns, *findings.texts(node, "guideline_patterns")),
        metadata=_read_description(node, metadata, findings),
        execution=execution,
        depends_on=findings.texts(node, "depends_on"),
        on_dependency_failure=cast(
            Literal["skip", "fail", "run"],
            findings.choice(node, "on_dependency_failure", ("skip", "fail", "run")) or "skip",
        ),
        aggregation=cast(Aggregation, findings.choice(node, "aggregation", ("mean", "min", "max")) or "mean"),
        on_turn_failure=cast(
            Literal["continue", "stop"], findings.choice(node, "on_turn_failure", ("continue", "stop")) or "continue"
        ),
        window_size=None if window is None else int(window),
        place=written.place,
    )


def _fill_variables(node: Node, variables: JsonObject, findings: SuiteFindings) -> Node:
    """The case with its variables in place."""
    members = {
        key: each if key in ("vars", "id") else with_variables(each, variables, findings)
        for key, each in node.members.items()
    }
    return Node(members, node.place, node.path, node.keys)


def _object(node: Node, key: str, findings: SuiteFindings) -> JsonObject:
    member = node.get(key)
    if member is None or not findings.is_mapping(member, key):
        return {}
    return {name: each.json for name, each in member.members.items()}


def _messages(
    node: Node, shared: Shared, variables: JsonObject, findings: SuiteFindings, *, has_turns: bool
) -> tuple[CaseMessage, ...]:
    before: tuple[CaseMessage, ...] = ()
    if shared.input is not None:
        before = read_messages(with_variables(shared.input, variables, findings), "user", findings)
    written = node.get("input")
    if written is None:
        if not has_turns:
            findings.wrong(node, "the test has no input", "Write input: what the user says.")
        return before
    messages = read_messages(written, "user", findings)
    own = node.get("input_files")
    files = own or shared.files
    if files is None:
        return (*before, *messages)
    if written.text is None:
        told = findings.wrong if own is not None else findings.odd
        told(files, "input_files go with an input that is text only", "Write {type: file, value: path} in content.")
        return (*before, *messages)
    segments = read_files(findings.items(files, "input_files", "Begin each path with a dash."), findings)
    with_files = CaseMessage(
        role="user", segments=(*segments, TextSegment(written.text, written.place)), place=written.place
    )
    return (*before, with_files)


def _read_expected(node: Node, findings: SuiteFindings) -> tuple[tuple[CaseMessage, ...], Json]:
    """The messages that are expected, and the value where it is one rather than words."""
    written = node.get("expected_output")
    if written is None:
        return (), None
    is_conversation = "role" in written.members or any("role" in each.members for each in written.items)
    if isinstance(written.value, str) or is_conversation:
        messages = read_messages(written, "assistant", findings)
        return messages, _only_value(written)
    if isinstance(written.value, dict):
        return read_messages(written, "assistant", findings), written.json
    as_text = Node({"value": written}, written.place, written.path)
    (message,) = read_messages(as_text, "assistant", findings)
    return (message,), written.json


def _only_value(written: Node) -> Json:
    """The object that one expected message has for its content."""
    if isinstance(written.value, list) and len(written.value) == 1:
        written = written.value[0]
    content = written.get("content")
    return content.json if content is not None and isinstance(content.value, dict) else None


def _turns(node: Node, findings: SuiteFindings) -> tuple[CaseTurn, ...]:
    mode = findings.choice(node, "mode", ("conversation",))
    written = node.get("turns")
    if written is None:
        if mode:
            findings.wrong(node, "mode: conversation needs turns", "Write turns, or leave mode out.")
        return ()
    turns: list[CaseTurn] = []
    for each in findings.items(written, "turns", "Begin each turn with a dash."):
        if not findings.is_mapping(each, "a turn", "Write {input: …}."):
            continue
        findings.check_keys(each, _TURN_KEYS, "a turn")
        said = each.get("input")
        if said is None:
            findings.wrong(each, "the turn has no input", "Write input: what the user says.")
            continue
        expected, value = _read_expected(each, findings)
        turns.append(
            CaseTurn(
                messages=_read_turn_messages(said, findings),
                expected=expected,
                expected_value=value,
                graders=read_graders(each, LISTS, findings, is_turn=True),
                place=each.place,
            )
        )
    return tuple(turns)


def _read_turn_messages(said: Node, findings: SuiteFindings) -> tuple[CaseMessage, ...]:
    """What is said in a turn: text, messages, or the parts of one user message."""
    if said.items and not any("role" in each.members for each in said.items):
        role = Node("user", said.place, said.path)
        message = Node({"role": role, "content": said}, said.place, said.path)
        return read_messages(message, "user", findings)
    return read_messages(said, "user", findings)


def _graders(
    node: Node, shared: Shared, variables: JsonObject, findings: SuiteFindings, *, skips: bool
) -> tuple[GraderSpec, ...]:
    """The case's own graders, then the suite's, which may name the case's variables as well."""
    holders = [node, *filter(None, [node.get("execution")])]
    if not skips:
        holders += [with_variables(each, variables, findings) for each in shared.graders]
    return tuple(spec for each in holders for spec in read_graders(each, LISTS, findings))


def _default_graders(
    node: Node, criteria: str, *, is_judgeable: bool, findings: SuiteFindings
) -> tuple[GraderSpec, ...]:
    """A case that says what is wanted and not how to grade it is read by a judge."""
    if not criteria and not is_judgeable:
        hint = "Write assertions, criteria or expected_output."
        findings.wrong(node, "nothing says how the test is graded", hint)
        return ()
    aim = node.get("criteria") or node.get("expected_output") or node
    return (GraderSpec(type="llm-grader", name="llm-grader", place=aim.place),)


def _system_prompt(node: Node, findings: SuiteFindings) -> str:
    metadata = node.get("metadata")
    if metadata is None:
        return ""
    return findings.text(metadata, "systemPrompt") or findings.text(metadata, "system_prompt")


def _tags(metadata: JsonObject) -> Sequence[str]:
    tags = metadata.get("tags")
    return [tag for tag in tags if isinstance(tag, str)] if isinstance(tags, list) else ()


def _read_description(node: Node, metadata: JsonObject, findings: SuiteFindings) -> JsonObject:
    """The metadata with what else describes the case."""
    words = {key: findings.text(node, key) for key in ("suite", "note")}
    return metadata | {key: text for key, text in words.items() if text}
