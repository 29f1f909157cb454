"""What each known client needs to connect to Sightline: variables, arguments, a private settings file; under `run
--tls` Sightline's proxy and the certificates to trust, with its base URLs unchanged.

Nothing of the user's is changed. Credentials stay where they are; if a client requires one and the user has none, it
gets a placeholder that Sightline does not pass on.
"""

import json
import re
import shutil
import ssl
import sys
import tomllib
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from importlib.resources import files
from pathlib import Path, PurePath
from typing import Final
from urllib.parse import quote, urlsplit

import msgspec

from sightline.app.running_server import ProxyShown, RefusalsShown, call_server
from sightline.catalog.clients import BASE_URLS, CREDENTIALS, DEMANDED, FURTHER_BASE_URLS, ClientSetting, ClientSettings
from sightline.errors import Code, Fault
from sightline.exchange.remote_relay import RunningServer
from sightline.exchange.routing import PLACEHOLDER
from sightline.model.json import Json, JsonObject

CHATGPT: Final = "chatgpt"
CHATGPT_SETTINGS: Final = {
    "SIGHTLINE_PROVIDERS_CHATGPT_DIALECT": "openai-responses",
    "SIGHTLINE_PROVIDERS_CHATGPT_BASE_URL": "https://chatgpt.com/backend-api/codex",
}
"""The address for ChatGPT logins, as a provider of the server that a run starts."""

LAUNCHERS: Final = frozenset({"npx", "bunx", "pnpx", "node", "bun"})
"""Programs that launch the client named in their arguments."""

_NO_CHATGPT = (
    "note: Codex is signed in with ChatGPT, and the running server sends it to OpenAI's API, which takes keys alone. "
    f'Write [providers.chatgpt] with dialect = "openai-responses" and base_url = '
    f'"{CHATGPT_SETTINGS["SIGHTLINE_PROVIDERS_CHATGPT_BASE_URL"]}" into its sightline.toml.'
)
_USABLE = re.compile(r"https?://[^\s/?#]+[^\s?#]*")
_PROXIES = ("http_proxy", "https_proxy", "all_proxy")
_COMMENT = re.compile(r'("(?:\\.|[^"\\])*")|//[^\n]*|/\*.*?\*/', re.DOTALL)
_GEMINI_HOME, _BY_KEY = "GEMINI_CLI_HOME", "gemini-api-key"


@dataclass(frozen=True, slots=True)
class Stage:
    """Where a client is started. `server` is Sightline's address, `folder` a private folder that is removed after the
    run. `providers` are the names that Sightline knows; `routes` is whether the user has configured routes; `version`
    is the client's, empty if it is not known."""

    server: str
    session: str
    environment: Mapping[str, str]
    home: Path
    folder: Path
    providers: frozenset[str] = frozenset()
    routes: bool = False
    version: str = ""

    def url(self, ending: str = "", *, provider: str = "") -> str:
        """A base URL that labels the traffic and, if one is named, selects the provider."""
        chosen = f"/p/{quote(provider, safe='')}" if provider else ""
        return f"{self.server}{chosen}/s/{quote(self.session, safe='')}{ending}"

    def environment_value(self, variable: str) -> str:
        """A variable of the user's environment; empty if it is not set."""
        return self.environment.get(variable, "").strip()


@dataclass(frozen=True, slots=True)
class LaunchSetup:
    """What a client gets: variables, arguments, private files and links, and notes for the user."""

    variables: dict[str, str] = field(default_factory=dict)
    words: tuple[str, ...] = ()
    files: dict[Path, str] = field(default_factory=dict)
    links: dict[Path, Path] = field(default_factory=dict)
    notes: tuple[str, ...] = ()

    def __or__(self, other: "LaunchSetup") -> "LaunchSetup":
        return LaunchSetup(
            self.variables | other.variables,
            self.words + other.words,
            self.files | other.files,
            self.links | other.links,
            self.notes + other.notes,
        )


