"""`sightline eval import` and `make`: suites from promptfoo files, and cases from recorded exchanges."""

import argparse
import asyncio
from collections.abc import Iterator, Sequence
from pathlib import Path

from sightline.app.configuration import Configuration, configuration
from sightline.app.engine import open_record
from sightline.app.eval_targets import own_provider_name, root_of
from sightline.app.machine import SystemClock
from sightline.catalog.choose import choose
from sightline.cli.evals.suites import one, tell_problems
from sightline.cli.terminal import read, say, write
from sightline.errors import Code, Fault
from sightline.evals.core.making.case import CaseExchange, MadeCase
from sightline.evals.core.reading.document import SuiteFindings
from sightline.evals.core.reading.promptfoo import as_suite, is_promptfoo
from sightline.evals.core.reading.yaml_edit import write_yaml
from sightline.evals.core.reading.yaml_text import read_yaml
from sightline.evals.core.suite import SuiteProblem
from sightline.evals.core.target import SuiteTarget
from sightline.evals.service.suite_files import SuiteFiles, conversation, make_masked_case, run_reader
from sightline.evals.service.suite_writing import SuiteWriter
from sightline.exchange.outbound import secrets_of_provider
from sightline.wire.jsontext import encode


def make(arguments: argparse.Namespace) -> int:
    """Make a case, and report what was left out."""
    loaded = configuration(arguments.config)

    async def load_conversation() -> tuple[CaseExchange, ...]:
        async with open_record(loaded, arguments.data, arguments.store) as store:
            return await conversation(store, arguments.sources, now=SystemClock().now())

    turns = asyncio.run(load_conversation())
    name = arguments.name or f"recorded-{arguments.sources[-1].removeprefix('x_')[:12]}"
    made = make_masked_case(turns, name, secrets_of(loaded), arguments.from_turn)
    for each in made.left:
        say(f"note: not in the case: {each.what} ({each.why})")
    save(made, arguments.to, loaded)
    return 0


def secrets_of(loaded: Configuration) -> tuple[str, ...]:
    """The secret values that no case may contain."""
    providers = loaded.catalog.providers.values()
    return tuple(dict.fromkeys(key for each in providers for key in secrets_of_provider(each, loaded.environment)))


def save(made: MadeCase, to: str, loaded: Configuration) -> None:
    """Append a case to a suite, or print it."""
    if not to:
        write(made.text.encode("utf-8", "surrogatepass"))
        for each in made.files:
            say(f"note: the case names {each.path} ({len(each.data):,} bytes); --to FILE writes it beside the suite")
        return
    append(made.text, to, loaded, made)


def append(text: str, to: str, loaded: Configuration, made: MadeCase | None = None) -> None:
    """Append the cases of a text to a suite, and write the files that they name."""
    path = Path(to).resolve()
    root = root_of(path)
    known = one(path, loaded, root).known
    writer = SuiteWriter(SuiteFiles(root), known.environment)
    written = writer.append(path.relative_to(root).as_posix(), text, () if made is None else made.files)
    say(f"{', '.join(written.cases)} in {written.file}")


def run(arguments: argparse.Namespace) -> int:
    """Import a file, or exchanges if the argument is not a file."""
    first, *others = arguments.sources
    if not Path(first).is_file():
        if "/" in first or Path(first).suffix:
            raise Fault(Code.USAGE, f"there is no file {first}", hint="Check the path.")
        return make(arguments)
    if others:
        raise Fault(Code.USAGE, "one file is imported at a time", hint="Name one.")
    text, targets = suite_of(read(first), first)
    for line in _tables(targets, arguments):
        say(line)
    if arguments.to:
        append(text, arguments.to, configuration(arguments.config))
    else:
        write(text.encode())
    return 0


def suite_of(data: bytes, file: str) -> tuple[str, tuple[SuiteTarget, ...]]:
    """Convert a promptfoo file to a suite and its targets. Anything without a counterpart is reported and ends the
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
    """The providers of a file as configuration tables, for those that a suite cannot contain."""
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
