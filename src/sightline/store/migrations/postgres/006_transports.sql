-- How a request came, and for which client its reply is stored. What came before says neither.
ALTER TABLE sightline.exchanges ADD COLUMN transport text NOT NULL DEFAULT '';
ALTER TABLE sightline.exchanges ADD COLUMN stored text NOT NULL DEFAULT '';