def client_in(command: list[str]) -> tuple[str, int]:
    """The known client that a command starts, and the position of its name; for others, the program's name."""
    places = range(min(len(command), 4)) if _name(command[0]) in LAUNCHERS else range(1)
    for place in places:
        if _name(command[place]) in CLIENTS:
            return _name(command[place]), place
    return _name(command[0]), 0


def outfit(client: str, stage: Stage) -> LaunchSetup:
    """Everything for this client; an unknown one gets what all clients get."""
    special = CLIENTS.get(client)
    kept = {name: value for each in _settings(client, stage) for name, value in each.variables.items()}
    unset = {name: value for name, value in kept.items() if not stage.environment_value(name)}
    return _base_outfit(client, stage) | LaunchSetup(unset) | (special(stage) if special else LaunchSetup())


def client_settings() -> ClientSettings:
    """What clients are known to need."""
    return msgspec.toml.decode((files("sightline.catalog") / "clients.toml").read_bytes(), type=ClientSettings)


def _settings(client: str, stage: Stage) -> tuple[ClientSetting, ...]:
    return client_settings().for_client(client, "base_url", version=stage.version, has_routes=stage.routes)


def version_of(program: str) -> str:
    """The version of a client installed by npm, from the package that its program is in; empty if there is none."""
    found = shutil.which(program)
    for folder in Path(found).resolve().parents[:4] if found else ():
        package = _json(folder / "package.json")
        if package:
            return str(package.get("version") or "")
    return ""


def own_upstreams(environment: Mapping[str, str], own: frozenset[tuple[str, int]]) -> dict[str, str]:
    """The base URLs in the user's environment, by provider, without those of Sightline itself."""
    found: dict[str, str] = {}
    for variable, provider, _ in BASE_URLS:
        url = environment.get(variable, "").strip()
        with suppress(ValueError):  # an address that no client could use either
            parts = urlsplit(url)
            if _USABLE.fullmatch(url) and (parts.hostname or "", parts.port or 80) not in own:
                found.setdefault(provider, url)
    return found


def _name(word: str) -> str:
    """A program's name: `/usr/bin/codex`, `codex.exe` and `@openai/codex@latest` are codex."""
    name = PurePath(word).name.lower()
    name = name.partition("@")[0] or name
    for ending in (".exe", ".cmd", ".js", ".py"):
        name = name.removesuffix(ending)
    return {"claude-code": "claude", "gemini-cli": "gemini", "opencode-ai": "opencode"}.get(name, name)


# --- all clients ------------------------------------------------------------------------------------


def _base_outfit(client: str, stage: Stage) -> LaunchSetup:
    variables = {variable: stage.url(ending) for variable, _, ending in BASE_URLS}
    for variable, provider, key in FURTHER_BASE_URLS:
        if stage.environment_value(key) and not stage.environment_value(variable) and provider in stage.providers:
            variables[variable] = stage.url("/v1", provider=provider)
    return (
        LaunchSetup(variables | _no_proxy_variables(stage) | _placeholders(client, stage))
        | _gemini_home(stage)
        | _opencode_content(stage)
    )


def _no_proxy_variables(stage: Stage) -> dict[str, str]:
    """Exclude Sightline from the user's proxies."""
    if not any(stage.environment_value(name) or stage.environment_value(name.upper()) for name in _PROXIES):
        return {}
    host = urlsplit(stage.server).hostname or ""
    direct = [stage.environment_value("no_proxy") or stage.environment_value("NO_PROXY"), "127.0.0.1", "localhost"]
    value = ",".join(filter(None, [*direct, "" if host in direct else host]))
    return {"no_proxy": value, "NO_PROXY": value}


