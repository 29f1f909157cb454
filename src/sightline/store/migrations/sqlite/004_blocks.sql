-- Facts of an exchange that came together, frames among them, packed as one: the number of the exchange's row, shifted by
-- 24 bits, and that of the first fact. What earlier versions stored in facts and frames is brought in by the program.
CREATE TABLE runs (
    id INTEGER PRIMARY KEY,
    data BLOB NOT NULL
);

-- Words that can be searched, in compressed blocks: the rows of the first and the last exchange with words in the block,
-- and how long the text is. What earlier versions stored in texts is brought in by the program.
CREATE TABLE words (
    id INTEGER PRIMARY KEY,
    first INTEGER NOT NULL,
    last INTEGER NOT NULL,
    size INTEGER NOT NULL,
    data BLOB NOT NULL
);
CREATE INDEX words_by_first ON words (first);
DROP TABLE search;
