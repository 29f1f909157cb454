"""Loads the plug-ins that the user names, and provides what they add, each part guarded."""

import importlib.util
import sys
import tomllib
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from importlib.metadata import entry_points
from pathlib import Path
from types import ModuleType
from typing import Any, Final, TypeVar

import msgspec

from sightline.catalog.catalog import Catalog
from sightline.catalog.loading import load
from sightline.catalog.problem import ConfigProblem
from sightline.catalog.provider import Provider
from sightline.catalog.toml import TomlText
from sightline.dialects.dialect import Dialect
from sightline.dialects.registry import PROVIDER_DIALECTS
from sightline.errors import Code, Fault
from sightline.model.json import JsonObject
from sightline.plugins.adding import MISSING, STAND_INS, add_parts, add_stand_in
from sightline.plugins.guard import FILE_SECONDS, LOAD_SECONDS, LoadedPlugin, OverdueError, call_within
from sightline.plugins.plugin import (
    ExchangeField,
    ExportFormat,
    Fetch,
    FindValues,
    ImportFormat,
    Panel,
    Plugin,
    SigningContext,
)
from sightline.plugins.signing import BUILT_IN
from sightline.settings import PluginSettings, Settings
from sightline.transport.sender import Signer
from sightline.web import replies
from sightline.web.asgi import WebResponse
from sightline.web.routes import ApiCall, Calls
from sightline.wire.call import HttpRequest
from sightline.workbench.shapes import PanelShown, PluginShown

GROUP: Final = "sightline.plugins"
FOLDER: Final = "plugins"
T = TypeVar("T")
_SIGN_SECONDS: Final = 60.0
"""A signer may have to fetch a token."""


