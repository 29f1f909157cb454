"""AgentV's `.agentv/targets.yaml`: who answers, under which name. Each target is looked at only when it is wanted: a
file names many, and their variables are not all set."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal, TypeAlias, cast, get_args

import msgspec

from sightline.catalog.catalog import Catalog
from sightline.catalog.foreign_names import AGENTV_PROVIDERS
from sightline.catalog.loading import WIRE_APIS
from sightline.catalog.problem import nearest, quote_word
from sightline.catalog.provider import DialectName, Provider
from sightline.evals.core.place import SuiteProblem
from sightline.evals.core.reading.findings import SuiteFindings
from sightline.evals.core.reading.interpolation import with_environment
from sightline.evals.core.reading.node import Node
from sightline.evals.core.reading.yaml_text import read_yaml
from sightline.evals.core.target import CommandSpec, FileForm, TargetSpec

FILE = ".agentv/targets.yaml"

_REFERENCE = re.compile(r"\$\{\{\s*([A-Za-z_][A-Za-z0-9_]*)\s*\}\}")
_PLAIN = re.compile(r"[^A-Za-z0-9._-]+")
_Template: TypeAlias = Literal["codex", "claude"]
_TEMPLATES: dict[str, _Template] = {
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
"""Providers of AgentV that are not asked here, and what to use instead."""

_SHARED = (
    *("name", "provider", "use_target", "grader_target", "judge_target", "workers", "temperature", "max_retries"),
    "file_form",  # ours: AgentV writes files in one form only
)
_TAKEN = {
    "model": (
        *(*_SHARED, "max_output_tokens", "base_url", "endpoint", "api_key", "model", "api_format"),
        *("resource", "deployment_name", "version", "api_version"),
    ),
    "cli": (*_SHARED, "command", "cwd", "timeout_seconds", "files_format", "attachments_format", "healthcheck"),
    "agent": (*_SHARED, "model", "cwd", "timeout_seconds"),
    "mock": (*_SHARED, "response"),
}
_MOST_STEPS = 8


@dataclass(frozen=True, slots=True)
class AgentvTargets:
    """The targets of a file by their names. `variables` are those of the environment that it names."""

    file: str = ""
    nodes: dict[str, Node] = field(default_factory=dict)
    variables: frozenset[str] = frozenset()
    problems: tuple[SuiteProblem, ...] = ()


@dataclass(frozen=True, slots=True)
class AgentvTarget:
    """One target. A model comes with its provider, whose name is the part of `spec.model` before the slash."""

    spec: TargetSpec | None = None
    provider: Provider | None = None
    problems: tuple[SuiteProblem, ...] = ()

    @property
    def provider_name(self) -> str:
        """How the provider has to be called in the catalogue."""
        return "" if self.spec is None or self.provider is None else self.spec.model.partition("/")[0]


def read_targets(data: bytes, file: str) -> AgentvTargets:
    """What a file names."""
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
        name = findings.text(node, "name") if findings.is_mapping(node, "a target") else ""
        if name in nodes:
            findings.wrong(node, f"there are two targets {quote_word(name)}", "Name one of them otherwise.")
        elif name:
            nodes[name] = node
        elif node.members:
            findings.wrong(node, "the target has no name", "Write name: ….")
    return AgentvTargets(file, nodes, frozenset(variables), findings.problems)


def resolve_target(targets: AgentvTargets, name: str, environment: Mapping[str, str], catalog: Catalog) -> AgentvTarget:
    """The target of this name, which the file has. What stands behind `use_target` answers under this name."""
    findings = SuiteFindings()
    node = _follow_use_target(targets, name, environment, findings)
    if node is None:
        return AgentvTarget(problems=findings.problems)
    reader = _Reader(name, with_environment(_without_key(node), environment, findings), findings)
    key = _key(node, findings)
    spec, provider = reader.read(catalog, key)
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
    """The variables that stand anywhere in it."""
    if node.text is not None:
        return set(_REFERENCE.findall(node.text))
    below = (*node.members.values(), *node.items)
    return {name for each in below for name in _variables_in(each)}


def _without_key(node: Node) -> Node:
    """Without the key's reference, which is never looked up here: only its variable's name is kept."""
    members = {name: each for name, each in node.members.items() if name != "api_key"}
    return Node(members, node.place, node.path, node.keys)


def _key(node: Node, findings: SuiteFindings) -> str:
    key = node.get("api_key")
    if key is None:
        return ""
    found = _REFERENCE.fullmatch((key.text or "").strip())
    if found is None:
        hint = "Write api_key: ${{ NAME }}, and set the variable."
        findings.wrong(key, "a key does not belong into a file", hint)
        return ""
    return found[1]


class _Reader:
    def __init__(self, name: str, node: Node, findings: SuiteFindings) -> None:
        self._name = name
        self._node = node
        self._findings = findings

    def read(self, catalog: Catalog, key: str) -> tuple[TargetSpec | None, Provider | None]:
        kind = self._text("provider").lower()
        if kind in AGENTV_PROVIDERS:
            return self._model(AGENTV_PROVIDERS[kind], key, catalog)
        if kind == "mock":
            self._check("mock")
            return self._spec(mock=self._text("response") or '{"answer":"Mock response."}'), None
        if kind == "cli":
            return self._spec(cli=self._command()), None
        if kind in _TEMPLATES:
            self._check("agent")
            cli = CommandSpec(template=_TEMPLATES[kind], model=self._text("model"))
            return self._spec(cli=self._with_limits(cli)), None
        if kind in _ELSEWHERE:
            self._findings.wrong(self._node, f"{quote_word(kind)} cannot be asked here", _ELSEWHERE[kind])
            return None, None
        known = (*AGENTV_PROVIDERS, "mock", "cli", *_TEMPLATES)
        hint = nearest(kind, known) if kind else f"Write provider: and one of {', '.join(known)}."
        self._findings.wrong(self._node, f"{quote_word(kind)} is no provider that can be asked here", hint)
        return None, None

    def _spec(
        self, *, model: str = "", cli: CommandSpec | None = None, mock: str | None = None, most: int | None = None
    ) -> TargetSpec:
        return TargetSpec(
            name=self._name,
            model=model,
            cli=cli,
            mock=mock,
            judge=self._text("grader_target") or self._text("judge_target"),
            concurrency=self._whole("workers"),
            temperature=self._findings.number(self._node, "temperature", least=0),
            max_tokens=most,
            file_form=cast(FileForm | None, self._findings.choice(self._node, "file_form", get_args(FileForm)) or None),
        )

    def _model(self, vendor: str, key: str, catalog: Catalog) -> tuple[TargetSpec | None, Provider | None]:
        self._check("model")
        model = self._text("model") or self._text("deployment_name")
        base = catalog.providers.get(vendor, Provider())
        if not model and not base.default_model:
            self._findings.wrong(self._node, "the target has no model", "Write model: ….")
        retries = self._whole("max_retries", least=0)
        provider = msgspec.structs.replace(
            base,
            dialect=self._dialect(vendor, base),
            base_url=self._url(vendor) or base.base_url,
            key_env=key or base.key_env,
            home=(),
            embedded=False,
            request_max_retries=base.request_max_retries if retries is None else min(100, retries),
            stream_max_retries=base.stream_max_retries if retries is None else min(100, retries),
        )
        if not key and self._url("openai"):
            provider = msgspec.structs.replace(provider, key_env="", env_headers={})
        name = _PLAIN.sub("-", self._name)
        while name in catalog.providers:
            name += "-target"
        spec = self._spec(model=f"{name}/{model or base.default_model}", most=self._whole("max_output_tokens"))
        return spec, provider

    def _dialect(self, vendor: str, base: Provider) -> DialectName:
        chosen = self._findings.choice(self._node, "api_format", ("chat", "responses"))
        if chosen:
            return cast(DialectName, WIRE_APIS[chosen])
        return cast(DialectName, WIRE_APIS["chat"]) if vendor == "openai" else base.dialect

    def _url(self, vendor: str) -> str:
        """The address; Azure's is that of the resource, or its name."""
        url = (self._text("base_url") or self._text("endpoint")).rstrip("/")
        if vendor != "azure":
            return url
        host = url or self._text("resource")
        if not host:
            return ""
        host = host if "://" in host else f"https://{host}.openai.azure.com"
        return host if host.endswith("/v1") else f"{host}/openai/v1"

    def _command(self) -> CommandSpec:
        self._check("cli")
        command = self._node.get("command")
        words: str | tuple[str, ...] = ""
        if command is None:
            self._findings.wrong(self._node, "the target has no command", "Write command: ….")
        else:
            words = command.text or self._findings.texts(self._node, "command")
        health = self._node.get("healthcheck") or Node({}, self._node.place)
        for key, each in health.members.items():
            if key not in ("type", "command", "url", "cwd"):
                self._findings.odd(each, f"{key} of a healthcheck is not used", "It has 30 seconds.")
        made = CommandSpec(
            command=words,
            files_format=self._text("files_format") or self._text("attachments_format") or "{path}",
            healthcheck_command=self._findings.text(health, "command"),
            healthcheck_cwd=self._findings.text(health, "cwd") if health.get("command") is not None else None,
            healthcheck_url=self._findings.text(health, "url"),
        )
        return self._with_limits(made)

    def _with_limits(self, command: CommandSpec) -> CommandSpec:
        seconds = self._findings.number(self._node, "timeout_seconds", least=0.001)
        timeout = command.timeout_s if seconds is None else float(seconds)
        return msgspec.structs.replace(command, cwd=self._text("cwd"), timeout_s=timeout)

    def _check(self, kind: str) -> None:
        """Tell of what is not acted on. It is no mistake: AgentV may well act on it."""
        for key, each in self._node.members.items():
            if key not in _TAKEN[kind]:
                self._findings.odd(each, f"{key} of a target is not used", "Leave it out, if the cases do without it.")

    def _text(self, key: str) -> str:
        return self._findings.text(self._node, key)

    def _whole(self, key: str, least: int = 1) -> int | None:
        number = self._findings.number(self._node, key, least=least, is_whole=True)
        return None if number is None else int(number)
