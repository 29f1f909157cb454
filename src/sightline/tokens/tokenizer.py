"""Public vocabularies by name. One is loaded when it is first asked for, in well under a tenth of a second."""

from functools import cache
from typing import TYPE_CHECKING, get_args

from sightline.catalog.facts import Tokenizer

if TYPE_CHECKING:
    from splintr import AnyTokenizer

NAMES: frozenset[str] = frozenset(get_args(Tokenizer)) - {""}
"""The vocabularies that a model's facts may name. Where they name none, tokens are counted by classes of characters."""


def count_tokens(name: str, text: str) -> int:
    """How many tokens the text is. What looks like a control token is ordinary text, as it is to the providers."""
    tokenizer = _load(name)
    try:
        return len(tokenizer.encode_ordinary(text))
    except UnicodeEncodeError:
        return len(tokenizer.encode_ordinary(join_surrogates(text)))


def join_surrogates(text: str) -> str:
    """The text with pairs of surrogates joined and lone ones replaced: what a reader of its JSON makes of it."""
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


@cache
def _load(name: str) -> "AnyTokenizer":
    from splintr import Tokenizer  # here, since its library takes longer to load than a command's help to print

    return Tokenizer.from_pretrained(name)
