-- How a raw request was made: its method, beside its path.
ALTER TABLE sightline.exchanges ADD COLUMN method text NOT NULL DEFAULT '';
