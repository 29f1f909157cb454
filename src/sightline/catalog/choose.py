"""Chooses the provider and the model that a model name refers to, with what is known of both."""

from collections.abc import Callable
from dataclasses import dataclass, field
from difflib import get_close_matches
from fnmatch import fnmatchcase
from functools import partial

from sightline.catalog.catalog import Catalog, entry_of, facts_of, family_of, spellings
from sightline.catalog.facts import Facts, Family, Prices
from sightline.catalog.problem import nearest, quote_word
from sightline.catalog.provider import DialectName, Provider, Route
from sightline.errors import Code, Fault


@dataclass(frozen=True, slots=True)
class ModelChoice:
    """Where a request goes. `model` is the name to send; `arriving` is the dialect in which the request arrived;
    `price_list` has the prices of the provider's other models."""

    provider_name: str
    provider: Provider
    model: str
    facts: Facts
    family: Family
    route: Route | None = None
    arriving: DialectName | None = None
    price_list: Callable[[str], Prices | None] | None = field(default=None, compare=False, repr=False)
    dialect: DialectName = field(init=False, compare=False, repr=False)
    """The dialect to send: that of the request if the provider understands it, otherwise the provider's own."""

    def __post_init__(self) -> None:
        arriving, provider = self.arriving, self.provider
        is_kept = arriving is not None and arriving in provider.also and self._can_pass_through(arriving)
        object.__setattr__(self, "dialect", arriving if is_kept else provider.dialect)  # used at every step

    def prices_for(self, answered: str) -> Prices | None:
        """The prices for a reply: those of the model that answered, if they are known. An alias, a router or a
        deployment answers under another name than was requested."""
        own = self.facts.prices
        if self.price_list is None or answered in ("", self.model):
            return own
        return self.price_list(answered) or own

    @property
    def has_vendor_rules(self) -> bool:
        """Whether this provider refuses what the vendor of the dialect refuses: a vendor's additional APIs accept
        more."""
        provider = self.provider
        return provider.quirks.vendor_rules and (not provider.home or self.dialect in provider.home)

    def _can_pass_through(self, dialect: DialectName) -> bool:
        # The vendor's own client fails on events without indices; those that we write from another dialect have them.
        return dialect != "openai-responses" or self.provider.quirks.responses_indices


def choose(
    catalog: Catalog, wanted: str, *, has_key: Callable[[Provider], bool], arriving: DialectName | None = None
) -> ModelChoice:
    """Resolve a model name: by a route, by the provider that it names, otherwise by the providers known to serve the
    model. Raises a Fault if there is none."""
    name, _, model = wanted.partition("/")
    name = next((known for known in catalog.providers if known.lower() == name.lower()), name)
    for route in catalog.routes:
        if not route.path and route.dialect in (None, arriving) and fnmatchcase(wanted, route.model):
            if route.provider not in catalog.providers:
                raise _no_provider(catalog, route.provider)
            requested = model if name == route.provider else wanted
            sent = route.as_ or requested or _default_model(catalog, route.provider)
            return _choice(catalog, route.provider, sent, arriving, route)
    if name in catalog.providers and not _is_served_by_others(catalog, wanted, name):
        sent = _own_name(catalog, name, wanted) or model or _default_model(catalog, name)
        return _choice(catalog, name, sent, arriving)
    for spelling in (wanted, wanted.rpartition("/")[2]):
        serving = _serving(catalog, spelling)
        if serving:
            keyed = (each for each in serving if has_key(catalog.providers[each]))
            return _choice(catalog, next(keyed, serving[0]), spelling, arriving)
    raise _no_model(catalog, wanted)


def default_choice(catalog: Catalog, has_key: Callable[[Provider], bool]) -> ModelChoice:
    """The first provider that has a key and a default model, otherwise the model inside Sightline."""
    for name, provider in catalog.providers.items():
        if provider.key_env and provider.default_model and not provider.embedded and has_key(provider):
            return _choice(catalog, name, provider.default_model)
    for name, provider in catalog.providers.items():
        if provider.embedded:
            return _choice(catalog, name, provider.default_model)
    raise Fault(
        Code.MODEL_UNKNOWN,
        "no model was named, no provider's key is set, and the catalogue has no embedded model",
        hint="Name a model as provider/model, or set a provider's key: see docs/reference/providers.md.",
    )


def _choice(
    catalog: Catalog, name: str, model: str, arriving: DialectName | None = None, route: Route | None = None
) -> ModelChoice:
    facts, family = facts_of(catalog, name, model), family_of(catalog, name, model)
    return ModelChoice(
        name, catalog.providers[name], model, facts, family, route, arriving, partial(prices_of, catalog, name)
    )


def prices_of(catalog: Catalog, provider: str, model: str) -> Prices | None:
    """The prices of a provider's model; None if they are not known."""
    return facts_of(catalog, provider, model).prices


def _is_served_by_others(catalog: Catalog, wanted: str, name: str) -> bool:
    # Some vendors call that model `openai/gpt-oss-120b`; OpenAI's own API does not have it.
    model = catalog.models.get(wanted)
    return model is not None and bool(model.providers) and name not in model.providers


def _own_name(catalog: Catalog, name: str, wanted: str) -> str:
    """The maker's own name of a model that was requested in an intermediary's spelling; empty if there is none."""
    found = catalog.spelled.get(wanted.lower(), "")
    return found if found and "/" not in found and name in catalog.models[found].providers else ""


def _default_model(catalog: Catalog, name: str) -> str:
    model = catalog.providers[name].default_model
    if not model:
        raise Fault(
            Code.MODEL_UNKNOWN, f"the provider {quote_word(name)} has no default model", hint=f"Name one: {name}/MODEL."
        )
    return model


def _serving(catalog: Catalog, wanted: str) -> list[str]:
    entry = entry_of(catalog, wanted)
    if entry is None and any(name.endswith(f"/{wanted.lower()}") for name in catalog.spelled):
        return []  # an intermediary's spelling of a name that its maker does not know
    names = entry.providers if entry is not None else ()
    return [name for name in names or family_of(catalog, "", wanted).providers if name in catalog.providers]


def _no_provider(catalog: Catalog, name: str) -> Fault:
    message = f"a route names a provider that does not exist: {quote_word(name)}"
    return Fault(Code.CONFIG, message, hint=nearest(name, catalog.providers))


def _no_model(catalog: Catalog, wanted: str) -> Fault:
    known = [*catalog.models, *(alias for model in catalog.models.values() for alias in model.aliases)]
    close = [each for name in spellings(wanted) for each in get_close_matches(name, known, n=3)]
    meant = f"Did you mean {' or '.join(dict.fromkeys(map(quote_word, close[:3])))}? " if close else ""
    name, slash, _ = wanted.partition("/")
    if slash and name.lower() not in map(str.lower, catalog.providers):
        close = [quote_word(each) for each in get_close_matches(name.lower(), catalog.providers, n=1)]
        meant += f"There is no provider {quote_word(name)}{f'; did you mean {close[0]}?' if close else '.'} "
    someone = next(iter(catalog.providers), "provider")
    hint = f"{meant}Write provider/model to say who serves it, for instance {someone}/{wanted or 'MODEL'}."
    return Fault(Code.MODEL_UNKNOWN, f"no provider is known for the model {quote_word(wanted)}", hint=hint)
