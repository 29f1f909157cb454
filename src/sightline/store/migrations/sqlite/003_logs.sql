-- Logs beside the record, each under its name: lines that are only ever added. What they hold is counted, because it is
-- not what is recorded, and stays when that is too much.
CREATE TABLE logs (
    id INTEGER PRIMARY KEY,
    name TEXT NOT NULL UNIQUE,
    lines INTEGER NOT NULL,
    size INTEGER NOT NULL,
    began REAL NOT NULL,
    latest REAL NOT NULL
);

CREATE TABLE log_lines (
    log INTEGER NOT NULL,
    n INTEGER NOT NULL,
    at REAL NOT NULL,
    data BLOB NOT NULL
);
CREATE UNIQUE INDEX lines_of_log ON log_lines (log, n);
