-- How a request came, and for which client its reply is stored. What came before says neither.
ALTER TABLE exchanges ADD COLUMN transport TEXT NOT NULL DEFAULT '';
ALTER TABLE exchanges ADD COLUMN stored TEXT NOT NULL DEFAULT '';