def _placeholders(client: str, stage: Stage) -> dict[str, str]:
    """A placeholder for each missing key, because clients refuse to start without one."""
    signed_in = {"openai": _codex_login(stage) != "", "anthropic": _is_claude_signed_in(stage)}
    missing = {
        name
        for provider, names in DEMANDED.items()
        if not any(map(stage.environment_value, CREDENTIALS[provider])) and not signed_in.get(provider)
        for name in names
    }
    # Claude Code asks the user about a key that it has not seen before, but accepts a token as it is.
    instead = {"ANTHROPIC_API_KEY": "ANTHROPIC_AUTH_TOKEN"} if client == "claude" else {}
    return {instead.get(name, name): PLACEHOLDER for name in missing}


def _is_claude_signed_in(stage: Stage) -> bool:
    folder = Path(stage.environment_value("CLAUDE_CONFIG_DIR") or stage.home / ".claude")
    known = (_json(stage.home / ".claude.json"), _json(folder / ".claude.json"), _json(folder / "settings.json"))
    return (folder / ".credentials.json").exists() or any(
        each.get(key) for each in known for key in ("oauthAccount", "primaryApiKey", "apiKeyHelper")
    )


# --- Codex ------------------------------------------------------------------------------------------


def _codex(stage: Stage) -> LaunchSetup:
    """Uses `-c`, which overrides the configuration file. The built-in provider keeps its login and history."""
    chosen = str(_codex_config(stage).get("model_provider") or "openai")
    if chosen != "openai":
        if chosen not in stage.providers:
            raise Fault(
                Code.CONFIG,
                f"Codex is set to its own provider {chosen!r}, which Sightline does not know",
                hint=f"Write [providers.{chosen}] into sightline.toml, or choose: codex -c model_provider=openai.",
            )
        return LaunchSetup(words=_overrides({f"model_providers.{chosen}.base_url": stage.url("/v1", provider=chosen)}))
    login = _codex_login(stage)
    if login:
        # A ChatGPT login is valid for another address than a key is.
        is_elsewhere, is_known = login == CHATGPT and not stage.routes, CHATGPT in stage.providers
        url = stage.url("/v1", provider=CHATGPT if is_elsewhere and is_known else "")
        notes = (_NO_CHATGPT,) if is_elsewhere and not is_known else ()
        return LaunchSetup(words=_overrides({"openai_base_url": url}), notes=notes)
    return LaunchSetup(
        words=_overrides(
            {
                "model_provider": "sightline",
                "model_providers.sightline.name": "Sightline",
                "model_providers.sightline.base_url": stage.url("/v1"),
                "model_providers.sightline.wire_api": "responses",
                "model_providers.sightline.env_key": "OPENAI_API_KEY",
                **{
                    f"model_providers.sightline.{key}": value
                    for each in _settings("codex", stage)
                    for key, value in each.config.items()
                },
            }
        )
    )


def _codex_login(stage: Stage) -> str:
    """How Codex is signed in: `key`, `chatgpt`, or empty if it is not."""
    if stage.environment_value("CODEX_API_KEY"):
        return "key"
    kept = _json(_codex_home(stage) / "auth.json")
    if kept.get("OPENAI_API_KEY"):
        return "key"
    in_keyring = _codex_config(stage).get("cli_auth_credentials_store") in ("keyring", "auto")
    return CHATGPT if kept.get("tokens") or in_keyring else ""


def _codex_home(stage: Stage) -> Path:
    return Path(stage.environment_value("CODEX_HOME") or stage.home / ".codex")


def _codex_config(stage: Stage) -> dict[str, object]:
    try:
        return tomllib.loads((_codex_home(stage) / "config.toml").read_text("utf-8"))
    except (OSError, ValueError):
        return {}  # Codex itself will report what is wrong with it


def _overrides(values: Mapping[str, str | bool]) -> tuple[str, ...]:
    return tuple(word for key, value in values.items() for word in ("-c", f"{key}={json.dumps(value)}"))


# --- Gemini CLI -------------------------------------------------------------------------------------


