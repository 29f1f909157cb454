"""The chat's filters and commands: parse them, complete them as the user types, and run commands."""

from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from typing import Final, Literal, assert_never, cast
from urllib.parse import quote, urlencode

from msgspec.structs import replace

from sightline.catalog.problem import likely, quote_word
from sightline.chat.api.requests import CommandWanted, OneChat, wrong_text
from sightline.chat.api.shapes import CommandShown
from sightline.chat.core import commands
from sightline.chat.core.facts import PairsDeleted, PairsMoved, TopicAdded
from sightline.chat.core.history import ChatHistory
from sightline.chat.core.pair import MessagePair
from sightline.chat.core.topics import ROOT, Topic
from sightline.chat.service.chat import MAIN, Chat
from sightline.chat.service.views import Looking
from sightline.errors import Code, Fault
from sightline.filters.expression import Expression
from sightline.filters.fields import FilterScope
from sightline.filters.parsing import MOST, Completion, completions, parse, term_start
from sightline.web.bodies import Query
from sightline.web.filter_help import FilterShown, cursor, error_in, offer

MOST_LOOKED_AT: Final = 200
"""Values are suggested from this many of the latest pairs."""

FIRST: Final = (
    *("topic", "stars", "flag", "model", "text", "age", "date", "latest", "context", "attachments", "error", "state"),
    *("fault", "finish", "tool", "tokens", "input", "output", "cached", "time", "id"),
)
"""The fields that are suggested before the others, in this order."""


def read_filter(chat: OneChat, text: str) -> Expression:
    """Parse a filter. Raises a Fault with the position of a mistake."""
    try:
        return _parse(chat, text)
    except Fault as fault:
        raise wrong_text(text, fault) from None


async def describe_filter(chat: OneChat, query: Query) -> FilterShown:
    """Whether a text is valid, and the completions at its cursor."""
    history = await chat.service.chat.load()
    text = query.text("text")
    at = cursor(text, query, "cursor")
    error = error_in(text, lambda: _parse_command(chat, text) or _parse(chat, text))
    offers = islice(_offers(chat, text, at, history), MOST)
    return FilterShown(error is None, error, tuple(offer(text, each) for each in offers))


def _parse(chat: OneChat, text: str) -> Expression:
    return parse(text, scope=FilterScope.CHAT, zone=chat.parts.zone, saved=_Saved(chat))


def _parse_command(chat: OneChat, text: str) -> tuple[commands.ChatCommand, Expression] | None:
    """The command in a text and its parsed filter; None if it has no command."""
    command = commands.read_command(text)
    if command is None:
        return None
    expression = _parse(chat, command.filter)
    if isinstance(command.action, commands.DeletePairs):
        commands.check_deletable(command.filter, expression)
    return command, expression


def _offers(chat: OneChat, text: str, at: int, history: ChatHistory) -> Iterator[Completion]:
    try:
        place = commands.command_place(text)
    except Fault:  # a quote is still open, so no command can have begun
        place = None
    if place is not None and place < at:
        yield from _command_offers(text, at, place)
        return
    start = term_start(text, at)
    begun = text[start:at].lower()
    for saved in chat.service.chat.preferences.saved_filters:
        name = f"@{saved.name}"
        if name.lower().startswith(begun):
            yield Completion(name, name, saved.filter, start)
    yield from completions(text, at, scope=FilterScope.CHAT, known=_values_in_use(chat, history), first=FIRST)
    if not begun:
        yield from (Completion(f":{name}", f":{name}", purpose, start) for name, purpose in commands.COMMANDS.items())


def _values_in_use(chat: OneChat, history: ChatHistory) -> Mapping[str, Sequence[str]]:
    latest = history.latest(MOST_LOOKED_AT)[::-1]
    topics = [" > ".join(history.topics.path(topic.id)) for topic in history.topics]
    return {
        "model": [*(pair.model for pair in latest), *chat.parts.models],
        "topic": topics,
        "tool": [tool for pair in latest if pair.answer is not None for tool in pair.answer.tools],
        "finish": [pair.answer.finish for pair in latest if pair.answer is not None],
        "fault": [pair.trouble.code for pair in latest if pair.trouble is not None],
    }


class _Saved(Mapping[str, Expression]):
    """The saved filters by name; each is parsed when it is used."""

    def __init__(self, chat: OneChat) -> None:
        self._texts = {each.name.lower(): each.filter for each in chat.service.chat.preferences.saved_filters}
        self._zone = chat.parts.zone

    def __getitem__(self, name: str) -> Expression:
        return parse(self._texts[name], scope=FilterScope.CHAT, zone=self._zone)

    def __iter__(self) -> Iterator[str]:
        return iter(self._texts)

    def __len__(self) -> int:
        return len(self._texts)


def _command_offers(text: str, at: int, place: int) -> Iterator[Completion]:
    """Completions after the colon: the names of commands, and the options of a command."""
    written = text[place + 1 : at]
    if not any(map(str.isspace, written)):
        for name, purpose in commands.COMMANDS.items():
            if name.startswith(written.lower()):
                yield Completion(f":{name}", f":{name}", purpose, place)
        return
    name = written.split()[0].lower()
    begun = "" if written[-1].isspace() else written.split()[-1]
    for option in commands.options_of(name):
        if option.startswith(begun.lower()):
            yield Completion(option, option, commands.COMMANDS[name], at - len(begun))


