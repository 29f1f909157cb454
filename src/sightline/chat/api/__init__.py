"""The chat as the page has it: its calls over HTTP, what they take, and the values that they answer with.

It may import the engine's chat service, the pure core of the chat and the rest of the workbench. It holds nothing of
the chat itself and decides nothing about it: what a person does, the service does.
"""
