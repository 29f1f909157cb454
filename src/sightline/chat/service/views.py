"""The views that pages have of the chat, and the models that they count tokens for."""

from bisect import bisect_left
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TypeAlias

import msgspec

from sightline.catalog.catalog import Catalog
from sightline.catalog.choose import ModelChoice, choose, default_choice
from sightline.catalog.compose import base_instructions
from sightline.catalog.provider import Provider
from sightline.chat.core.history import HistoryChange, Key
from sightline.chat.core.pair import MessagePair, Trouble
from sightline.chat.core.plan import SendTelemetry, plan_of
from sightline.chat.core.sending import ContextCounter, SendEnding, counter_of, trim_summary
from sightline.chat.core.sizing import Sizer
from sightline.chat.core.topics import ROOT, Inherited
from sightline.chat.core.view import View
from sightline.chat.service.answerer import Answerer
from sightline.chat.service.chat import Chat
from sightline.errors import Code, Fault
from sightline.exchange.memory import Memory
from sightline.exchange.outbound import prepare
from sightline.filters.expression import EVERYTHING, Expression
from sightline.filters.fields import FilterScope
from sightline.filters.parsing import parse
from sightline.model.parts import Part, Text
from sightline.model.request import Tool
from sightline.settings import ChatSettings
from sightline.tokens.calibration import Ratio
from sightline.tokens.window_budget import model_limit
from sightline.wire.cache import BoundedCache

MOST_SIZERS = 16
"""The counts of this many models are cached, each for particular settings and tools."""

_Key: TypeAlias = tuple[str, str, str, str, float, bytes]


@dataclass(frozen=True, slots=True)
class Models:
    """Reads the catalogue and the calibration. Counts are shared by all views. `preferred` is the model that is used by
    default; without it, the catalogue chooses."""

    catalog: Catalog
    has_key: Callable[[Provider], bool]
    memory: Memory
    preferred: str = ""
    _sizers: BoundedCache[_Key, tuple[Ratio | None, Sizer]] = field(default_factory=lambda: BoundedCache(MOST_SIZERS))

    @property
    def default(self) -> str:
        if self.preferred:
            return self.preferred
        choice = default_choice(self.catalog, self.has_key)
        return f"{choice.provider_name}/{choice.model}"

    def resolve(self, name: str) -> ModelChoice:
        """The model with this name. Raises a fault if there is none."""
        return choose(self.catalog, name, has_key=self.has_key)

    def limit(self, choice: ModelChoice) -> int:
        """The maximum size of a request: the context window, or what the account allows per minute."""
        limits = self.memory.ledger.limits(choice.provider_name, choice.model, choice.facts)
        return model_limit(choice.facts, limits)

    def sizer(self, choice: ModelChoice, settings: ChatSettings, tools: tuple[Tool, ...] = ()) -> Sizer:
        """The sizer of this model. It is the same object until the calibration of the model changes."""
        how = settings.estimation, settings.chars_per_token, msgspec.json.encode(tools)
        key = choice.provider_name, choice.model, choice.dialect, *how
        lesson = self.memory.ratio(choice.provider_name, choice.model, tools=bool(tools))
        known = self._sizers.get(key)
        if known is None:
            sizer = Sizer(
                choice.facts,
                dialect=choice.dialect,
                settings=settings,
                tools=tools,
                calibration=lesson,
                base_instructions=base_instructions(choice.family, tools),
            )
        else:
            sizer = known[1] if known[0] == lesson else known[1].with_calibration(lesson)
        self._sizers.put(key, (lesson, sizer))
        return sizer


class Rows:
    """The `pairs` on screen in a view as it is now, oldest first: visible ones, and those excluded by hand."""

    def __init__(self, view: View) -> None:
        self._view = view
        self.pairs = view.visible
        if view.left_out:  # two runs that are already in order: sorting merges them in one pass
            self.pairs = sorted((*view.visible, *view.left_out), key=self._key)

    @property
    def start(self) -> int:
        """The row of the first pair that is sent; the number of rows if none is."""
        included = self._view.included
        return self._row(included[0].id) if included else len(self.pairs)

    def place(self, pair: str) -> int | None:
        """The row of a pair; None if it is not on screen."""
        return None if self._view.standing(pair) == "hidden" else self._row(pair)

    def _row(self, pair: str) -> int:
        return bisect_left(self.pairs, self._view.history.key(pair), key=self._key)

    def _key(self, pair: MessagePair) -> Key:
        return self._view.history.key(pair.id)


