"""Loads the plug-ins that the user names, and keeps each failure with the plug-in that caused it."""

import importlib.util
import logging
import sys
import tomllib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from importlib.metadata import entry_points
from pathlib import Path
from types import ModuleType
from typing import Any, Final, ParamSpec, TypeVar

from sightline.catalog.loading import load
from sightline.catalog.provider import Provider
from sightline.catalog.toml import TomlText
from sightline.dialects.dialect import Dialect
from sightline.dialects.registry import PROVIDER_DIALECTS, register
from sightline.errors import Code, Fault
from sightline.model.json import JsonObject
from sightline.plugins.plugin import ExportFormat, Fetch, ImportFormat, Plugin, SigningContext
from sightline.plugins.signing import BUILT_IN
from sightline.settings import Settings
from sightline.transport.sender import Signer
from sightline.wire.call import HttpRequest

_LOG = logging.getLogger("sightline")

GROUP: Final = "sightline.plugins"
FOLDER: Final = "plugins"

P = ParamSpec("P")
R = TypeVar("R")


@dataclass(slots=True)
class LoadedPlugin:
    """A plug-in that the user has named. `place` is the file or the package that it is from; `failures` say what of it
    is switched off, and why, by what it adds (`hook notify`); the key is empty where nothing of it could be loaded."""

    named: str
    place: str
    plugin: Plugin | None = None
    failures: dict[str, str] = field(default_factory=dict)

    def fail(self, what: str, error: BaseException) -> Fault:
        """Note that this part of the plug-in has failed, and say so in the log the first time."""
        reason = f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
        label = f"the plug-in {self.named!r}{f' ({what})' if what else ''}"
        if what not in self.failures:
            self.failures[what] = reason
            _LOG.warning("%s failed: %s", label, reason, exc_info=error)
        hint = f"Run `sightline plugin test {self.place}`, or take it out of [plugins]."
        return Fault(Code.CONFIG, f"{label} failed: {reason}", hint=hint)

    def guard(self, what: str, call: Callable[P, R]) -> Callable[P, R]:
        """The same call, whose unexpected errors are faults that name the plug-in. Its own faults pass."""

        def guarded(*args: P.args, **options: P.kwargs) -> R:
            try:
                return call(*args, **options)
            except Fault:
                raise
            except Exception as error:
                raise self.fail(what, error) from error

        return guarded


@dataclass(frozen=True, slots=True)
class Plugins:
    """All plug-ins that the user has named, in their order."""

    loaded: tuple[LoadedPlugin, ...] = ()
    folder: Path | None = None
    """The folder of the configuration file, in which `plugins/` is."""

    @property
    def names(self) -> tuple[str, ...]:
        """The names that the user has written."""
        return tuple(each.named for each in self.loaded)

    def found(self) -> Iterator[tuple[LoadedPlugin, Plugin]]:
        """Those that could be loaded."""
        return ((each, each.plugin) for each in self.loaded if each.plugin is not None)

    def exporters(self) -> dict[str, ExportFormat]:
        """The formats of all plug-ins, by name."""
        return {
            name: owner.guard(f"exporter {name}", format_)
            for owner, plugin in self.found()
            for name, format_ in plugin.exporters.items()
        }

    def read_foreign(self, data: bytes) -> JsonObject | None:
        """The HTTP archive that the first fitting importer makes of a file; None where none knows it."""
        for owner, plugin in self.found():
            for name, format_ in plugin.importers.items():
                reading: ImportFormat = owner.guard(f"importer {name}", format_)
                archive = reading(data)
                if archive is not None:
                    return archive
        return None

    def catalogues(self, built_in: Sequence[TomlText]) -> list[TomlText]:
        """The models and providers of all plug-ins. A catalogue with a problem is left out."""
        texts = []
        for owner, plugin in self.found():
            if plugin.catalogue:
                try:
                    check_catalogue(plugin.catalogue, built_in)
                except Fault as fault:
                    owner.fail("catalogue models", fault)
                else:
                    texts.append(TomlText(f"the plug-in {owner.named}", plugin.catalogue, builtin=True))
        return texts

    def signer_names(self) -> frozenset[str]:
        """All ways of signing that a provider can name."""
        return frozenset(BUILT_IN).union(*(plugin.signers for _, plugin in self.found()))

    def signers(
        self,
        providers: Mapping[str, Provider],
        environment: Mapping[str, str],
        now: Callable[[], float],
        fetch: Fetch,
    ) -> dict[str, Signer]:
        """The signer of each provider that names one. One that cannot be made refuses every request: none is ever sent
        unsigned."""
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
        for owner, plugin in self.found():
            if provider.sign in plugin.signers:
                try:
                    signer = owner.guard(what, plugin.signers[provider.sign])(replace(context, environment=seen))
                except Fault as fault:
                    return _RefusingSigner(fault)
                return _GuardedSigner(signer, owner, what)
        hint = f"Known are {', '.join(sorted(self.signer_names()))}; `sightline plugin list` shows what failed."
        message = f"nothing signs requests as {provider.sign!r} (sign of [providers.{context.provider}])"
        return _RefusingSigner(Fault(Code.CONFIG, message, hint=hint))


