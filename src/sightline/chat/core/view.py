"""Which pairs of a history are visible, and how many of them are sent with the next question."""

from bisect import bisect_left
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal, TypeAlias, assert_never

from sightline.chat.core.history import ChatHistory, HistoryChange
from sightline.chat.core.matching import Matching, Test, latest, of_model, of_topic
from sightline.chat.core.pair import MessagePair
from sightline.chat.core.sizing import Sizer
from sightline.chat.core.topics import ROOT, compose_system_prelude
from sightline.filters.expression import (
    EVERYTHING,
    Expression,
    InContext,
    Latest,
    OwnModel,
    OwnTopic,
    SetTerm,
    set_terms,
)
from sightline.filters.predicate import without_context
from sightline.settings import ChatSettings
from sightline.tokens.estimate import Estimate, share_out
from sightline.tokens.window_budget import Boundary, Room, reply_reserve, reserve_for_calibration

Standing: TypeAlias = Literal["included", "excluded", "left_out", "hidden"]


@dataclass(frozen=True, slots=True)
class Figures:
    """The tokens of the system message, the tools and each pair in the next request. They are shares of the figure for
    the whole request, which is also on the Send button: together with the question they add up to it."""

    system: int
    tools: int
    pairs: Mapping[str, Estimate]

    @property
    def history(self) -> int:
        """The tokens of all pairs."""
        return sum(size.tokens for size in self.pairs.values())

    @property
    def total(self) -> int:
        """The tokens of everything except the question."""
        return self.system + self.tools + self.history


