"""Statistics: means with their errors, intervals, exact tests of differences, and sentences that say when the data is
not conclusive. It takes plain numbers, imports only `errors`, is handed its randomness, and never counts a value that
was not measured."""
