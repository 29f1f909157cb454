"""The interface of a cluster: where hosts are started, and how one host is reached."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Protocol

from sightline.evals.service.cluster.messages import Introduction
from sightline.exchange.hub import Record
from sightline.settings import Settings


class LostError(Exception):
    """A host was lost, along with the cases it was running."""


class RemoteHost(Protocol):
    """A host, as seen from home. Every method raises `LostError` once the host is lost."""

    async def introduce(self) -> bytes:
        """The host's `Introduction`, encoded."""

    async def unpack(self) -> None:
        """Ask the host to unpack the files that `Fleet.open` was given."""

    async def tell(self, data: bytes) -> None:
        """Send a batch of messages."""

    async def listen(self) -> bytes:
        """Wait for a batch of messages; an empty batch after a while without any."""

    async def end(self) -> None:
        """Kill the host's process, which may have ended already."""


class Fleet(Protocol):
    """A cluster on which hosts can be started."""

    @property
    def address(self) -> str:
        """The cluster's address, as shown to users."""

    async def open(self, files: bytes) -> int:
        """Connect, and make these files available to hosts. Returns how many hosts there is room for. Raises a fault if
        the cluster cannot be reached or lacks what is needed."""

    async def hire(self) -> RemoteHost:
        """Start another host once there is room. Raises a fault if it cannot be started."""

    async def close(self) -> None:
        """End all remaining hosts and disconnect."""


@dataclass(frozen=True, slots=True)
class Needs:
    """What a toolset needs on a host: files and folders below the suites' folder, and names of environment
    variables."""

    files: tuple[str, ...] = ()
    variables: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Elsewhere:
    """Where cases are run if not in this process. `record` stores the entries that hosts send, `ours` is this process's
    introduction, `config` is the path of the configuration file relative to the suites' folder."""

    fleet: Fleet
    record: Record
    settings: Settings
    ours: Introduction
    config: str = ""
    toolsets: Mapping[str, Needs] = field(default_factory=dict)
