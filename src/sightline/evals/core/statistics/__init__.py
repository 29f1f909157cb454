"""What may be said of numbers: means with their errors, intervals, exact tests of differences, and sentences that say
when the data cannot tell. It takes plain numbers, imports only `errors`, gets its randomness handed in, and never
counts a value that was not measured."""
