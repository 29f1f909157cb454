"""The bytes of the wire: JSON text, JSON pointers, in-place edits of a body, partial JSON and SSE framing.

Everything here takes and returns bytes and values. The package may import the standard library, msgspec,
`sightline.errors` and `sightline.model`. It never opens a socket or a file, reads a clock or knows a provider's
dialect, and it never rewrites a document if patching its bytes is enough.
"""

from sightline.wire import jsontext, pointer
from sightline.wire.document import WireDocument
from sightline.wire.partial_json import PartialJson
from sightline.wire.sse import Frame, SseDecoder, comment, encode_frame

__all__ = ["Frame", "PartialJson", "SseDecoder", "WireDocument", "comment", "encode_frame", "jsontext", "pointer"]
