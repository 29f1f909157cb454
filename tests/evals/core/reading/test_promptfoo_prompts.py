import pytest

from tests.evals.core.reading.stage import messages_of, read

TEST = "tests: [{vars: {a: 1}, assert: [{type: contains, value: x}]}]\n"


def said(prompts: str, files: dict[str, bytes] | None = None) -> list[list[tuple[str, str]]]:
    reading = read(f"prompts: {prompts}\n{TEST}", files)
    assert reading.suite is not None, messages_of(reading)
    return [
        [(message.role, message.segments[0].text) for message in case.messages]  # type: ignore[union-attr]
        for case in reading.suite.cases
    ]


def user(text: str) -> list[tuple[str, str]]:
    return [("user", text)]


FILES = {
    "suites/p/one.txt": b"Say {{ a }}.\r\n---\r\n  \n---\nTwice {{ a }}.\n",
    "suites/p/two.txt": b"Two",
    "suites/note.md": b"# {{ a }}\n\n---\n\nText",
    "suites/chat.json": b'[{"role": "system", "content": "Be {{ a }}."}, {"role": "user", "content": "hi"}]',
    "suites/object.json": b'{"ask": "{{ a }}"}',
    "suites/many.jsonl": b'[{"role": "user", "content": "one"}]\n\n["two"]\n',
    "suites/chat.yaml": b"- {role: system, content: s}\n- {role: user, content: '{{ a }}'}\n",
    "suites/list.yaml": b"- file://p/two.txt\n- {raw: Three, label: t}\n- {id: 'file://note.md'}\n",
    "suites/empty.txt": b"---\n",
    "suites/empty.md": b" ",
    "suites/bad.yaml": b"[",
    "suites/latin.txt": b"\xff\xfe\xff",
    "suites/data.bin": b"x",
}


def test_prompts_are_in_files_of_every_kind() -> None:
    assert said("[file://p/one.txt]", FILES) == [user("Say 1."), user("Twice 1.")]
    assert said("p/two.txt", FILES) == [user("Two")]
    assert said("[file://p/*.txt]", FILES) == [user("Say 1."), user("Twice 1."), user("Two")]
    assert said("[file://note.md]", FILES) == [user("# 1\n\n---\n\nText")]
    assert said("[file://chat.json]", FILES) == [[("system", "Be 1."), ("user", "hi")]]
    assert said("file://chat.json", FILES) == [[("system", "Be 1."), ("user", "hi")]]
    assert said("[file://object.json]", FILES) == [user('{"ask": "1"}')]
    assert said("[file://many.jsonl]", FILES) == [user("one"), user('["two"]')]
    assert said("[file://chat.yaml]", FILES) == [[("system", "s"), ("user", "1")]]
    assert said("file://chat.yaml", FILES) == [[("system", "s"), ("user", "1")]]
    assert said("file://list.yaml", FILES) == [user("Two"), user("Three"), user("# 1\n\n---\n\nText")]


def test_a_sentence_that_ends_in_a_file_is_a_sentence() -> None:
    assert said("[Summarise notes.txt]") == [user("Summarise notes.txt")]
    assert said("['[1, 2']") == [user("[1, 2")]


@pytest.mark.parametrize(
    ("prompts", "words"),
    [
        ("[3]", "a prompt has to be text"),
        ("[{label: x}]", "a prompt has to be text"),
        ("[{raw: x, function: y}]", 'a prompt has no key "function"'),
        ("3", "prompts must be a list"),
        ("[file://gone.txt]", 'there is no file "suites/gone.txt"'),
        ("file://gone.yaml", 'there is no file "suites/gone.yaml"'),
        ("file://bad.yaml", "bad.yaml"),
        ("[file://bad.yaml]", "bad.yaml"),
        ("[file://none/*.txt]", 'no file matches "none/*.txt"'),
        ("['file:///etc/passwd']", "is absolute"),
        ("[file://empty.txt]", "there is no prompt in the file"),
        ("[file://empty.md]", "there is no prompt in the file"),
        ("[file://latin.txt]", "latin.txt"),
        ("[file://data.bin]", "is no file of prompts"),
        ("[file://prompt.py]", 'the prompt "file://prompt.py" would have to be run'),
        ("['file://prompt.js:make']", "would have to be run"),
        ("['exec:make.sh']", "would have to be run"),
        ("['{{ a | upper }}']", "is not computed here"),
        ("['{% if a %}x{% endif %}']", "is not computed here"),
        ("['{{ env.NAME }}']", "{{ env.NAME }} is not filled in here"),
    ],
)
def test_what_is_no_prompt_is_said(prompts: str, words: str) -> None:
    reading = read(f"prompts: {prompts}\n{TEST}", FILES)
    assert reading.suite is None
    found = [f"{each.place.file} {each.message}" for each in reading.problems]
    assert any(words in each for each in found), found


def test_a_suite_without_prompts_is_none() -> None:
    assert "the suite has no prompts" in messages_of(read("providers: [x]\n" + TEST))


def test_a_value_that_is_in_several_files_is_a_list() -> None:
    text = "prompts: ['{{ a }}']\ntests: [{vars: {a: 'file://p/*.txt'}, assert: [{type: is-json}]}]\n"
    reading = read(text, {"suites/p/x.txt": b"X", "suites/p/y.txt": b"Y"})
    assert reading.suite is not None, messages_of(reading)
    assert [case.messages[0].segments[0].text for case in reading.suite.cases] == ["X", "Y"]  # type: ignore[union-attr]
    assert 'there is no file "suites/gone.txt"' in messages_of(read(text.replace("p/*.txt", "gone.txt")))
