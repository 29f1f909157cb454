"""Where the words of a judge's prompt come from: they stand in the suite or in a file, or a command writes them."""

from collections.abc import Generator, Sequence
from dataclasses import dataclass

from sightline.catalog.problem import nearest
from sightline.errors import Code, Fault
from sightline.evals.core.graders.ask import ask, file_text
from sightline.evals.core.graders.fields import Fields, describe_value
from sightline.evals.core.graders.payload import payload_of
from sightline.evals.core.graders.steps import Answer, Execute, Executed, Step, StepFailed
from sightline.evals.core.graders.subject import GradingSubject
from sightline.evals.core.graders.template import NAMES, unknown_variables, variables_of
from sightline.model.json import JsonObject
from sightline.wire.jsontext import encode

FILE = "file://"
_PATHLIKE = (".md", ".txt", ".prompt")


@dataclass(frozen=True, slots=True)
class PromptSource:
    """Words, the path of a file, or a command."""

    text: str = ""
    path: str = ""
    argv: tuple[str, ...] = ()
    config: JsonObject | None = None

    @property
    def is_template(self) -> bool:
        """Whether it is the whole prompt, and not only the criteria."""
        return bool(self.path or self.argv or variables_of(self.text))

    def words(self, subject: GradingSubject) -> Generator[Step, Answer, str | StepFailed]:
        """The words."""
        if self.path:
            return (yield from file_text(self.path))
        if not self.argv:
            return self.text
        stdin = encode(payload_of(subject, self.config))
        ended = yield from ask(Execute(argv=self.argv, stdin=stdin), Executed)
        if isinstance(ended, StepFailed):
            return ended
        words = ended.stdout.decode("utf-8", "replace").strip()
        if ended.code != 0 or not words:
            why = f"the command of the prompt ended with {ended.code}" if ended.code else "its prompt is empty"
            return StepFailed(Fault(Code.CONFIG, why, hint="It has to write the prompt to its standard output."))
        return words


def read_prompt(fields: Fields) -> PromptSource:
    """The prompt of a grader, of any kind."""
    value = fields.raw("prompt")
    if not isinstance(value, dict):
        return read_words(fields, NAMES)
    inner = fields.inner(value, "prompt")
    argv = inner.texts("command", "script", needed=True)
    config = inner.mapping("config")
    inner.close()
    return PromptSource(argv=argv, config=config or None)


def read_words(fields: Fields, names: Sequence[str]) -> PromptSource:
    """A prompt that stands in the suite or in a file. These are the names that stand for something in it."""
    value = fields.raw("prompt")
    if value is not None and not isinstance(value, str):
        fields.tell("prompt", f"a text is expected, not {describe_value(value)}")
    text = value.strip() if isinstance(value, str) else ""
    if text.startswith(FILE):
        return PromptSource(path=text.removeprefix(FILE))
    if text.endswith(_PATHLIKE) and len(text.split()) == 1:
        fields.tell("prompt", f"{text!r} is read as a file", f"Write {FILE}{text} to say so.", "warning")
        return PromptSource(path=text)
    for name in unknown_variables(text):
        if name not in names:
            fields.tell("prompt", f"{{{{ {name} }}}} stands for nothing", nearest(name, names), "warning")
    return PromptSource(text=text)