def _gemini_home(stage: Stage) -> LaunchSetup:
    """Given a base URL, Gemini CLI selects a login method that it then refuses, unless its settings name another. If
    they do not, it gets its own home folder, in which everything except the settings links to the user's."""
    home = Path(stage.environment_value(_GEMINI_HOME) or stage.home) / ".gemini"
    settings = _json(home / "settings.json")
    if _login_type(settings) == _BY_KEY:
        return LaunchSetup()
    private = stage.folder / ".gemini"
    private_settings = _merge(settings, {"security": {"auth": {"selectedType": _BY_KEY}}})
    entries = sorted(home.iterdir()) if home.is_dir() else []
    return LaunchSetup(
        {_GEMINI_HOME: str(stage.folder)},
        files={private / "settings.json": json.dumps(private_settings)},
        links={private / each.name: each for each in entries if each.name != "settings.json"},
    )


def _login_type(settings: JsonObject) -> Json:
    security = settings.get("security")
    auth = security.get("auth") if isinstance(security, dict) else None
    return auth.get("selectedType") if isinstance(auth, dict) else None


def _gemini(stage: Stage) -> LaunchSetup:
    if any(map(stage.environment_value, CREDENTIALS["gemini"])):
        return LaunchSetup()
    home = Path(stage.environment_value(_GEMINI_HOME) or stage.home) / ".gemini"
    if _login_type(_json(home / "settings.json")) in (None, _BY_KEY):
        return LaunchSetup()
    note = "note: Gemini CLI's own login is for an API that Sightline does not speak; set GEMINI_API_KEY in its place."
    return LaunchSetup(notes=(note,))


# --- opencode ---------------------------------------------------------------------------------------


def _opencode_content(stage: Stage) -> LaunchSetup:
    """opencode merges the configuration in this variable over all of its files."""
    name = "OPENCODE_CONFIG_CONTENT"
    urls = {"openai": stage.url("/v1"), "anthropic": stage.url("/v1"), "google": stage.url("/v1beta")}
    providers: JsonObject = {key: {"options": {"baseURL": url}} for key, url in urls.items()}
    return LaunchSetup({name: json.dumps(_merge(_object(stage.environment_value(name)), {"provider": providers}))})


def _merge(below: JsonObject, above: JsonObject) -> JsonObject:
    result: JsonObject = dict(below)
    for key, value in above.items():
        kept = result.get(key)
        result[key] = _merge(kept, value) if isinstance(kept, dict) and isinstance(value, dict) else value
    return result


def _json(path: Path) -> JsonObject:
    try:
        return _object(path.read_text("utf-8"))
    except (OSError, ValueError):
        return {}


def _object(text: str) -> JsonObject:
    """The JSON object in a text with comments; an empty one if there is none."""
    try:
        value: Json = json.loads(_COMMENT.sub(lambda match: match[1] or " ", text))
    except ValueError:
        return {}
    return value if isinstance(value, dict) else {}


CLIENTS: Final[Mapping[str, Callable[[Stage], LaunchSetup] | None]] = {
    "claude": None,
    "codex": _codex,
    "gemini": _gemini,
    "opencode": None,
}
"""Known clients, and what each needs beyond what all get."""


