"""The raw schema: messages with numbers for roles and kinds of parts, as a prompt editor holds and exports them.

Its requests are messages with options beside them in the shapes of Chat Completions, its replies one more message, its
streams the deltas that such an editor's callback gets. There is no provider behind it, so whatever the schema has no
place for is carried in it and not lost. Imports the shared pieces of `dialects`, and of `openai_chat` those for the
options and counts that both have in common.
"""

from sightline.dialects.dialect import Dialect, Unread
from sightline.dialects.raw.errors import read_error, write_error
from sightline.dialects.raw.names import NAME
from sightline.dialects.raw.reply_read import read_reply
from sightline.dialects.raw.reply_write import write_reply
from sightline.dialects.raw.request_read import read_request
from sightline.dialects.raw.request_write import write_request
from sightline.dialects.raw.rules import problems
from sightline.dialects.raw.stream_read import RawStreamReader
from sightline.dialects.raw.stream_write import RawStreamWriter

DIALECT = Dialect(
    name=NAME,
    read_request=read_request,
    write_request=write_request,
    read_reply=read_reply,
    write_reply=write_reply,
    stream_reader=RawStreamReader,
    stream_writer=RawStreamWriter,
    read_error=read_error,
    write_error=write_error,
    problems=problems,
    carries_parts=True,
    keeps_kinds=True,
    unread=Unread(
        bookkeeping=frozenset(
            {"tokenUsage", "scope", "tokens", "metadata", "mediaType", "statefulMarker", "phase", "copilotReferences"}
        ),
        containers=frozenset(
            {
                "allowed_tools",
                "custom",
                "file",
                "format",
                "function",
                "grammar",
                "imageUrl",
                "image_url",
                "input_audio",
                "requestOptions",
                "response_format",
                "stream_options",
                "value",
            }
        ),
    ),
)
