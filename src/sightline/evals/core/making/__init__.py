"""Cases made of what was recorded: a request and its reply, or a conversation, become a case that can be run again. It
takes canonical values and gives back a value, its YAML and the files beside it; it masks what it is given to mask, says
what it had to leave out, and never reads the record or writes a file."""
