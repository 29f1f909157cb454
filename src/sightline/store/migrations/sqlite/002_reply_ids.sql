-- Some requests continue a conversation by the id of its last reply: what each reply is called, and which one is named.
ALTER TABLE exchanges ADD COLUMN reply_id TEXT NOT NULL DEFAULT '';
ALTER TABLE exchanges ADD COLUMN continues TEXT NOT NULL DEFAULT '';
CREATE INDEX exchanges_reply_id ON exchanges (reply_id) WHERE reply_id <> '';
CREATE INDEX exchanges_continues ON exchanges (continues) WHERE continues <> '';
