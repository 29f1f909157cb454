-- Words that can be searched, in compressed blocks: the first and the last exchange with words in the block, and how long
-- the text is. What earlier versions stored in texts is brought in by the program, and needs no index any more.
CREATE TABLE sightline.words (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    first text COLLATE "C" NOT NULL,
    last text COLLATE "C" NOT NULL,
    size integer NOT NULL,
    data bytea NOT NULL
);
ALTER TABLE sightline.words ALTER COLUMN data SET STORAGE EXTERNAL;
DROP INDEX IF EXISTS sightline.texts_by_trigram;
