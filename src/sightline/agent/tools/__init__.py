"""Runs tools: functions of Python files in worker processes, callables of the host program, built-in tools for one
folder, MCP servers, and the hooks around them.

It may import `agent.core`, `transport`, `platform` and every pure package. It decides nothing: the agent loop has
validated a call, and a user or a policy has allowed it. A tool's answer is data for the model; it is never executed,
parsed or shown as anything else. Every process started here has ended when its owner is closed or the waiting task is
cancelled.
"""
