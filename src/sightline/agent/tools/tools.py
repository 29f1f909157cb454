"""Sources of tools: their interface, several sources combined into one, and Python functions as a source.

Functions are called in this process, for a program that uses Sightline as a library. An async function is awaited and
can be cancelled. Any other runs in a thread, which cannot be stopped: after a timeout or a cancellation it is abandoned
and ends with the program at the latest. A tool that may hang belongs in a file of its own.
"""

import asyncio
import base64
import contextvars
import inspect
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from functools import partial
from inspect import signature
from pathlib import Path, PurePath
from threading import Thread
from traceback import walk_tb
from types import TracebackType
from typing import Protocol, TypeAlias, cast, get_type_hints

import msgspec

from sightline.agent.core.arguments import definition_of
from sightline.agent.core.steps import RunnableCall
from sightline.agent.core.tool import Definition, ResultPart, Toolbox, ToolOutcome, text_outcome
from sightline.errors import Code, Fault
from sightline.model.json import Json, JsonObject
from sightline.model.parts import Audio, Document, Image, Inline, Text
from sightline.wire.jsontext import encode
from sightline.wire.media_type import encoding_of, is_text, sniff

TIMEOUT = 60.0
"""The maximum seconds of a call, unless its toolset sets another limit."""

Progress: TypeAlias = Callable[[str], None]
"""Receives progress messages for a person."""


class Tools(Protocol):
    """A source of tools. A tool's failure is an outcome with `is_error`, never an exception."""

    @property
    def definitions(self) -> tuple[Definition, ...]:
        """The tools' definitions, for the toolbox of a run."""

    async def use(self, call: RunnableCall, progress: Progress) -> ToolOutcome:
        """Run a call that the agent loop has accepted. Cancelling the task stops the tool."""

    async def close(self) -> None:
        """End everything that was started. May be called twice."""


def unknown(name: str, definitions: tuple[Definition, ...]) -> ToolOutcome:
    nearest = Toolbox(definitions).nearest(name)
    instead = f" Tools that can be called: {', '.join(nearest)}." if nearest else ""
    return text_outcome(f"The tool {name!r} does not exist.{instead}", is_error=True)


class CombinedTools:
    """Several sources as one. Raises a fault if two have a tool of the same name. Definitions are read each time
    because a server's tools can change."""

    def __init__(self, sources: Sequence[Tools]) -> None:
        owners: dict[str, Tools] = {}
        for source in sources:
            for name in (each.name for each in source.definitions):
                first = owners.setdefault(name, source)
                if first is not source:
                    message = f"two tools are named {name!r}: one in {first}, one in {source}"
                    raise Fault(Code.CONFIG, message, hint="Rename one of them, or leave one of the two sources out.")
        self._sources = sources

    @property
    def definitions(self) -> tuple[Definition, ...]:
        return tuple(definition for source in self._sources for definition in source.definitions)

    async def use(self, call: RunnableCall, progress: Progress) -> ToolOutcome:
        for source in self._sources:
            if any(definition.name == call.name for definition in source.definitions):
                return await source.use(call, progress)
        return unknown(call.name, self.definitions)

    async def close(self) -> None:
        # Close them concurrently, so that a slow one does not delay the others.
        async with asyncio.TaskGroup() as group:
            for source in self._sources:
                group.create_task(source.close())


class ToolChanges:
    """Reports how the available tools change. `toolbox` has the tools of the run; `there` are those that were available
    when this process began to drive it."""

    def __init__(self, toolbox: Toolbox, there: Sequence[Definition]) -> None:
        enabled = [each for each in toolbox.definitions if each.is_enabled]
        self._enabled = {each.name for each in enabled}
        self._known = {each.name: each for each in (*there, *enabled)}
        self._looked: Sequence[Definition] = ()

    def changes(self, now: Sequence[Definition]) -> str:
        """Describe what has changed since the last call of this method; empty if nothing has."""
        if now == self._looked:
            return ""
        self._looked = now
        found = {each.name: each for each in now}
        gone = [name for name in self._known if name in self._enabled and name not in found]
        other = [
            name
            for name, each in found.items()
            if (old := self._known.get(name)) and (old.description, old.schema) != (each.description, each.schema)
        ]
        fresh = [name for name in found if name not in self._known]
        self._known = {name: each for name, each in self._known.items() if name not in gone} | found
        changes = {
            "gone": gone,
            "changed": other,
            "there again": [name for name in fresh if name in self._enabled],
            "new, for the next run": [name for name in fresh if name not in self._enabled],
        }
        words = "; ".join(f"{', '.join(names)} {what}" for what, names in changes.items() if names)
        return f"the tools are not as they were: {words}" if words else ""


