"""The active configuration: the built-in catalogue, the user's file and the environment."""

import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from sightline.catalog.catalog import Catalog
from sightline.catalog.choose import ModelChoice, choose, default_choice
from sightline.catalog.loading import LoadedConfig, load
from sightline.catalog.problem import ConfigProblem, Mistake
from sightline.catalog.provider import Provider
from sightline.catalog.toml import TomlText
from sightline.dialects.registry import PROVIDER_DIALECTS
from sightline.errors import Code, Fault
from sightline.platform.files import FolderKind, user_folder
from sightline.settings import PluginSettings, Settings

if TYPE_CHECKING:
    from sightline.plugins.loading import Plugins
    from sightline.store.summary import PriceList

FILE_NAME = "sightline.toml"
_LONGEST_FILE = 4 << 20
_BUILT_IN = ("providers.toml", "detections.toml", "families.toml", "models.toml")


@dataclass(frozen=True, slots=True)
class Configuration:
    """The catalogue and the settings, the file they were read from, and the environment."""

    catalog: Catalog
    settings: Settings
    path: Path | None
    environment: Mapping[str, str]
    problems: tuple[ConfigProblem, ...] = ()
    plugins: "Plugins | None" = None

    def has_key(self, provider: Provider) -> bool:
        """Whether the provider's key is set in the environment, or the provider needs none."""
        return provider.has_key(self.environment)

    @property
    def prices(self) -> "PriceList":
        """The prices in the catalogue, each of which is looked up once."""
        from sightline.store.summary import price_list  # most commands need none

        return price_list(self.catalog)

    def choice(self, wanted: str) -> ModelChoice:
        """The model to use: the named one, otherwise the configured one, otherwise one that can answer."""
        wanted = wanted or self.settings.ask.model
        if wanted:
            return choose(self.catalog, wanted, has_key=self.has_key)
        return default_choice(self.catalog, has_key=self.has_key)


def configuration(named: str | None) -> Configuration:
    """Load the configuration. Raises a Fault if anything in it is wrong."""
    return _load(named, LoadedConfig.require_sound)


def default_configuration(path: Path) -> Configuration:
    """The built-in configuration, without the user's file and environment. Other files are looked up next to `path`."""
    loaded = load(default_catalogue(), {}, Settings, _mistakes, dialects=PROVIDER_DIALECTS).require_sound()
    return Configuration(loaded.catalog, loaded.settings, path, {})


def load_with_problems(named: str | None) -> Configuration:
    """Load the configuration together with the list of its problems."""
    return _load(named, lambda loaded: loaded)


def config_file(named: str | None) -> Path | None:
    """The configuration file to use: the named one, otherwise the one in the current folder, otherwise the user's. None
    if there is none."""
    named = named or os.environ.get("SIGHTLINE_CONFIG", "").strip()
    if named:
        return Path(named)
    return next((path for path in (Path(FILE_NAME), config_home()) if _is_there(path)), None)


def config_home() -> Path:
    """The path of the user's configuration file."""
    return _user_folder("config") / FILE_NAME


def data_folder(named: str | None) -> Path:
    """The folder in which Sightline stores its data."""
    named = named or os.environ.get("SIGHTLINE_DATA", "").strip()
    return Path(named) if named else data_home()


def data_home() -> Path:
    """The folder for the user's data if none is named."""
    return _user_folder("data")


def _load(named: str | None, check: Callable[[LoadedConfig[Settings]], LoadedConfig[Settings]]) -> Configuration:
    path = config_file(named)
    documents = default_catalogue()
    if path is not None:
        documents.append(TomlText(str(path), _text(path)))
    read = load(documents, os.environ, Settings, _mistakes, dialects=PROVIDER_DIALECTS)
    plugins = load_named(read.settings.plugins, None if path is None else path.absolute().parent)
    if plugins is not None:  # the file may refer to what plug-ins add, so it is read again
        documents[len(_BUILT_IN) : len(_BUILT_IN)] = plugins.catalogues(documents[: len(_BUILT_IN)])
        plugins.stand_in(documents[-1].text)
        read = load(documents, os.environ, Settings, _mistakes, dialects=PROVIDER_DIALECTS)
        read = replace(read, catalog=plugins.refuse_missing(read.catalog))
    loaded = check(read)
    catalog, window = loaded.catalog, loaded.settings.local.context_window
    served = {provider.default_model for provider in catalog.providers.values() if provider.embedded}
    models = {
        name: msgspec.structs.replace(model, context_window=window) if name in served else model
        for name, model in catalog.models.items()
    }
    catalog = msgspec.structs.replace(catalog, models=models)
    problems = (*loaded.problems, *_plugin_problems(plugins, catalog, path))
    return Configuration(catalog, loaded.settings, path, dict(os.environ), problems, plugins)


def _plugin_problems(plugins: "Plugins | None", catalog: Catalog, path: Path | None) -> Iterable[ConfigProblem]:
    if plugins is None and not any(provider.sign for provider in catalog.providers.values()):
        return ()
    from sightline.plugins.loading import Plugins

    return (plugins or Plugins()).problems(catalog, str(path or FILE_NAME))


def plugins_named(loaded: Configuration) -> tuple[tuple[str, ...], str]:
    """The names of the plug-ins and the folder of their files, for another process that has to load the same ones."""
    if loaded.plugins is None:
        return (), ""
    return loaded.plugins.names, str(loaded.plugins.folder or "")


def load_named(settings: PluginSettings, folder: Path | None) -> "Plugins | None":
    """Load the plug-ins that the settings name, whose files are in `plugins/` of this folder; None if none is named."""
    if not settings.use:
        return None
    from sightline.plugins.loading import load_plugins

    return load_plugins(settings.use, folder, settings.timeout_s)


def default_catalogue() -> list[TomlText]:
    """The built-in tables of providers and models."""
    folder = files("sightline.catalog") / "data"
    return [TomlText(name, (folder / name).read_text("utf-8"), builtin=True) for name in _BUILT_IN]


def _mistakes(settings: Settings) -> Iterator[Mistake]:
    """Mistakes in settings whose values have the right type, including the filters of caps."""
    yield from settings.mistakes()
    if not settings.caps:
        return
    from sightline.filters.fields import FilterScope
    from sightline.filters.parsing import parse

    for number, cap in enumerate(settings.caps):
        try:
            parse(cap.filter, scope=FilterScope.RULES)
        except Fault as fault:
            yield ("caps", number), f"the filter of the cap {cap.name}: {fault.message}", fault.hint


def _is_there(path: Path) -> bool:
    try:
        return path.is_file()
    except OSError:  # another user's folder, which we cannot read
        return False


def _text(path: Path) -> str:
    try:
        with path.open(encoding="utf-8") as file:
            text = file.read(_LONGEST_FILE + 1)
        if len(text) > _LONGEST_FILE:
            raise Fault(
                Code.CONFIG, f"{path}: too large for a configuration", hint="Check that this is the right file."
            )
        return text
    except OSError as error:
        hint = "Check the path, or leave --config out."
        raise Fault(Code.CONFIG, f"{path}: {error.strerror}", hint=hint) from None
    except UnicodeDecodeError as error:
        raise Fault(Code.CONFIG, f"{path}: not UTF-8 (byte {error.start})", hint="Save it as UTF-8.") from None


def _user_folder(kind: FolderKind) -> Path:
    try:
        return user_folder(kind, os.environ, Path.home)
    except RuntimeError:
        raise Fault(
            Code.CONFIG,
            "this user has no home folder",
            hint=f"Set HOME or XDG_{kind.upper()}_HOME, or name the file with --config and the folder with --data.",
        ) from None
