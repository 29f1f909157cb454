"""A canonical request to a Messages request body: `system`, the messages, and what goes with them."""

from sightline.dialects.anthropic.blocks_write import BlockWriter, bare_text
from sightline.dialects.anthropic.names import NAME
from sightline.dialects.anthropic.options import write_settings
from sightline.dialects.anthropic.tools import write_choice, write_tools
from sightline.dialects.anthropic.turns import place_system, with_turns
from sightline.dialects.conversation import SYSTEM_ROLES, leading_count, with_policy, with_somebody
from sightline.dialects.dialect import Target
from sightline.dialects.fields import merge
from sightline.model.json import Json, JsonObject
from sightline.model.message import Message
from sightline.model.parts import Opaque
from sightline.model.report import Report
from sightline.model.request import Request


def write_request(request: Request, target: Target, report: Report) -> Json:
    """The body that asks the same."""
    same = request.dialect == NAME
    messages = request.messages
    if not same:
        _lose_identity(messages, report)
        messages = tuple(message for message in messages if not _is_mirrored(message))
    messages = with_policy(messages, target.system, report)
    if not same:
        messages = with_turns(messages, report)
    body: JsonObject = {"model": request.model} if request.model else {}
    is_taken = target.facts is None or target.facts.inline_system is True
    _Conversation(messages, report, same=same, takes_system=is_taken).write(
        body, keep_places=same and target.system == "in_place"
    )
    write_tools(request, body, report, same=same)
    write_choice(request, body, report, same=same)
    write_settings(request.options, target, body, report, same=same)
    return merge(body, request.extras) if same else body


def _lose_identity(messages: tuple[Message, ...], report: Report) -> None:
    """Report what a message of this API does not say about itself, before messages are joined."""
    for message in messages:
        if message.role == "developer" and not _is_mirrored(message):
            report.lose(message.at, "role developer", f"{NAME} calls it system", "identity")
        if message.id is not None:
            report.lose(message.at, "id of the message", f"{NAME} has no such field", "identity")
        if message.name is not None:
            report.lose(f"{message.at}/name", "name of the speaker", f"{NAME} has no such field", "option")


def _is_mirrored(message: Message) -> bool:
    """Whether everything in this message also stands elsewhere in the request."""
    return bool(message.parts) and all(isinstance(part, Opaque) and part.mirrored for part in message.parts)


class _Conversation:
    """The messages of one request on their way into its body. `takes_system`: the model takes system messages among
    them; where nothing is known of the model's, what the API takes counts."""

    def __init__(self, messages: tuple[Message, ...], report: Report, *, same: bool, takes_system: bool) -> None:
        self._messages = messages
        self._report = report
        self._same = same
        self._takes_system = takes_system
        self._blocks = BlockWriter(report, same=same)

    def write(self, body: JsonObject, *, keep_places: bool) -> None:
        """Fill in `system` and `messages`. `keep_places`: a system message among the messages stays there."""
        written = [(message, blocks) for message in self._messages if (blocks := self._content(message)) is not None]
        if not self._same:
            written = place_system(written, self._report, is_taken=self._takes_system)
        messages = tuple(message for message, _ in written)
        if not self._same:
            if not messages:
                at = self._messages[-1].at if self._messages else ""
                self._report.lose(at, "every message", "nothing is left to answer", "content")
            messages = with_somebody(messages, self._report, NAME)
            if messages and messages[-1].role == "assistant":
                self._blocks.trim_end()
        count = leading_count(messages)
        if keep_places:
            count = next((i for i, m in enumerate(messages[:count]) if m.at.startswith("/messages")), count)
        # Only now: a cache mark may have been put on a block of an earlier message.
        if count:
            joined = [block for _, blocks in written[:count] for block in blocks]
            bare = bare_text(joined) if count == 1 and messages[0].bare else None
            body["system"] = joined if bare is None else bare
        spoken = zip(messages[count:], written[count:], strict=True)
        body["messages"] = [self._message(message, blocks) for message, (_, blocks) in spoken]

    def _content(self, message: Message) -> list[Json] | None:
        """The blocks of a message; None if it comes to nothing and so cannot be sent."""
        is_system = message.role in SYSTEM_ROLES
        blocks = self._blocks.write_words(message.parts) if is_system else self._blocks.write(message.parts)
        if not self._same and not blocks:
            # What it held is reported part by part; this is for the message itself, its role and its place.
            self._report.lose(message.at, "a message of which nothing is left", f"{NAME} rejects it", "identity")
            return None
        return blocks

    def _message(self, message: Message, blocks: list[Json]) -> JsonObject:
        bare = bare_text(blocks) if message.bare else None
        role = "system" if message.role in SYSTEM_ROLES else "assistant" if message.role == "assistant" else "user"
        written: JsonObject = {"role": role, "content": blocks if bare is None else bare}
        return merge(written, message.extras) if self._same else written
