"""What can be done with recorded exchanges: read them, show them, send them again, or answer clients with them.

It may import what the exchange may. It reads the store, and writes only to forget. Requests that are sent again go
through the relay like any other, and an answer from the record never touches the network.
"""
