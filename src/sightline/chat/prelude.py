"""What is said to the model before the conversation: the topic's system prompt and how to answer."""

from sightline.chat.settings import ChatSettings
from sightline.chat.topics import Inherited


def compose_system_prelude(topic: Inherited, settings: ChatSettings) -> str:
    """The text of the system message; empty where there is to be none.

    The system prompt comes first, then the directives of the topic and of the whole chat, each in a line of its own and
    once. Nothing else is ever in it.
    """
    directives = dict.fromkeys(filter(None, map(str.strip, (*topic.style_directives, *settings.style_directives))))
    return "\n\n".join(filter(None, (topic.system_prompt.strip(), "\n".join(directives))))
