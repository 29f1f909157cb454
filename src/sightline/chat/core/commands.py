"""Commands: a filter, a colon, and what to do with the pairs that match."""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal, NamedTuple, TypeAlias

from sightline.catalog.problem import nearest, quote_word
from sightline.errors import Fault
from sightline.filters.expression import Expression, InContext, Latest, OwnTopic, set_terms
from sightline.filters.terms import Piece, Source

ExportAs: TypeAlias = Literal["markdown", "json", "jsonl"]

MOST_UNFORCED = 50
"""More pairs than this are deleted only with `force`."""

_COMMAND = re.compile(r"\s+:(?=[a-z]|$)", re.IGNORECASE)
_WORD = re.compile(r"""[^\s'"]+""")
_ENDINGS: Mapping[str, ExportAs] = {"markdown": "markdown", "md": "markdown", "json": "json", "jsonl": "jsonl"}
_DRY, _SURE = "--dry-run", "--no-confirm"
_LONGEST_NAME = 200


@dataclass(frozen=True, slots=True)
class Export:
    """Export the pairs as a file. With `whole_topics`, a topic is one line of JSONL. Without a `filename` the default
    of its kind is used."""

    to: ExportAs = "json"
    filename: str = ""
    whole_topics: bool = False


@dataclass(frozen=True, slots=True)
class MoveToTopic:
    """Move the pairs to the topic at this path, by default the current one; `create` makes missing topics."""

    path: tuple[str, ...] | None = None
    create: bool = False


@dataclass(frozen=True, slots=True)
class DeletePairs:
    """Delete the pairs; they can be restored. Deleting many needs `force`."""

    force: bool = False

    def needs_force(self, count: int) -> bool:
        """Whether this many pairs are deleted only with `force`."""
        return count > MOST_UNFORCED and not self.force


@dataclass(frozen=True, slots=True)
class Hud:
    """Show or hide the details of the counter."""

    on: bool = True


@dataclass(frozen=True, slots=True)
class Compact:
    """Replace the pairs with a summary."""


Action: TypeAlias = Export | MoveToTopic | DeletePairs | Hud | Compact


@dataclass(frozen=True, slots=True)
class ChatCommand:
    """What to do with the pairs that match `filter`. `is_dry` only reports it; `is_sure` skips the confirmation."""

    filter: str
    action: Action
    name: str
    is_dry: bool = False
    is_sure: bool = False


def command_place(text: str) -> int | None:
    """The index of the command's colon: the first colon outside of quotes and parentheses that does not belong to a
    field, which follows its name directly. None if the text is only a filter."""
    source, depth = Source(text), 0
    while True:
        source.skip_space()
        if not source.next:
            return None
        if source.next == ":" and not depth:
            return source.place
        if (sign := source.take("&|+!():<>=")) is not None:
            depth = max(0, depth + (sign.text == "(") - (sign.text == ")"))
            continue
        _pass_term(source, is_open=bool(depth))


def _pass_term(source: Source, *, is_open: bool) -> None:
    """Skip the next term as the filter parser does."""
    if _has_passed_quotes(source):
        return
    source.word()
    if _has_passed_quotes(source) or (not is_open and _COMMAND.match(source.text, source.place)):
        return
    if source.sign() is not None:
        source.skip_space()
        source.value()


def _has_passed_quotes(source: Source) -> bool:
    return source.is_at_quote and source.value() is not None


def read_command(text: str) -> ChatCommand | None:
    """Parse the command in a line, except for its filter; None if there is no command. Raises a Fault with the position
    of a mistake."""
    place = command_place(text)
    if place is None:
        return None
    source = Source(text, place + 1, "command")
    name, *words = _words(source) or [Piece("", place, place + 1)]
    known = _COMMANDS.get(name.text.lower()) if name.start == place + 1 else None
    if known is None:
        names = ", ".join(f":{each}" for each in _COMMANDS)
        hint = nearest(name.text, _COMMANDS) if name.text else ""
        raise source.wrong(
            place,
            name.end,
            f"there is no command {quote_word(':' + name.text)}",
            f"{hint + ' ' if hint else ''}There are {names}. Write a value directly after its field: model:name.",
        )
    rest = _RemainingWords(source, name, words)
    command = ChatCommand(text[:place].strip(), Compact(), name.text.lower(), rest.flag(_DRY), rest.flag(_SURE))
    command = replace(command, action=known.read(rest))
    rest.check_empty()
    if isinstance(command.action, Hud) and command.filter:
        raise source.wrong(0, place, ":hud is about no pairs", "Take out the filter before it.")
    return command


def check_deletable(filter_text: str, expression: Expression) -> None:
    """Refuse to delete by a filter whose matches change from one moment to the next."""
    terms = {_UNSTABLE_TERMS[type(term)] for term in set_terms(expression) if type(term) in _UNSTABLE_TERMS}
    if terms:
        raise Source(filter_text, 0, "command").wrong(
            0,
            len(filter_text),
            f"{', '.join(sorted(terms))} would take other pairs a moment later, so nothing is deleted by it",
            "Say which pairs are meant by what they are: a topic by its name, a date, stars, words.",
        )


_UNSTABLE_TERMS: Mapping[type, str] = {Latest: "r", InContext: "o", OwnTopic: "t"}


