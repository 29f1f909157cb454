"""promptfoo's providers (`openai:chat:gpt-4o-mini` and the like, with `config`) as targets, and its prompts as
messages."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated, ClassVar, TypeAlias

import msgspec
from msgspec import Meta

from sightline.catalog.problem import quote_word
from sightline.catalog.provider import ADDS_VERSION, PROMPTFOO_PROVIDERS, DialectName
from sightline.catalog.reading import SELF, key
from sightline.catalog.toml import WIRE_APIS
from sightline.errors import Fault
from sightline.evals.core.reading.document import Amount, Count, Node, Share, SuiteFindings, Text, node_of
from sightline.evals.core.reading.files import FILE, NeedsFiles
from sightline.evals.core.reading.sources import files_at
from sightline.evals.core.reading.yaml_text import decode_text, read_document
from sightline.evals.core.suite import SuitePlace, SuiteProblem
from sightline.evals.core.target import SuiteTarget
from sightline.wire import jsontext

_MULTI_API_VENDORS = frozenset({"openai", "azure"})
"""Vendors for which promptfoo's ids name one of several APIs."""
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


MaxTokens: TypeAlias = Annotated[
    Count | None,
    key(aliases=("max_completion_tokens", "max_output_tokens", "maxOutputTokens", "num_predict"), first_wins=True),
]
Seed: TypeAlias = Annotated[int, Meta(ge=-(2**53))]


class SamplingKeys(msgspec.Struct, frozen=True, kw_only=True):
    """Sampling settings of a model."""

    TITLE: ClassVar[str] = "generationConfig"
    UNUSED: ClassVar[Mapping[str, str]] = {"*": "Do without it."}

    temperature: Amount | None = None
    top_p: Annotated[Share | None, key(aliases=("topP",))] = None
    seed: Seed | None = None
    max_tokens: MaxTokens = None


class ReasoningKeys(msgspec.Struct, frozen=True, kw_only=True):
    """Reasoning settings of a model."""

    TITLE: ClassVar[str] = "reasoning"
    UNUSED: ClassVar[Mapping[str, str]] = {"*": "Do without it."}

    effort: str = ""


class ConfigKeys(SamplingKeys, frozen=True, kw_only=True):
    """The `config` of a provider. A key that is not carried over is a warning."""

    TITLE: ClassVar[str] = "a provider's config"
    UNUSED: ClassVar[Mapping[str, str]] = {"*": "Set it for the target in the configuration, or do without it."}

    api_base_url: str = msgspec.field(default="", name="apiBaseUrl")
    api_host: str = msgspec.field(default="", name="apiHost")
    api_key_env: str = msgspec.field(default="", name="apiKeyEnvar")
    api_key: Node | None = msgspec.field(default=None, name="apiKey")
    headers: dict[str, str] = {}
    generation: SamplingKeys = msgspec.field(default=SamplingKeys(), name="generationConfig")
    reasoning_effort: str = ""
    reasoning: ReasoningKeys = ReasoningKeys()
    node: Annotated[Node, SELF]


class ProviderKeys(msgspec.Struct, frozen=True, kw_only=True):
    """A provider as written in promptfoo's suites."""

    TITLE: ClassVar[str] = "a provider"
    EXAMPLE: ClassVar[str] = "Write its id, such as openai:gpt-4o-mini."
    UNUSED: ClassVar[Mapping[str, str]] = {
        "delay": "Set rpm for the target in the configuration.",
        "env": "Set the variables before the run.",
    }
    KEY_HINTS: ClassVar[Mapping[str, str]] = {
        "prompts": "Write a suite for each provider that has prompts of its own.",
        "transform": "Grade the answer as it is, or with a code-grader.",
    }

    id: Annotated[Text, key(hint="Write id: openai:gpt-4o-mini, for example.")]
    label: str = ""
    config: ConfigKeys | None = None


