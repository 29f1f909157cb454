"""How many examples a law is shown that is dear to check: a share of what the profile says for all others."""

from hypothesis import settings

USUAL = 25
"""What the profiles of a usual run say (`tests/conftest.py`)."""


def examples(count: int) -> int:
    """So many in a usual run; fewer in a quick one, and forty times as many in a thorough one."""
    return max(1, count * settings.default.max_examples // USUAL)
