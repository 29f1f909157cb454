"""promptfoo's prompts: texts, conversations in JSON or YAML, and files and patterns of files with them."""

import re
from collections.abc import Generator

from sightline.catalog.problem import quote_word
from sightline.errors import Fault
from sightline.evals.core.reading.document import Node, SuiteFindings, node_of
from sightline.evals.core.reading.files import FILE, Need
from sightline.evals.core.reading.sources import paths_of
from sightline.evals.core.reading.yaml_text import decode_text, read_yaml
from sightline.evals.core.suite import SuitePlace, SuiteProblem
from sightline.wire import jsontext

_TEXTS = (".txt", ".md", ".j2", ".json", ".jsonl", ".yaml", ".yml")
_PROGRAMS = (".py", ".js", ".cjs", ".mjs", ".ts", ".sh", ".rb", ".csv", ".prompty")
_SEPARATOR = re.compile(r"^[ \t]*---[ \t]*\r?$", re.MULTILINE)
_TEMPLATE = re.compile(r"\{%|\{#|(?<!\$)\{\{(?!\s*[A-Za-z_][A-Za-z0-9_.]*\s*\}\})[^}]*\}\}")
_ENVIRONMENT = re.compile(r"\{\{\s*env\.([A-Za-z_][A-Za-z0-9_]*)\s*\}\}")


def read_prompts(document: Node, file: str, findings: SuiteFindings) -> Generator[Need, bytes | None, list[Node]]:
    """All prompts in their order: a text is what the user says, a list is a conversation."""
    node = document.get("prompts")
    if node is None:
        findings.wrong(document, "the suite has no prompts", "Write prompts: and a list of texts.")
        return []
    listed = yield from load_file(node, file, findings, "prompts")
    prompts: list[Node] = []
    for each in [listed] if listed.text is not None else findings.items(listed, "prompts"):
        prompt = (each.get("raw") or each.get("id")) if each.members else each
        if each.members:
            findings.check_keys(each, ("raw", "id", "label"), "a prompt")
        if prompt is None or prompt.text is None:
            findings.wrong(each, "a prompt has to be text", "Write it here, or file:// and the path of its file.")
        elif _names_a_file(prompt.text):
            prompts += yield from _in_files(prompt, prompt.text, file, findings)
        else:
            prompts.append(_parse_prompt(prompt, prompt.text, findings))
    return prompts


def load_file(node: Node, file: str, findings: SuiteFindings, what: str) -> Generator[Need, bytes | None, Node]:
    """What `file://` and a YAML or JSON file stands for; anything else as it is."""
    if node.text is None or not node.text.startswith(FILE) or not node.text.endswith((".yaml", ".yml", ".json")):
        return node
    if what == "prompts" and not node.text.endswith((".yaml", ".yml")):
        return node  # a conversation in JSON is one prompt
    for path in (yield from paths_of(node, node.text.removeprefix(FILE), file, findings)):
        data = yield Need(path)
        found = None if data is None else read_yaml(data, path)
        if found is None:
            findings.wrong(node, f"there is no file {quote_word(path)}", "Check the path: it starts at the suite.")
        elif isinstance(found, SuiteProblem):
            findings.add([found])
        elif what == "prompts" and any("role" in each.members for each in found.items):
            return node
        else:
            return found
    return Node([], node.place, node.path)


def read_text(node: Node, file: str, findings: SuiteFindings) -> Generator[Need, bytes | None, Node]:
    """A value that may be `file://` and a path: then what is in that file, as text."""
    if node.text is None or not node.text.startswith(FILE):
        return node
    path = node.text.removeprefix(FILE)
    if path.lower().endswith(_PROGRAMS):
        hint = "Write the value here, or in a text file."
        findings.wrong(node, f"{quote_word(node.text)} would have to be run", hint)
        return Node("", node.place, node.path)
    texts: list[Node] = []
    for found in (yield from paths_of(node, path, file, findings)):
        data = yield Need(found)
        text = _decode_file(data, found, node, findings)
        if text is not None:
            texts.append(Node(text, node.place, node.path))
    return texts[0] if len(texts) == 1 else Node(texts, node.place, node.path)


