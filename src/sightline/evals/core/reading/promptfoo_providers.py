"""promptfoo's providers: `openai:chat:gpt-4o-mini` and the like, with their `config`, as targets of ours."""

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import cast

from sightline.catalog.foreign_names import ADDS_VERSION, PROMPTFOO_PROVIDERS
from sightline.catalog.loading import WIRE_APIS
from sightline.catalog.problem import quote_word
from sightline.catalog.provider import DialectName
from sightline.evals.core.reading.findings import SuiteFindings
from sightline.evals.core.reading.node import Node
from sightline.evals.core.target import SuiteTarget

_KEYS = ("id", "label", "config")
_UNUSED = {
    "delay": "Set rpm for the target in the configuration.",
    "env": "Set the variables before the run.",
}
_REFUSED = {
    "prompts": "Write a suite for each provider that has prompts of its own.",
    "transform": "Grade the answer as it is, or with a code-grader.",
}
_SPEAK = frozenset({"openai", "azure"})
"""Vendors of which promptfoo's ids name one of several APIs."""
_PLAIN = frozenset({"chat", "messages"})
_OTHER_APIS = frozenset(
    {
        *("completion", "completions", "embedding", "embeddings", "assistant", "realtime", "image", "moderation"),
        *("transcription", "speech", "live", "video", "agents", "chatkit"),
    }
)
_PROGRAMS = ("file://", "exec:", "python:", "javascript:", "golang:", "ruby:", "package:")
_ADDRESSES = ("http:", "https:", "ws:", "wss:", "webhook:")
_NO_PROGRAM = 'Describe it as a target: [evals.targets.NAME] with cli = { command = "… {PROMPT}" }, and name that here.'
_NO_ADDRESS = "Describe what it speaks in [providers.NAME], and name it here as NAME/MODEL."
_VERSION = re.compile(r"/v\d+[a-z]*$")
_REFERENCE = re.compile(r"\{\{\s*env\.([A-Za-z_][A-Za-z0-9_]*)\s*\}\}|\$\{\{\s*([A-Za-z_][A-Za-z0-9_]*)\s*\}\}")
_SECRET = re.compile(r"auth|key|token|secret|cookie|password", re.IGNORECASE)
_KEY = "Write apiKeyEnvar: and the name of the variable that holds it."


@dataclass
class PromptfooProviders:
    """Reads providers; `targets` are those that need more than a name of ours."""

    findings: SuiteFindings
    targets: dict[str, SuiteTarget] = field(default_factory=dict)

    def name_of(self, node: Node) -> str:
        """The target that a provider is here, by its name; empty where it is none, and that is told."""
        node = _unwrap(node)
        if node.text is not None:
            return self._add_model(node, node.text, "", Node({}, node.place, node.path))
        if not self.findings.is_mapping(node, "a provider", "Write its id, such as openai:gpt-4o-mini."):
            return ""
        for key, hint in _UNUSED.items():
            if node.get(key) is not None:
                self.findings.odd(node.members[key], f"{key} of a provider is not used", hint)
        self.findings.check_keys(node, (*_KEYS, *_UNUSED), "a provider", _REFUSED)
        name = self.findings.text(node, "id")
        if not name:
            self.findings.wrong(node, "the provider has no id", "Write id: openai:gpt-4o-mini, for example.")
            return ""
        config = node.get("config") or Node({}, node.place, node.path)
        if not self.findings.is_mapping(config, "config"):
            return ""
        return self._add_model(node, name, self.findings.text(node, "label"), config)

    def _add_model(self, node: Node, name: str, label: str, config: Node) -> str:
        found = self._model(node, name)
        if found is None:
            return ""
        model, dialect = found
        vendor = model.partition("/")[0]
        if dialect is None and vendor == "openai" and (config.get("apiBaseUrl") or config.get("apiHost")):
            # promptfoo asks a bare `openai:MODEL` over Chat Completions, and a relay often has nothing else.
            dialect = cast(DialectName, WIRE_APIS["chat"])
        target = _Config(config, self.findings, vendor).target(label or name, model, dialect)
        if not target.has_own_provider and not label and target == SuiteTarget(name=name, model=model):
            return model
        if self.targets.setdefault(target.name, target) != target:
            hint = "Give each a label of its own."
            self.findings.wrong(node, f"two providers are called {quote_word(target.name)}", hint)
        return target.name

    def _model(self, node: Node, name: str) -> tuple[str, DialectName | None] | None:
        """The model in our words, and the API that its name asks for."""
        if name.startswith(_PROGRAMS):
            self.findings.wrong(node, f"{quote_word(name)} is a program, which promptfoo runs itself", _NO_PROGRAM)
            return None
        if name.startswith(_ADDRESSES):
            self.findings.wrong(
                node, f"{quote_word(name)} is an address, and nothing says what is spoken there", _NO_ADDRESS
            )
            return None
        vendor, colon, rest = name.partition(":")
        if not colon:
            return self._own(node, name)
        if vendor not in PROMPTFOO_PROVIDERS:
            hint = f"{_NO_ADDRESS} Known here: {', '.join(PROMPTFOO_PROVIDERS)}."
            self.findings.wrong(node, f"promptfoo's provider {quote_word(vendor)} is not known here", hint)
            return None
        api, _, model = rest.partition(":")
        ours = PROMPTFOO_PROVIDERS[vendor]
        if api in _OTHER_APIS:
            message = f"{quote_word(name)} asks for an API that answers no conversation"
            self.findings.wrong(node, message, f"Write {vendor}:MODEL.")
            return None
        if ours in _SPEAK and api in WIRE_APIS:
            return f"{ours}/{model}", cast(DialectName, WIRE_APIS[api])
        return f"{ours}/{model if api in _PLAIN else rest}", None

    def _own(self, node: Node, name: str) -> tuple[str, None] | None:
        if name in ("echo", "promptfoo"):
            hint = 'Write [evals.targets.NAME] with mock = "…" for fixed words, and name that here.'
            self.findings.wrong(node, f"{quote_word(name)} is promptfoo's own, and not here", hint)
            return None
        return name, None  # a target or a model, as the configuration calls it


