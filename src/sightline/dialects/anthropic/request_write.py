"""A canonical request to a Messages request body: `system`, the messages, and what goes with them."""

from sightline.dialects.anthropic.blocks_write import BlockWriter, bare_text
from sightline.dialects.anthropic.options import write_settings
from sightline.dialects.anthropic.tools import write_choice, write_tools
from sightline.dialects.anthropic.turns import with_turns
from sightline.dialects.anthropic.words import NAME
from sightline.dialects.conversation import SYSTEM_ROLES, call_names, leading_count, with_policy
from sightline.dialects.dialect import Target
from sightline.dialects.fields import merge
from sightline.model.json import Json, JsonObject
from sightline.model.message import Message
from sightline.model.report import Report, Severity
from sightline.model.request import Request


def write_request(request: Request, target: Target, report: Report) -> Json:
    """The body that asks the same."""
    same = request.dialect == NAME
    messages = with_policy(request.messages, target.system, report)
    if not same:
        _lose_identity(request.messages, report)
        messages = with_turns(messages, report)
    body: JsonObject = {"model": request.model} if request.model else {}
    _Conversation(messages, report, same=same).write(body, keep_places=same and target.system == "in_place")
    write_tools(request, body, report, same=same)
    write_choice(request, body, report, same=same)
    write_settings(request.options, target, body, report, same=same)
    return merge(body, request.extras) if same else body


def _lose_identity(messages: tuple[Message, ...], report: Report) -> None:
    """Report what a message of this API does not say about itself, before messages are joined."""
    for message in messages:
        if message.role == "developer":
            report.lose(message.at, "role developer", f"{NAME} calls it system", "identity")
        if message.id is not None:
            report.lose(message.at, "id of the message", f"{NAME} has no such field", "identity")
        if message.name is not None:
            report.lose(f"{message.at}/name", "name of the speaker", f"{NAME} has no such field", "content")


class _Conversation:
    """The messages of one request on their way into its body."""

    def __init__(self, messages: tuple[Message, ...], report: Report, *, same: bool) -> None:
        self._messages = messages
        self._report = report
        self._same = same
        self._blocks = BlockWriter(report, call_names(messages), same=same)

    def write(self, body: JsonObject, *, keep_places: bool) -> None:
        """Fill in `system` and `messages`. `keep_places`: a system message among the messages stays there."""
        count = leading_count(self._messages)
        if keep_places:
            count = next((i for i, m in enumerate(self._messages[:count]) if m.at.startswith("/messages")), count)
        leading, others = self._messages[:count], self._messages[count:]
        written = [(message, blocks) for message in leading if (blocks := self._content(message)) is not None]
        spoken = [(message, blocks) for message in others if (blocks := self._content(message)) is not None]
        # Only now: a cache mark may have been put on a block of an earlier message.
        if written:
            joined = [block for _, blocks in written for block in blocks]
            bare = bare_text(joined) if len(written) == 1 and written[0][0].bare else None
            body["system"] = joined if bare is None else bare
        body["messages"] = [self._message(message, blocks) for message, blocks in spoken]

    def _content(self, message: Message) -> list[Json] | None:
        """The blocks of a message; None if it comes to nothing and so cannot be sent."""
        refusals = self._report.refusal_count
        is_system = message.role in SYSTEM_ROLES
        blocks = self._blocks.write_words(message.parts) if is_system else self._blocks.write(message.parts)
        if not self._same and not blocks:
            severity: Severity = "content" if self._report.refusal_count > refusals else "identity"
            self._report.lose(message.at, "a message", "nothing in it can be sent", severity)
            return None
        return blocks

    def _message(self, message: Message, blocks: list[Json]) -> JsonObject:
        bare = bare_text(blocks) if message.bare else None
        role = "system" if message.role in SYSTEM_ROLES else "assistant" if message.role == "assistant" else "user"
        written: JsonObject = {"role": role, "content": blocks if bare is None else bare}
        return merge(written, message.extras) if self._same else written