def _names_a_file(text: str) -> bool:
    if text.startswith((FILE, "exec:")):
        return True
    # A sentence may end in the name of a file; promptfoo would look for a file of that whole name.
    return not re.search(r"\s", text) and text.lower().endswith((*_TEXTS, *_PROGRAMS))


def _in_files(node: Node, text: str, file: str, findings: SuiteFindings) -> Generator[Need, bytes | None, list[Node]]:
    path = text.removeprefix(FILE)
    bare = path.partition(":")[0] if not path.startswith("exec:") else path
    if bare.startswith("exec:") or bare.lower().endswith(_PROGRAMS):
        hint = "Write what it returns into a text file, or as a prompt here."
        findings.wrong(node, f"the prompt {quote_word(text)} would have to be run", hint)
        return []
    prompts: list[Node] = []
    for found in (yield from paths_of(node, path, file, findings)):
        if not found.lower().endswith(_TEXTS):
            findings.wrong(node, f"{quote_word(found)} is no file of prompts", f"Prompts are in {', '.join(_TEXTS)}.")
            continue
        data = yield Need(found)
        written = _decode_file(data, found, node, findings)
        if written is not None:
            prompts += _prompts_of(written, found, findings)
    return prompts


def _decode_file(data: bytes | None, path: str, node: Node, findings: SuiteFindings) -> str | None:
    if data is None:
        findings.wrong(node, f"there is no file {quote_word(path)}", "Check the path: it starts at the suite.")
        return None
    text = decode_text(data, path)
    if isinstance(text, SuiteProblem):
        findings.add([text])
        return None
    return text.replace("\r\n", "\n")


def _prompts_of(text: str, path: str, findings: SuiteFindings) -> list[Node]:
    """The prompts of one file: `---` in a line of its own separates those of a text file, and nothing in Markdown."""
    here = Node(None, SuitePlace(path, 1, 1), ("prompts",))
    ending = path.lower().rpartition(".")[2]
    if ending == "txt":
        texts = [each.strip() for each in _SEPARATOR.split(text) if each.strip()]
    elif ending == "jsonl":
        texts = [line.strip() for line in text.splitlines() if line.strip()]
    elif ending in ("yaml", "yml"):
        document = read_yaml(text.encode(), path)
        if isinstance(document, SuiteProblem):
            findings.add([document])
            return []
        _check_template(document, findings)
        return [document]
    else:
        texts = [text] if text.strip() else []
    if not texts:
        findings.wrong(here, "there is no prompt in the file", "Write one into it.")
    return [_parse_prompt(here, each, findings) for each in texts]


def _parse_prompt(prompt: Node, text: str, findings: SuiteFindings) -> Node:
    """A prompt that is a conversation in JSON is one; any other is what the user says."""
    found = Node(text, prompt.place, prompt.path)
    if text.lstrip().startswith("["):
        try:
            value = jsontext.decode(text.strip())
        except Fault:
            value = None
        if isinstance(value, list) and all(isinstance(each, dict) and "role" in each for each in value):
            found = node_of(value, prompt.place, prompt.path)
    _check_template(found, findings)
    return found


def _check_template(node: Node, findings: SuiteFindings) -> None:
    """Report what promptfoo would compute and what would be sent as it is written here."""
    for each in (*node.members.values(), *node.items):
        _check_template(each, findings)
    if node.text is None:
        return
    named = _ENVIRONMENT.search(node.text)
    if named is not None:
        findings.wrong(node, f"{named[0]} is not filled in here", f"Write ${{{{ {named[1]} }}}}.")
    template = _TEMPLATE.search(node.text)
    if template is not None:
        hint = "Only {{ name }} is filled in: compute the value beforehand, and give it as a variable."
        findings.wrong(node, f"the template {quote_word(template[0])} is not computed here", hint)
