"""Tools of MCP servers, as tools of ours: processes that speak over their pipes, and services that speak over HTTP.

The protocol is the official SDK's; what stands here is what it leaves open: which servers there are, what their tools
are called, and how much of a server's time, memory and words a run bears with. It may import what `tools` may import.
It never trusts a server: whatever one says or does not say ends as an outcome or a note. The SDK is loaded when the
first server is, and its types are seen in this package only.
"""
