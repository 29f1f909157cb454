"""The configured tools, and what a person has allowed for all runs."""

import asyncio
import os
from collections.abc import Awaitable, Callable, Mapping, Sequence
from pathlib import Path
from typing import TypeAlias

import msgspec

from sightline.agent.core.approval import ApprovalRule
from sightline.agent.tools.opening import Opened
from sightline.errors import Code, Fault
from sightline.wire.jsontext import MISFIT, decode

Opening: TypeAlias = Callable[[Sequence[str]], Awaitable[Opened]]
"""Opens the toolsets of these names."""


class Toolsets:
    """`names` are those of the configuration: a caller cannot name a file or a command."""

    def __init__(self, names: Sequence[str], opening: Opening) -> None:
        self.names = tuple(names)
        self._opening = opening
        self._open: dict[tuple[str, ...], Opened] = {}
        self._lock = asyncio.Lock()

    async def open_toolsets(self, wanted: Sequence[str]) -> Opened:
        """The tools of these toolsets together; one that cannot be opened is tried again the next time."""
        unknown = sorted(set(wanted) - set(self.names))
        if unknown:
            known = f"Configured are: {', '.join(self.names)}." if self.names else "Configure them as [tools.NAME]."
            raise Fault(Code.CONFIG, f"there are no tools named {', '.join(unknown)}", hint=known)
        key = tuple(sorted(set(wanted)))
        async with self._lock:
            if key not in self._open:
                self._open[key] = await self._opening(key)
            return self._open[key]

    async def close(self) -> None:
        """End everything that was started for them."""
        async with self._lock:
            while self._open:
                _, tools = self._open.popitem()
                await tools.close()


FILE_NAME = "approvals.json"


class KeptRule(msgspec.Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True):
    """A tool by its name, the place it comes from, and the patterns that arguments must fit, by JSON pointer."""

    tool: str
    place: str
    arguments: dict[str, str] = {}

    @property
    def rule(self) -> ApprovalRule:
        """The same for a run."""
        return ApprovalRule(self.tool, "allow", self.arguments)

    @property
    def words(self) -> str:
        """For a person."""
        fits = ", ".join(f"{pointer} like {pattern}" for pointer, pattern in self.arguments.items())
        return f"{self.tool} ({fits or 'any arguments'})"


class KeptRules:
    """The file of one data folder. It is read anew each time: a person may have edited it, or another process."""

    def __init__(self, folder: Path) -> None:
        self.file = folder / FILE_NAME

    def all(self) -> tuple[KeptRule, ...]:
        """Every rule; a file that cannot be read is a fault, since a person relies on it."""
        try:
            data = self.file.read_bytes()
        except FileNotFoundError:
            return ()
        except OSError as error:
            raise self._wrong(error.strerror or str(error)) from None
        try:
            return msgspec.convert(decode(data), tuple[KeptRule, ...])
        except (*MISFIT, Fault) as error:
            raise self._wrong(error.message if isinstance(error, Fault) else str(error)) from None

    def of(self, places: Mapping[str, str]) -> tuple[KeptRule, ...]:
        """The rules about these tools, which come from these places."""
        return tuple(kept for kept in self.all() if places.get(kept.tool) == kept.place)

    def keep(self, rule: KeptRule) -> None:
        """Remember one more."""
        rules = self.all()
        if rule not in rules:
            self._write((*rules, rule))

    def forget(self, rule: KeptRule) -> bool:
        """Ask about such calls again; whether there was such a rule."""
        rules = self.all()
        left = tuple(each for each in rules if each != rule)
        if left != rules:
            self._write(left)
        return left != rules

    def _write(self, rules: tuple[KeptRule, ...]) -> None:
        text = msgspec.json.format(msgspec.json.encode(rules), indent=2) + b"\n"
        fresh = self.file.with_name(f"{FILE_NAME}.{os.getpid()}")
        try:
            self.file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            with os.fdopen(os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb") as file:
                file.write(text)
            fresh.replace(self.file)
        except OSError as error:
            raise self._wrong(error.strerror or str(error)) from None

    def _wrong(self, why: str) -> Fault:
        return Fault(Code.CONFIG, f"{self.file}: {why}", hint="Correct it, or take it away: then everything is asked.")
