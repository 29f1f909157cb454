-- What was recorded of several exchanges, packed as one: facts, and bodies that are too small to be worth a row. A row of
-- exchanges names the blocks with its facts, in their order. What earlier versions stored in runs, and small bodies, are
-- brought in by the program.
CREATE TABLE blocks (
    id INTEGER PRIMARY KEY,
    size INTEGER NOT NULL,
    data BLOB NOT NULL
);
ALTER TABLE exchanges ADD COLUMN blocks TEXT NOT NULL DEFAULT '';
