"""`sightline eval import`: a suite in our form, of a promptfoo file or of exchanges on record."""

import argparse
from collections.abc import Iterator, Sequence
from pathlib import Path

from sightline.app.configuration import configuration
from sightline.app.eval_targets import own_provider_name
from sightline.catalog.choose import choose
from sightline.cli.evals import make_case as making
from sightline.cli.evals.suites import tell_problems
from sightline.cli.terminal import read, say, write
from sightline.errors import Code, Fault
from sightline.evals.core.reading.document import SuiteFindings
from sightline.evals.core.reading.promptfoo import as_suite, is_promptfoo
from sightline.evals.core.reading.yaml_edit import write_yaml
from sightline.evals.core.reading.yaml_text import read_yaml
from sightline.evals.core.suite import SuiteProblem
from sightline.evals.core.target import SuiteTarget
from sightline.evals.service.suite_files import SuiteFiles
from sightline.evals.service.suite_reading import run_reader
from sightline.wire.jsontext import encode


def run(arguments: argparse.Namespace) -> int:
    """Import it; what is no file is the id of an exchange."""
    first, *others = arguments.sources
    if not Path(first).is_file():
        if "/" in first or Path(first).suffix:
            raise Fault(Code.USAGE, f"there is no file {first}", hint="Check the path.")
        return making.run(arguments)
    if others:
        raise Fault(Code.USAGE, "one file is imported at a time", hint="Name one.")
    text, targets = suite_of(read(first), first)
    for line in _tables(targets, arguments):
        say(line)
    if arguments.to:
        making.append(text, arguments.to, configuration(arguments.config))
    else:
        write(text.encode())
    return 0


def suite_of(data: bytes, file: str) -> tuple[str, tuple[SuiteTarget, ...]]:
    """A promptfoo file as a suite, and the targets that it describes. What has no counterpart is told, and ends the
    command."""
    document = read_yaml(data, file)
    if isinstance(document, SuiteProblem):
        raise Fault(Code.USAGE, f"{document.place}: {document.message}", hint=document.suggestion)
    if not is_promptfoo(document):
        hint = "It has neither prompts nor providers. A suite of AgentV's runs as it is."
        raise Fault(Code.USAGE, f"{file} is no promptfoo file", hint=hint)
    findings = SuiteFindings()
    place = Path(file).resolve()
    suite, targets = run_reader(as_suite(document, place.name, findings), SuiteFiles(place.parent))
    tell_problems(findings.problems)
    if findings.has_errors:
        raise Fault(Code.USAGE, f"{file} cannot be imported whole", hint="Correct what is said above.")
    head, lines = write_yaml(suite.json)
    return "\n".join([*([head] if head else []), *(line.removeprefix("  ") for line in lines)]) + "\n", targets


def _tables(targets: Sequence[SuiteTarget], arguments: argparse.Namespace) -> Iterator[str]:
    """The providers of a file that a suite cannot hold, as tables of the configuration."""
    if not targets:
        return
    loaded = configuration(arguments.config)
    yield "note: these targets belong in the configuration (sightline.toml)"
    for target in targets:
        model = target.model
        if target.has_own_provider:
            choice = choose(loaded.catalog, model, has_key=loaded.has_key)
            provider, name = target.provider(choice.provider), own_provider_name(target)
            model = f"{name}/{choice.model}"
            yield f"[providers.{_quote(name)}]"
            yield f'dialect = "{provider.dialect}"'
            yield f"base_url = {_quote(provider.base_url)}"
            yield from [f"key_env = {_quote(provider.key_env)}"] if provider.key_env else []
            pairs = ", ".join(f"{_quote(key)} = {_quote(value)}" for key, value in provider.headers.items())
            yield from [f"headers = {{ {pairs} }}"] if pairs else []
        yield f"[evals.targets.{_quote(target.name)}]"
        yield f"model = {_quote(model)}"
        for field in ("temperature", "top_p", "seed", "max_tokens", "effort"):
            value = getattr(target, field)
            if value is not None:
                yield f"{field} = {_quote(value) if isinstance(value, str) else value}"


def _quote(text: str) -> str:
    return encode(text).decode()
