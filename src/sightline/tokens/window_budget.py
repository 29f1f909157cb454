"""What a model's window is divided into: what every request takes of it, what is held back, and what is left."""

from dataclasses import dataclass

from sightline.catalog.facts import Facts
from sightline.tokens.account import RateLimits

UNKNOWN_WINDOW = 8192
"""What is assumed of a model of which nothing is known: most have more, few have less."""

_LARGEST_SHARE_OF_A_REPLY = 4
_LARGEST_SHARE_LEARNED = 8


def model_limit(facts: Facts, limits: RateLimits | None = None) -> int:
    """The most that one request can be: the window, or the tokens of a minute where they are fewer.

    `limits` is what the provider told of itself, which goes before what the catalogue has.
    """
    per_minute = facts.tpm if limits is None or limits.tpm is None else limits.tpm
    window = facts.context_window or UNKNOWN_WINDOW
    return window if per_minute is None else min(window, per_minute)


def reply_reserve(allowance: int, limit: int, max_tokens: int | None) -> int:
    """What is held back for the reply: what it was limited to, else the allowance, as far as a small window bears it.

    Some providers refuse a prompt that leaves less than the limit which the request itself names.
    """
    return max_tokens if max_tokens is not None else min(allowance, limit // _LARGEST_SHARE_OF_A_REPLY)


def reserve_for_calibration(added: int, limit: int) -> int:
    """What is held back because the provider's past counts were so much higher: no more than a small part of the
    whole, since a lesson can be wrong."""
    return min(added, limit // _LARGEST_SHARE_LEARNED)


@dataclass(frozen=True, slots=True)
class Room:
    """`limit` is the whole. `system` and `tools` are in every request; `user` and `reply` are held back for the next
    prompt and for its answer. `learned` is the part of `system` that nobody has written, and that is held back because
    past counts of the provider were so much higher."""

    limit: int
    system: int = 0
    tools: int = 0
    user: int = 0
    reply: int = 0
    learned: int = 0

    @property
    def usable(self) -> int:
        """What history and prompt can take together."""
        return self.limit - self.system - self.tools - self.reply

    @property
    def history(self) -> int:
        """What history can take while the next prompt is not known."""
        return max(0, self.usable - self.user)

    def beside(self, prompt: int) -> int:
        """What history can take beside a prompt of this size."""
        return max(0, self.usable - prompt)

    def can_ever_hold(self, prompt: int) -> bool:
        """Whether the prompt fits where no history goes along and the reply gets what is left. What was only learned
        keeps nothing from being sent: the provider is asked, and says itself what is too much."""
        return prompt + self.system - self.learned + self.tools <= self.limit