MOST_SAMPLED = 5
_LONGEST_SAMPLE = 200

CommandName = Literal["export", "tchange", "delete", "hud", "compact"]


async def run_command(chat: OneChat, wanted: CommandWanted) -> CommandShown:
    """Apply a command to all pairs that its filter matches, whether they are on screen or not; with `dry_run`, report
    what it would do."""
    looking = await chat.service.views.get(wanted.view)
    try:
        found = _parse_command(chat, wanted.text)
    except Fault as fault:
        raise wrong_text(wanted.text, fault) from None
    if found is None:
        hint = "Write a filter, a blank and a command: e & d<24h :delete."
        raise Fault(Code.USAGE, "there is no command in this line", hint=hint, status=422)
    command, expression = found
    is_dry = wanted.dry_run or command.is_dry
    pairs = [] if isinstance(command.action, commands.Hud) else looking.view.match(expression, chat.service.chat.now())
    shown = CommandShown(
        command=cast(CommandName, command.name),
        count=len(pairs),
        sample=tuple(pair.user_text[:_LONGEST_SAMPLE] for pair in pairs[:MOST_SAMPLED]),
        needs_force=False,
        message="",
        done=not is_dry,
    )
    match command.action:
        case commands.Hud(on=on):
            return replace(shown, message=f"the panel is {'on' if on else 'off'}", hud=on)
        case commands.Export() as action:
            address = _address(chat.service.chat.id, looking, command, action)
            return replace(shown, message=_count_text(pairs, "to export"), export=address)
        case commands.Compact():
            return replace(shown, message=_count_text(pairs, "to sum up"), compact=tuple(pair.id for pair in pairs))
        case commands.DeletePairs() as action:
            return await _delete(chat, action, pairs, shown, confirm=not command.is_sure)
        case commands.MoveToTopic() as action:
            return await _tchange(chat, action, pairs, looking, shown, confirm=not command.is_sure)
        case unreachable:
            assert_never(unreachable)


async def _delete(
    chat: OneChat, action: commands.DeletePairs, pairs: list[MessagePair], shown: CommandShown, *, confirm: bool
) -> CommandShown:
    if action.needs_force(len(pairs)):
        message = f"{_count_text(pairs, 'to delete')}: write :delete --force if all of them are meant"
        return replace(shown, message=message, done=False, needs_force=True, confirm=confirm)
    if not shown.done or not pairs:
        return replace(shown, message=_count_text(pairs, "to delete"), confirm=confirm)
    ids = tuple(pair.id for pair in pairs)
    await chat.service.chat.happen(PairsDeleted(ids))
    return replace(shown, message=f"{_count_text(pairs)} deleted", ids=ids)


async def _tchange(
    chat: OneChat,
    action: commands.MoveToTopic,
    pairs: list[MessagePair],
    looking: Looking,
    shown: CommandShown,
    *,
    confirm: bool,
) -> CommandShown:
    topics = chat.service.chat.history.topics
    path = topics.path(looking.view.topic) if action.path is None else action.path
    topic, name = topics.at(path), quote_word(" > ".join(path)) if path else "no topic"
    if topic is None and not action.create:
        known = [" > ".join(topics.path(each.id)) for each in topics]
        hint = f"{likely(' > '.join(path), known)} --create makes a new one.".strip()
        raise Fault(Code.USAGE, f"there is no topic {name}", hint=hint, status=422)
    if not shown.done:
        made = "" if topic is not None else ", which is made"
        return replace(shown, message=f"{_count_text(pairs, f'to move to {name}')}{made}", confirm=confirm)
    if pairs:
        topic = await _ensure_topic(chat.service.chat, path) if topic is None else topic
        await chat.service.chat.happen(PairsMoved(tuple(pair.id for pair in pairs), topic))
    return replace(shown, message=f"{_count_text(pairs)} moved to {name}")


async def _ensure_topic(chat: Chat, path: tuple[str, ...]) -> str:
    """The topic at this path. Missing topics are created."""
    above = ROOT
    for end in range(1, len(path) + 1):
        found = chat.history.topics.at(path[:end])
        if found is None:
            found = chat.make_id()
            await chat.happen(TopicAdded(Topic(id=found, name=path[end - 1], parent=above)))
        above = found
    return above


def _count_text(pairs: list[MessagePair], behind: str = "") -> str:
    count = f"{len(pairs):,} pair{'' if len(pairs) == 1 else 's'}" if pairs else "no pairs"
    return f"{count} {behind}".strip()


def _address(chat: str, looking: Looking, command: commands.ChatCommand, action: commands.Export) -> str:
    query = {"view": looking.id, "filter": command.filter, "as": action.to}
    query |= {"whole_topics": "1"} if action.whole_topics else {}
    query |= {"name": action.filename} if action.filename else {}
    place = "chat" if chat == MAIN else f"chats/{quote(chat)}"
    return f"/api/{place}/export?{urlencode(query)}"
