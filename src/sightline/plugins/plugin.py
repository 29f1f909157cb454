"""What a plug-in can add, as types. A plug-in's module has a `Plugin` under the name `PLUGIN`."""

from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal, TypeAlias

from sightline.filters.predicate import FilterSubject, Value
from sightline.model.json import Json, JsonObject
from sightline.transport.sender import Signer
from sightline.wire.call import HttpRequest

if TYPE_CHECKING:
    from sightline.dialects.dialect import Dialect

Fetch: TypeAlias = Callable[[HttpRequest], Awaitable[tuple[int, bytes]]]
"""Sends a request with the certificates and proxies of the configuration, and returns the status and the body. Raises a
Fault if there is no answer."""


@dataclass(frozen=True, slots=True)
class SigningContext:
    """What a signer is created with: the name of its provider, that provider's `sign_options`, the variables that it
    may see, the time in seconds since 1970, and a way to fetch a token."""

    provider: str
    options: Mapping[str, str]
    environment: Mapping[str, str]
    now: Callable[[], float]
    fetch: Fetch


MakeSigner: TypeAlias = Callable[[SigningContext], Signer]
"""Creates the signer of a provider; usually a class. It is called at startup and must not send or read anything."""


@dataclass(frozen=True, slots=True)
class ExchangeEvent:
    """Something that has happened to a request: the id of its exchange, the time, the kind (`received`, `attempt`,
    `finished`, `failed` and others), and the fact itself as JSON, without credentials."""

    exchange: str
    at: float
    kind: str
    fact: JsonObject


ExchangeHook: TypeAlias = Callable[[ExchangeEvent], None]
"""Called with each event, in order, in a separate thread: it may be slow."""


ExportFormat: TypeAlias = Callable[[JsonObject], bytes]
"""Writes exchanges for another tool. They are passed as an HTTP archive (HAR 1.2, a JSON object)."""


ImportFormat: TypeAlias = Callable[[bytes], JsonObject | None]
"""Reads a file of another tool. Returns an HTTP archive (HAR 1.2, a JSON object), or None if the file is not in this
format."""


GradeAnswer: TypeAlias = Callable[[JsonObject], Json]
"""Grades the answer to one case of a suite. It gets the same object as grading commands: `output`, `question`,
`expected_output`, `config` and others. Returns a score from 0 to 1, True or False, or an object with `score`,
`assertions` and `reasoning`. It is called in a separate thread."""


FindValues: TypeAlias = Callable[[str], Iterable[str]]
"""Finds sensitive values in a text that is about to be shared. Returns the values as they are in the text."""


@dataclass(frozen=True, slots=True)
class ExchangeField:
    """A field for filters on the record. `read` gets an exchange as filters see it, with `exchange.value("model")` and
    `exchange.says("refund")`, and returns the field's value: a text or a tuple of texts, a number, or True or False,
    depending on `kind`; None if the exchange has no value."""

    kind: Literal["text", "number", "yes or no"]
    meaning: str
    read: Callable[[FilterSubject], Value]


@dataclass(frozen=True, slots=True)
class Panel:
    """A tab on the page of an exchange. `module` is the text of an ES module whose default export is called with the
    element to fill, the exchange, and what it may use of the page. It may return a function that is called when the tab
    closes."""

    title: str
    module: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Plugin:
    """Everything that a plug-in adds; fields for what it does not add are left out.

    The keys of mappings are the names that a user refers to: in `sign` of a provider, in `--as`, as the `type` of a
    grader, in filters, or in the address of a panel. `tools` are functions with annotated parameters and a docstring.
    `catalogue` is TOML with tables `[providers.…]` and `[models.…]`, as in sightline.toml, whose own tables take
    precedence.
    """

    name: str
    dialects: "tuple[Dialect, ...]" = ()
    signers: Mapping[str, MakeSigner] = field(default_factory=dict)
    tools: tuple[Callable[..., object], ...] = ()
    catalogue: str = ""
    hooks: tuple[ExchangeHook, ...] = ()
    exporters: Mapping[str, ExportFormat] = field(default_factory=dict)
    importers: Mapping[str, ImportFormat] = field(default_factory=dict)
    graders: Mapping[str, GradeAnswer] = field(default_factory=dict)
    redactors: Mapping[str, FindValues] = field(default_factory=dict)
    fields: Mapping[str, ExchangeField] = field(default_factory=dict)
    panels: Mapping[str, Panel] = field(default_factory=dict)

    def contents(self) -> list[str]:
        """What it adds, in words such as `signer acme-hmac`."""
        named = {
            "dialect": (each.name for each in self.dialects),
            "signer": self.signers,
            "tool": (name_of(each) for each in self.tools),
            "catalogue": ("models",) if self.catalogue else (),
            "hook": map(name_of, self.hooks),
            "exporter": self.exporters,
            "importer": self.importers,
            "grader": self.graders,
            "redactor": self.redactors,
            "field": self.fields,
            "panel": self.panels,
        }
        return [f"{kind} {name}" for kind, names in named.items() for name in names]


def name_of(function: object) -> str:
    """The name of a function or another callable."""
    return str(getattr(function, "__name__", type(function).__name__))
