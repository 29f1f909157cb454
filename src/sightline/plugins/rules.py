"""Rules of the conformance run: how one is checked, and what is found."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from sightline.errors import Fault
from sightline.plugins.guard import OverdueError, call_within, describe_error

CHECK_SECONDS: Final = 10.0
"""How long one rule may take."""


@dataclass(frozen=True, slots=True)
class PluginFinding:
    """One rule and what it is about (`signer acme-hmac`). `problem` is None where the rule is kept."""

    what: str
    rule: str
    problem: str | None


Check = Callable[[], None]
"""Raises a `BrokenRuleError` where the rule is broken; any other exception is a problem as well."""


class BrokenRuleError(Exception):
    """What a plug-in does instead."""


def run_checks(what: str, checks: Mapping[str, Check]) -> Iterator[PluginFinding]:
    """Run the check of each rule; a finding for each, also where it is kept."""
    for rule, check in checks.items():
        try:
            call_within(CHECK_SECONDS, check, lambda: None)
        except OverdueError:
            yield PluginFinding(what, rule, f"it did not return within {CHECK_SECONDS:g} s")
        except BrokenRuleError as broken:
            yield PluginFinding(what, rule, str(broken))
        except Fault as fault:
            yield PluginFinding(what, rule, f"it refuses: {describe_error(fault)}")
        except (Exception, SystemExit) as error:  # noqa: BLE001 - whatever a plug-in raises is what the author wants to know
            yield PluginFinding(what, rule, f"it raised {describe_error(error)}")
        else:
            yield PluginFinding(what, rule, None)


def require(is_kept: object, problem: str) -> None:
    """Raise a `BrokenRuleError` with this problem unless the rule is kept."""
    if not is_kept:
        raise BrokenRuleError(problem)
