"""Carries out a command line: reports what it would do, or does it."""

from typing import Literal, assert_never, cast
from urllib.parse import urlencode

from sightline.catalog.problem import likely, quote_word
from sightline.chat.api.bodies import CommandWanted
from sightline.chat.api.filters import Filters
from sightline.chat.api.shapes import CommandShown
from sightline.chat.core.commands import ChatCommand, Compact, DeletePairs, Export, Hud, Tchange
from sightline.chat.core.facts import PairsDeleted, PairsMoved, TopicAdded
from sightline.chat.core.pair import MessagePair
from sightline.chat.core.topics import ROOT, Topic
from sightline.chat.service.service import ChatService
from sightline.chat.service.views import Looking
from sightline.errors import Code, Fault

MOST_SAMPLED = 5
_LONGEST_SAMPLE = 200

CommandName = Literal["export", "tchange", "delete", "hud", "compact"]


class Commanding:
    """Applies a command to all pairs that its filter matches, whether they are on screen or not."""

    def __init__(self, service: ChatService, filters: Filters) -> None:
        self._service = service
        self._filters = filters

    async def run(self, wanted: CommandWanted) -> CommandShown:
        """Carry it out; with `dry_run`, report what it would do."""
        looking = await self._service.views.get(wanted.view)
        found = self._filters.command(wanted.text)
        if found is None:
            hint = "Write a filter, a blank and a command: e & d<24h :delete."
            raise Fault(Code.USAGE, "there is no command in this line", hint=hint, status=422)
        command, expression = found
        is_dry = wanted.dry_run or command.is_dry
        pairs = [] if isinstance(command.action, Hud) else looking.view.match(expression, self._service.chat.now())
        match command.action:
            case Hud(on=on):
                return _result(command, pairs, f"the panel is {'on' if on else 'off'}", done=not is_dry, hud=on)
            case Export() as action:
                return _result(
                    command,
                    pairs,
                    _count_text(pairs, "to export"),
                    done=not is_dry,
                    export=_address(looking, command, action),
                )
            case Compact():
                ids = tuple(pair.id for pair in pairs)
                return _result(command, pairs, _count_text(pairs, "to sum up"), done=not is_dry, compact=ids)
            case DeletePairs() as action:
                return await self._delete(command, action, pairs, is_dry=is_dry)
            case Tchange() as action:
                return await self._tchange(command, action, pairs, looking, is_dry=is_dry)
            case unreachable:
                assert_never(unreachable)

    async def _delete(
        self, command: ChatCommand, action: DeletePairs, pairs: list[MessagePair], *, is_dry: bool
    ) -> CommandShown:
        if action.needs_force(len(pairs)):
            message = f"{_count_text(pairs, 'to delete')}: write :delete --force if all of them are meant"
            return _result(command, pairs, message, done=False, needs_force=True, confirm=not command.is_sure)
        if is_dry or not pairs:
            message = _count_text(pairs, "to delete")
            return _result(command, pairs, message, done=not is_dry, confirm=not command.is_sure)
        ids = tuple(pair.id for pair in pairs)
        await self._service.chat.happen(PairsDeleted(ids))
        return _result(command, pairs, f"{_count_text(pairs)} deleted", done=True, ids=ids)

    async def _tchange(
        self, command: ChatCommand, action: Tchange, pairs: list[MessagePair], looking: Looking, *, is_dry: bool
    ) -> CommandShown:
        topics = self._service.chat.history.topics
        path = topics.path(looking.view.topic) if action.path is None else action.path
        topic, shown = topics.at(path), quote_word(" > ".join(path)) if path else "no topic"
        if topic is None and not action.create:
            known = [" > ".join(topics.path(each.id)) for each in topics]
            hint = f"{likely(' > '.join(path), known)} --create makes a new one.".strip()
            raise Fault(Code.USAGE, f"there is no topic {shown}", hint=hint, status=422)
        if is_dry:
            made = "" if topic is not None else ", which is made"
            message = f"{_count_text(pairs, f'to move to {shown}')}{made}"
            return _result(command, pairs, message, done=False, confirm=not command.is_sure)
        if pairs:
            topic = await self._ensure_topic(path) if topic is None else topic
            await self._service.chat.happen(PairsMoved(tuple(pair.id for pair in pairs), topic))
        return _result(command, pairs, f"{_count_text(pairs)} moved to {shown}", done=True)

    async def _ensure_topic(self, path: tuple[str, ...]) -> str:
        """The topic at this path. Missing topics are created."""
        chat, above = self._service.chat, ROOT
        for end in range(1, len(path) + 1):
            found = chat.history.topics.at(path[:end])
            if found is None:
                found = chat.make_id()
                await chat.happen(TopicAdded(Topic(id=found, name=path[end - 1], parent=above)))
            above = found
        return above


def _result(
    command: ChatCommand,
    pairs: list[MessagePair],
    message: str,
    *,
    done: bool,
    needs_force: bool = False,
    confirm: bool = False,
    hud: bool | None = None,
    export: str | None = None,
    compact: tuple[str, ...] | None = None,
    ids: tuple[str, ...] | None = None,
) -> CommandShown:
    return CommandShown(
        command=cast(CommandName, command.name),
        count=len(pairs),
        sample=tuple(pair.user_text[:_LONGEST_SAMPLE] for pair in pairs[:MOST_SAMPLED]),
        needs_force=needs_force,
        message=message,
        done=done,
        confirm=confirm,
        hud=hud,
        export=export,
        compact=compact,
        ids=ids,
    )


def _count_text(pairs: list[MessagePair], behind: str = "") -> str:
    count = f"{len(pairs):,} pair{'' if len(pairs) == 1 else 's'}" if pairs else "no pairs"
    return f"{count} {behind}".strip()


def _address(looking: Looking, command: ChatCommand, action: Export) -> str:
    query = {"view": looking.id, "filter": command.filter, "as": action.to}
    query |= {"whole_topics": "1"} if action.whole_topics else {}
    query |= {"name": action.filename} if action.filename else {}
    return f"/api/chat/export?{urlencode(query)}"
