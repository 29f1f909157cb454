"""`sightline eval preview`: what a case sends, exactly, and what was done to it on the way."""

import argparse
import asyncio
from collections.abc import Iterator
from pathlib import Path

import msgspec

from sightline.app.configuration import configuration
from sightline.app.evals import open_evaluation
from sightline.cli.evals.suites import one, tell_problems
from sightline.cli.terminal import harmless, write
from sightline.errors import Code, Fault
from sightline.evals.core.options import RunOptions
from sightline.evals.core.target import TargetSpec
from sightline.evals.service.evaluation import CasePreview
from sightline.wire.jsontext import encode


def run(arguments: argparse.Namespace) -> int:
    """Print it."""
    path = Path(arguments.suite)
    if not path.is_file():
        raise Fault(Code.USAGE, f"there is no file {path}", hint="Check the path.")
    named = one(path, configuration(arguments.config))
    suite = named.sound()
    answering = named.known.answering(suite, [arguments.target] if arguments.target else ())
    tell_problems(answering.odd)
    case = next((each for each in suite.cases if each.id == arguments.case), None)
    wanted = case.execution.targets if case is not None and not arguments.target else ()
    name = (*wanted, *answering.usual)[0]
    spec = next(each for each in answering.targets if each.name == name)

    async def make_preview() -> CasePreview:
        async with open_evaluation(
            answering.loaded, arguments.data, named.root, store=arguments.store, apart=True
        ) as evaluation:
            return evaluation.preview(suite, arguments.case, spec, RunOptions(file_form=arguments.file_form))

    preview = asyncio.run(make_preview())
    write(_render(preview, spec, arguments.form))
    return 0


def _render(preview: CasePreview, spec: TargetSpec, form: str | None) -> bytes:
    delivery = preview.delivery
    match form:
        case "flat":
            return delivery.question.encode("utf-8", "replace") + b"\n"
        case "messages":
            return b"".join(encode(msgspec.to_builtins(message)) + b"\n" for message in delivery.messages)
        case "wire":
            if preview.prepared is None:
                hint = "See --as flat: that is what it is given."
                raise Fault(Code.USAGE, f"the target {spec.name!r} is no model, and gets no body", hint=hint)
            return preview.prepared.body
        case _:
            return "".join(f"{line}\n" for line in _lines(preview, spec)).encode("utf-8", "replace")


def _lines(preview: CasePreview, spec: TargetSpec) -> Iterator[str]:
    prepared, delivery = preview.prepared, preview.delivery
    if prepared is None:
        yield f"target    {harmless(spec.name)} ({spec.kind}): it is given the flat question"
    else:
        choice = prepared.choice
        yield f"target    {harmless(spec.name)}: {choice.provider_name}/{choice.model}, {prepared.dialect}"
        yield f"request   {len(prepared.body):,} bytes, sha256 {prepared.sha256}"
    yield ""
    yield "what was done"
    notes = [
        f"{each.kind} {each.what}: {each.why}{f' ({each.place})' if each.place.line else ''}" for each in delivery.notes
    ]
    if prepared is not None:
        notes += [f"lost {each.what}: {each.why} [{each.severity}]" for each in prepared.report.losses]
        notes += [f"added {each.what}: {each.why}" for each in prepared.report.additions]
    for note in notes or ["nothing: every message goes out as it is written"]:
        yield f"  {harmless(note)}"
    yield ""
    yield "flat question"
    for line in delivery.question.split("\n"):
        yield f"  {harmless(line)}"
    if prepared is not None:
        yield ""
        yield "body"
        yield harmless(prepared.body.decode("utf-8", "replace"))
