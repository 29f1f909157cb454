"""Filters and commands of the chat: parse them with the saved filters, and help while they are typed."""

from collections.abc import Iterator, Mapping, Sequence
from datetime import tzinfo
from itertools import islice
from typing import Final

from sightline.chat.api.refusals import wrong_text
from sightline.chat.core.commands import (
    COMMANDS,
    ChatCommand,
    DeletePairs,
    check_deletable,
    command_place,
    options_of,
    read_command,
)
from sightline.chat.core.history import ChatHistory
from sightline.chat.service.chat import Chat
from sightline.errors import Fault
from sightline.filters.completing import MOST, Completion, completions, term_start
from sightline.filters.expression import Expression
from sightline.filters.fields import FilterScope
from sightline.filters.parsing import parse
from sightline.web.bodies import Query
from sightline.workbench.filter_help import cursor, mistake, offer
from sightline.workbench.shapes import FilterError, FilterShown

MOST_LOOKED_AT: Final = 200
"""Values are offered from so many of the latest pairs."""

FIRST: Final = (
    *("topic", "stars", "flag", "model", "text", "age", "date", "latest", "context", "attachments", "error", "state"),
    *("fault", "finish", "tool", "tokens", "input", "output", "cached", "time", "id"),
)
"""The fields that pairs have; the others are offered after them."""


class Filters:
    """Parses filters. Days begin and end in `zone`, the server's time zone."""

    def __init__(self, chat: Chat, zone: tzinfo, models: Sequence[str]) -> None:
        self._chat = chat
        self._zone = zone
        self._models = models

    def read(self, text: str) -> Expression:
        """Parse a filter. The Fault of a mistake has its place."""
        try:
            return self._parse(text)
        except Fault as fault:
            raise wrong_text(text, fault) from None

    def command(self, text: str) -> tuple[ChatCommand, Expression] | None:
        """The command in a text and its parsed filter; None if it has no command."""
        try:
            return self._parse_command(text)
        except Fault as fault:
            raise wrong_text(text, fault) from None

    async def describe(self, query: Query) -> FilterShown:
        """Whether a text is valid, and the completions at its cursor."""
        history = await self._chat.load()
        text = query.text("text")
        at = cursor(text, query.text("cursor"))
        error = self._error(text)
        offers = islice(self._offers(text, at, history), MOST)
        return FilterShown(error is None, error, tuple(offer(text, each) for each in offers))

    def _parse(self, text: str) -> Expression:
        return parse(text, scope=FilterScope.CHAT, zone=self._zone, saved=_Saved(self._chat, self._zone))

    def _parse_command(self, text: str) -> tuple[ChatCommand, Expression] | None:
        command = read_command(text)
        if command is None:
            return None
        expression = self._parse(command.filter)
        if isinstance(command.action, DeletePairs):
            check_deletable(command.filter, expression)
        return command, expression

    def _error(self, text: str) -> FilterError | None:
        try:
            if self._parse_command(text) is None:
                self._parse(text)
        except Fault as fault:
            return mistake(text, fault)
        return None

    def _offers(self, text: str, at: int, history: ChatHistory) -> Iterator[Completion]:
        place = _place(text)
        if place is not None and place < at:
            yield from _command_offers(text, at, place)
            return
        start = term_start(text, at)
        begun = text[start:at].lower()
        for saved in self._chat.preferences.saved_filters:
            name = f"@{saved.name}"
            if name.lower().startswith(begun):
                yield Completion(name, name, saved.filter, start)
        yield from completions(text, at, scope=FilterScope.CHAT, known=self._known_values(history), first=FIRST)
        if not begun:
            yield from (Completion(f":{name}", f":{name}", purpose, start) for name, purpose in COMMANDS.items())

    def _known_values(self, history: ChatHistory) -> Mapping[str, Sequence[str]]:
        latest = history.latest(MOST_LOOKED_AT)[::-1]
        topics = [" > ".join(history.topics.path(topic.id)) for topic in history.topics]
        return {
            "model": [*(pair.model for pair in latest), *self._models],
            "topic": topics,
            "tool": [tool for pair in latest if pair.answer is not None for tool in pair.answer.tools],
            "finish": [pair.answer.finish for pair in latest if pair.answer is not None],
            "fault": [pair.trouble.code for pair in latest if pair.trouble is not None],
        }


class _Saved(Mapping[str, Expression]):
    """The saved filters by name; each is parsed when it is used."""

    def __init__(self, chat: Chat, zone: tzinfo) -> None:
        self._texts = {each.name.lower(): each.filter for each in chat.preferences.saved_filters}
        self._zone = zone

    def __getitem__(self, name: str) -> Expression:
        return parse(self._texts[name], scope=FilterScope.CHAT, zone=self._zone)

    def __iter__(self) -> Iterator[str]:
        return iter(self._texts)

    def __len__(self) -> int:
        return len(self._texts)


def _place(text: str) -> int | None:
    try:
        return command_place(text)
    except Fault:  # a quote is still open, so that no command can have begun
        return None


def _command_offers(text: str, at: int, place: int) -> Iterator[Completion]:
    """Completions behind the colon: the names of commands, and what a command takes."""
    written = text[place + 1 : at]
    if not any(letter.isspace() for letter in written):
        for name, purpose in COMMANDS.items():
            if name.startswith(written.lower()):
                yield Completion(f":{name}", f":{name}", purpose, place)
        return
    name = written.split()[0].lower()
    begun = "" if written[-1].isspace() else written.split()[-1]
    for option in options_of(name):
        if option.startswith(begun.lower()):
            yield Completion(option, option, COMMANDS[name], at - len(begun))
