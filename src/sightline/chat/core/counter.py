"""The counter on screen: how many pairs are sent, and its details."""

from dataclasses import dataclass

from sightline.chat.core.sending import SendEnding
from sightline.chat.core.view import View


@dataclass(frozen=True, slots=True)
class ContextCounter:
    """`predicted` is X, `visible` is Y, `trimmed` is T of the last send, of `predicted_then` pairs."""

    predicted: int
    visible: int
    trimmed: int = 0
    predicted_then: int = 0
    breakdown: tuple[tuple[str, int], ...] = ()

    @property
    def text(self) -> str:
        """`X / Y`; after a send that left pairs out, `[X-T]/Y`."""
        if self.trimmed:
            return f"[{self.predicted_then}-{self.trimmed}]/{self.visible}"
        return f"{self.predicted} / {self.visible}"


def counter_of(view: View, last: SendEnding | None = None, prompt: int | None = None) -> ContextCounter:
    """The counter for what is visible now, after the last send. `prompt` is what is planned for the draft."""
    room, predicted, visible = view.room, len(view.visible) - view.start, len(view.visible)
    if last is not None and not _is_of(last, view):
        last = None
    trimmed = 0 if last is None else len(last.trimmed)
    predicted_then = 0 if last is None else last.predicted
    rows = [
        ("Predicted", predicted),
        ("Predicted tokens", view.history_tokens),
        ("Visible", visible),
        ("Left out by hand", len(view.left_out)),
        ("Trimmed", trimmed),
        ("Sent", 0 if last is None else len(last.sent)),
        ("ML", room.limit),
        ("System", room.system),
        ("Tools", room.tools),
        ("URA", room.user),
        ("Reply", room.reply),
    ]
    if prompt is not None:
        rows.append(("AUT", prompt))
    return ContextCounter(predicted, visible, trimmed, predicted_then, tuple(rows))


def _is_of(last: SendEnding, view: View) -> bool:
    """Whether all pairs that the last send chose from are still visible. If not, its numbers belong to another history
    and may be larger than this one's."""
    return not last.trimmed or all(
        view.standing(pair) in ("included", "excluded") for pair in (*last.sent, *last.trimmed)
    )


def trim_summary(ending: SendEnding) -> str:
    """The message about pairs that were left out; empty if none were."""
    if not ending.trimmed:
        return ""
    later = len(ending.trimmed) - ending.preflight
    reasons = []
    if ending.preflight:
        reasons.append(f"{ending.preflight} before sending, because the prompt takes more than its allowance")
    if later:
        reasons.append(f"{later} because the provider found the request too large")
    count = len(ending.trimmed)
    verb = "was" if count == 1 else "were"
    return f"{count} of {ending.predicted} pairs {verb} left out: {'; '.join(reasons)}. They are still in the history."
