from sightline.dialects.openai_responses.names import NAME, REDACTED
from sightline.dialects.openai_responses.reasoning import read_reasoning, read_seal, reasoning_pieces, write_seal
from sightline.dialects.signatures import NEXT, wrap
from sightline.model.parts import Thinking

AT = "/input/0"


def item(**fields):
    return {"type": "reasoning", "id": "rs_1", "summary": [], **fields}


def said(*texts, kind="summary_text"):
    return [{"type": kind, "text": text} for text in texts]


def test_a_summary_is_what_can_be_read_and_the_seal_is_bound_to_the_id():
    thinking = read_reasoning(item(summary=said("a", "b"), encrypted_content="enc", status="completed"), AT)
    expected = Thinking("a\n\nb", ("a", "b"), "rs_1", "enc", NAME, at=AT, extras={"status": "completed"})
    assert thinking == expected


def test_the_reasoning_itself_is_the_text():
    thinking = read_reasoning(item(summary=said("short"), content=said("long", kind="reasoning_text")), AT)
    assert (thinking.text, thinking.summary, thinking.extras) == ("long", ("short",), {})
    assert reasoning_pieces(thinking, own=True) == {
        "summary": said("short"),
        "content": said("long", kind="reasoning_text"),
    }


def test_pieces_that_could_not_be_rebuilt_are_kept_as_they_are():
    odd = item(content=said("x", "y", kind="reasoning_text"), summary=[{"type": "summary_text", "text": "s", "n": 1}])
    assert read_reasoning(odd, AT).extras == {"content": odd["content"], "summary": odd["summary"]}


def test_foreign_words_are_shown_as_a_summary():
    assert reasoning_pieces(Thinking("words"), own=False) == {"summary": said("words")}
    assert reasoning_pieces(Thinking(), own=False) == {"summary": []}


def test_a_seal_of_another_maker_comes_back_as_that():
    thinking = read_reasoning(item(encrypted_content=wrap("sig", "gemini", NEXT)), AT)
    assert (thinking.signature, thinking.signed_by, thinking.id) == ("sig", "gemini", "next")


def test_a_redacted_block_comes_back_redacted():
    thinking = read_reasoning(item(encrypted_content=wrap("data", "anthropic", REDACTED)), AT)
    assert (thinking.signature, thinking.redacted, thinking.id) == ("data", True, None)


def test_reasoning_that_nobody_signed_is_nobodys():
    sealed = write_seal(None, None, None, "rs_made_up")
    thinking = read_reasoning(item(summary=said("x"), encrypted_content=sealed), AT)
    assert (thinking.signature, thinking.signed_by, thinking.id) == (None, None, None)


def test_our_own_seal_is_written_as_it_is():
    assert write_seal("enc", NAME, "rs_1", "rs_1") == "enc"
    assert write_seal(None, NAME, None, "rs_1") is None


def test_our_own_seal_in_an_item_of_another_id_still_names_the_id_that_it_is_bound_to():
    sealed = write_seal("enc", NAME, "rs_1", "rs_other")
    assert read_seal(item(id="rs_other", encrypted_content=sealed), AT) == ("enc", NAME, "rs_1")


def test_an_empty_seal_is_none_and_is_written_back():
    thinking = read_reasoning(item(encrypted_content=""), AT)
    assert (thinking.signature, thinking.extras) == (None, {"encrypted_content": ""})
    assert read_seal(item(encrypted_content=""), AT)[0] is None
