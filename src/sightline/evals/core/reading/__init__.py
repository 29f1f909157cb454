"""Reading: suites as people write them, in YAML or JSON lines, become values, or problems with a file, a line, a column
and a suggestion; and a changed value goes back into the text it came from. It imports the values of evals and what lies
below, asks for files instead of opening them, and never skips what it does not understand."""
