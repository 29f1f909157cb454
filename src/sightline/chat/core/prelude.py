"""What is said to the model before the conversation: the topic's system prompt, instructions, and how to answer."""

from sightline.chat.core.settings import ChatSettings
from sightline.chat.core.topics import Inherited


def compose_system_prelude(topic: Inherited, settings: ChatSettings, base: str = "") -> str:
    """The text of the system message; empty where there is to be none.

    The system prompt comes first; where no topic has one, `base`, the base instructions of the model's family. Then the
    instructions of the topic, then the directives of the topic and of the whole chat, each in a line of its own and
    once. Nothing else is ever in it.
    """
    directives = dict.fromkeys(filter(None, map(str.strip, (*topic.style_directives, *settings.style_directives))))
    first = topic.system_prompt if topic.has_system_prompt or topic.system_prompt else base
    return "\n\n".join(filter(None, (first.strip(), topic.instructions.strip(), "\n".join(directives))))