@dataclass
class PromptfooProviders:
    """Reads providers; `targets` are those that need more than a name from the configuration."""

    findings: SuiteFindings
    targets: dict[str, SuiteTarget] = field(default_factory=dict)

    def name_of(self, node: Node) -> str:
        """The name of the target for a provider. Empty if there is none, which is reported."""
        node = _unwrap(node)
        if node.text is not None:
            return self._add_model(node, node.text, "", None)
        written = self.findings.read(node, ProviderKeys)
        return "" if written is None else self._add_model(node, written.id, written.label, written.config)

    def _add_model(self, node: Node, name: str, label: str, config: ConfigKeys | None) -> str:
        found = self._model(node, name)
        if found is None:
            return ""
        config = config or ConfigKeys(node=Node({}, node.place, node.path))
        model, dialect = found
        vendor = model.partition("/")[0]
        if dialect is None and vendor == "openai" and (config.api_base_url or config.api_host):
            # promptfoo calls a bare `openai:MODEL` over Chat Completions, and a relay often supports nothing else.
            dialect = WIRE_APIS["chat"]
        target = self._target(config, vendor, label or name, model, dialect)
        if not target.has_own_provider and not label and target == SuiteTarget(name=name, model=model):
            return model
        if self.targets.setdefault(target.name, target) != target:
            hint = "Give each a label of its own."
            self.findings.wrong(node, f"two providers are called {quote_word(target.name)}", hint)
        return target.name

    def _target(
        self, config: ConfigKeys, vendor: str, name: str, model: str, dialect: DialectName | None
    ) -> SuiteTarget:
        url, key_env = self._url(config, vendor), self._key_env(config)
        if url and not key_env:
            hint = "Write apiKeyEnvar: and the variable with the key for it, if it wants one."
            self.findings.odd(config.node, f"no key is sent to {url}: the suite names none for it", hint)
        settings = {
            name: getattr(config.generation, name) if getattr(config, name) is None else getattr(config, name)
            for name in SamplingKeys.__struct_fields__
        }
        return SuiteTarget(
            name=name,
            model=model,
            dialect=dialect,
            base_url=url,
            key_env=key_env,
            headers=self._headers(config),
            effort=config.reasoning_effort or config.reasoning.effort or None,
            **settings,
        )

    def _url(self, config: ConfigKeys, vendor: str) -> str:
        url, host = config.api_base_url.rstrip("/"), config.api_host.strip("/")
        if host and not url:
            url = host if "://" in host else f"https://{host}"
            url = url if vendor in ADDS_VERSION or _VERSION.search(url) else f"{url}/v1"
        if url and vendor == "ollama" and not _VERSION.search(url):
            url = f"{url}/v1"
        if url and not url.startswith(("http://", "https://")):
            self.findings.wrong(config.node, f"{quote_word(url)} is no http(s) address", "Write apiBaseUrl: https://….")
            return ""
        return url

    def _key_env(self, config: ConfigKeys) -> str:
        if config.api_key is None:
            return config.api_key_env
        reference = _REFERENCE.fullmatch((config.api_key.text or "").strip())
        if reference is None:
            self.findings.wrong(config.api_key, "a key does not belong in a file", _KEY)
            return config.api_key_env
        return config.api_key_env or reference[1] or reference[2]

    def _headers(self, config: ConfigKeys) -> dict[str, str]:
        for name in config.headers:
            if _SECRET.search(name):
                hint = "Name the variable with its value in env_headers of [providers.NAME]."
                message = f"the header {name} looks like a key, which belongs in no file"
                self.findings.wrong(config.node.members["headers"].members[name], message, hint)
        return {name: value for name, value in config.headers.items() if not _SECRET.search(name)}

    def _model(self, node: Node, name: str) -> tuple[str, DialectName | None] | None:
        """The model as in our configuration, and the API that the id asks for; None, with a report, if it cannot be
        used."""
        if name.startswith(_PROGRAMS):
            self.findings.wrong(node, f"{quote_word(name)} is a program, which promptfoo runs itself", _NO_PROGRAM)
            return None
        if name.startswith(_ADDRESSES):
            self.findings.wrong(
                node, f"{quote_word(name)} is an address, and nothing says what is spoken there", _NO_ADDRESS
            )
            return None
        vendor, colon, rest = name.partition(":")
        if not colon and name in ("echo", "promptfoo"):
            hint = 'Write [evals.targets.NAME] with mock = "…" for fixed words, and name that here.'
            self.findings.wrong(node, f"{quote_word(name)} is promptfoo's own, and not here", hint)
            return None
        if not colon:
            return name, None  # a target or a model, as named in the configuration
        if vendor not in PROMPTFOO_PROVIDERS:
            hint = f"{_NO_ADDRESS} Known here: {', '.join(PROMPTFOO_PROVIDERS)}."
            self.findings.wrong(node, f"promptfoo's provider {quote_word(vendor)} is not known here", hint)
            return None
        api, _, model = rest.partition(":")
        ours = PROMPTFOO_PROVIDERS[vendor]
        if api in _OTHER_APIS:
            message = f"{quote_word(name)} names an API without conversations"
            self.findings.wrong(node, message, f"Write {vendor}:MODEL.")
            return None
        if ours in _MULTI_API_VENDORS and api in WIRE_APIS:
            return f"{ours}/{model}", WIRE_APIS[api]
        return f"{ours}/{model if api in _PLAIN else rest}", None


