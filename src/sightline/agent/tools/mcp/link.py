"""A way to a server, whichever it is: two streams for the SDK, and what is known of its end."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field

from mcp.client._transport import ReadStream, WriteStream
from mcp.shared.message import SessionMessage

from sightline.errors import Fault


@dataclass(slots=True)
class McpLink:
    """What the SDK speaks over. `ended` is set when the other side is gone.

    `why` is what is known of a failure by whoever sees the process or the HTTP, `words` what the server said beside it.
    """

    read: ReadStream[SessionMessage | Exception]
    write: WriteStream[SessionMessage]
    why: Callable[[], Fault | None]
    words: Callable[[], str] = str
    ended: asyncio.Event = field(default_factory=asyncio.Event)