MOST_VIEWS = 64
"""The least recently used view is dropped; its page requests it again."""

_LONGEST_NAME = 200


class ViewSend:
    """A send from a view: its pair, its telemetry, and how it ended, once it has."""

    def __init__(self, pair: str, view: View) -> None:
        self.pair = pair
        self.filter_version = view.filter_version
        self._context = _context_of(view)
        self.telemetry: tuple[SendTelemetry, ...] = ()
        self.ending: SendEnding | None = None

    def is_of(self, view: View) -> bool:
        """Whether the view still has the filter, model and settings that it was sent with."""
        return self._context == _context_of(view)

    @property
    def trim_summary(self) -> str:
        """The notice about pairs that were left out; empty if none were."""
        return "" if self.ending is None else trim_summary(self.ending)

    @property
    def trouble(self) -> Trouble | None:
        """Why there is no answer; None if there is one."""
        return None if self.ending is None else self.ending.trouble


def _context_of(view: View) -> tuple[int, str, ChatSettings]:
    return view.filter_version, view.model, view.settings


class Looking:
    """A page's view. `model` is the selected model, empty if none was selected; the model in use is `view.model`, and
    `choice` resolves it to a provider. `trouble` is why the topic's tools cannot be used."""

    def __init__(self, name: str, view: View, choice: ModelChoice) -> None:
        self.id = name
        self.view = view
        self.choice = choice
        self.filter = ""
        self.model = ""
        self.last: ViewSend | None = None
        self.trouble: Fault | None = None
        self.measured: tuple[str, int, int] | None = None
        """What was measured last: the body, the revision of the calibration, and the number of visible pairs."""

    @property
    def rows(self) -> Rows:
        return Rows(self.view)

    def counter(self, prompt: int | None = None) -> ContextCounter:
        """How many pairs are sent, and what the last send left out, as long as filter, model and settings are the same.
        `prompt` is the size planned for the draft."""
        last = self.last
        return counter_of(self.view, last.ending if last is not None and last.is_of(self.view) else None, prompt)


