"""A request in no vendor's shape."""

from sightline.model.json import Value
from sightline.model.message import Message
from sightline.model.options import Options
from sightline.model.tools import Tool, ToolChoice


class Request(Value, frozen=True, tag=False):
    """What is asked of a model. `dialect` names the wire that it was read from, and so what its extras mean.

    Where `parallel_tool_calls` stood is among the places of the options, if it was not at the top.
    """

    model: str = ""
    messages: tuple[Message, ...] = ()
    tools: tuple[Tool, ...] = ()
    tool_choice: ToolChoice | None = None
    parallel_tool_calls: bool | None = None
    options: Options = Options()
    dialect: str = ""

    @property
    def parallel_at(self) -> str:
        """The place of `parallel_tool_calls`."""
        return self.options.places.get("parallel_tool_calls", "/parallel_tool_calls")
