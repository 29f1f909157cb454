-- Whether kept edits changed a request. What came before does not say so.
ALTER TABLE exchanges ADD COLUMN is_masked INTEGER NOT NULL DEFAULT FALSE;
