"""The SDK's dispatcher, with one thing added: a list of tools is sifted before it is read."""

from collections.abc import Callable, Mapping
from typing import Any

from mcp.client._transport import ReadStream, WriteStream
from mcp.shared.dispatcher import CallOptions
from mcp.shared.jsonrpc_dispatcher import JSONRPCDispatcher
from mcp.shared.message import SessionMessage
from mcp.shared.transport_context import TransportContext
from mcp_types import RequestId

from sightline.model.json import JsonObject


class Sifting(JSONRPCDispatcher[TransportContext]):
    """A dispatcher whose lists of tools hold nothing that the SDK would refuse as a whole."""

    def __init__(
        self,
        read: ReadStream[SessionMessage | Exception],
        write: WriteStream[SessionMessage],
        sift: Callable[[JsonObject], JsonObject],
    ) -> None:
        super().__init__(read, write)
        self._sift = sift

    async def send_raw_request(
        self,
        method: str,
        params: Mapping[str, Any] | None,
        opts: CallOptions | None = None,
        *,
        _related_request_id: RequestId | None = None,
    ) -> dict[str, Any]:
        answer = await super().send_raw_request(method, params, opts, _related_request_id=_related_request_id)
        return self._sift(answer) if method == "tools/list" else answer
