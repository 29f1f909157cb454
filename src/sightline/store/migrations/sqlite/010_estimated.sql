-- Whether tokens and cost of an exchange are an estimate. What came before was not estimated.
ALTER TABLE exchanges ADD COLUMN is_estimated INTEGER NOT NULL DEFAULT FALSE;