@dataclass(frozen=True, slots=True)
class Plugins:
    """All plug-ins that the user has named, in order."""

    loaded: tuple[LoadedPlugin, ...] = ()
    folder: Path | None = None
    """The folder of the configuration file, which contains `plugins/`."""

    @property
    def names(self) -> tuple[str, ...]:
        """The names as written by the user."""
        return tuple(each.named for each in self.loaded)

    def working(self) -> Iterator[tuple[LoadedPlugin, Plugin]]:
        """The plug-ins that could be loaded."""
        return ((each, each.plugin) for each in self.loaded if each.plugin is not None)

    def _parts_of(
        self, kind: str, select: Callable[[Plugin], Mapping[str, T]]
    ) -> Iterator[tuple[LoadedPlugin, str, T]]:
        """The parts of a kind with their owners and names, except those that were refused."""
        for owner, plugin in self.working():
            for name, part in select(plugin).items():
                if f"{kind} {name}" not in owner.refused:
                    yield owner, name, part

    def exporters(self) -> dict[str, ExportFormat]:
        """The export formats of all plug-ins, by name."""
        return {
            name: owner.guard(f"exporter {name}", format_, bytes, seconds=FILE_SECONDS)
            for owner, name, format_ in self._parts_of("exporter", lambda plugin: plugin.exporters)
        }

    def read_foreign(self, data: bytes) -> JsonObject | None:
        """The HTTP archive that the first matching importer makes from a file; None if no importer recognises it."""
        for owner, name, format_ in self._parts_of("importer", lambda plugin: plugin.importers):
            read: ImportFormat = owner.guard(f"importer {name}", format_, (dict, type(None)), seconds=FILE_SECONDS)
            archive = read(data)
            if archive is not None:
                return archive
        return None

    def redactors(self) -> dict[str, FindValues]:
        """The functions that find values which must not be shared, by name."""
        return {
            name: owner.guard(f"redactor {name}", partial(find_all, find))
            for owner, name, find in self._parts_of("redactor", lambda plugin: plugin.redactors)
        }

    def panels(self) -> dict[str, tuple[str, Panel]]:
        """The panels for the page by name, each with the user's name for its plug-in."""
        return {
            name: (owner.named, panel) for owner, name, panel in self._parts_of("panel", lambda plugin: plugin.panels)
        }

    def catalogues(self, built_in: Sequence[TomlText]) -> list[TomlText]:
        """The models and providers of all plug-ins. A catalogue with a problem is left out."""
        texts = []
        for owner, plugin in self.working():
            if plugin.catalogue:
                try:
                    check_catalogue(plugin.catalogue, built_in)
                except Fault as fault:
                    owner.fail("catalogue models", fault)
                else:
                    texts.append(TomlText(f"the plug-in {owner.named}", plugin.catalogue, builtin=True))
        return texts

    # --- providers whose dialect or signer is missing ---

    def stand_in(self, text: str) -> None:
        """If a plug-in has failed, register stand-ins for the unknown dialects of this configuration file's providers:
        it is unknown which of them the plug-in would have had."""
        if not any(each.failures for each in self.loaded):
            return
        try:
            providers = tomllib.loads(text).get("providers")
        except tomllib.TOMLDecodeError:
            return  # the reader of the file reports it
        for table in providers.values() if isinstance(providers, dict) else ():
            name = table.get("dialect") if isinstance(table, dict) else None
            if isinstance(name, str) and name and name not in PROVIDER_DIALECTS:
                add_stand_in(name, self._missing_dialect(name))

    def refuse_missing(self, catalog: Catalog) -> Catalog:
        """The catalogue, with every provider that speaks a dialect of a failed plug-in refusing all requests. The
        others work as usual, and so does the server."""
        providers = dict(catalog.providers)
        for name, provider in catalog.providers.items():
            if provider.sign == MISSING and provider.dialect not in PROVIDER_DIALECTS:  # this process is a worker
                add_stand_in(provider.dialect, self._missing_dialect(provider.dialect))
            if provider.dialect in STAND_INS:
                providers[name] = msgspec.structs.replace(provider, sign=MISSING, key_env="")
        return msgspec.structs.replace(catalog, providers=providers)

    def problems(self, catalog: Catalog, file: str) -> Iterator[ConfigProblem]:
        """What cannot be used in a configuration: plug-ins that have failed, and providers that name a dialect or a
        signer that does not exist."""
        for each in self.loaded:
            for what, reason in each.failures.items():
                fault = each.fault_of(what, reason)
                yield ConfigProblem(file, 0, "plugins.use", fault.message, fault.hint)
        for name, provider in catalog.providers.items():
            if provider.dialect in STAND_INS:
                fault = self._missing_dialect(provider.dialect)
                yield ConfigProblem(file, 0, f"providers.{name}.dialect", fault.message, fault.hint)
            elif provider.sign and provider.sign not in self.signer_names():
                fault = self._missing_signer(provider.sign)
                yield ConfigProblem(file, 0, f"providers.{name}.sign", fault.message, fault.hint)

    def _missing_dialect(self, name: str) -> Fault:
        failed = ", ".join(each.named for each in self.loaded if each.failures)
        message = f"the dialect {name!r} is not there, and these plug-ins have failed: {failed}"
        return Fault(Code.CONFIG, message, hint="`sightline plugin list` says why. Nothing is sent to this provider.")

    def _missing_signer(self, name: str) -> Fault:
        hint = f"Known are {', '.join(sorted(self.signer_names()))}; `sightline plugin list` shows what failed."
        return Fault(Code.CONFIG, f"nothing signs requests as {name!r}", hint=hint)

    # --- signers ---

    def signer_names(self) -> frozenset[str]:
        """The names of all signers that a provider can use."""
        return frozenset(BUILT_IN).union(name for _, name, _ in self._parts_of("signer", lambda plugin: plugin.signers))

    def signers(
        self,
        providers: Mapping[str, Provider],
        environment: Mapping[str, str],
        now: Callable[[], float],
        fetch: Fetch,
    ) -> dict[str, Signer]:
        """The signer of each provider that names one. If it cannot be created, every request is refused: none is ever
        sent unsigned."""
        return {
            name: self._signer(SigningContext(name, provider.sign_options, environment, now, fetch), provider)
            for name, provider in providers.items()
            if provider.sign
        }

    def _signer(self, context: SigningContext, provider: Provider) -> Signer:
        if provider.sign in BUILT_IN:
            return BUILT_IN[provider.sign](context)
        seen = {each: context.environment[each] for each in provider.sign_env if each in context.environment}
        what = f"signer {provider.sign}"
        for owner, name, make in self._parts_of("signer", lambda plugin: plugin.signers):
            if name == provider.sign:
                try:
                    signer = owner.guard(what, make)(replace(context, environment=seen))
                except Fault as fault:
                    return _RefusingSigner(fault)
                return _GuardedSigner(signer, owner, what)
        is_missing = provider.sign == MISSING
        return _RefusingSigner(
            self._missing_dialect(provider.dialect) if is_missing else self._missing_signer(provider.sign)
        )


