"""Counting text as a model does: exactly, with another model's vocabulary, or by the classes of its characters."""

from collections import OrderedDict

from sightline.catalog.facts import Facts
from sightline.tokens.estimate import NOTHING, Estimate, between, exactly
from sightline.tokens.text_classes import count_by_classes
from sightline.tokens.tokenizer import NAMES, count_tokens

SPREAD = 0.15
_OPENAI = frozenset({"o200k_base", "cl100k_base"})
_REMEMBERED_TEXTS = 16_384
_REMEMBERED_CHARACTERS = 32_000_000


class TextCounter:
    """Counts texts and remembers what it counted, the latest texts longest, so that a keystroke costs one text."""

    def __init__(self, facts: Facts) -> None:
        self._facts = facts
        self._counted: OrderedDict[str, Estimate] = OrderedDict()
        self._characters = 0

    @property
    def is_exact(self) -> bool:
        """Whether the vocabulary is the model's own."""
        return self._facts.tokenizer in NAMES

    @property
    def frames_are_known(self) -> bool:
        """Whether it is published what stands around messages; elsewhere it is what was seen on some endpoints."""
        return self._facts.tokenizer in _OPENAI

    @property
    def spread(self) -> float:
        """The share by which another model's vocabulary may be off."""
        return SPREAD if self._facts.token_spread is None else self._facts.token_spread

    def count(self, text: str) -> Estimate:
        """Tokens of the text by itself."""
        if not text:
            return NOTHING
        known = self._counted.get(text)
        if known is not None:
            self._counted.move_to_end(text)
            return known
        estimate = self._fresh(text)
        self._counted[text] = estimate
        self._characters += len(text)
        while len(self._counted) > _REMEMBERED_TEXTS or self._characters > _REMEMBERED_CHARACTERS:
            oldest, _ = self._counted.popitem(last=False)
            self._characters -= len(oldest)
        return estimate

    def _fresh(self, text: str) -> Estimate:
        facts = self._facts
        if self.is_exact:
            return exactly(count_tokens(facts.tokenizer, text), facts.tokenizer)
        if facts.nearest_tokenizer not in NAMES:
            return count_by_classes(text, facts.chars_per_token)
        ratio = facts.token_ratio or 1.0
        likely = count_tokens(facts.nearest_tokenizer, text) * ratio
        # Where vocabularies disagree (digits, rare scripts, symbols), another one's count is no better than they are.
        classes = count_by_classes(text)
        low = min(likely * (1 - self.spread) - 1, classes.low * ratio)
        high = max(likely * (1 + self.spread) + 1, classes.high * ratio)
        return between(low, likely, high, f"like {facts.nearest_tokenizer}")
