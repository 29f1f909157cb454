"""The bytes of the wire: JSON text, JSON pointers, surgical edits of a body, partial JSON and SSE framing.

Everything here is bytes and values in, bytes and values out. The package may import the standard library, msgspec,
`sightline.errors` and `sightline.model`; it never opens a socket or a file, reads a clock, knows a provider's
dialect, or writes a document anew where a patch of its bytes will do.
"""

from sightline.wire import jsontext, pointer
from sightline.wire.document import WireDocument
from sightline.wire.partial_json import PartialJson
from sightline.wire.sse import Frame, SseDecoder, comment, encode_frame

__all__ = ["Frame", "PartialJson", "SseDecoder", "WireDocument", "comment", "encode_frame", "jsontext", "pointer"]
