"""What changes among the tools while a run goes on, for a person: a run keeps the toolbox that it began with."""

from collections.abc import Iterable, Sequence

from sightline.agent.core.tool import Definition, Toolbox


class Offered:
    """`toolbox` is what the run has; `there` is what there was when this process began to drive it."""

    def __init__(self, toolbox: Toolbox, there: Sequence[Definition]) -> None:
        told = [each for each in toolbox.definitions if each.is_enabled]
        self._told = {each.name for each in told}
        self._known = {each.name: each for each in (*there, *told)}
        self._looked: Sequence[Definition] = ()

    def changes(self, now: Sequence[Definition]) -> str:
        """What is not as it was when this was last asked; nothing where all is."""
        if now == self._looked:
            return ""
        self._looked = now
        found = {each.name: each for each in now}
        gone = [name for name in self._known if name in self._told and name not in found]
        other = [name for name, each in found.items() if name in self._known and _is_other(self._known[name], each)]
        fresh = [name for name in found if name not in self._known]
        self._known = {name: each for name, each in self._known.items() if name not in gone} | found
        words = [
            *_words("gone", gone),
            *_words("changed", other),
            *_words("there again", (name for name in fresh if name in self._told)),
            *_words("new, for the next run", (name for name in fresh if name not in self._told)),
        ]
        return f"the tools are not as they were: {'; '.join(words)}" if words else ""


def _is_other(before: Definition, now: Definition) -> bool:
    return (before.description, before.schema) != (now.description, now.schema)


def _words(what: str, names: Iterable[str]) -> list[str]:
    listed = ", ".join(names)
    return [f"{listed} {what}"] if listed else []
