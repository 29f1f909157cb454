"""Results for elsewhere: lines that Sightline reads back whole, rows that AgentV's tools read, and XML for CI. Each is
a pure function from results to bytes; none opens a file, and none invents a number that was not measured."""
