"""`sightline eval`: suites run, checked, looked at and compared on the command line, and cases made of what is on
record. It may import everything below the command line, and of the other commands what they share (options, the
terminal); it never sends, grades or counts by itself."""
