from sightline.agent.core.output import ToolOutcome, text_outcome
from sightline.agent.core.rounds import CallRecord
from sightline.cli.run_control import call_line, clip, fold, record_lines, result_lines
from sightline.model.parts import Image, Inline, Text

PICTURE = Image(Inline("image/png", "AAAA"))


def test_a_call_is_one_line_and_the_cut_is_stated() -> None:
    assert call_line("add", {"a": 1, "text": "x\ny"}) == '→ add {"a":1,"text":"x\\ny"}'
    assert call_line("shell", "ls\n  -l") == "→ shell ls -l"
    assert call_line("shell", "") == "→ shell"
    assert call_line("shell", "x" * 1200).endswith("… 1,040 more characters")


def test_a_result_is_a_few_lines_and_the_cut_is_stated() -> None:
    assert result_lines("add", text_outcome("5")) == "← add: 5"
    assert result_lines("add", text_outcome("odd", is_error=True)) == "← add (error): odd"
    assert result_lines("add", None) == "← add"
    assert result_lines("ls", text_outcome("1\n2\n3\n4\n5\n6\n")) == "← ls: 1\n  2\n  3\n  4\n  … 2 more lines"
    assert fold("1\n2\n3\n4\n5").endswith("… 1 more line")


def test_what_is_not_text_is_counted() -> None:
    assert result_lines("f", ToolOutcome((Text("see"), PICTURE))) == "← f: see\n  [1 part that is not text]"
    assert result_lines("f", ToolOutcome((PICTURE, PICTURE))) == "← f: [2 parts that are not text]"
    assert result_lines("f", ToolOutcome(structured={"a": 1})) == '← f: {"a":1}'


def test_what_did_not_run_says_why() -> None:
    record = CallRecord(
        key="1.1", id="a", name="add", arguments="{}", fate="denied", outcome=text_outcome("no", is_error=True)
    )
    assert record_lines(record) == "← add (denied): no"
    cut = CallRecord(key="1.1", id="a", name="add", arguments="{}", fate="cut")
    assert record_lines(cut) == "← add (not run, the reply was truncated)"


def test_a_short_line_stays_as_it_is() -> None:
    assert clip("abc", 3) == "abc"
    assert clip("abcd", 3) == "abc… 1 more characters"
