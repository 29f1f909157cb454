"""Citations of a text block: kept whole, and read as far as other dialects can understand them."""

from sightline.dialects.anthropic.names import NAME
from sightline.dialects.fields import as_object
from sightline.model.json import Json, JsonObject
from sightline.model.parts import Citation
from sightline.model.report import Report


def read_citation(value: Json, at: str) -> Citation:
    """One citation, whole, with its address, title and quotation beside it."""
    citation = as_object(value, at)
    return Citation(
        url=_word(citation, "url"),
        title=_word(citation, "title") or _word(citation, "document_title"),
        cited_text=_word(citation, "cited_text"),
        value=citation,
        at=at,
    )


def _word(citation: JsonObject, key: str) -> str:
    value = citation.get(key)
    return value if isinstance(value, str) else ""


def write_citation(citation: Citation, report: Report) -> Json:
    """The citation as it was read, or None and a loss for another dialect's.

    The API's own kinds end in `_location`. A foreign one can never be spelled as one of them: each names an index into
    this provider's documents or a seal (`encrypted_index`) that only it can make.
    """
    value = citation.value
    if isinstance(value, dict) and isinstance(kind := value.get("type"), str) and kind.endswith("_location"):
        return value
    report.lose(citation.at, "a citation", f"{NAME} cites by its own document indexes and seals", "option")
    return None
