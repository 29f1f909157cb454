"""Read one case of a suite from its node."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Annotated, ClassVar, Literal
from unicodedata import category

import msgspec
from msgspec import Meta

from sightline.catalog.problem import quote_word
from sightline.catalog.reading import REST, SELF, key
from sightline.evals.core.graders.grader import read_graders
from sightline.evals.core.reading.document import Amount, Count, Node, Share, SuiteFindings, Text, Texts, as_tuple
from sightline.evals.core.reading.files import NeedsFiles, candidates, first_of, is_usable
from sightline.evals.core.reading.messages import read_files, read_messages
from sightline.evals.core.reading.sources import LISTS, with_variables
from sightline.evals.core.reading.yaml_text import read_document
from sightline.evals.core.suite import (
    Aggregation,
    Case,
    CaseMessage,
    CaseTurn,
    Execution,
    GraderSpec,
    TextSegment,
    Trials,
)
from sightline.evals.core.target import FileForm
from sightline.model.json import Json, JsonObject
from sightline.model.request import CustomTool, FunctionTool, OpaqueTool, Tool
from sightline.wire.jsontext import MISFIT


class TargetName(msgspec.Struct, frozen=True, kw_only=True):
    """A target as named in AgentV's suites. Its hooks are not run."""

    TITLE: ClassVar[str] = "a target"
    EXAMPLE: ClassVar[str] = "Write its name."

    name: str = ""
    use_target: str = ""
    hooks: Json = None
    node: Annotated[Node | None, SELF] = None


class ExecutionConfig(msgspec.Struct, frozen=True, kw_only=True):
    """The `execution` of a suite or a case. Its graders are read with those of its owner."""

    TITLE: ClassVar[str] = "execution"

    target: str = ""
    targets: Annotated[tuple[str | TargetName, ...], key(hint="Begin each target with a dash.")] = ()
    workers: Annotated[int, Meta(ge=1, le=50)] | None = None
    trials: Annotated[int, Meta(ge=1, le=10_000)] | Trials | None = None
    budget_usd: Annotated[Amount | None, key(aliases=("budgetUsd",))] = None
    threshold: Share | None = None
    cache: bool | None = None
    fail_on_error: Annotated[bool | None, key(aliases=("failOnError",))] = None
    file_form: FileForm | None = None
    skip_defaults: bool = False
    assertions: Json = None
    assert_: Json = msgspec.field(default=None, name="assert")
    evaluators: Json = None


def read_execution(node: Node | None, target: str, findings: SuiteFindings) -> Execution:
    """Read `execution`; `target` is the one that is named beside it."""
    config = None if node is None else findings.read(node, ExecutionConfig)
    if node is None or config is None:
        return Execution(targets=(target,) if target else ())
    trials = Trials(count=config.trials) if isinstance(config.trials, int) else config.trials
    if trials is not None and trials.strategy != "mean":
        message = (
            f"strategy: {trials.strategy} makes no difference: all trials are shown, with mean, interval and pass@k"
        )
        at = node.members["trials"].members["strategy"]
        findings.odd(at, message, "Leave it out, or look at the figure that you want.")
    return Execution(
        targets=_target_names((target, config.target, *config.targets), findings),
        workers=config.workers,
        trials=trials,
        budget_usd=config.budget_usd,
        threshold=config.threshold,
        cache=config.cache,
        fail_on_error=config.fail_on_error,
        file_form=config.file_form,
        skip_defaults=config.skip_defaults,
    )


def _target_names(targets: Iterable[str | TargetName], findings: SuiteFindings) -> tuple[str, ...]:
    names: dict[str, None] = {}
    for each in targets:
        if isinstance(each, str):
            names[each] = None
            continue
        assert each.node is not None  # it was read from a node
        name = each.use_target or each.name
        if not name:
            findings.wrong(each.node, "the target has no name", "Write name: ….")
        elif name in names:
            findings.odd(each.node, f"the target {quote_word(name)} is named twice, and asked once", "Name it once.")
        if each.hooks is not None:
            findings.odd(each.node, "hooks of a target are not run", "Run them before the evals, in the shell.")
        names[name] = None
    return tuple(filter(None, names))


