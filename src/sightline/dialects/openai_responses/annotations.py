"""Annotations of an output text: kept whole, and read as far as other dialects can understand them."""

from sightline.dialects.fields import as_object, opt_int, opt_str
from sightline.dialects.openai_responses.names import NAME
from sightline.model.json import Json, JsonObject
from sightline.model.parts import Citation
from sightline.model.report import Report

_OWN = ("url_citation", "file_citation", "container_file_citation", "file_path")


def read_annotation(value: Json, at: str) -> Citation:
    """One annotation, whole, with its address, title and place beside it."""
    annotation = as_object(value, at)
    return Citation(
        url=opt_str(annotation, "url", at) or "",
        title=opt_str(annotation, "title", at) or opt_str(annotation, "filename", at) or "",
        start=opt_int(annotation, "start_index", at),
        end=opt_int(annotation, "end_index", at),
        value=annotation,
        at=at,
    )


def write_annotation(citation: Citation, report: Report) -> JsonObject | None:
    """The citation as an annotation; None, and a loss, where the API cannot say it."""
    value = citation.value
    if isinstance(value, dict) and value.get("type") in _OWN and "url_citation" not in value:
        return value  # one of ours as it came; Chat's holds its members one level deeper
    if not citation.url or citation.start is None or citation.end is None:
        report.lose(citation.at, "a citation", f"{NAME} cites URLs with their place in the text", "option")
        return None
    if citation.cited_text:
        report.lose(citation.at, "the quotation of a citation", f"{NAME} has no field for it", "option")
    return {
        "type": "url_citation",
        "url": citation.url,
        "title": citation.title,
        "start_index": citation.start,
        "end_index": citation.end,
    }
