"""What of our environment a process gets: never what is meant for a provider."""

from collections.abc import Collection, Mapping

_PASSED_ON = frozenset(
    {"HOME", "LANG", "LANGUAGE", "LOGNAME", "PATH", "SHELL", "TERM", "TMPDIR", "TZ", "USER", "VIRTUAL_ENV"}
)


def minimal(environment: Mapping[str, str]) -> dict[str, str]:
    """What any command needs, and nothing else: for commands that a model has written."""
    return {name: value for name, value in environment.items() if name in _PASSED_ON or name.startswith("LC_")}


def without(environment: Mapping[str, str], secrets: Collection[str]) -> dict[str, str]:
    """All but the variables with these names: for programs that a person has written."""
    return {name: value for name, value in environment.items() if name not in secrets}
