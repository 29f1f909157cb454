"""Canonical values: what a request, a reply and their parts are, in no vendor's shape.

Everything here is frozen and closed: tagged unions of msgspec structs, and the one fold from events to a reply. It
may import `errors` and nothing else of the package; it never reads or writes a wire, and never knows where a value
came from beyond the pointer that it carries.
"""
