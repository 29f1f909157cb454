"""What a cluster is to a run: somewhere hosts can be had, as long as each of them lives."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Protocol

from sightline.evals.service.cluster.messages import Introduction
from sightline.exchange.hub import Record
from sightline.settings import Settings


class LostError(Exception):
    """A host is gone, with all that it was doing."""


class RemoteHost(Protocol):
    """A host, as seen from home. Everything here is a `LostError` once it is gone."""

    async def introduce(self) -> bytes:
        """Who it is, as an `Introduction`."""
        ...

    async def unpack(self) -> None:
        """Have it unpack the files that the fleet was given."""
        ...

    async def tell(self, data: bytes) -> None:
        """Tell it this batch."""
        ...

    async def listen(self) -> bytes:
        """What it tells; where there is nothing for a while, an empty batch."""
        ...

    async def end(self) -> None:
        """End its process, whatever it does. It may be gone already."""
        ...


class Fleet(Protocol):
    """Where hosts are had. `address` is how people call it."""

    @property
    def address(self) -> str:
        """Where it is."""
        ...

    async def open(self, files: bytes) -> int:
        """Reach it, and have these files ready for hosts; how many hosts it has room for. A fault where nobody answers,
        or not with what is needed."""
        ...

    async def hire(self) -> RemoteHost:
        """Another host, once there is room for it. A fault where it cannot be started."""
        ...

    async def close(self) -> None:
        """Leave it, with all hosts that are left."""
        ...


@dataclass(frozen=True, slots=True)
class Needs:
    """What a toolset needs to be opened on a host: files and folders below that of the suites, and the names of
    variables."""

    files: tuple[str, ...] = ()
    variables: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Elsewhere:
    """Where cases are run, if not here. `record` writes down what hosts tell, `ours` is who we are. `config` is where
    the configuration file lies from the folder of the suites."""

    fleet: Fleet
    record: Record
    settings: Settings
    ours: Introduction
    config: str = ""
    toolsets: Mapping[str, Needs] = field(default_factory=dict)
