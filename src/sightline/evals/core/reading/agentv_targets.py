"""AgentV's `.agentv/targets.yaml`: targets by name. A target is resolved only when it is needed: a file contains many,
and not all of their variables are set."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated, ClassVar, Literal, TypeAlias

import msgspec
from msgspec import Meta
from msgspec.structs import replace

from sightline.catalog.catalog import Catalog
from sightline.catalog.problem import nearest, quote_word
from sightline.catalog.provider import AGENTV_PROVIDERS, Provider
from sightline.catalog.reading import REST, key
from sightline.catalog.toml import WIRE_APIS
from sightline.evals.core.reading.document import Amount, Count, Node, SuiteFindings, Text, Texts
from sightline.evals.core.reading.sources import with_environment
from sightline.evals.core.reading.yaml_text import read_yaml
from sightline.evals.core.suite import SuiteProblem
from sightline.evals.core.target import TARGET_SECONDS, CommandSpec, CommandTemplate, FileForm, TargetSpec
from sightline.model.json import Json

FILE = ".agentv/targets.yaml"

_REFERENCE = re.compile(r"\$\{\{\s*([A-Za-z_][A-Za-z0-9_]*)\s*\}\}")
_RESOURCE = re.compile(r"[A-Za-z0-9-]+")
"""The name of an Azure resource. Anything else in its place is an address, or makes one of another host."""
_PLAIN = re.compile(r"[^A-Za-z0-9._-]+")
_TEMPLATES: dict[str, CommandTemplate] = {
    **dict.fromkeys(("codex", "codex-cli"), "codex"),
    **dict.fromkeys(("claude", "claude-cli", "claude-code", "claude-sdk"), "claude"),
}
_CLI = "Write provider: cli and"
_RECORD = 'Put its traffic on record, and write replay = "session:…" in [evals.targets.NAME]: answers come from there.'
_ELSEWHERE = {
    **dict.fromkeys(
        ("vscode", "vscode-insiders"),
        "It needs the editor's window. Write provider: cli and a command that runs the same agent in a terminal.",
    ),
    **dict.fromkeys(
        ("copilot", "copilot-cli", "copilot-sdk"), f"{_CLI} command: copilot -s -p {{PROMPT}} --allow-all-tools."
    ),
    **dict.fromkeys(("pi", "pi-cli", "pi-coding-agent"), f"{_CLI} command: pi -p {{PROMPT}}."),
    "cc-mirror": f"{_CLI} command: with the variant's own program, or provider: claude.",
    "replay": f"Its fixtures hold no requests. {_RECORD}",
    **dict.fromkeys(
        ("transcript", "copilot-log"),
        "Make cases of recorded conversations with `sightline eval make`, or grade them anew with a replay target.",
    ),
    "agentv": "Write provider: openai (or another vendor) and the model that it stands for.",
}
"""AgentV's providers that are not supported here, and what to use instead."""

_MOST_STEPS = 8
Seconds: TypeAlias = Annotated[float, Meta(ge=0.001)]


@dataclass(frozen=True, slots=True)
class AgentvTargets:
    """The targets of a file by name. `variables` are the environment variables that the file refers to."""

    file: str = ""
    nodes: dict[str, Node] = field(default_factory=dict)
    variables: frozenset[str] = frozenset()
    problems: tuple[SuiteProblem, ...] = ()


@dataclass(frozen=True, slots=True)
class AgentvTarget:
    """One target. A model comes with its provider, whose name in the catalogue is the part of `spec.model` before the
    slash."""

    spec: TargetSpec | None = None
    provider: Provider | None = None
    problems: tuple[SuiteProblem, ...] = ()


def read_targets(data: bytes, file: str) -> AgentvTargets:
    document = read_yaml(data, file)
    if isinstance(document, SuiteProblem):
        return AgentvTargets(file, problems=(document,))
    findings = SuiteFindings()
    nodes: dict[str, Node] = {}
    variables: set[str] = set()
    listed = document.get("targets")
    if listed is None:
        findings.wrong(document, "the file has no targets", "Write targets: and a list of targets.")
        listed = Node([], document.place)
    for node in findings.items(listed, "targets", "Begin each target with a dash."):
        variables |= _variables_in(node)
        named = findings.read(node, TargetKey)
        name = "" if named is None else named.name
        if name in nodes:
            findings.wrong(node, f"there are two targets {quote_word(name)}", "Name one of them otherwise.")
        elif name:
            nodes[name] = node
    return AgentvTargets(file, nodes, frozenset(variables), findings.problems)


