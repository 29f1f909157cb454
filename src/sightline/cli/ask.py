"""`sightline ask`: asks a model one question."""

import argparse
import asyncio
from collections.abc import Iterable
from dataclasses import replace
from pathlib import PurePath
from typing import TYPE_CHECKING

from sightline.app.configuration import Configuration, configuration
from sightline.app.engine import counter, open_engine, with_kept_edits
from sightline.catalog.compose import Prompt, conversation_of
from sightline.chat.core.pair import attachment
from sightline.cli.answer import AnswerView, band, exit_code_of, print_ending, summary, tell_additions, tell_losses
from sightline.cli.options import has_tools, instructions_in, refuse_without_tools
from sightline.cli.terminal import read, read_beginning, say, write
from sightline.dialects.translate import write_canonical
from sightline.errors import Code, Fault
from sightline.exchange.outbound import SESSION, Prepared, prepare
from sightline.model.json import JsonObject
from sightline.model.parts import Part, Text
from sightline.model.reply import Reply
from sightline.model.request import Message
from sightline.tokens.estimate import Estimate
from sightline.wire import snippet
from sightline.wire.call import Variable
from sightline.wire.jsontext import decode

if TYPE_CHECKING:  # a dry run does not even load the record
    from sightline.exchange.engine import Engine

MOST_BYTES = 64 * 1024 * 1024
"""The maximum size of all files together; providers allow less."""


def parts_from_files(paths: Iterable[str]) -> tuple[Part, ...]:
    """A part for each file, in order."""
    names: set[str] = set()
    parts: list[Part] = []
    room = MOST_BYTES
    for path in paths:
        data = _content(path, room)
        room -= len(data)
        name = shown = _display_path(path)
        number = 1
        while name in names:
            number += 1
            pure = PurePath(shown)
            name = pure.with_name(f"{pure.stem} ({number}){pure.suffix}").as_posix()
        names.add(name)
        parts.append(attachment(data, name, path))
    return tuple(parts)


def _content(path: str, room: int) -> bytes:
    if path == "-":
        raise Fault(Code.USAGE, "-f: stdin cannot be attached", hint="Give - as the prompt, or name a file.")
    data = read_beginning(path, room + 1)
    if not data:
        raise Fault(Code.USAGE, f"{path}: the file is empty", hint="Leave it out, or check that it was saved.")
    if len(data) > room:
        message = f"{path}: the files are larger than {MOST_BYTES // 1024 // 1024} MiB together"
        raise Fault(Code.USAGE, message, hint="Attach fewer or smaller files.")
    return data


def _display_path(path: str) -> str:
    """The path as given if it is below the current folder, otherwise the file name."""
    pure = PurePath(path)
    shown = pure.name if pure.is_absolute() or ".." in pure.parts else pure.as_posix()
    # A line break in a name would end the line that names the file.
    return "".join(letter if letter.isprintable() else "?" for letter in shown)


def run(arguments: argparse.Namespace) -> int:
    _refuse_half_characters(arguments)
    refuse_without_tools(arguments)
    loaded = configuration(arguments.config)
    choice = loaded.choice(arguments.model)
    prompt, is_shown = _prompt(arguments, loaded, choice.model), arguments.dry_run or arguments.form
    if choice.provider.embedded and not is_shown:
        from sightline.cli.installation import offer_local_model

        offer_local_model(loaded)
    if has_tools(arguments):
        from sightline.cli.tool_run import ask_with_tools, with_offered_tools

        if not is_shown:
            return ask_with_tools(arguments, prompt, choice, loaded)
        prompt = with_offered_tools(arguments, prompt, loaded)
    ready = prepare(prompt, choice)
    tell_losses(ready.report)
    if not is_shown:
        return _ask(arguments, ready, loaded)
    return _show(arguments, with_kept_edits(ready, arguments.data, session=SESSION), loaded)


