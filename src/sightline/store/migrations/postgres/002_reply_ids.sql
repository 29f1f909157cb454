-- Some requests continue a conversation by the id of its last reply: what each reply is called, and which one is named.
ALTER TABLE sightline.exchanges ADD COLUMN reply_id text NOT NULL DEFAULT '';
ALTER TABLE sightline.exchanges ADD COLUMN continues text NOT NULL DEFAULT '';
CREATE INDEX exchanges_reply_id ON sightline.exchanges (reply_id) WHERE reply_id <> '';
CREATE INDEX exchanges_continues ON sightline.exchanges (continues) WHERE continues <> '';
