"""Targets, which answer cases: a configured model, a command, a fixed text, or recordings. A run stores its targets."""

from typing import Literal, TypeAlias

import msgspec

from sightline.catalog.provider import DialectName, Provider
from sightline.dialects.dialect import SystemPolicy
from sightline.errors import Code, Fault

TargetKind: TypeAlias = Literal["model", "cli", "mock", "replay"]
CommandTemplate: TypeAlias = Literal["", "codex", "claude"]
TARGET_SECONDS = 600.0
"""Seconds that a command has for an answer."""
FileForm: TypeAlias = Literal["xml", "seed"]
"""How a text file is written into a prompt: `<file path="…">` around it, or a line `=== path ===` before it."""


class CommandSpec(msgspec.Struct, frozen=True, omit_defaults=True, kw_only=True):
    """A program that gets the flat question. `command` is a line for the shell, or a list of arguments to run without
    one. It may contain `{PROMPT}`, `{PROMPT_FILE}`, `{OUTPUT_FILE}`, `{FILES}`, `{EVAL_ID}` and `{ATTEMPT}`; `template`
    is a predefined command.

    `files_format` is how each file is written in `{FILES}`, by its `{path}` or `{basename}`. `env` are the names of
    variables that the program gets although they hold a provider's key. `healthcheck_cwd` is where its health check
    runs, None for the directory of the program.
    """

    command: str | tuple[str, ...] = ""
    template: CommandTemplate = ""
    model: str = ""
    cwd: str = ""
    timeout_s: float = TARGET_SECONDS
    files_format: str = "{path}"
    env: tuple[str, ...] = ()
    healthcheck_command: str = ""
    healthcheck_cwd: str | None = None
    healthcheck_url: str = ""


class TargetSpec(msgspec.Struct, frozen=True, omit_defaults=True, kw_only=True):
    """One target. `model` is a name from the configuration: a route, or provider/model.

    `replay` is a filter: the recordings that it selects are the answers. `judge` is the target that judges the answers
    of this one. `requests` is how many requests a run with tools may make, `approve` lets its tools run without
    approval. `file_form` is how files are written into a prompt. None means not set.
    """

    name: str
    model: str = ""
    toolsets: tuple[str, ...] = ()
    system: SystemPolicy = "in_place"
    concurrency: int | None = None
    rpm: int | None = None
    tpm: int | None = None
    temperature: float | None = None
    top_p: float | None = None
    seed: int | None = None
    max_tokens: int | None = None
    effort: str | None = None
    stream: bool = False
    cli: CommandSpec | None = None
    mock: str | None = None
    replay: str | None = None
    judge: str = ""
    requests: int | None = None
    approve: bool = False
    file_form: FileForm | None = None

    @property
    def kind(self) -> TargetKind:
        if self.cli is not None:
            return "cli"
        if self.mock is not None:
            return "mock"
        return "model" if self.replay is None else "replay"

    def check(self) -> None:
        """Raise a `Fault` if the target names more than one source of answers, or its settings are invalid."""
        named = [word for word in ("cli", "mock", "replay") if getattr(self, word) is not None]
        if len(named) > 1:
            raise self._wrong(f"names {' and '.join(named)}", "Name one of them; for another, write another target.")
        if self.toolsets and self.kind != "model":
            raise self._wrong(f"has toolsets and {self.kind}", "Tools are for a model: leave one of both out.")
        if self.cli is not None and bool(self.cli.command) == bool(self.cli.template):
            raise self._wrong("has not one command to run", 'Write command = "…" or template = "codex".')
        for name in ("concurrency", "rpm", "tpm", "max_tokens", "requests"):
            number = getattr(self, name)
            if number is not None and number < 1:
                raise self._wrong(f"has {name} = {number}", "Write 1 or more, or leave it out.")

    def _wrong(self, what: str, hint: str) -> Fault:
        return Fault(Code.CONFIG, f"the target {self.name!r} {what}", hint=hint)


class SuiteTarget(msgspec.Struct, frozen=True, omit_defaults=True, kw_only=True):
    """A target that a suite defines itself, as promptfoo's do. `model` is a name from the configuration: a model, or
    another target. A `dialect`, `base_url`, `key_env` or `headers` changes how the model's provider is called; no key
    is sent to an address for which the suite names none."""

    name: str
    model: str
    dialect: DialectName | None = None
    base_url: str = ""
    key_env: str = ""
    headers: dict[str, str] = {}
    temperature: float | None = None
    top_p: float | None = None
    seed: int | None = None
    max_tokens: int | None = None
    effort: str | None = None

    @property
    def has_own_provider(self) -> bool:
        """Whether its provider is called differently from the configuration."""
        return bool(self.dialect or self.base_url or self.key_env or self.headers)

    def spec(self, used: TargetSpec) -> TargetSpec:
        """The specification of this target, based on the target that it names."""
        settings = {
            name: value
            for name in ("temperature", "top_p", "seed", "max_tokens", "effort")
            if (value := getattr(self, name)) is not None
        }
        return msgspec.structs.replace(used, name=self.name, **settings)

    def provider(self, known: Provider) -> Provider:
        """The provider of this target, based on the one in the catalogue."""
        changed: dict[str, object] = {"headers": {**known.headers, **self.headers}, "home": (), "embedded": False}
        if self.dialect is not None:
            also = "" if self.dialect == known.dialect else known.also.get(self.dialect, "")
            changed |= {"dialect": self.dialect, "base_url": also or known.base_url, "also": {}}
        if self.base_url:
            changed |= {"base_url": self.base_url, "also": {}, "key_env": "", "env_headers": {}}
        if self.key_env:
            changed["key_env"] = self.key_env
        return msgspec.structs.replace(known, **changed)
