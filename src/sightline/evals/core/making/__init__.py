"""Cases made from recordings: a request and its reply, or a conversation, become a case that can be run again. It takes
canonical values and returns a value, its YAML and the files beside it. It masks what it is told to mask, reports what
it had to leave out, and never reads the record or writes a file."""
