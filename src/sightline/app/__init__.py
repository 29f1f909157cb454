"""The one place where the program is wired together, and where clock, randomness, environment and files come in. It may
import everything below the command line; nothing is decided here that a layer below could decide for itself."""
