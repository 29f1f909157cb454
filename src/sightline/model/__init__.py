"""Canonical values: requests, replies and their parts, in no vendor's shape.

Everything here is frozen and closed: tagged unions of msgspec structs, and the one fold from events to a reply. It may
import only `errors` from the package. It never reads or writes a wire format, and knows nothing about a value's origin
beyond the pointer that the value carries.
"""