class View:
    """A filter over a history, and the prediction boundary in the pairs that it shows.

    The boundary is computed on demand, from its last position. Typing does not move it; another filter, model, topic or
    setting does, and so do changes of the history reported by `on_change`. `selections` counts how often the whole
    history was searched.
    """

    def __init__(
        self, history: ChatHistory, sizer: Sizer, limit: int, settings: ChatSettings, *, now: float = 0.0
    ) -> None:
        self.history = history
        self.expression: Expression = EVERYTHING
        self.filter_version = 0
        """Increases with each filter that is executed."""
        self.topic = ROOT
        self.model = ""
        self.selections = 0
        self._now = now
        self.sizer = sizer
        self._limit = limit
        self.settings = settings
        self.inherited = history.topics.settings_for(ROOT)
        self._room: Room | None = None
        self._figures: Figures | None = None
        self._reserved_tokens = self._dropped_tokens = 0
        self._left_out: dict[str, MessagePair] = {}
        self._needs_list = False
        self._is_selected = False
        self._test: Test = lambda _pair: True
        self._boundary: Boundary[MessagePair] = Boundary(sizer.cost)

    # --- what changes it

    def execute(self, expression: Expression, now: float) -> None:
        """Apply another filter, with its times relative to `now`."""
        self.expression = expression
        self.filter_version += 1
        self._now = now
        self._needs_list = bool(set_terms(expression))
        self._is_selected = False

    def choose(self, model: str, sizer: Sizer, limit: int) -> None:
        """Change the model, the tools, or how they are counted. `limit` is the maximum size of a request."""
        self.model = model
        self.sizer = sizer
        self._limit = limit
        self._room = None
        if self._needs_list or not self._is_selected:
            self._is_selected = False
        else:
            self._boundary.replace(list(self._boundary.items), sizer.cost)

    def enter(self, topic: str) -> None:
        """Set the topic of the next question."""
        self.history.topics.get(topic)
        self.topic = topic
        self._forget_topic()

    def adjust(self, settings: ChatSettings, sizer: Sizer) -> None:
        """Change the settings, and the sizer that uses them."""
        self.settings = settings
        self.choose(self.model, sizer, self._limit)

    def on_change(self, change: HistoryChange) -> None:
        """Update the view after a change of the history."""
        if self.topic not in self.history.topics:
            self.topic = ROOT
        self._forget_topic()
        if change.is_wide or self._needs_list:
            self._is_selected = False
        if self._is_selected:
            for pair in change.ids:
                self._update_pair(pair)

    # --- what it says

    @property
    def prelude(self) -> str:
        return compose_system_prelude(self.inherited, self.settings, self.sizer.base_instructions)

    @property
    def room(self) -> Room:
        """How the model's limit is divided."""
        if self._room is None:
            sizer, settings = self.sizer, self.settings
            max_tokens = self.inherited.parameters.max_tokens
            learned = reserve_for_calibration(sizer.always_added, self._limit)
            prelude, tools = sizer.prelude(self.prelude), sizer.tool_tokens()
            system, tool_tokens = sizer.correct(prelude).tokens, sizer.correct(tools).tokens
            self._room = Room(
                self._limit,
                system=system,
                tools=tool_tokens,
                user=settings.user_request_allowance,
                reply=reply_reserve(settings.assistant_response_allowance, self._limit, max_tokens),
                learned=learned,
                margin=sizer.cautious(prelude) - system + sizer.cautious(tools) - tool_tokens + learned,
            )
        return self._room

    @property
    def figures(self) -> Figures:
        """The sizes of what is sent with the next question. They are shares of the whole, once that has been
        measured."""
        included = self.included
        known = self._figures
        if known is not None and known.pairs.keys() == {pair.id for pair in included}:
            return known
        return Figures(self.room.system, self.room.tools, {pair.id: self.sizer.size(pair) for pair in included})

    @property
    def shown_room(self) -> Room:
        """How the limit is divided, given these sizes. The margin includes that of the pairs."""
        room, figures = self.room, self.figures
        planned = room.system + room.tools + room.margin + self._reserved_tokens + self._boundary.cost_included
        margin = max(0, planned - figures.total)
        return replace(room, system=figures.system, tools=figures.tools, margin=margin)

    def size(self, pair: MessagePair) -> Estimate:
        """The tokens of a pair: its share of the next request, or what it would add."""
        known = None if self._figures is None else self._figures.pairs.get(pair.id)
        return known if known is not None and self.standing(pair.id) == "included" else self.sizer.size(pair)

    def forget_measure(self) -> None:
        """Discard the measurement of the next request, so that it is measured again."""
        self._figures, self._reserved_tokens, self._dropped_tokens = None, 0, 0

    def share(self, whole: Estimate, asked: Estimate) -> bool:
        """Divide the measured size of the next request among its parts. `asked` is the estimate of the question by the
        rules alone. Returns False if the request may not fit together with the reply: then fewer pairs are included,
        and it has to be measured again."""
        sizer, room, included = self.sizer, self.room, self.included
        raw = {pair.id: sizer.pair(pair) for pair in included}
        fixed = (asked.tokens, sizer.prelude(self.prelude).tokens, sizer.tool_tokens().tokens)
        pieces = (*fixed, *(each.tokens for each in raw.values()))
        question, system, tools, *shares = share_out(whole.tokens, dict(enumerate(pieces))).values()
        above = whole.high - question + room.user + room.reply - room.limit
        # If the calibration is wrong, a chat still keeps most of its history: the provider itself reports what is too
        # much.
        given_up = reserve_for_calibration(self._dropped_tokens + above, room.limit)
        if included and given_up > self._dropped_tokens and not sizer.by_characters:
            self._dropped_tokens = given_up
            self._reserved_tokens = max(0, room.history - self._boundary.cost_included) + above
            return False
        likely = sum(pieces)
        sizes = {name: _scale(raw[name], share, whole, likely) for name, share in zip(raw, shares, strict=True)}
        self._figures = Figures(system, tools, sizes)
        return True

    @property
    def visible(self) -> Sequence[MessagePair]:
        """The pairs that are shown, oldest first, without those excluded by hand."""
        self._select()
        return self._boundary.items

    @property
    def left_out(self) -> list[MessagePair]:
        """The pairs that would be visible if they were not excluded by hand; they stay on screen, marked."""
        self._select()
        return sorted(self._left_out.values(), key=lambda pair: self.history.key(pair.id))

    @property
    def start(self) -> int:
        """The boundary: the position of the first visible pair that is sent."""
        self._select()
        self._boundary.resize(max(0, self.room.history - self._reserved_tokens))
        return self._boundary.start

    @property
    def included(self) -> Sequence[MessagePair]:
        start = self.start
        return self._boundary.items[start:]

    def standing(self, pair: str) -> Standing:
        """Whether a pair is sent, visible but beyond the limit, excluded by hand, or hidden."""
        place = self._place(pair)
        if place is not None:
            return "included" if place >= self.start else "excluded"
        return "left_out" if pair in self._left_out else "hidden"

    def match(self, expression: Expression, now: float) -> list[MessagePair]:
        """The pairs that another filter matches, ignoring what was included or excluded by hand. The view does not
        change."""
        pairs = list(self.history)
        return list(filter(self._matching(pairs, expression, now).test(expression), pairs))

    # --- how it is found

    def _forget_topic(self) -> None:
        inherited = self.history.topics.settings_for(self.topic)
        if self.inherited != inherited:
            self.inherited = inherited
            self._room = None
        if self._needs_list:
            self._is_selected = False

    def _select(self) -> None:
        if self._is_selected:
            return
        self._is_selected = True
        self.selections += 1
        pairs = list(self.history)
        self._test = self._matching(pairs, self.expression, self._now).test(self.expression)
        self._left_out = {}
        chosen = pairs if self.expression == EVERYTHING else [pair for pair in pairs if self._test(pair)]
        if any(pair.hand for pair in pairs):
            chosen_ids = {pair.id for pair in chosen}
            self._left_out = {pair.id: pair for pair in chosen if pair.hand == "out"}
            chosen = [pair for pair in pairs if pair.hand == "in" or (pair.id in chosen_ids and pair.hand != "out")]
        self._boundary.replace(chosen, self.sizer.cost)

    def _matching(self, pairs: list[MessagePair], expression: Expression, now: float) -> Matching:
        """The filter's terms, with those about the whole list resolved. Which pairs are sent depends on which are
        shown, so terms about that are resolved last."""
        terms = set_terms(expression)
        members: dict[SetTerm, frozenset[str]] = {}
        for term in terms:
            match term:
                case Latest(count=count):
                    members[term] = latest(pairs, count)
                case OwnTopic(count=count):
                    members[term] = of_topic(pairs, self.topic, count)
                case OwnModel():
                    members[term] = of_model(pairs, self.model)
                case InContext():
                    pass
                case unreachable:
                    assert_never(unreachable)
        matching = Matching(self.history.topics, now, members, self.history.words)
        beyond = [term for term in terms if isinstance(term, InContext)]
        if beyond:
            base = matching.test(without_context(expression))
            shown = [pair for pair in pairs if base(pair)]
            trial: Boundary[MessagePair] = Boundary(self.sizer.cost, self.room.history)
            trial.replace([pair for pair in shown if pair.hand != "out"])
            first = trial.items[trial.start] if trial.start < len(trial.items) else None
            start = len(shown) if first is None else shown.index(first)
            members |= {term: frozenset(pair.id for pair in shown[max(0, start - term.extra) :]) for term in beyond}
        return matching

    def _position(self, pair: str) -> int:
        """The position of a pair among the visible ones, or where it would be."""
        key_of = self.history.key
        return bisect_left(self.visible, key_of(pair), key=lambda each: key_of(each.id))

    def _place(self, pair: str) -> int | None:
        """The position of a pair among the visible ones; None if it is not visible."""
        if pair not in self.history:
            return None
        position, items = self._position(pair), self.visible
        return position if position < len(items) and items[position].id == pair else None

    def _update_pair(self, pair_id: str) -> None:
        """Update one pair, which may have appeared, disappeared or changed."""
        place, pair = self._place(pair_id), self.history.get(pair_id)
        is_live = self.history.is_live(pair_id)
        is_chosen = is_live and self._test(pair)
        self._left_out.pop(pair_id, None)
        if is_chosen and pair.hand == "out":
            self._left_out[pair_id] = pair
        is_shown = is_live and pair.hand != "out" and (is_chosen or pair.hand == "in")
        if place is None:
            if is_shown:
                self._boundary.insert(self._position(pair_id), pair)
        elif is_shown:
            self._boundary.change(place, pair)
        else:
            self._boundary.remove(place)


def _scale(raw: Estimate, tokens: int, whole: Estimate, likely: int) -> Estimate:
    """The estimate of a part that gets `tokens` of the whole. Its band is its share of the band of the whole, by its
    part in `likely`, the estimate of the whole by the rules alone."""
    share = raw.tokens / likely if likely else 0.0
    low = tokens - round((whole.tokens - whole.low) * share)
    return Estimate(tokens, min(tokens, max(0, low)), tokens + round((whole.high - whole.tokens) * share), whole.how)
