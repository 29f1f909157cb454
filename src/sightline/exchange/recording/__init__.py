"""What can be done with an exchange that is on record: read it, show it, send it again, or answer clients with it.

It may import what the exchange may. It reads the store, and writes only to forget; what is sent again goes through the
relay like any other request, and an answer out of the record never touches the network.
"""
