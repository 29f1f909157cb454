"""`sightline doctor`: check everything that an answer needs, and say how to fix what is missing."""

import argparse
from typing import TYPE_CHECKING

from sightline.cli.options import add_shared
from sightline.cli.terminal import write
from sightline.errors import Fault

if TYPE_CHECKING:
    from sightline.app.configuration import Configuration
    from sightline.transport.embedded.diagnosis import DiagnosisFinding

_MARKS = {True: "ok", False: "NO", None: "--"}


def add_command(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Add `doctor`, which has only the shared options."""
    command = commands.add_parser(
        "doctor",
        help="check everything that an answer needs",
        description="Look at the configuration, keys, proxies, certificates, tokenizer and the embedded model.",
    )
    add_shared(command)
    command.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Report what was found; the exit code says whether anything is broken."""
    from sightline.app.configuration import load_with_problems
    from sightline.cli.program import EXIT_FAILED

    loaded = load_with_problems(arguments.config)
    is_sound = True
    for title, findings in (
        ("configuration", _configuration(loaded, arguments.data)),
        ("keys", _keys(loaded)),
        ("network", _network(loaded)),
        ("tokens", [*_tokenizer(), *_lessons(arguments.data)]),
        ("embedded model", _check_embedded(loaded)),
    ):
        write(f"{title}\n".encode())
        for finding in findings:
            write(_line(finding).encode("utf-8", "surrogateescape"))
            is_sound = is_sound and finding.ok is not False
    return 0 if is_sound else EXIT_FAILED


def _line(finding: "DiagnosisFinding") -> str:
    hint = f"\n       {'':16} {finding.hint}" if finding.hint else ""
    return f"  {_MARKS[finding.ok]:3}  {finding.name:16} {finding.detail}{hint}\n"


def _configuration(loaded: "Configuration", data: str | None) -> list["DiagnosisFinding"]:
    import platform

    from sightline.app.configuration import data_folder
    from sightline.transport.embedded.diagnosis import DiagnosisFinding

    file = str(loaded.path) if loaded.path else "none; only the built-in catalogue"
    found = [DiagnosisFinding("python", ok=True, detail=f"{platform.python_version()} on {platform.platform()}")]
    found.append(DiagnosisFinding("file", ok=None if loaded.path is None else not loaded.problems, detail=file))
    found += [DiagnosisFinding("problem", ok=False, detail=each.text, hint=each.hint) for each in loaded.problems]
    folder = data_folder(data)
    try:
        from sightline.exchange.memory import writable

        writable(folder)
        found.append(DiagnosisFinding("data", ok=True, detail=str(folder)))
    except OSError as error:
        hint = "Make it writable, or name another folder with --data or SIGHTLINE_DATA."
        found.append(DiagnosisFinding("data", ok=False, detail=f"{folder}: {error.strerror}", hint=hint))
    return found


def _keys(loaded: "Configuration") -> list["DiagnosisFinding"]:
    """Each provider that needs a key, with its variable; the first that is set is the default."""
    from sightline.transport.embedded.diagnosis import DiagnosisFinding

    return [
        DiagnosisFinding(name, ok=True, detail=f"{provider.key_env} is set")
        if loaded.has_key(provider)
        else DiagnosisFinding(name, ok=None, detail=f"{provider.key_env} is not set")
        for name, provider in loaded.catalog.providers.items()
        if provider.key_env and not provider.embedded
    ]


def _network(loaded: "Configuration") -> list["DiagnosisFinding"]:
    from sightline.transport.embedded.diagnosis import DiagnosisFinding
    from sightline.transport.http.dialling import Trust
    from sightline.transport.http.target import Origin, Proxies

    found: list[DiagnosisFinding] = []
    try:
        Trust(ca_file=loaded.settings.network.ca_file, environment=loaded.environment).context()
        found.append(DiagnosisFinding("certificates", ok=True, detail="the system's, and your own"))
    except Fault as fault:
        found.append(DiagnosisFinding("certificates", ok=False, detail=fault.message, hint=fault.hint))
    try:
        proxy = Proxies.of(loaded.environment).for_origin(Origin("https", "provider.example", 443))
        detail = "none" if proxy is None else f"{proxy.scheme}://{proxy.place} (from {proxy.variable})"
        found.append(DiagnosisFinding("proxy", ok=None if proxy is None else True, detail=detail))
    except Fault as fault:
        found.append(DiagnosisFinding("proxy", ok=False, detail=fault.message, hint=fault.hint))
    return found


def _tokenizer() -> list["DiagnosisFinding"]:
    from sightline.transport.embedded.diagnosis import DiagnosisFinding

    try:
        from sightline.tokens.text_count import count_tokens

        count_tokens("o200k_base", "what you see")
    except ImportError as error:
        return [DiagnosisFinding("o200k_base", ok=False, detail=str(error), hint="Reinstall Sightline: make install.")]
    return [DiagnosisFinding("o200k_base", ok=True, detail="tokens are counted")]


def _lessons(data: str | None) -> list["DiagnosisFinding"]:
    """The calibration of token estimates."""
    from sightline.app.engine import counter
    from sightline.transport.embedded.diagnosis import DiagnosisFinding

    memory = counter(data).memory
    found = [DiagnosisFinding("learned", ok=False, detail=memory.trouble)] if memory.trouble else []
    for each in memory.lessons():
        aside = f"; {each.set_aside} odd counts set aside" if each.set_aside else ""
        rule = f"estimates x {each.factor:g} {'-' if each.added < 0 else '+'} {abs(each.added):,}"
        detail = f"{each.model} ({each.kind}): {rule}, from {each.seen} counts{aside}"
        hint = f"To forget it: sightline config forget-learned {each.model}" if each.set_aside else ""
        found.append(DiagnosisFinding("learned", ok=True, detail=detail, hint=hint))
    return found


def _check_embedded(loaded: "Configuration") -> list["DiagnosisFinding"]:
    import asyncio

    from sightline.app.engine import diagnose_embedded

    return asyncio.run(diagnose_embedded(loaded))
