"""The Messages API of Anthropic, as client and as server.

It reads and writes requests, replies, streams and errors of `POST /v1/messages`, and knows what the API rejects. It
imports the values, the wire and what all dialects share; it never imports another dialect and touches nothing outside.
"""

from sightline.dialects.anthropic.errors import read_error, write_error
from sightline.dialects.anthropic.names import NAME
from sightline.dialects.anthropic.reply_read import read_reply
from sightline.dialects.anthropic.reply_write import write_reply
from sightline.dialects.anthropic.request_read import read_request
from sightline.dialects.anthropic.request_write import write_request
from sightline.dialects.anthropic.rules import NAMES, problems, vendor_problems
from sightline.dialects.anthropic.stream_read import stream_reader
from sightline.dialects.anthropic.stream_write import MessagesWriter
from sightline.dialects.dialect import Counting, Dialect, Endpoint, Unread
from sightline.dialects.versions import ApiVersions

DIALECT = Dialect(
    name=NAME,
    read_request=read_request,
    write_request=write_request,
    read_reply=read_reply,
    write_reply=write_reply,
    stream_reader=stream_reader,
    stream_writer=MessagesWriter,
    read_error=read_error,
    write_error=write_error,
    problems=problems,
    vendor_problems=vendor_problems,
    reasoning="mode",
    # Anthropic's SDKs dispatch on the name of the event and pass over a frame without one.
    error_event="error",
    # "Migrating to API version 2026-10-21" (platform.claude.com): these are errors for every model.
    versions=ApiVersions("anthropic-version", (("2026-10-21", ("temperature", "top_p", "top_k")),)),
    endpoint=Endpoint(
        "/messages",
        version="/v1",
        credential=("x-api-key", ""),
        headers=(("anthropic-version", "2023-06-01"),),
        counting=Counting(
            "/messages/count_tokens",
            frozenset({"messages", "model", "output_config", "system", "thinking", "tool_choice", "tools"}),
        ),
    ),
    names=NAMES,
    unread=Unread(
        bookkeeping=frozenset({"id", "type", "role", "caller", "metadata", "diagnostics", "request_id", "details"}),
        containers=frozenset({"format", "output_config", "thinking"}),
        stateful=frozenset({"thread"}),
    ),
)
