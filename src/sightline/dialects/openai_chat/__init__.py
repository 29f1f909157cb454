"""OpenAI's Chat Completions, and the many servers that speak it.

Knows every field of its requests, replies, streams and errors, and nothing of providers: what differs between its
servers is a named setting of the target. Imports the shared pieces of `dialects`, `wire` and `model` only.
"""

from sightline.dialects.dialect import Counting, Dialect, Endpoint, Unread
from sightline.dialects.openai_chat.errors import read_error, write_error
from sightline.dialects.openai_chat.names import NAME
from sightline.dialects.openai_chat.reply_read import read_plain, read_reply
from sightline.dialects.openai_chat.reply_write import write_reply
from sightline.dialects.openai_chat.request_read import read_request
from sightline.dialects.openai_chat.request_write import write_request
from sightline.dialects.openai_chat.rules import NAMES, problems, vendor_problems
from sightline.dialects.openai_chat.stream_read import ChatStreamReader
from sightline.dialects.openai_chat.stream_write import ChatStreamWriter

DIALECT = Dialect(
    name=NAME,
    read_request=read_request,
    write_request=write_request,
    read_reply=read_reply,
    write_reply=write_reply,
    stream_reader=ChatStreamReader,
    read_plain=read_plain,
    stream_writer=ChatStreamWriter,
    read_error=read_error,
    write_error=write_error,
    problems=problems,
    vendor_problems=vendor_problems,
    endpoint=Endpoint("/chat/completions", counting=Counting("/chat/completions/input_tokens")),
    names=NAMES,
    unread=Unread(
        bookkeeping=frozenset(
            {
                "object",
                "system_fingerprint",
                "service_tier",
                "obfuscation",
                "prompt_filter_results",
                "content_filter_results",
                "content_filter_offsets",
                "provider",
                "native_finish_reason",
                "x_groq",
                "expires_at",
                "request_id",
                "tool_call_id",
            }
        ),
        containers=frozenset(
            {
                "allowed_tools",
                "custom",
                "file",
                "format",
                "function",
                "grammar",
                "image_url",
                "input_audio",
                "response_format",
                "stream_options",
            }
        ),
    ),
)