def convert_arguments(function: Callable[..., object], arguments: Mapping[str, Json] | str) -> dict[str, object]:
    """Convert arguments to the types of the function's hints, such as a dataclass, a date or a set. A text is the only
    argument of a free-text tool.

    The agent loop has validated them against the schema of the same hints; what still does not fit raises
    msgspec.ValidationError.
    """
    if isinstance(arguments, str):
        return {next(iter(signature(function).parameters)): arguments}
    hints = get_type_hints(function)
    return {name: _convert(value, hints[name]) if name in hints else value for name, value in arguments.items()}


def _convert(value: Json, hint: object) -> object:
    try:
        return msgspec.convert(value, cast(type, hint), str_keys=True)
    except msgspec.ValidationError:
        # JSON Schema takes 1.0 for an integer, and models write it so.
        return msgspec.convert(_with_integers(value), cast(type, hint), str_keys=True)


def _with_integers(value: Json) -> Json:
    """The value with every number that has no fraction as an integer."""
    match value:
        case float() if value.is_integer():
            return int(value)
        case list():
            return [_with_integers(each) for each in value]
        case dict():
            return {name: _with_integers(each) for name, each in value.items()}
        case _:
            return value


_Picture: TypeAlias = Callable[[], bytes | None]
_READABLE_IMAGES = ("image/png", "image/jpeg", "image/gif", "image/webp")
_LONGEST_COMPLAINT = 4000


def outcome_of(value: object) -> ToolOutcome:
    """The outcome of a returned value.

    Text is text; an object (a dict, a dataclass, a struct) is structured; None is empty; any other JSON is its text.
    Bytes become an image, a PDF, audio or text by their content. A list with bytes becomes one part for each member.
    Anything else raises TypeError.
    """
    if isinstance(value, ToolOutcome):
        return value
    if value is None:
        return ToolOutcome()
    if isinstance(value, list | tuple) and any(_bytes_of(each) is not None for each in value):
        return ToolOutcome(tuple(_part(each) for each in value))
    if isinstance(value, str) or _bytes_of(value) is not None:
        return ToolOutcome((_part(value),))
    plain = _plain(value)
    return ToolOutcome(structured=plain) if isinstance(plain, dict) else text_outcome(encode(plain).decode())


def failure_of(error: BaseException, file: str, shown: str) -> ToolOutcome:
    """The outcome of an exception, with the line in the function's file; `shown` is the file's name for the model."""
    words = str(error) or "it gave no reason"
    place = _place(error.__traceback__, file)
    where = f" ({shown}, line {place[0]}, in {place[1]})" if place else ""
    return text_outcome(f"{type(error).__name__}: {words[:_LONGEST_COMPLAINT]}{where}", is_error=True)


def last_line(error: BaseException, file: str) -> int:
    """The last line of this file in the exception's traceback; 0 if there is none."""
    if isinstance(error, SyntaxError) and error.filename == file:
        return error.lineno or 0
    place = _place(error.__traceback__, file)
    return place[0] if place else 0


def part_of(data: bytes, name: str = "") -> ResultPart | None:
    """Bytes as a part for a model; None if their type is not supported."""
    kind = sniff(data, name)
    inline = Inline(kind, base64.b64encode(data).decode())
    if kind in _READABLE_IMAGES:
        return Image(inline)
    if kind == "application/pdf":
        return Document(inline, title=name or None)
    if kind.startswith("audio/"):
        return Audio(inline)
    return Text(data.decode(encoding_of(data))) if is_text(kind) or kind == "image/svg+xml" else None


def _part(value: object) -> ResultPart:
    if isinstance(value, str):
        return Text(value)
    data = _bytes_of(value)
    if data is None:
        plain = _plain(value)
        return Text(encode(plain).decode())
    part = part_of(data)
    if part is None:
        raise TypeError(f"the tool returned {len(data)} bytes of {sniff(data, '')}, which no model can read")
    return part