@dataclass(slots=True)
class _RemainingWords:
    """The words after a command's name that have not been used yet."""

    source: Source
    name: Piece
    words: list[Piece]

    def flag(self, option: str) -> bool:
        found = [word for word in self.words if word.text == option]
        self.words = [word for word in self.words if word.text != option]
        return bool(found)

    def take_value(self, option: str) -> Piece | None:
        """The value of an option, after a space or a `=`."""
        for place, word in enumerate(self.words):
            if word.text.startswith(f"{option}="):
                del self.words[place]
                return Piece(word.text.removeprefix(f"{option}="), word.start, word.end)
            if word.text == option:
                value = self.words[place + 1 : place + 2]
                del self.words[place : place + 2]
                if not value:
                    raise self.wrong(word, f"{option} needs a value", f"Write {option} NAME.")
                return value[0]
        return None

    def argument(self) -> Piece | None:
        """The next word that is not an option."""
        found = next((word for word in self.words if not word.text.startswith("--")), None)
        self.words = [word for word in self.words if word is not found]
        return found

    def check_empty(self) -> None:
        if self.words:
            word, options = self.words[0], options_of(self.name.text.lower())
            if word.text.lower() in options:
                raise self.wrong(word, f"{quote_word(word.text)} is one argument too many", "Leave it out.")
            message = f":{self.name.text} does not know {quote_word(word.text)}"
            raise self.wrong(word, message, nearest(word.text, options, "It knows"))

    def wrong(self, word: Piece, message: str, hint: str) -> Fault:
        return self.source.wrong(word.start, word.end, message, hint)


def _export(rest: _RemainingWords) -> Export:
    whole = rest.flag("--whole-topics")
    named = rest.take_value("--filename")
    if named is not None and not _is_name(named.text):
        hint = f"Give a name without folders, of at most {_LONGEST_NAME} characters."
        raise rest.wrong(named, f"{quote_word(named.text)} cannot be the name of a file", hint)
    kind = rest.argument()
    to = "json" if kind is None else _ENDINGS.get(kind.text.lower())
    if kind is not None and to is None:
        raise rest.wrong(kind, f"{quote_word(kind.text)} is nothing to export to", nearest(kind.text, _ENDINGS))
    return Export(to or "json", "" if named is None else named.text, whole)


def _tchange(rest: _RemainingWords) -> MoveToTopic:
    create = rest.flag("--create")
    path = rest.argument()
    return MoveToTopic(None if path is None else topic_path(path.text), create)


def _hud(rest: _RemainingWords) -> Hud:
    word = rest.argument()
    if word is not None and word.text.lower() not in ("on", "off"):
        raise rest.wrong(word, f"{quote_word(word.text)} is neither on nor off", "Write :hud on or :hud off.")
    return Hud(word is None or word.text.lower() == "on")


class _Command(NamedTuple):
    """How a command is parsed, its options, and its purpose."""

    read: Callable[[_RemainingWords], Action]
    options: Sequence[str]
    purpose: str


_COMMANDS: Mapping[str, _Command] = {
    "export": _Command(
        _export,
        ("markdown", "json", "jsonl", "--filename", "--whole-topics"),
        "the pairs as a file: markdown, json or jsonl; --filename NAME, --whole-topics",
    ),
    "tchange": _Command(_tchange, ("--create",), 'to another topic: "A > B", --create makes it'),
    "delete": _Command(
        lambda rest: DeletePairs(rest.flag("--force")), ("--force",), "the pairs go; --force for more than 50"
    ),
    "hud": _Command(_hud, ("on", "off"), "on or off: the details behind the counter"),
    "compact": _Command(lambda _rest: Compact(), (), "a summary in their place"),
}
COMMANDS: Mapping[str, str] = {name: command.purpose for name, command in _COMMANDS.items()}
"""What each command does, for completion."""


def options_of(name: str) -> tuple[str, ...]:
    """The options of a command; none if it is unknown."""
    return (*_COMMANDS[name].options, _DRY, _SURE) if name in _COMMANDS else ()


def topic_path(text: str) -> tuple[str, ...]:
    """The names in `A > B` or `/A/B`; none for the root topic."""
    names: Iterable[str] = text.split("/" if text.strip().startswith("/") else ">")
    return tuple(name for each in names if (name := each.strip()))


def _is_name(text: str) -> bool:
    is_plain = text.isprintable() and not set(text) & set('/\\:*?"<>|') and text.strip(". ") == text.strip(" ")
    return bool(text.strip()) and is_plain and len(text) <= _LONGEST_NAME


def _words(source: Source) -> list[Piece]:
    """The rest of the line as words. Quotes keep spaces in a word, also after the `=` of an option."""
    words: list[Piece] = []
    source.skip_space()
    while source.next:
        start, text = source.place, ""
        while source.next and not source.next.isspace():
            if source.is_at_quote:
                text += _read_quoted(source)
            else:
                found = _WORD.match(source.text, source.place)
                assert found is not None  # neither a space nor a quote comes next
                text += found[0]
                source.place = found.end()
        words.append(Piece(text, start, source.place))
        source.skip_space()
    return words


def _read_quoted(source: Source) -> str:
    start, end = source.place, source.text.find(source.next, source.place + 1)
    if end < 0:
        raise source.wrong(
            start, start + 1, f"the quote {source.next} is not closed", f"Put a {source.next} behind the words."
        )
    source.place = end + 1
    return source.text[start + 1 : end]
