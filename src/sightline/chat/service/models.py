"""What the chat needs to know of models: whom a name means, how its tokens are counted, and how much it takes."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TypeAlias

import msgspec

from sightline.catalog.catalog import Catalog
from sightline.catalog.choose import ModelChoice, choose, default_choice
from sightline.catalog.compose import base_instructions
from sightline.catalog.provider import Provider
from sightline.chat.core.settings import ChatSettings
from sightline.chat.core.sizing import Sizer
from sightline.errors import Fault
from sightline.exchange.memory import Memory
from sightline.model.tools import Tool
from sightline.tokens.calibration import Ratio
from sightline.tokens.window_budget import model_limit
from sightline.wire.cache import BoundedCache

MOST_SIZERS = 16
"""So many models' counts are remembered, each as its settings and tools want it."""

_Key: TypeAlias = tuple[str, str, str, str, float, bytes]


@dataclass(frozen=True, slots=True)
class Models:
    """Reads the catalogue and what was learned. What was counted is counted once for all views. `preferred` is the
    model that is asked where nobody has said any; without it, the catalogue says which."""

    catalog: Catalog
    has_key: Callable[[Provider], bool]
    memory: Memory
    preferred: str = ""
    _sizers: BoundedCache[_Key, tuple[Ratio | None, Sizer]] = field(default_factory=lambda: BoundedCache(MOST_SIZERS))

    @property
    def default(self) -> str:
        """The name of the model that is asked where nobody has said any."""
        if self.preferred:
            return self.preferred
        choice = default_choice(self.catalog, self.has_key)
        return f"{choice.provider_name}/{choice.model}"

    def resolve(self, name: str) -> ModelChoice:
        """Whom this name means; a fault where it means nobody."""
        return choose(self.catalog, name, has_key=self.has_key)

    def find(self, name: str) -> ModelChoice | None:
        """Whom this name means, None where it means nobody any more."""
        try:
            return self.resolve(name)
        except Fault:
            return None

    def limit(self, choice: ModelChoice) -> int:
        """The most that one request can be: the window, or what the account allows in a minute."""
        limits = self.memory.ledger.limits(choice.provider_name, choice.model, choice.facts)
        return model_limit(choice.facts, limits)

    def sizer(self, choice: ModelChoice, settings: ChatSettings, tools: tuple[Tool, ...] = ()) -> Sizer:
        """Who counts for this model. It is the same one until something new was learned of the model."""
        how = settings.estimation, settings.chars_per_token, msgspec.json.encode(tools)
        key = choice.provider_name, choice.model, choice.dialect, *how
        lesson = self.memory.ratio(choice.provider_name, choice.model, tools=bool(tools))
        known = self._sizers.get(key)
        if known is None:
            dialect = choice.dialect
            base = base_instructions(choice.family, tools)
            sizer = Sizer(
                choice.facts,
                dialect=dialect,
                settings=settings,
                tools=tools,
                calibration=lesson,
                base_instructions=base,
            )
        else:
            sizer = known[1] if known[0] == lesson else known[1].with_calibration(lesson)
        self._sizers.put(key, (lesson, sizer))
        return sizer
