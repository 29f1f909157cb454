-- How a raw request was made: its method, beside its path.
ALTER TABLE exchanges ADD COLUMN method TEXT NOT NULL DEFAULT '';
