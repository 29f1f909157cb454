-- The tag that a client gave its request, and what it saved that tokens came from a cache, in US dollars.
ALTER TABLE exchanges ADD COLUMN tag TEXT NOT NULL DEFAULT '';
ALTER TABLE exchanges ADD COLUMN saved REAL;