def _unwrap(node: Node) -> Node:
    """Rewrite a provider that is the only key of a mapping, with its options below it, to `id` beside the options."""
    if len(node.members) != 1 or node.get("id") is not None:
        return node
    ((name, options),) = node.members.items()
    if f"{name}:" in _PROGRAMS and options.text is not None:
        return Node(f"{name}: {options.text}", node.place, node.path)  # without quotes, YAML reads it as a mapping
    if name in ("id", "label", "config") or not isinstance(options.value, dict):
        return node
    place = node.key_place(name)
    return Node({"id": Node(name, place, options.path), **options.members}, place, options.path, options.keys)


_TEXTS = (".txt", ".md", ".j2", ".json", ".jsonl", ".yaml", ".yml")
_PROGRAM_ENDINGS = (".py", ".js", ".cjs", ".mjs", ".ts", ".sh", ".rb", ".csv", ".prompty")
_SEPARATOR = re.compile(r"^[ \t]*---[ \t]*\r?$", re.MULTILINE)
_TEMPLATE = re.compile(r"\{%|\{#|(?<!\$)\{\{(?!\s*[A-Za-z_][A-Za-z0-9_.]*\s*\}\})[^}]*\}\}")
_ENVIRONMENT = re.compile(r"\{\{\s*env\.([A-Za-z_][A-Za-z0-9_]*)\s*\}\}")


def read_prompts(document: Node, file: str, findings: SuiteFindings) -> NeedsFiles[list[Node]]:
    """All prompts in their order: a text is a user message, a list is a conversation."""
    node = document.get("prompts")
    if node is None:
        findings.wrong(document, "the suite has no prompts", "Write prompts: and a list of texts.")
        return []
    listed = yield from load_file(node, file, findings, "prompts")
    prompts: list[Node] = []
    for each in [listed] if listed.text is not None else findings.items(listed, "prompts"):
        prompt = (each.get("raw") or each.get("id")) if each.members else each
        if each.members:
            findings.check_keys(each, ("raw", "id", "label"), "a prompt")
        if prompt is None or prompt.text is None:
            findings.wrong(each, "a prompt has to be text", "Write it here, or file:// and the path of its file.")
        elif _names_a_file(prompt.text):
            prompts += yield from _in_files(prompt, prompt.text, file, findings)
        else:
            prompts.append(_parse_prompt(prompt, prompt.text, findings))
    return prompts


def load_file(node: Node, file: str, findings: SuiteFindings, what: str) -> NeedsFiles[Node]:
    """The content of the YAML or JSON file that a `file://` value names; any other value unchanged."""
    if node.text is None or not node.text.startswith(FILE) or not node.text.endswith((".yaml", ".yml", ".json")):
        return node
    if what == "prompts" and not node.text.endswith((".yaml", ".yml")):
        return node  # a conversation in JSON is one prompt
    for path, data in (yield from files_at(node, node.text.removeprefix(FILE), file, findings)):
        found = read_document(data, path, findings)
        if found is not None:
            is_conversation = what == "prompts" and any("role" in each.members for each in found.items)
            return node if is_conversation else found
    return Node([], node.place, node.path)


