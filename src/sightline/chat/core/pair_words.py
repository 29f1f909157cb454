"""The text of pairs in lower case, cached because most searches look at the same pairs."""

from sightline.chat.core.pair import MessagePair
from sightline.filters.pattern import fold_case


class PairWords:
    """The text of question and answer, with a line end between them. A changed pair is read again."""

    def __init__(self) -> None:
        self._known: dict[str, tuple[MessagePair, str]] = {}

    def of(self, pair: MessagePair) -> str:
        """All text of the pair, in lower case."""
        known = self._known.get(pair.id)
        if known is not None and known[0] is pair:
            return known[1]
        text = f"{fold_case(pair.user_text)}\n{fold_case(pair.assistant_text)}"
        self._known[pair.id] = pair, text
        return text

    def hold(self, words: str, pair: MessagePair) -> bool:
        """Whether this text, in lower case and on one line, occurs in it."""
        known = self._known.get(pair.id)
        return words in (known[1] if known is not None and known[0] is pair else self.of(pair))