_EXAMPLE = "Write {name: …, description: …, parameters: {type: object, …}}."
_OTHERS = {"custom": CustomTool, "opaque": OpaqueTool}


def with_tools(case: Case, owner: Node, file: str, findings: SuiteFindings) -> NeedsFiles[Case]:
    """The case with its tools. Each name must be unique, since a model could not say which of two it means. If the file
    of the tools is missing, only this case cannot be sent."""
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
            findings.wrong(node, f"the tool {quote_word(name)} is declared twice", "Remove one of them.")
        names.add(name)
    return tuple(tool for _, tool in read if tool is not None)


def _in_file(node: Node, path: str, file: str, findings: SuiteFindings, case: str) -> NeedsFiles[Node | None]:
    if not is_usable(node, path, findings):
        return None
    found = yield from first_of(candidates(path, node.place.file, file))
    if found is None:
        hint = "Name a JSON file with a list of tools, or list them here."
        findings.wrong_at(node.place, node.path, f"there is no file {quote_word(path)}", hint, case=case)
        return None
    return read_document(found[1], found[0], findings)


class FunctionConfig(msgspec.Struct, frozen=True, kw_only=True):
    """A tool as declared in a case, with the key that each provider uses for its schema."""

    TITLE: ClassVar[str] = "a tool"
    EXAMPLE: ClassVar[str] = _EXAMPLE

    type: Literal["function", "custom", "opaque"] | None = None
    name: Annotated[Text, key(hint=_EXAMPLE)]
    description: str | None = None
    schema: Annotated[
        dict[str, Json] | None, key(aliases=("input_schema", "schema"), hint="Write {type: object, properties: …}.")
    ] = msgspec.field(default=None, name="parameters")
    strict: bool | None = None
    namespace: str | None = None


class ToolConfig(msgspec.Struct, frozen=True, kw_only=True):
    """A tool as in OpenAI's API."""

    TITLE: ClassVar[str] = "a tool"
    EXAMPLE: ClassVar[str] = _EXAMPLE

    type: Literal["function", "custom", "opaque"] | None = None
    function: FunctionConfig


def _tool(node: Node, findings: SuiteFindings) -> Tool | None:
    kind = node.get("type")
    if kind is not None and kind.text in _OTHERS:
        try:
            tool: CustomTool | OpaqueTool = msgspec.convert(node.json, _OTHERS[kind.text])
        except MISFIT as error:
            findings.wrong(node, f"it is no {kind.text} tool: {error}", "Declare a function in its place.")
            return None
        return tool
    function: FunctionConfig | None
    if node.get("function") is not None:
        outer = findings.read(node, ToolConfig)
        function = None if outer is None else outer.function
    else:
        function = findings.read(node, FunctionConfig)
    if function is None:
        return None
    return FunctionTool(
        name=function.name,
        description=function.description or None,
        schema=function.schema,
        strict=function.strict,
        namespace=function.namespace or None,
    )


class TurnConfig(msgspec.Struct, frozen=True, kw_only=True):
    TITLE: ClassVar[str] = "a turn"
    EXAMPLE: ClassVar[str] = "Write {input: …}."

    input: Annotated[Node, key(hint="Write input: what the user says.")]
    expected_output: Node | None = None
    assertions: Json = None
    note: Json = None
    node: Annotated[Node, SELF]


class PromptMetadata(msgspec.Struct, frozen=True, kw_only=True):
    """The part of a case's metadata that is used: the system prompt. Everything else is the author's."""

    system_prompt: Annotated[str, key(aliases=("systemPrompt",))] = ""
    others: Annotated[dict[str, Json], REST] = {}