def _bytes_of(value: object) -> bytes | None:
    """The value's bytes, or its image by the `_repr_png_` protocol of notebooks."""
    if isinstance(value, bytes | bytearray | memoryview):
        return bytes(value)
    draw = None if isinstance(value, type) else cast("_Picture | None", getattr(value, "_repr_png_", None))
    return draw() if callable(draw) else None


def _plain(value: object) -> Json:
    plain = msgspec.to_builtins(value, str_keys=True, enc_hook=_encode_unusual)
    return cast("Json | JsonObject", plain)


def _encode_unusual(value: object) -> object:
    if isinstance(value, PurePath | complex | BaseException):
        return str(value)
    raise TypeError(f"the tool returned a value that JSON cannot say: {type(value).__name__}")


def _place(traceback: TracebackType | None, file: str) -> tuple[int, str] | None:
    places = [(line, frame.f_code.co_name) for frame, line in walk_tb(traceback) if frame.f_code.co_filename == file]
    return places[-1] if places else None


class Callables:
    """The functions as tools. Those in `parallel` may run concurrently with others."""

    def __init__(
        self,
        functions: Sequence[Callable[..., object]],
        *,
        timeout: float = TIMEOUT,
        parallel: Sequence[Callable[..., object]] = (),
    ) -> None:
        self._timeout = timeout
        self._functions: dict[str, Callable[..., object]] = {}
        definitions = []
        for function in functions:
            definition = definition_of(function, is_parallel=function in parallel)
            if definition.name in self._functions:
                raise Fault(Code.CONFIG, f"two tools are named {definition.name!r}", hint="Rename one of them.")
            self._functions[definition.name] = function
            definitions.append(definition)
        self.definitions = tuple(definitions)

    def __str__(self) -> str:
        return "the functions of this program"

    async def use(self, call: RunnableCall, progress: Progress) -> ToolOutcome:
        function = self._functions.get(call.name)
        if function is None:
            return unknown(call.name, self.definitions)
        limit = asyncio.timeout(self._timeout)
        try:
            async with limit:
                return outcome_of(await call_function(partial(function, **convert_arguments(function, call.arguments))))
        except Exception as error:  # noqa: BLE001 - any exception of a tool becomes an outcome
            if limit.expired():
                return text_outcome(f"{call.name} was stopped: it took longer than {self._timeout:g} s.", is_error=True)
            file = _file(function)
            return failure_of(error, file, Path(file).name)

    async def close(self) -> None:
        """Does nothing."""


async def call_function(function: Callable[[], object]) -> object:
    """Call a function, async or not. If it is not async it runs in a thread, without blocking the event loop. Any
    exception of its own is raised as an `Exception`, even a `CancelledError`: what it awaited was cancelled, and not
    the caller."""
    task = asyncio.current_task()
    assert task is not None
    before = task.cancelling()
    target = function.func if isinstance(function, partial) else function
    try:
        if inspect.iscoroutinefunction(target):
            return await function()  # type: ignore[misc]
        value = await _in_thread(function)
        return await value if inspect.isawaitable(value) else value
    except asyncio.CancelledError as error:
        if task.cancelling() > before:
            raise
        raise RuntimeError(f"CancelledError: {error}") from error


async def _in_thread(function: Callable[[], object]) -> object:
    """Like asyncio.to_thread, in a daemon thread: the program's exit does not wait for it."""
    result: Future[tuple[object, BaseException | None]] = Future()
    result.set_running_or_notify_cancel()  # the thread cannot be stopped, even if its result is not wanted any more
    context = contextvars.copy_context()

    def work() -> None:
        try:
            result.set_result((context.run(function), None))
        except BaseException as error:  # noqa: BLE001 - raised where it is awaited
            # Raised as they are, the others would end the program, or the task that awaits.
            is_plain = isinstance(error, Exception) and not isinstance(error, StopIteration)
            result.set_result((None, error if is_plain else RuntimeError(f"{type(error).__name__}: {error}")))

    Thread(target=work, name="tool", daemon=True).start()
    # An exception of the future itself would not stay what it is: asyncio turns the `CancelledError` of
    # `concurrent.futures`, which is an ordinary exception, into its own, which cancels the task.
    value, problem = await asyncio.wrap_future(result)
    if problem is not None:
        raise problem
    return value


def _file(function: Callable[..., object]) -> str:
    code = getattr(inspect.unwrap(function), "__code__", None)
    return code.co_filename if code else ""