@dataclass(frozen=True, slots=True)
class _RefusingSigner:
    fault: Fault

    async def sign(self, _request: HttpRequest) -> HttpRequest:
        fault = self.fault  # a new one each time: where it goes, notes and traces are added to it
        raise Fault(fault.code, fault.message, hint=fault.hint)


@dataclass(frozen=True, slots=True)
class _GuardedSigner:
    signer: Signer
    owner: LoadedPlugin
    what: str

    async def sign(self, request: HttpRequest) -> HttpRequest:
        try:
            signed: object = await self.signer.sign(request)
        except Fault:
            raise
        except Exception as error:
            raise self.owner.fail(self.what, error) from error
        if not isinstance(signed, HttpRequest):
            raise self.owner.fail(self.what, TypeError(f"sign returned {type(signed).__name__}, not an HttpRequest"))
        return signed


# --- loading ----------------------------------------------------------------------------------------


def load_plugins(names: Iterable[str], folder: Path | None) -> Plugins:
    """The plug-ins of these names: `NAME.py` is a file in `plugins/` of this folder, any other an entry point of an
    installed package. Their dialects can be used from now on. Nothing is raised: failures are with each plug-in."""
    plugins = Plugins(tuple(_load(name, folder) for name in dict.fromkeys(names)), folder)
    for owner, plugin in plugins.found():
        for dialect in plugin.dialects:
            try:
                register(_guard_dialect(dialect, owner))
            except Fault as fault:
                owner.fail(f"dialect {dialect.name}", fault)
    return plugins


def load_file(path: Path) -> LoadedPlugin:
    """The plug-in in this file."""
    loaded = LoadedPlugin(path.name, str(path))
    try:
        loaded.plugin = _checked(_module_of(path))
    except (Exception, SystemExit) as error:  # noqa: BLE001 - importing runs the plug-in's code, which may do anything
        loaded.fail("", error)
    return loaded


def _load(name: str, folder: Path | None) -> LoadedPlugin:
    if name.endswith(".py"):
        if folder is None or Path(name).name != name:
            loaded = LoadedPlugin(name, name)
            loaded.fail("", ValueError("a file of `plugins/` beside sightline.toml is named without its folder"))
            return loaded
        return load_file(folder / FOLDER / name)
    loaded = LoadedPlugin(name, f"entry point {name!r} of {GROUP}")
    try:
        entry = next(iter(entry_points(group=GROUP, name=name)), None)
        if entry is None:
            raise LookupError(f"no installed package has an entry point {name!r} of {GROUP}; a file is named NAME.py")
        if entry.dist is not None:
            loaded.place = f"package {entry.dist.name} {entry.dist.version}"
        loaded.plugin = _checked(entry.load())
    except (Exception, SystemExit) as error:  # noqa: BLE001 - importing runs the plug-in's code, which may do anything
        loaded.fail("", error)
    return loaded


def _module_of(path: Path) -> ModuleType:
    if not path.is_file():
        raise FileNotFoundError(f"there is no file {path}")
    name = f"sightline_plugin_{path.stem}"
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None  # the name ends in .py
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module  # what dataclasses and pickles look up
    spec.loader.exec_module(module)
    return module


def _checked(loaded: Any) -> Plugin:
    """The plug-in that a module holds as PLUGIN, or the object itself."""
    plugin = getattr(loaded, "PLUGIN", loaded)
    if not isinstance(plugin, Plugin):
        raise TypeError("it has no `PLUGIN = Plugin(name=…)`; Plugin is from sightline.plugins")
    if not plugin.contents():
        raise ValueError(f"the plug-in {plugin.name!r} adds nothing")
    return plugin


def check_catalogue(text: str, built_in: Sequence[TomlText]) -> None:
    """Raise a Fault where a plug-in's catalogue cannot be read, sets more than providers and models, or would take a
    key to another place than it is meant for: by moving a built-in provider, or by naming its key."""
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


_GUARDED: Final = (
    "read_request",
    "write_request",
    "read_reply",
    "write_reply",
    "read_error",
    "write_error",
    "problems",
)


def _guard_dialect(dialect: Dialect, owner: LoadedPlugin) -> Dialect:
    """The dialect, whose unexpected errors are faults of the request that they came with."""
    what = f"dialect {dialect.name}"
    calls: dict[str, Any] = {name: owner.guard(what, getattr(dialect, name)) for name in _GUARDED}
    for name in ("stream_reader", "stream_writer"):
        make = getattr(dialect, name)

        def guarded(*args: Any, _make: Callable[..., object] = make) -> _GuardedStream:
            return _GuardedStream(owner.guard(what, _make)(*args), owner, what)

        calls[name] = guarded
    return replace(dialect, **calls)


class _GuardedStream:
    """A reader or a writer of a stream whose calls are guarded."""

    def __init__(self, stream: object, owner: LoadedPlugin, what: str) -> None:
        self._stream = stream
        self._owner = owner
        self._what = what

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._stream, name)
        return self._owner.guard(self._what, found) if callable(found) else found
