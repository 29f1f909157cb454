"""Reading: suites as people write them, in YAML or JSON lines, become values, or problems with a file, a line, a column
and a suggestion. A changed value can be written back into the text that it came from. It imports the values of evals
and the layers below, asks for files instead of opening them, and never skips what it does not understand."""
