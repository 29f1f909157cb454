-- Whether kept edits changed a request. What came before does not say so.
ALTER TABLE sightline.exchanges ADD COLUMN is_masked boolean NOT NULL DEFAULT false;
