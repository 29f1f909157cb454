"""`sightline translate`: translates a request, a reply or a live stream of one API into another's format, and reports
what was lost."""

import argparse
import json
from difflib import get_close_matches
from pathlib import Path

import msgspec

from sightline.app.configuration import configuration
from sightline.catalog.choose import choose
from sightline.catalog.facts import Facts
from sightline.cli.program import EXIT_PROVIDER
from sightline.cli.terminal import many, open_input, print_fault, read, read_available, say, unusable, write
from sightline.dialects.dialect import Target
from sightline.dialects.registry import dialect, names
from sightline.dialects.translate import (
    StreamTranslation,
    read_canonical,
    translate_reply,
    translate_request,
    write_canonical,
    write_request,
)
from sightline.errors import Code, Fault
from sightline.model.report import Report
from sightline.model.request import Request
from sightline.wire.jsontext import decode

VIEWS = {"request": ("canonical",), "reply": ("reply", "events"), "stream": ("reply", "events")}
"""What each kind can be translated into besides a dialect."""


def run(arguments: argparse.Namespace) -> int:
    _check_name(arguments.source, ("canonical",) if arguments.kind == "request" else (), "--from")
    _check_name(arguments.target, VIEWS[arguments.kind], "--to")
    translate = {"request": _request, "reply": _reply, "stream": _stream}[arguments.kind]
    return translate(arguments)


def _check_name(name: str, views: tuple[str, ...], option: str) -> None:
    known = (*names(), *views)
    if name in known:
        return
    near = get_close_matches(name, known, 1)
    meant = f"Did you mean {near[0]}? " if near else ""
    raise Fault(Code.USAGE, f"{option}: unknown dialect {name!r}", hint=f"{meant}Known: {', '.join(known)}.")


def _request(arguments: argparse.Namespace) -> int:
    data = read(arguments.file)
    settings = Target(system=arguments.system, facts=_target_facts(arguments, data))
    if "canonical" in (arguments.source, arguments.target):
        request, report = _client_request(data, arguments.source), Report()
        if arguments.model:
            request = msgspec.structs.replace(request, model=arguments.model)
        is_view = arguments.target == "canonical"
        out = write_canonical(request) if is_view else write_request(request, arguments.target, settings, report)
    else:
        translation = translate_request(
            data, arguments.source, arguments.target, model=arguments.model, settings=settings
        )
        out, report, request = translation.data, translation.report, translation.request
    _report(report, arguments)
    is_kept = arguments.target in ("canonical", arguments.source)
    if not request.model and not is_kept and not dialect(arguments.target).model_in_path:
        say("note: the body names no model; give one with --model")
    write(out)
    return 0


def _target_facts(arguments: argparse.Namespace, data: bytes) -> Facts | None:
    """What is known of the model that will read the request; None if it is not named. A body often still names the
    model of its original API: if no provider serves it in the target's dialect, it says nothing about the target
    model."""
    if arguments.target == arguments.source or arguments.target == "canonical":
        return None
    named = _client_request(data, arguments.source)
    model = arguments.model or named.model
    if not model:
        return None
    try:
        choice = choose(configuration(arguments.config).catalog, model, has_key=lambda _: True)
    except Fault as fault:
        if fault.code is not Code.MODEL_UNKNOWN:
            raise
        return Facts()
    provider = choice.provider
    return choice.facts if arguments.target in (provider.dialect, *provider.also) else None


def _reply(arguments: argparse.Namespace) -> int:
    request = _request_option(arguments)
    translation = translate_reply(
        read(arguments.file), arguments.source, arguments.target, request=request, model=arguments.model
    )
    _report(translation.report, arguments)
    write(translation.data)
    return _exit_code(translation.reply.fault)


def _stream(arguments: argparse.Namespace) -> int:
    """Translate as bytes arrive. A strict translation is held back until it is known to lose nothing."""
    translation = StreamTranslation(
        arguments.source, arguments.target, request=_request_option(arguments), model=arguments.model
    )
    held: list[bytes] = []
    give = held.append if arguments.strict else write
    with open_input(arguments.file) as stream:
        while data := read_available(stream):
            give(translation.feed(data))
    give(translation.close())
    _report(translation.report, arguments)
    for out in held:
        write(out)
    return _exit_code(translation.reply.fault)


def _request_option(arguments: argparse.Namespace) -> Request | None:
    """The client's request, in the dialect that the client reads."""
    if arguments.request is None:
        return None
    if arguments.target not in names():
        raise Fault(Code.USAGE, "--request needs a dialect as --to", hint="It is read in the dialect of the output.")
    return _client_request(read(arguments.request), arguments.target)


def _client_request(data: bytes, name: str) -> Request:
    return read_canonical(data) if name == "canonical" else dialect(name).read_request(decode(data))


def _report(report: Report, arguments: argparse.Namespace) -> None:
    """Report losses and additions, to a file if `--report` names one. Raises a Fault for serious losses with
    `--strict`."""
    refusal = None
    if arguments.strict and report.refusals:
        refusal = Fault(
            Code.TRANSLATION_LOSS,
            f"{many(len(report.refusals), 'thing')} cannot be translated to {arguments.target}",
            hint="Change the input, choose another target, or leave out --strict.",
        )
    if arguments.report is not None:
        _save(report, arguments.report)
    else:
        lines = [f"lost ({loss.severity}) {loss.pointer or '/'}: {loss.what}: {loss.why}" for loss in report.losses]
        lines += [f"added {each.pointer}: {each.what}: {each.why}" for each in report.additions]
        if refusal is not None:
            refusal.add_note("\n".join(lines))
        elif lines:
            say("\n".join(lines))
    if refusal is not None:
        raise refusal


def _save(report: Report, path: str) -> None:
    document = msgspec.to_builtins({"losses": report.losses, "additions": report.additions})
    try:
        Path(path).write_text(json.dumps(document, indent=2) + "\n")
    except OSError as error:
        raise unusable(path, error) from None


def _exit_code(fault: Fault | None) -> int:
    if fault is None:
        return 0
    print_fault(fault)
    return EXIT_PROVIDER
