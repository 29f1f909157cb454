"""Delivery: the messages of a case become the structured messages that a target is sent, with every role kept, files in
place, guidelines in front, and a note of all that was moved or added. It imports the values and the dialects, gets the
contents of files handed in, and never drops a thing in silence."""
