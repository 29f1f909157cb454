"""Running tools: a Python file's functions in a process of their own, callables of a program, built-in tools for one
folder, MCP servers, and the hooks around them.

It may import everything pure. It decides nothing: the loop has validated a call and a person or a policy has allowed it
before it gets here. What a tool answers is data for the model and is never run, parsed or shown as anything else. Every
process that is started here is gone when its owner is closed or the task that waits for it is cancelled.
"""