@dataclass(frozen=True, slots=True)
class _RefusingSigner:
    fault: Fault

    async def sign(self, _request: HttpRequest) -> HttpRequest:
        fault = self.fault  # a new one each time, because notes and tracebacks are added to it
        raise Fault(fault.code, fault.message, hint=fault.hint)


@dataclass(frozen=True, slots=True)
class _GuardedSigner:
    signer: Signer
    owner: LoadedPlugin
    what: str

    async def sign(self, request: HttpRequest) -> HttpRequest:
        signing = self.owner.guard(self.what, self.signer.sign, Awaitable)
        signed: object = await self.owner.wait(self.what, signing(request), seconds=_SIGN_SECONDS)
        if not isinstance(signed, HttpRequest):
            raise self.owner.fail(self.what, TypeError(f"sign returned {type(signed).__name__}, not an HttpRequest"))
        return signed


# --- for the page ---------------------------------------------------------------------------------


def list_panels(plugins: Plugins) -> list[PanelShown]:
    return [PanelShown(name, panel.title, owner) for name, (owner, panel) in plugins.panels().items()]


def plugin_calls(plugins: Plugins) -> Calls:
    """`GET /api/plugins`, and `GET /api/panels/NAME` with the module of a panel."""
    panels = plugins.panels()

    async def list_plugins(_call: ApiCall) -> list[PluginShown]:
        return [
            PluginShown(each.named, each.place, tuple(each.plugin.contents()) if each.plugin else (), each.failures)
            for each in plugins.loaded
        ]

    async def panel(call: ApiCall) -> WebResponse:
        if call.name not in panels:
            raise replies.not_found(f"panel {call.name[:200]!r}")
        _, found = panels[call.name]
        headers = [(b"content-type", b"text/javascript; charset=utf-8"), *replies.GUARDED]
        return WebResponse(200, found.module.encode(), headers)

    return {"plugins": {"GET": list_plugins}, "panels/*": {"GET": panel}}


# --- loading ----------------------------------------------------------------------------------------


def load_plugins(names: Iterable[str], folder: Path | None, seconds: float = PluginSettings().timeout_s) -> Plugins:
    """Load the plug-ins with these names: `NAME.py` is a file in `plugins/` of this folder, any other name is an entry
    point of an installed package. What they add can be used from now on; a call may take this many `seconds`. Nothing
    is raised: failures are recorded in each plug-in."""
    plugins = Plugins(tuple(_load(name, folder) for name in dict.fromkeys(names)), folder)
    owners: dict[str, str] = {}
    for owner, plugin in plugins.working():
        owner.seconds = seconds
        add_parts(owner, plugin, owners)
    return plugins


def load_file(path: Path) -> LoadedPlugin:
    loaded = LoadedPlugin(path.name, str(path))
    _load_into(loaded, lambda: _module_of(path))
    return loaded


def _load_into(loaded: LoadedPlugin, find: Callable[[], object]) -> None:
    """Load a plug-in. Importing it runs its code, which may do anything."""
    try:
        loaded.plugin = _read_plugin(call_within(LOAD_SECONDS, find, lambda: None))
    except OverdueError:
        loaded.switch_off("", LOAD_SECONDS)
    except (Exception, SystemExit) as error:  # noqa: BLE001 - see above
        loaded.fail("", error)


def _load(name: str, folder: Path | None) -> LoadedPlugin:
    if name.endswith(".py"):
        if folder is None or Path(name).name != name:
            loaded = LoadedPlugin(name, name)
            loaded.fail("", ValueError("a file of `plugins/` beside sightline.toml is named without its folder"))
            return loaded
        return load_file(folder / FOLDER / name)
    loaded = LoadedPlugin(name, f"entry point {name!r} of {GROUP}")

    def find() -> object:
        entry = next(iter(entry_points(group=GROUP, name=name)), None)
        if entry is None:
            raise LookupError(f"no installed package has an entry point {name!r} of {GROUP}; a file is named NAME.py")
        if entry.dist is not None:
            loaded.place = f"package {entry.dist.name} {entry.dist.version}"
        found: object = entry.load()
        return found

    _load_into(loaded, find)
    return loaded


