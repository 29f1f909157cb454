"""Tools of MCP servers: local processes that speak over pipes, and services that speak over HTTP.

The official SDK speaks the protocol; this package adds the configuration, the tools' names, and limits on a server's
time, memory and output. It never trusts a server: whatever a server sends or fails to send ends as an outcome or a
note. The SDK is loaded with the first server, and its types stay in this package.
"""