def resolve_target(targets: AgentvTargets, name: str, environment: Mapping[str, str], catalog: Catalog) -> AgentvTarget:
    """Resolve the target of this name, which must be in the file. If it has a `use_target`, that one answers under its
    name."""
    findings = SuiteFindings()
    node = _follow_use_target(targets, name, environment, findings)
    if node is None:
        return AgentvTarget(problems=findings.problems)
    filled = with_environment(_without_key(node), environment, findings)
    spec, provider = _read(name, filled, _key_variable(node, findings), catalog, findings)
    if findings.has_errors:
        return AgentvTarget(problems=findings.problems)
    return AgentvTarget(spec, provider, findings.problems)


def _follow_use_target(
    targets: AgentvTargets, name: str, environment: Mapping[str, str], findings: SuiteFindings
) -> Node | None:
    node = targets.nodes[name]
    for _ in range(_MOST_STEPS):
        used = node.get("use_target")
        if used is None:
            return node
        other = with_environment(used, environment, findings).text
        if findings.has_errors:
            return None
        if other not in targets.nodes:
            hint = nearest(other or "", targets.nodes, "The file has")
            findings.wrong(used, f"there is no target {quote_word(other or '')}", hint)
            return None
        node = targets.nodes[other]
    findings.wrong(targets.nodes[name], "use_target leads in a circle", "Let one of them say who answers.")
    return None


def _variables_in(node: Node) -> set[str]:
    if node.text is not None:
        return set(_REFERENCE.findall(node.text))
    below = (*node.members.values(), *node.items)
    return {name for each in below for name in _variables_in(each)}


def _without_key(node: Node) -> Node:
    """The node without the reference to the API key, which is never looked up here: only its variable's name is
    kept."""
    members = {name: each for name, each in node.members.items() if name != "api_key"}
    return Node(members, node.place, node.path, node.keys)


def _key_variable(node: Node, findings: SuiteFindings) -> str:
    key = node.get("api_key")
    if key is None:
        return ""
    found = _REFERENCE.fullmatch((key.text or "").strip())
    if found is None:
        hint = "Write api_key: ${{ NAME }}, and set the variable."
        findings.wrong(key, "a key does not belong into a file", hint)
        return ""
    return found[1]


class TargetKey(msgspec.Struct, frozen=True, kw_only=True):
    """A target of the file, of which only the name is read at first."""

    TITLE: ClassVar[str] = "a target"

    name: Annotated[Text, key(hint="Write name: ….")]
    others: Annotated[dict[str, Json], REST] = {}


class SharedKeys(msgspec.Struct, frozen=True, kw_only=True):
    """The keys of every target. An unused key is a warning, not an error, because AgentV may use it."""

    TITLE: ClassVar[str] = "a target"
    UNUSED: ClassVar[Mapping[str, str]] = {"*": "Leave it out, if the cases do without it."}

    name: Json = None
    provider: str = ""
    use_target: Json = None
    grader_target: str = ""
    judge_target: str = ""
    workers: Count | None = None
    temperature: Amount | None = None
    max_retries: Annotated[int, Meta(ge=0)] | None = None
    file_form: FileForm | None = None  # our own key: AgentV writes files in one form only


class ModelKeys(SharedKeys, frozen=True, kw_only=True):
    model: str = ""
    deployment_name: str = ""
    max_output_tokens: Count | None = None
    base_url: str = ""
    endpoint: str = ""
    resource: str = ""
    api_format: Literal["chat", "responses"] | None = None
    version: Json = None
    api_version: Json = None


class Healthcheck(msgspec.Struct, frozen=True, kw_only=True):
    """The health check of a command."""

    TITLE: ClassVar[str] = "a healthcheck"
    UNUSED: ClassVar[Mapping[str, str]] = {"*": "It has 30 seconds."}

    type: Json = None
    command: str = ""
    url: str = ""
    cwd: str = ""


class CliKeys(SharedKeys, frozen=True, kw_only=True):
    command: Annotated[Texts, key(hint="Write command: ….")]
    cwd: str = ""
    timeout_seconds: Seconds = TARGET_SECONDS
    files_format: str = ""
    attachments_format: str = ""
    healthcheck: Healthcheck = Healthcheck()


