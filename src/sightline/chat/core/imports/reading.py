"""Whichever export this is, read."""

from sightline.chat.core.imports.chatgpt import is_chatgpt, read_chatgpt
from sightline.chat.core.imports.claude import is_claude, read_claude
from sightline.chat.core.imports.conversations import Gathered
from sightline.chat.core.imports.maichat import is_maichat, read_maichat
from sightline.chat.core.imports.markdown import is_markdown, read_markdown
from sightline.errors import Code, Fault
from sightline.wire.jsontext import BOM, decode

_ZIP = b"PK\x03\x04"


def read_chat(data: bytes, name: str = "") -> Gathered:
    """The pairs and topics in an export. `name` is the file's, for a text without a title."""
    if data.startswith(_ZIP):
        raise _unreadable("this is an archive", "Unpack it and import the conversations.json in it.")
    if data.removeprefix(BOM).lstrip()[:1] in (b"{", b"["):
        document = decode(data)
        for is_one, read in ((is_chatgpt, read_chatgpt), (is_claude, read_claude), (is_maichat, read_maichat)):
            if is_one(document):
                return read(document)
        raise _unreadable(
            "this JSON is no export of a chat that is known", "ChatGPT, Claude, MaiChat and Sightline are."
        )
    try:
        text = data.removeprefix(BOM).decode()
    except UnicodeDecodeError as error:
        raise _unreadable("this is no text", "Import JSON or Markdown in UTF-8.") from error
    if not is_markdown(text):
        raise _unreadable("nobody speaks in this text", "Write `## User` and `## Assistant` before what they say.")
    return read_markdown(text, name)


def _unreadable(why: str, hint: str) -> Fault:
    return Fault(Code.INVALID_REQUEST, why, hint=hint)
