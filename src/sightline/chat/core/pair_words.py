"""What pairs say, in the letters that filters compare, remembered because most searches go over the same pairs."""

from sightline.chat.core.pair import MessagePair
from sightline.filters.predicate import fold_case


class PairWords:
    """The words of question and answer, a line end between them; a pair that has changed is read anew."""

    def __init__(self) -> None:
        self._known: dict[str, tuple[MessagePair, str]] = {}

    def of(self, pair: MessagePair) -> str:
        """All that the pair says, in small letters."""
        known = self._known.get(pair.id)
        if known is not None and known[0] is pair:
            return known[1]
        text = f"{fold_case(pair.user_text)}\n{fold_case(pair.assistant_text)}"
        self._known[pair.id] = pair, text
        return text

    def hold(self, words: str, pair: MessagePair) -> bool:
        """Whether these words, in small letters and on one line, are among them."""
        known = self._known.get(pair.id)
        return words in (known[1] if known is not None and known[0] is pair else self.of(pair))