class CaseConfig(msgspec.Struct, frozen=True, kw_only=True):
    """A case as written in a suite. Messages, graders and tools have readers of their own."""

    TITLE: ClassVar[str] = "a test"
    EXAMPLE: ClassVar[str] = "Write {id: …, input: …}."
    KEY_HINTS: ClassVar[Mapping[str, str]] = {
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

    id: Annotated[Text, key(hint="Write id: …, another for every test.")]
    vars: dict[str, Json] = {}
    criteria: Annotated[str, key(aliases=("outcome",))] = ""
    input: Annotated[Node | None, key(aliases=("input_messages",))] = None
    input_files: Node | None = None
    expected_output: Annotated[Node | None, key(aliases=("expected_messages",))] = None
    assertions: Annotated[Json, key(aliases=("evaluators", "assert"))] = None
    execution: Node | None = None
    workspace: Json = None
    metadata: dict[str, Json] = {}
    conversation_id: str = ""
    suite: str = ""
    note: str = ""
    depends_on: Texts = ()
    on_dependency_failure: Literal["skip", "fail", "run"] = "skip"
    mode: Literal["conversation"] | None = None
    turns: Annotated[tuple[TurnConfig, ...] | None, key(hint="Begin each turn with a dash.")] = None
    aggregation: Aggregation = "mean"
    on_turn_failure: Literal["continue", "stop"] = "continue"
    window_size: Count | None = None
    guideline_patterns: Texts = ()
    tags: Texts = ()
    tools: Json = None


class Shared(msgspec.Struct, frozen=True, kw_only=True):
    """What a suite declares once for all of its cases. `graders` are the mappings that contain lists of graders."""

    input: Node | None = None
    files: Node | None = None
    graders: tuple[Node, ...] = ()
    tags: tuple[str, ...] = ()
    guideline_patterns: tuple[str, ...] = ()


def read_case(written: Node, shared: Shared, findings: SuiteFindings) -> Case | None:
    """Read a case, with the shared parts of the suite included; None if it cannot be read."""
    # Variables are read first, because they may be used anywhere in the case.
    given = written.get("vars")
    variables = (None if given is None else findings.read(given, dict[str, Json])) or {}
    node = _fill_variables(written, variables, findings)
    config = findings.read(node, CaseConfig)
    if config is None:
        return None
    if any(category(letter) == "Cc" for letter in config.id):
        findings.wrong(node.members["id"], "the id has control characters in it", "Take them out.")
    turns = _turns(node, config, findings)
    messages = _messages(node, config, shared, variables, findings)
    expected, value = _read_expected(config.expected_output, findings)
    execution = read_execution(config.execution, "", findings)
    graders = _graders(node, shared, variables, findings, skips=execution.skip_defaults)
    if not graders and not any(turn.graders or turn.expected for turn in turns):
        graders = _default_graders(node, config, is_judgeable=bool(expected), findings=findings)
    if config.workspace is not None:
        findings.odd(node, "workspace is not set up: the case runs without one", "Use a target that prepares it.")
    described = {key: text for key, text in (("suite", config.suite), ("note", config.note)) if text}
    return Case(
        id=config.id,
        messages=messages,
        turns=turns,
        expected=expected,
        expected_value=value,
        criteria=config.criteria,
        graders=graders,
        group=config.conversation_id,
        tags=tuple(dict.fromkeys((*shared.tags, *as_tuple(config.tags), *_tags(config.metadata)))),
        system_prompt=_system_prompt(node, findings),
        guideline_patterns=(*shared.guideline_patterns, *as_tuple(config.guideline_patterns)),
        metadata={**config.metadata, **described},
        execution=execution,
        depends_on=as_tuple(config.depends_on),
        on_dependency_failure=config.on_dependency_failure,
        aggregation=config.aggregation,
        on_turn_failure=config.on_turn_failure,
        window_size=config.window_size,
        place=written.place,
    )


def _fill_variables(node: Node, variables: JsonObject, findings: SuiteFindings) -> Node:
    if not node.members:
        return node
    members = {
        key: each if key in ("vars", "id") else with_variables(each, variables, findings)
        for key, each in node.members.items()
    }
    return Node(members, node.place, node.path, node.keys)


def _messages(
    node: Node, config: CaseConfig, shared: Shared, variables: JsonObject, findings: SuiteFindings
) -> tuple[CaseMessage, ...]:
    before: tuple[CaseMessage, ...] = ()
    if shared.input is not None:
        before = read_messages(with_variables(shared.input, variables, findings), "user", findings)
    written = config.input
    if written is None:
        if not config.turns:
            findings.wrong(node, "the test has no input", "Write input: what the user says.")
        return before
    messages = read_messages(written, "user", findings)
    files = config.input_files or shared.files
    if files is None:
        return (*before, *messages)
    if written.text is None:
        report = findings.wrong if config.input_files is not None else findings.odd
        report(files, "input_files go with an input that is text only", "Write {type: file, value: path} in content.")
        return (*before, *messages)
    segments = read_files(findings.items(files, "input_files", "Begin each path with a dash."), findings)
    text = TextSegment(written.text, written.place)
    return (*before, CaseMessage(role="user", segments=(*segments, text), place=written.place))


def _read_expected(written: Node | None, findings: SuiteFindings) -> tuple[tuple[CaseMessage, ...], Json]:
    """The expected messages, and the expected value if it is not text."""
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
    """The object that is the content of a single expected message, otherwise None."""
    if isinstance(written.value, list) and len(written.value) == 1:
        written = written.value[0]
    content = written.get("content")
    return content.json if content is not None and isinstance(content.value, dict) else None


def _turns(node: Node, config: CaseConfig, findings: SuiteFindings) -> tuple[CaseTurn, ...]:
    if config.turns is None:
        if config.mode and node.get("turns") is None:
            findings.wrong(node, "mode: conversation needs turns", "Write turns, or leave mode out.")
        return ()
    turns: list[CaseTurn] = []
    for each in config.turns:
        expected, value = _read_expected(each.expected_output, findings)
        turns.append(
            CaseTurn(
                messages=_read_turn_messages(each.input, findings),
                expected=expected,
                expected_value=value,
                graders=read_graders(each.node, LISTS, findings, is_turn=True),
                place=each.node.place,
            )
        )
    return tuple(turns)


def _read_turn_messages(node: Node, findings: SuiteFindings) -> tuple[CaseMessage, ...]:
    """The messages of a turn: text, messages, or the parts of one user message."""
    if node.items and not any("role" in each.members for each in node.items):
        role = Node("user", node.place, node.path)
        message = Node({"role": role, "content": node}, node.place, node.path)
        return read_messages(message, "user", findings)
    return read_messages(node, "user", findings)


def _graders(
    node: Node, shared: Shared, variables: JsonObject, findings: SuiteFindings, *, skips: bool
) -> tuple[GraderSpec, ...]:
    """The case's own graders, then the suite's, which may also use the case's variables."""
    holders = [node, *filter(None, [node.get("execution")])]
    if not skips:
        holders += [with_variables(each, variables, findings) for each in shared.graders]
    return tuple(spec for each in holders for spec in read_graders(each, LISTS, findings))


def _default_graders(
    node: Node, config: CaseConfig, *, is_judgeable: bool, findings: SuiteFindings
) -> tuple[GraderSpec, ...]:
    """The grader of a case without graders: a judge, if the case has criteria or an expected output."""
    if not config.criteria and not is_judgeable:
        hint = "Write assertions, criteria or expected_output."
        findings.wrong(node, "nothing says how the test is graded", hint)
        return ()
    aim = node.get("criteria") or node.get("outcome") or config.expected_output or node
    return (GraderSpec(type="llm-grader", name="llm-grader", place=aim.place),)


def _system_prompt(node: Node, findings: SuiteFindings) -> str:
    metadata = node.get("metadata")
    config = None if metadata is None else findings.read(metadata, PromptMetadata)
    return "" if config is None else config.system_prompt


def _tags(metadata: JsonObject) -> Sequence[str]:
    tags = metadata.get("tags")
    return [tag for tag in tags if isinstance(tag, str)] if isinstance(tags, list) else ()
