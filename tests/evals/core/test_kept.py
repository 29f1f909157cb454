from sightline.evals.core.result import LONGEST_INLINE, CaseObservation, CaseResult, CaseScore, replace_media
from sightline.model.message import Message
from sightline.model.parts import Audio, Document, Image, Inline, Link, Part, Text, ToolResult

LARGE = Inline("image/png", "A" * (LONGEST_INLINE + 1))
SMALL = Inline("image/png", "A" * LONGEST_INLINE)


def result(*parts: Part, turns: tuple[CaseObservation, ...] = ()) -> CaseResult:
    seen = CaseObservation(asked=(Message("user", parts),), messages=(Message("assistant", (Text("x"),)),))
    score = CaseScore(verdict="pass")
    return CaseResult(case="a", target="t", status="ok", score=score, observation=seen, turns=turns)


def test_words_are_written_down_as_they_are() -> None:
    told = result(Text("x" * 100_000))
    assert replace_media(told) is told
    assert replace_media(result(Image(SMALL), Image(Link("https://x/y.png")))) == result(
        Image(SMALL), Image(Link("https://x/y.png"))
    )


def test_what_is_large_and_no_text_is_known_by_its_hash() -> None:
    parts = (Image(LARGE), Document(LARGE, "a.pdf"), Audio(LARGE), ToolResult("1", (Image(LARGE), Text("y")), "t"))
    turn = result(*parts).observation
    for seen in (replace_media(result(*parts)).observation, replace_media(result(Text("x"), turns=(turn,))).turns[0]):
        image, document, audio, tool = seen.asked[0].parts
        assert isinstance(image, Image)
        link = image.source
        assert isinstance(link, Link)
        assert (link.url.startswith("sha256:"), len(link.url), link.media_type) == (True, 71, "image/png")
        assert document == Document(link, "a.pdf")
        assert audio == Audio(link)
        assert tool == ToolResult("1", (Image(link), Text("y")), "t")