def read_text(node: Node, file: str, findings: SuiteFindings) -> NeedsFiles[Node]:
    """The text of the file that a `file://` value names; any other value unchanged."""
    if node.text is None or not node.text.startswith(FILE):
        return node
    path = node.text.removeprefix(FILE)
    if path.lower().endswith(_PROGRAM_ENDINGS):
        hint = "Write the value here, or in a text file."
        findings.wrong(node, f"{quote_word(node.text)} would have to be run", hint)
        return Node("", node.place, node.path)
    texts: list[Node] = []
    for found, data in (yield from files_at(node, path, file, findings)):
        text = _decode_file(data, found, findings)
        if text is not None:
            texts.append(Node(text, node.place, node.path))
    return texts[0] if len(texts) == 1 else Node(texts, node.place, node.path)


def _names_a_file(text: str) -> bool:
    if text.startswith((FILE, "exec:")):
        return True
    # A sentence may end with a file name; promptfoo would look for a file with that whole name.
    return not re.search(r"\s", text) and text.lower().endswith((*_TEXTS, *_PROGRAM_ENDINGS))


def _in_files(node: Node, text: str, file: str, findings: SuiteFindings) -> NeedsFiles[list[Node]]:
    path = text.removeprefix(FILE)
    bare = path.partition(":")[0] if not path.startswith("exec:") else path
    if bare.startswith("exec:") or bare.lower().endswith(_PROGRAM_ENDINGS):
        hint = "Write what it returns into a text file, or as a prompt here."
        findings.wrong(node, f"the prompt {quote_word(text)} would have to be run", hint)
        return []
    prompts: list[Node] = []
    for found, data in (yield from files_at(node, path, file, findings)):
        if not found.lower().endswith(_TEXTS):
            findings.wrong(node, f"{quote_word(found)} is no file of prompts", f"Prompts are in {', '.join(_TEXTS)}.")
            continue
        written = _decode_file(data, found, findings)
        if written is not None:
            prompts += _prompts_of(written, found, findings)
    return prompts


def _decode_file(data: bytes, path: str, findings: SuiteFindings) -> str | None:
    text = decode_text(data, path)
    if isinstance(text, SuiteProblem):
        findings.add([text])
        return None
    return text.replace("\r\n", "\n")


def _prompts_of(text: str, path: str, findings: SuiteFindings) -> list[Node]:
    """The prompts of one file. In a text file, lines of `---` separate them; a Markdown file is one prompt."""
    here = Node(None, SuitePlace(path, 1, 1), ("prompts",))
    ending = path.lower().rpartition(".")[2]
    if ending == "txt":
        texts = [each.strip() for each in _SEPARATOR.split(text) if each.strip()]
    elif ending == "jsonl":
        texts = [line.strip() for line in text.splitlines() if line.strip()]
    elif ending in ("yaml", "yml"):
        document = read_document(text.encode(), path, findings)
        if document is None:
            return []
        _check_template(document, findings)
        return [document]
    else:
        texts = [text] if text.strip() else []
    if not texts:
        findings.wrong(here, "there is no prompt in the file", "Write one into it.")
    return [_parse_prompt(here, each, findings) for each in texts]


def _parse_prompt(prompt: Node, text: str, findings: SuiteFindings) -> Node:
    """A prompt that is a JSON conversation as messages; any other as the text of a user message."""
    found = Node(text, prompt.place, prompt.path)
    if text.lstrip().startswith("["):
        try:
            value = jsontext.decode(text.strip())
        except Fault:
            value = None
        if isinstance(value, list) and all(isinstance(each, dict) and "role" in each for each in value):
            found = node_of(value, prompt.place, prompt.path)
    _check_template(found, findings)
    return found


def _check_template(node: Node, findings: SuiteFindings) -> None:
    """Report templates that promptfoo would evaluate, and that would be sent unchanged here."""
    for each in (*node.members.values(), *node.items):
        _check_template(each, findings)
    if node.text is None:
        return
    named = _ENVIRONMENT.search(node.text)
    if named is not None:
        findings.wrong(node, f"{named[0]} is not filled in here", f"Write ${{{{ {named[1]} }}}}.")
    template = _TEMPLATE.search(node.text)
    if template is not None:
        hint = "Only {{ name }} is filled in: compute the value beforehand, and give it as a variable."
        findings.wrong(node, f"the template {quote_word(template[0])} is not computed here", hint)