_PROXY_VARIABLES = ("HTTPS_PROXY", "HTTP_PROXY", "ALL_PROXY")
_DIRECT = ("localhost", "127.0.0.1", "::1")
_TRUSTED = ("SSL_CERT_FILE", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE", "NODE_EXTRA_CA_CERTS")
_BLOCK = re.compile(r"-----BEGIN CERTIFICATE-----.+?-----END CERTIFICATE-----", re.DOTALL)


def open_proxy(server: RunningServer, session: str) -> ProxyShown:
    try:
        return msgspec.json.decode(call_server(server, "POST", "/api/proxy", {"session": session}), type=ProxyShown)
    except Fault as fault:
        if fault.status != 404:
            raise
        hint = "The running server is older, or answers from the record. Stop it and try again."
        raise Fault(Code.USAGE, "the running server has no proxy for --tls", hint=hint) from None


def refusal_notes(server: RunningServer, session: str) -> Iterator[str]:
    """Notes about the hosts for which the client did not accept our certificate."""
    answer = call_server(server, "GET", f"/api/proxy?session={quote(session, safe='')}")
    for each in msgspec.json.decode(answer, type=RefusalsShown).refused:
        then = (
            "its further connections there were tunnelled and are not on record"
            if each.is_tunnelled
            else 'its requests there failed; [server] tls_refused = "tunnel" lets them pass unread'
        )
        yield f"note: the client did not accept Sightline's certificate for {each.host} ({each.why}): {then}."


def tls_outfit(client: str, stage: Stage, proxy: ProxyShown, ca_file: str = "") -> LaunchSetup:
    """Everything for this client. `ca_file` is what Sightline itself trusts besides the system's certificates."""
    bundle = stage.folder / "certificates.pem"
    theirs = (stage.environment_value(name) for name in _TRUSTED)
    variables = {name: proxy.url for upper in _PROXY_VARIABLES for name in (upper, upper.lower())}
    direct = ",".join((*_DIRECT, *_proxy_exceptions(stage, proxy.hosts)))
    for each in client_settings().for_client(client, "tls", version=stage.version):
        variables |= {name: value for name, value in each.variables.items() if not stage.environment_value(name)}
        variables |= dict.fromkeys(each.certificates, str(bundle))
    return LaunchSetup(
        {**variables, "NO_PROXY": direct, "no_proxy": direct},
        files={bundle: bundle_of((*theirs, ca_file), proxy.certificate)},
        notes=tuple(_base_url_notes(stage, proxy.hosts)),
    )


def bundle_of(named: Iterable[str], own: str) -> str:
    """The system's certificates, those in the files that the user has named, and our own, without duplicates."""
    blocks = dict.fromkeys(_system_roots())
    for path in named:
        with suppress(OSError, UnicodeDecodeError):  # the client itself would have reported what is wrong with it
            blocks |= dict.fromkeys(_BLOCK.findall(Path(path).read_text("utf-8") if path else ""))
    return "\n".join((*blocks, own.strip(), ""))


def _system_roots() -> Iterator[str]:
    if sys.platform == "win32":
        for each in ssl.create_default_context().get_ca_certs(binary_form=True):
            yield ssl.DER_cert_to_PEM_cert(each).strip()
    else:
        yield from _openssl_roots()


def _openssl_roots() -> Iterator[str]:
    # The paths that OpenSSL was built with: the variables that replace them are the user's, and are read later.
    paths = ssl.get_default_verify_paths()
    file, folder = Path(paths.openssl_cafile), Path(paths.openssl_capath)
    found = [file] if file.is_file() else sorted(folder.iterdir()) if folder.is_dir() else []
    blocks: list[str] = []
    for path in found:
        with suppress(OSError, UnicodeDecodeError):
            blocks += _BLOCK.findall(path.read_text("utf-8"))
    if not blocks:
        import certifi

        blocks = _BLOCK.findall(Path(certifi.where()).read_text("utf-8"))
    yield from blocks


def _proxy_exceptions(stage: Stage, hosts: Iterable[str]) -> Iterator[str]:
    """The hosts that the user reaches without a proxy, except those to be decrypted."""
    listed = stage.environment_value("no_proxy") or stage.environment_value("NO_PROXY")
    opened = tuple(hosts)
    for entry in filter(None, re.split(r"[\s,]+", listed)):
        name = entry.lower().removeprefix("*").strip(".")
        if name and entry not in _DIRECT and not any(host == name or host.endswith(f".{name}") for host in opened):
            yield entry


def _base_url_notes(stage: Stage, hosts: Iterable[str]) -> Iterator[str]:
    """Notes about base URLs of the user's that lead to hosts which are not decrypted."""
    known = frozenset(hosts)
    for variable, _, _ in BASE_URLS:
        with suppress(ValueError):
            host = urlsplit(stage.environment_value(variable)).hostname
            if host and host not in known:
                yield (
                    f"note: {variable} leads to {host}, which is not opened, so that its requests are not on record. "
                    "Add it to [server] tls_hosts, or run without --tls."
                )