class AgentKeys(SharedKeys, frozen=True, kw_only=True):
    """An agent that is run by a predefined command."""

    model: str = ""
    cwd: str = ""
    timeout_seconds: Seconds = TARGET_SECONDS


class MockKeys(SharedKeys, frozen=True, kw_only=True):
    response: str = ""


def _read(
    name: str, node: Node, api_key: str, catalog: Catalog, findings: SuiteFindings
) -> tuple[TargetSpec | None, Provider | None]:
    provider = node.get("provider")
    kind = "" if provider is None else (provider.text or "").lower()
    if kind in AGENTV_PROVIDERS:
        model = findings.read(node, ModelKeys)
        assert model is not None  # it is a mapping, and no key of it is required
        return _model(name, node, model, AGENTV_PROVIDERS[kind], api_key, catalog, findings)
    if kind == "mock":
        mock = findings.read(node, MockKeys)
        assert mock is not None  # as above
        return replace(_spec(name, mock), mock=mock.response or '{"answer":"Mock response."}'), None
    if kind == "cli":
        cli = findings.read(node, CliKeys)
        return None if cli is None else replace(_spec(name, cli), cli=_command(cli)), None
    if kind in _TEMPLATES:
        agent = findings.read(node, AgentKeys)
        assert agent is not None  # as above
        template, seconds = _TEMPLATES[kind], agent.timeout_seconds
        command = CommandSpec(template=template, model=agent.model, cwd=agent.cwd, timeout_s=seconds)
        return replace(_spec(name, agent), cli=command), None
    if kind in _ELSEWHERE:
        findings.wrong(node, f"{quote_word(kind)} cannot be asked here", _ELSEWHERE[kind])
        return None, None
    known = (*AGENTV_PROVIDERS, "mock", "cli", *_TEMPLATES)
    hint = nearest(kind, known) if kind else f"Write provider: and one of {', '.join(known)}."
    findings.wrong(node, f"{quote_word(kind)} is no provider that can be asked here", hint)
    return None, None


def _spec(name: str, keys: SharedKeys) -> TargetSpec:
    return TargetSpec(
        name=name,
        judge=keys.grader_target or keys.judge_target,
        concurrency=keys.workers,
        temperature=keys.temperature,
        file_form=keys.file_form,
    )


def _model(
    name: str, node: Node, keys: ModelKeys, vendor: str, api_key: str, catalog: Catalog, findings: SuiteFindings
) -> tuple[TargetSpec, Provider]:
    base = catalog.providers.get(vendor, Provider())
    model = keys.model or keys.deployment_name or base.default_model
    if not model:
        findings.wrong(node, "the target has no model", "Write model: ….")
    url, retries = (keys.base_url or keys.endpoint).rstrip("/"), keys.max_retries
    dialect = WIRE_APIS["chat"] if vendor == "openai" else base.dialect
    if keys.api_format is not None:
        dialect = WIRE_APIS[keys.api_format]
    provider = replace(
        base,
        dialect=dialect,
        base_url=(_azure_url(url or keys.resource) if vendor == "azure" else url) or base.base_url,
        key_env=api_key or base.key_env,
        home=(),
        embedded=False,
        request_max_retries=base.request_max_retries if retries is None else min(100, retries),
        stream_max_retries=base.stream_max_retries if retries is None else min(100, retries),
    )
    is_elsewhere = vendor == "azure" and bool(keys.resource) and not _RESOURCE.fullmatch(keys.resource)
    if not api_key and (url or is_elsewhere):
        # The vendor's key is not sent to an address from the file.
        provider = replace(provider, key_env="", env_headers={})
    plain = _PLAIN.sub("-", name)
    while plain in catalog.providers:
        plain += "-target"
    return replace(_spec(name, keys), model=f"{plain}/{model}", max_tokens=keys.max_output_tokens), provider


def _azure_url(host: str) -> str:
    """The base URL for Azure, from the address of a resource or its name."""
    if not host:
        return ""
    host = host if "://" in host else f"https://{host}.openai.azure.com"
    return host if host.endswith("/v1") else f"{host}/openai/v1"


def _command(keys: CliKeys) -> CommandSpec:
    health = keys.healthcheck
    return CommandSpec(
        command=keys.command,
        cwd=keys.cwd,
        timeout_s=keys.timeout_seconds,
        files_format=keys.files_format or keys.attachments_format or "{path}",
        healthcheck_command=health.command,
        healthcheck_cwd=health.cwd if health.command else None,
        healthcheck_url=health.url,
    )