class Views:
    """The views, by the ids that pages give them. Each gets every change of the history."""

    def __init__(self, chat: Chat, models: Models, answering: Answerer) -> None:
        self._chat = chat
        self._engine = answering.engine
        self._models = models
        self._answerer = answering
        self._views: BoundedCache[str, Looking] = BoundedCache(MOST_VIEWS)
        chat.listen(self._on_change)

    async def set_view(
        self,
        view: str,
        *,
        filter: str | None = None,  # noqa: A002 - that is what it is called on every page
        expression: Expression | None = None,
        model: str | None = None,
        topic: str | None = None,
    ) -> Looking:
        """Create a view, or change the filter, model or topic of one; None leaves it unchanged. `filter` is parsed
        unless its `expression` is given. If this raises a fault, nothing has changed."""
        history = await self._chat.load()
        self._chat.follow()
        if len(view) > _LONGEST_NAME:
            raise Fault(Code.INVALID_REQUEST, "the view's name is too long", hint="Use a shorter name.", status=422)
        if expression is None and filter is not None:
            expression = parse(filter, scope=FilterScope.CHAT)
        if topic is not None:
            history.topics.get(topic)
        if model:
            self._models.resolve(model)
        looking = self._views.get(view) or self._new(view, model or "", topic or ROOT)
        if topic is not None:
            looking.view.enter(topic)
        if model is not None:
            looking.model = model
        if expression is not None:
            looking.filter = filter or ""
            looking.view.execute(expression, self._chat.now())
        self._views.put(view, looking)
        await self._refresh(looking)
        return looking

    async def get(self, view: str) -> Looking:
        """The view with this id, updated to the current state."""
        await self._chat.load()
        self._chat.follow()
        looking = self._views.get(view)
        if looking is None:
            hint = "Send it again: PUT /api/chat/views/{view} with its filter, model and topic."
            raise Fault(Code.USAGE, f"the view {view!r} is not there any more", hint=hint, status=404)
        await self._refresh(looking)
        return looking

    def mask_question(self, text: str, attachments: tuple[Part, ...]) -> tuple[str, tuple[Part, ...]]:
        """Mask the configured keys in a question. It is stored masked, so that what is visible is what is sent."""
        masked = self._chat.mask
        return masked(text), tuple(Text(masked(each.text)) if isinstance(each, Text) else each for each in attachments)

    def through(self, looking: Looking, choice: ModelChoice, model: str) -> View:
        """The same view through another model, for one question."""
        view = looking.view
        other = self._view(choice, view.sizer.tools)
        other.choose(model, other.sizer, self._models.limit(choice))
        other.enter(view.topic)
        other.execute(view.expression, self._chat.now())
        return other

    def _new(self, name: str, model: str, topic: str) -> Looking:
        _, choice = self._model_for(model, self._chat.history.topics.settings_for(topic))
        view = self._view(choice)
        view.execute(EVERYTHING, self._chat.now())
        return Looking(name, view, choice)

    def _view(self, choice: ModelChoice, tools: tuple[Tool, ...] = ()) -> View:
        sizer, limit = self._models.sizer(choice, self._chat.settings, tools), self._models.limit(choice)
        return View(self._chat.history, sizer, limit, self._chat.settings, now=self._chat.now())

    async def _refresh(self, looking: Looking) -> None:
        """Count the view for its current model, with its current calibration and the topic's tools."""
        tools = await self._tools(looking)
        view, settings = looking.view, self._chat.settings
        name, choice = self._model_for(looking.model, view.inherited)
        sizer, limit = self._models.sizer(choice, settings, tools), self._models.limit(choice)
        looking.choice = choice
        if (name, sizer, limit) != (view.model, view.sizer, view.room.limit):
            view.choose(name, sizer, limit)
        self._measure(looking)

    def _measure(self, looking: Looking) -> None:
        """Divide the figure for the next request among its parts, if anything in it has changed. If the request might
        not fit, fewer pairs are included."""
        view = looking.view
        while True:
            try:
                plan = plan_of(view, "", is_draft=True)
                ready = self._engine.final(prepare(plan.prompt_without(0), looking.choice), session=self._chat.session)
            except Fault:  # it cannot be written for this model, which the send will report
                view.forget_measure()
                looking.measured = None
                return
            now = ready.sha256, self._engine.memory.revision, len(view.visible)
            if now == looking.measured:
                return
            if looking.measured is not None:
                looking.measured = None
                view.forget_measure()
                continue
            if view.share(self._engine.estimate(ready), plan.prompt):
                looking.measured = now[0], self._engine.memory.revision, now[2]
                return

    async def _tools(self, looking: Looking) -> tuple[Tool, ...]:
        looking.trouble = None
        toolsets = looking.view.inherited.toolsets
        if not toolsets:
            return ()
        try:
            return await self._answerer.tools(toolsets)
        except Fault as fault:
            looking.trouble = fault
            return ()

    def _model_for(self, selected: str, topic: Inherited) -> tuple[str, ModelChoice]:
        """The model for the next question: the selected one, or else the topic's, that of the newest pair, or the
        default. A model that was not selected may no longer exist; then the default is used."""
        if not selected:
            newest = self._chat.history.newest
            name = topic.model or ("" if newest is None else newest.model)
            if name:
                with suppress(Fault):
                    return name, self._models.resolve(name)
        name = selected or self._models.default
        return name, self._models.resolve(name)

    def _on_change(self, change: HistoryChange | None) -> None:
        for looking in self._views.values():
            if change is not None:
                looking.view.on_change(change)
            else:
                settings, tools = self._chat.settings, looking.view.sizer.tools
                looking.view.adjust(settings, self._models.sizer(looking.choice, settings, tools))