def _unwrap(node: Node) -> Node:
    """A provider that is the only key of a mapping, with its options below it, written as `id` beside them."""
    if len(node.members) != 1 or node.get("id") is not None:
        return node
    ((name, options),) = node.members.items()
    if f"{name}:" in _PROGRAMS and options.text is not None:
        return Node(f"{name}: {options.text}", node.place, node.path)  # without quotes, YAML makes a mapping of it
    if name in _KEYS or not isinstance(options.value, dict):
        return node
    place = node.key_place(name)
    return Node({"id": Node(name, place, options.path), **options.members}, place, options.path, options.keys)


@dataclass
class _Config:
    """What a provider's `config` says; what is not carried is told."""

    node: Node
    findings: SuiteFindings
    vendor: str
    read: set[str] = field(default_factory=set)

    def target(self, name: str, model: str, dialect: DialectName | None) -> SuiteTarget:
        url, key = self._url(), self._key_env()
        if url and not key:
            hint = "Write apiKeyEnvar: and the variable with the key for it, if it wants one."
            self.findings.odd(self.node, f"no key is sent to {url}: the suite names none for it", hint)
        inner = self._inner("generationConfig")
        reasoning = self._inner("reasoning")
        target = SuiteTarget(
            name=name,
            model=model,
            dialect=dialect,
            base_url=url,
            key_env=key,
            headers=self._headers(),
            temperature=self._number(("temperature",), inner, most=None),
            top_p=self._number(("top_p", "topP"), inner, most=1),
            seed=self._whole(("seed",), inner),
            max_tokens=self._whole(
                ("max_tokens", "max_completion_tokens", "max_output_tokens", "maxOutputTokens", "num_predict"), inner, 1
            ),
            effort=self._text("reasoning_effort") or self.findings.text(reasoning, "effort") or None,
        )
        for key, each in self.node.members.items():
            if key not in self.read:
                hint = "Set it for the target in the configuration, or do without it."
                self.findings.odd(each, f"{key} in a provider's config is not used", hint)
        for holder, known in ((inner, None), (reasoning, ("effort",))):
            for key, each in holder.members.items():
                if key not in (self.read if known is None else known):
                    self.findings.odd(each, f"{key} in a provider's config is not used", "Do without it.")
        return target

    def _inner(self, key: str) -> Node:
        self.read.add(key)
        node = self.node.get(key)
        return node if node is not None and self.findings.is_mapping(node, key) else Node({}, self.node.place)

    def _text(self, key: str) -> str:
        self.read.add(key)
        return self.findings.text(self.node, key)

    def _first(self, names: tuple[str, ...], inner: Node, read: Callable[[Node, str], float | None]) -> float | None:
        self.read.update(names)
        found = [read(owner, name) for owner in (self.node, inner) for name in names if owner.get(name) is not None]
        return next((each for each in found if each is not None), None)

    def _number(self, names: tuple[str, ...], inner: Node, most: float | None) -> float | None:
        return self._first(names, inner, lambda owner, name: self.findings.number(owner, name, least=0, most=most))

    def _whole(self, names: tuple[str, ...], inner: Node, least: int = -(2**53)) -> int | None:
        found = self._first(
            names, inner, lambda owner, name: self.findings.number(owner, name, least=least, is_whole=True)
        )
        return None if found is None else int(found)

    def _url(self) -> str:
        url, host = self._text("apiBaseUrl").rstrip("/"), self._text("apiHost").strip("/")
        if host and not url:
            url = host if "://" in host else f"https://{host}"
            url = url if self.vendor in ADDS_VERSION or _VERSION.search(url) else f"{url}/v1"
        if url and self.vendor == "ollama" and not _VERSION.search(url):
            url = f"{url}/v1"
        if url and not url.startswith(("http://", "https://")):
            self.findings.wrong(self.node, f"{quote_word(url)} is no http(s) address", "Write apiBaseUrl: https://….")
            return ""
        return url

    def _key_env(self) -> str:
        named = self._text("apiKeyEnvar")
        self.read.add("apiKey")
        key = self.node.get("apiKey")
        if key is None:
            return named
        reference = _REFERENCE.fullmatch((key.text or "").strip())
        if reference is None:
            self.findings.wrong(key, "a key does not belong in a file", _KEY)
            return named
        return named or reference[1] or reference[2]

    def _headers(self) -> dict[str, str]:
        self.read.add("headers")
        node = self.node.get("headers")
        if node is None or not self.findings.is_mapping(node, "headers"):
            return {}
        found: dict[str, str] = {}
        for name in node.members:
            if _SECRET.search(name):
                hint = "Name the variable with its value in env_headers of [providers.NAME]."
                self.findings.wrong(
                    node.members[name], f"the header {name} looks like a key, which belongs in no file", hint
                )
            else:
                found[name] = self.findings.text(node, name)
        return found
