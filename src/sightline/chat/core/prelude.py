"""The system message: the topic's system prompt, its instructions, and style directives."""

from sightline.chat.core.settings import ChatSettings
from sightline.chat.core.topics import Inherited


def compose_system_prelude(topic: Inherited, settings: ChatSettings, base: str = "") -> str:
    """The text of the system message; empty if there is none. First the system prompt; if no topic has one, `base`, the
    base instructions of the model's family. Then the topic's instructions, then the directives of the topic and of the
    chat, each on its own line and once."""
    directives = dict.fromkeys(filter(None, map(str.strip, (*topic.style_directives, *settings.style_directives))))
    first = topic.system_prompt if topic.has_system_prompt or topic.system_prompt else base
    return "\n\n".join(filter(None, (first.strip(), topic.instructions.strip(), "\n".join(directives))))