def _prompt(arguments: argparse.Namespace, loaded: Configuration, model: str) -> Prompt:
    try:
        text = arguments.prompt if arguments.prompt != "-" else read("-").decode("utf-8-sig")
    except UnicodeDecodeError as error:
        hint = "Attach other files with -f."
        raise Fault(Code.USAGE, f"stdin is not UTF-8 text (byte {error.start})", hint=hint) from None
    parts = (*parts_from_files(arguments.file), *([Text(text)] if text else []))
    settings = loaded.settings.ask
    prompt = Prompt(
        messages=(Message("user", parts),) if parts else (),
        instructions=arguments.system if arguments.system is not None else settings.system or None,
        user_instructions=instructions_in(arguments.instructions, settings.instructions),
        output_schema=_schema(arguments.schema),
        effort=arguments.effort,
        verbosity=arguments.verbosity,
        max_tokens=arguments.max_tokens,
        temperature=arguments.temperature,
        stream=not arguments.no_stream,
    )
    # A question without tools is a single request, not a conversation.
    return replace(prompt, conversation=conversation_of(model, prompt)) if has_tools(arguments) else prompt


def _refuse_half_characters(arguments: argparse.Namespace) -> None:
    for name in ("prompt", "system", "instructions", "model", "effort", "verbosity"):
        try:
            (getattr(arguments, name) or "").encode()
        except UnicodeEncodeError:
            hint = "Attach other files with -f; check the locale."
            raise Fault(Code.USAGE, f"the {name} is not UTF-8 text", hint=hint) from None


def _schema(path: str | None) -> JsonObject | None:
    if path is None:
        return None
    try:
        schema = decode(read(path))
    except Fault as fault:
        if fault.code is not Code.INVALID_REQUEST:
            raise
        raise Fault(Code.USAGE, f"{path}: {fault.message}", hint="A JSON schema is a JSON document.") from None
    if not isinstance(schema, dict):
        raise Fault(Code.USAGE, f"{path}: a JSON schema is an object", hint='Begin with {"type": "object", …}.')
    return schema


def _show(arguments: argparse.Namespace, ready: Prepared, loaded: Configuration) -> int:
    """Print what would be sent to stdout, and the address and the size to stderr."""
    tell_additions(ready.report)
    url = ready.call.url
    where = f"${{{url.name}}}{url.suffix}" if isinstance(url, Variable) else url
    say(f"{ready.call.method} {where} ({ready.dialect}, {len(ready.body):,} bytes, sha256 {ready.sha256})")
    _say_size(arguments, ready, loaded)
    match arguments.form:
        case "curl":
            write(snippet.curl(ready.call).encode())
        case "python":
            write(snippet.python(ready.call).encode())
        case "canonical":
            write(write_canonical(ready.request))
        case _:
            write(ready.body)
    return 0


def _say_size(arguments: argparse.Namespace, ready: Prepared, loaded: Configuration) -> None:
    async def count_with_engine() -> Estimate:
        async with open_engine(loaded, arguments.data, is_recorded=False, apart=arguments.apart, notice=say) as engine:
            return await engine.count_prompt(ready, tried=AnswerView().on_attempt)

    if arguments.count:
        estimate = asyncio.run(count_with_engine())
    else:
        estimate = counter(arguments.data).estimate(ready.choice, ready.request)
    window = ready.choice.facts.context_window
    say(f"{band(estimate)} tokens in ({estimate.how})" + (f" of {window:,}" if window else ""))


def _ask(arguments: argparse.Namespace, ready: Prepared, loaded: Configuration) -> int:
    async def ask() -> Reply:
        async with open_engine(loaded, arguments.data, apart=arguments.apart, notice=say) as engine:
            if engine.unrecorded is not None:
                say(f"warning: this will not be recorded: {engine.unrecorded.message}")
                if engine.unrecorded.hint:
                    say(f"hint: {engine.unrecorded.hint}")
            reply = await _answer(arguments, ready, engine)
        if engine.memory.trouble:
            say(f"note: the calibration of token estimates could not be saved: {engine.memory.trouble}")
        return reply

    return exit_code_of(asyncio.run(ask()))


async def _answer(arguments: argparse.Namespace, ready: Prepared, engine: "Engine") -> Reply:
    view = AnswerView(is_silent=arguments.json)
    shown = with_kept_edits(ready, arguments.data, session=SESSION)
    estimate = await engine.measure_prompt(shown, asks_provider=arguments.count, tried=view.on_attempt)
    started = engine.clock.monotonic()
    try:
        reply = await engine.ask(ready, on_event=view.on_event, tried=view.on_attempt, paused=view.on_pause)
    finally:
        view.finish()
    seconds = engine.clock.monotonic() - started
    name = f"{ready.choice.provider_name}/{ready.choice.model}"
    prices = ready.choice.prices_for(reply.model or "")
    print_ending(arguments, reply, summary(reply, name=name, prices=prices, estimate=estimate, seconds=seconds))
    return reply
