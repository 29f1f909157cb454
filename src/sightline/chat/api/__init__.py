"""The chat's HTTP calls: the bodies they take, and the values they return.

It may import the chat's service and core, and everything that they may. It stores nothing and decides nothing about the
chat: the service does.
"""
