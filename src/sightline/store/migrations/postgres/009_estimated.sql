-- Whether tokens and cost of an exchange are an estimate. What came before was not estimated.
ALTER TABLE sightline.exchanges ADD COLUMN is_estimated boolean NOT NULL DEFAULT false;