def _module_of(path: Path) -> ModuleType:
    if not path.is_file():
        raise FileNotFoundError(f"there is no file {path}")
    name = f"sightline_plugin_{path.stem}"
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None or spec.loader is None:
        raise ValueError("a plug-in is a Python file, whose name ends in .py")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module  # dataclasses and pickle look it up
    spec.loader.exec_module(module)
    return module


def _read_plugin(loaded: Any) -> Plugin:
    """The plug-in that a module has as PLUGIN, or the object itself. Raises an exception if it is not a plug-in, or if
    one of its fields has the wrong type."""
    plugin = getattr(loaded, "PLUGIN", loaded)
    if not isinstance(plugin, Plugin):
        raise TypeError("it has no `PLUGIN = Plugin(name=…)`; Plugin is from sightline.plugins")
    for name, (container, member) in _SHAPES.items():
        value: object = getattr(plugin, name)
        if not isinstance(value, container):
            raise TypeError(f"{name} is of type {type(value).__name__}, not {container.__name__}")
        held: Any = value
        odd = [each for each in (held.values() if isinstance(held, Mapping) else held) if not isinstance(each, member)]
        odd += [each for each in held if isinstance(held, Mapping) and not isinstance(each, str)]
        if odd:
            raise TypeError(f"{name} holds {odd[0]!r}, which is no {member.__name__}")
    if not plugin.contents():
        raise ValueError(f"the plug-in {plugin.name!r} adds nothing")
    return plugin


_SHAPES: Final[Mapping[str, tuple[type, Any]]] = {
    "name": (str, str),
    "dialects": (tuple, Dialect),
    "signers": (Mapping, Callable),
    "tools": (tuple, Callable),
    "catalogue": (str, str),
    "hooks": (tuple, Callable),
    "exporters": (Mapping, Callable),
    "importers": (Mapping, Callable),
    "graders": (Mapping, Callable),
    "redactors": (Mapping, Callable),
    "fields": (Mapping, ExchangeField),
    "panels": (Mapping, Panel),
}
"""The type of each field of a plug-in, and of its members."""


def check_catalogue(text: str, built_in: Sequence[TomlText]) -> None:
    """Raise a Fault if a plug-in's catalogue cannot be read, sets more than providers and models, or would send a key
    to another place than it is meant for, by moving a built-in provider or by naming its key."""
    hint = "A catalogue has tables [providers.NAME] and [models.NAME], for providers that are not built in."
    read = load([*built_in, TomlText("catalogue", text)], {}, Settings, dialects=PROVIDER_DIALECTS)
    if read.problems:
        raise Fault(Code.CONFIG, "; ".join(problem.text for problem in read.problems), hint=hint)
    tree = tomllib.loads(text)
    others = sorted(tree.keys() - {"providers", "models"})
    if others:
        raise Fault(Code.CONFIG, f"it sets {', '.join(others)}", hint=hint)
    known = load(built_in, {}, Settings, dialects=PROVIDER_DIALECTS).catalog.providers
    moved = sorted(tree.get("providers", {}).keys() & known.keys())
    if moved:
        raise Fault(Code.CONFIG, f"it changes the built-in provider {moved[0]!r} (law 10)", hint=hint)
    keys = {variable: name for name, each in known.items() for variable in each.secret_variables}
    for name in tree.get("providers", {}):
        for variable in read.catalog.providers[name].secret_variables:
            if variable in keys:
                message = f"the provider {name!r} would get the key of {keys[variable]!r}, {variable} (law 10)"
                raise Fault(Code.CONFIG, message, hint=hint)


def find_all(find: FindValues, text: str) -> list[str]:
    """The values that a redactor finds. Raises a TypeError if it returns something else: the characters of a single
    string would be taken for values, and the value it meant would be shared."""
    found: object = find(text)
    if isinstance(found, str | bytes | Mapping) or not isinstance(found, Iterable):
        raise TypeError(f"it returned {type(found).__name__}, not a list of texts; return [] where there is no value")
    values: list[Any] = list(found)
    odd = next((each for each in values if not isinstance(each, str)), None)
    if odd is not None:
        raise TypeError(f"it found a value of type {type(odd).__name__}, not str")
    return values
