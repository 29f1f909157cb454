"""`sightline ask`: one question to a model."""

import argparse
from collections.abc import Iterable
from pathlib import PurePath
from typing import TYPE_CHECKING

from sightline.cli.options import (
    add_apart,
    add_shared,
    add_tool_options,
    count,
    has_tools,
    instructions_in,
    number,
    refuse_without_tools,
)
from sightline.cli.terminal import open_input, read, say, unusable, write
from sightline.errors import Code, Fault

if TYPE_CHECKING:
    from sightline.app.configuration import Configuration
    from sightline.catalog.compose import Prompt
    from sightline.exchange.engine import Engine
    from sightline.exchange.outbound import Prepared
    from sightline.model.json import JsonObject
    from sightline.model.parts import Part
    from sightline.model.reply import Reply
    from sightline.tokens.estimate import Estimate


MOST_BYTES = 64 * 1024 * 1024
"""The limit of all files together; providers allow less."""


def parts_from_files(paths: Iterable[str]) -> "tuple[Part, ...]":
    """A part for each file, in their order."""
    from sightline.chat.core.pair import attachment

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
    with open_input(path) as stream:
        try:
            data = stream.read(room + 1)
        except OSError as error:
            raise unusable(path, error) from None
    if not data:
        raise Fault(Code.USAGE, f"{path}: the file is empty", hint="Leave it out, or check that it was saved.")
    if len(data) > room:
        message = f"{path}: the files are larger than {MOST_BYTES // 1024 // 1024} MiB together"
        raise Fault(Code.USAGE, message, hint="Attach fewer or smaller files.")
    return data


def _display_path(path: str) -> str:
    """The path as given if it leads down from the current folder, else the file name."""
    pure = PurePath(path)
    shown = pure.name if pure.is_absolute() or ".." in pure.parts else pure.as_posix()
    # A line break in a name would end the line that names the file.
    return "".join(letter if letter.isprintable() else "?" for letter in shown)


def add_command(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Add `ask`."""
    command = commands.add_parser(
        "ask",
        help="ask a model, or show the exact request",
        description="Ask a model. The answer streams to stdout; thinking, usage, cost and time go to stderr. Without a "
        "model, a key or a configuration the embedded model answers. With tools the model may call them: each call is "
        "shown, approved, run and sent back until it has answered.",
    )
    command.add_argument("-m", "--model", default="", metavar="MODEL", help="a model, or PROVIDER/MODEL")
    command.add_argument(
        "-s",
        "--system",
        metavar="SYSTEM",
        help="the system prompt, instead of the base instructions of the model's family",
    )
    command.add_argument(
        "--instructions", metavar="TEXT|FILE", help="your instructions, after the system prompt or the family's"
    )
    command.add_argument("-f", "--file", action="append", default=[], metavar="FILE", help="attach a file; repeatable")
    command.add_argument("--max-tokens", type=count, metavar="N", help="the largest number of tokens in the answer")
    command.add_argument("--temperature", type=number, metavar="T", help="the sampling temperature")
    command.add_argument("--effort", default="", metavar="WORD", help="how much a reasoning model thinks")
    command.add_argument(
        "--verbosity", default="", metavar="WORD", help="how much the model says, if it has this setting"
    )
    command.add_argument("--schema", metavar="FILE", help="JSON schema that the answer must follow")
    command.add_argument("--no-stream", action="store_true", help="do not stream the answer")
    command.add_argument("--json", action="store_true", help="print the whole reply as one JSON object")
    command.add_argument("--dry-run", action="store_true", help="send nothing; show what would be sent")
    command.add_argument(
        "--as",
        dest="form",
        choices=("wire", "curl", "python", "canonical"),
        help="how to show it (default: wire); sends nothing",
    )
    command.add_argument("--count", action="store_true", help="let the provider count the tokens, with a separate call")
    command.add_argument("--quiet", action="store_true", help="do not print usage, cost and time at the end")
    add_tool_options(command)
    add_apart(command)
    add_shared(command)
    command.add_argument("prompt", metavar="PROMPT", help="the question; - reads it from stdin")
    command.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Ask, or show what would be sent."""
    _refuse_half_characters(arguments)
    refuse_without_tools(arguments)
    from sightline.app.configuration import configuration
    from sightline.cli.answer import tell_losses
    from sightline.exchange.outbound import prepare

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
    from sightline.app.engine import with_kept_edits
    from sightline.exchange.outbound import SESSION

    return _show(arguments, with_kept_edits(ready, arguments.data, session=SESSION), loaded)


def _prompt(arguments: argparse.Namespace, loaded: "Configuration", model: str) -> "Prompt":
    from dataclasses import replace

    from sightline.catalog.compose import Prompt, conversation_of
    from sightline.model.parts import Text
    from sightline.model.request import Message

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
    # A question without tools is one request, and no conversation.
    return replace(prompt, conversation=conversation_of(model, prompt)) if has_tools(arguments) else prompt


def _refuse_half_characters(arguments: argparse.Namespace) -> None:
    for name in ("prompt", "system", "instructions", "model", "effort", "verbosity"):
        try:
            (getattr(arguments, name) or "").encode()
        except UnicodeEncodeError:
            hint = "Attach other files with -f; check the locale."
            raise Fault(Code.USAGE, f"the {name} is not UTF-8 text", hint=hint) from None


def _schema(path: str | None) -> "JsonObject | None":
    if path is None:
        return None
    from sightline.wire.jsontext import decode

    try:
        schema = decode(read(path))
    except Fault as fault:
        if fault.code is not Code.INVALID_REQUEST:
            raise
        raise Fault(Code.USAGE, f"{path}: {fault.message}", hint="A JSON schema is a JSON document.") from None
    if not isinstance(schema, dict):
        raise Fault(Code.USAGE, f"{path}: a JSON schema is an object", hint='Begin with {"type": "object", …}.')
    return schema


def _show(arguments: argparse.Namespace, ready: "Prepared", loaded: "Configuration") -> int:
    """Show what would be sent, on stdout; the address and the size on stderr."""
    from sightline.cli.answer import tell_additions
    from sightline.dialects.translate import write_canonical
    from sightline.wire import snippet
    from sightline.wire.call import Variable

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


def _say_size(arguments: argparse.Namespace, ready: "Prepared", loaded: "Configuration") -> None:
    import asyncio

    from sightline.app.engine import counter, open_engine
    from sightline.cli.answer import AnswerView, band

    async def count_with_engine() -> "Estimate":
        async with open_engine(loaded, arguments.data, is_recorded=False, apart=arguments.apart, notice=say) as engine:
            return await engine.count_prompt(ready, tried=AnswerView().on_attempt)

    if arguments.count:
        estimate = asyncio.run(count_with_engine())
    else:
        estimate = counter(arguments.data).estimate(ready.choice, ready.request)
    window = ready.choice.facts.context_window
    say(f"{band(estimate)} tokens in ({estimate.how})" + (f" of {window:,}" if window else ""))


def _ask(arguments: argparse.Namespace, ready: "Prepared", loaded: "Configuration") -> int:
    import asyncio

    from sightline.app.engine import open_engine
    from sightline.cli.answer import exit_code_of

    async def ask() -> "Reply":
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


async def _answer(arguments: argparse.Namespace, ready: "Prepared", engine: "Engine") -> "Reply":
    from sightline.app.engine import with_kept_edits
    from sightline.cli.answer import AnswerView, print_ending
    from sightline.exchange.outbound import SESSION

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
    print_ending(arguments, reply, name=name, prices=prices, estimate=estimate, seconds=seconds)
    return reply
