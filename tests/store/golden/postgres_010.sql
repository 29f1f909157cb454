-- A record of version 10, as pg_dump wrote it, with three exchanges, a log and a cap. It is never made again.

CREATE SCHEMA sightline;

CREATE TABLE sightline.bodies (
    sha256 bytea NOT NULL,
    number bigint NOT NULL,
    near text NOT NULL,
    base bytea,
    prefix bigint NOT NULL,
    suffix bigint NOT NULL,
    depth integer NOT NULL,
    data bytea NOT NULL
);
ALTER TABLE ONLY sightline.bodies ALTER COLUMN data SET STORAGE EXTERNAL;

ALTER TABLE sightline.bodies ALTER COLUMN number ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME sightline.bodies_number_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);

CREATE TABLE sightline.cap_reservations (
    holder bigint NOT NULL,
    cap text NOT NULL COLLATE pg_catalog."C",
    unit text NOT NULL COLLATE pg_catalog."C",
    bucket text NOT NULL COLLATE pg_catalog."C",
    period text NOT NULL COLLATE pg_catalog."C",
    amount bigint NOT NULL
);

CREATE TABLE sightline.caps (
    cap text NOT NULL COLLATE pg_catalog."C",
    unit text NOT NULL COLLATE pg_catalog."C",
    bucket text NOT NULL COLLATE pg_catalog."C",
    period text NOT NULL COLLATE pg_catalog."C",
    spent bigint DEFAULT 0 NOT NULL,
    reserved bigint DEFAULT 0 NOT NULL,
    raised bigint DEFAULT 0 NOT NULL
);

CREATE TABLE sightline.exchanges (
    id text NOT NULL COLLATE pg_catalog."C",
    replica text NOT NULL,
    slot integer NOT NULL,
    todo integer DEFAULT 0 NOT NULL,
    next_n bigint DEFAULT 0 NOT NULL,
    at double precision DEFAULT 0 NOT NULL,
    state text DEFAULT 'received'::text NOT NULL,
    dialect text DEFAULT ''::text NOT NULL,
    provider text DEFAULT ''::text NOT NULL,
    model text DEFAULT ''::text NOT NULL,
    session text DEFAULT ''::text NOT NULL,
    client text DEFAULT ''::text NOT NULL,
    path text DEFAULT ''::text NOT NULL,
    status bigint DEFAULT 0 NOT NULL,
    finish text DEFAULT ''::text NOT NULL,
    fault text DEFAULT ''::text NOT NULL,
    message text DEFAULT ''::text NOT NULL,
    is_stream boolean DEFAULT false NOT NULL,
    input_tokens bigint,
    output_tokens bigint,
    cached_tokens bigint,
    cost double precision,
    losses bigint DEFAULT 0 NOT NULL,
    attempts bigint DEFAULT 0 NOT NULL,
    tools text DEFAULT '[]'::text NOT NULL,
    first_byte double precision,
    elapsed double precision,
    origin text DEFAULT ''::text NOT NULL,
    previous text DEFAULT ''::text NOT NULL,
    is_side boolean DEFAULT false NOT NULL,
    title text DEFAULT ''::text NOT NULL,
    thread bytea,
    reply_id text DEFAULT ''::text NOT NULL,
    continues text DEFAULT ''::text NOT NULL,
    method text DEFAULT ''::text NOT NULL,
    transport text DEFAULT ''::text NOT NULL,
    stored text DEFAULT ''::text NOT NULL,
    tag text DEFAULT ''::text NOT NULL COLLATE pg_catalog."C",
    saved double precision,
    is_masked boolean DEFAULT false NOT NULL,
    is_estimated boolean DEFAULT false NOT NULL
);

CREATE TABLE sightline.facts (
    exchange text NOT NULL COLLATE pg_catalog."C",
    n bigint NOT NULL,
    at double precision NOT NULL,
    data bytea NOT NULL
);

CREATE TABLE sightline.frames (
    exchange text NOT NULL COLLATE pg_catalog."C",
    n bigint NOT NULL,
    data bytea NOT NULL
);
ALTER TABLE ONLY sightline.frames ALTER COLUMN data SET STORAGE EXTERNAL;

CREATE TABLE sightline.instructions (
    hash bytea NOT NULL,
    exchange text NOT NULL COLLATE pg_catalog."C"
);

CREATE TABLE sightline.log_lines (
    log bigint NOT NULL,
    n bigint NOT NULL,
    at double precision NOT NULL,
    data bytea NOT NULL
);

CREATE TABLE sightline.logs (
    id bigint NOT NULL,
    name text NOT NULL COLLATE pg_catalog."C",
    lines bigint NOT NULL,
    began double precision NOT NULL,
    latest double precision NOT NULL
);

ALTER TABLE sightline.logs ALTER COLUMN id ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME sightline.logs_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);

CREATE TABLE sightline.uses (
    exchange text NOT NULL COLLATE pg_catalog."C",
    sha256 bytea NOT NULL
);

CREATE TABLE sightline.version (
    number integer NOT NULL
);

CREATE TABLE sightline.words (
    id bigint NOT NULL,
    first text NOT NULL COLLATE pg_catalog."C",
    last text NOT NULL COLLATE pg_catalog."C",
    size integer NOT NULL,
    data bytea NOT NULL
);
ALTER TABLE ONLY sightline.words ALTER COLUMN data SET STORAGE EXTERNAL;

ALTER TABLE sightline.words ALTER COLUMN id ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME sightline.words_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);

INSERT INTO sightline.bodies OVERRIDING SYSTEM VALUE VALUES ('\x00cb1e1bd7d2143d44fda43a4592c9be7a20f82eafd3847a75dd249e2080d942', 1, 's', NULL, 0, 0, 0, '\x28b52ffd20dbed03004287171a80b9397dea8be2847667cd62b6250113247fa084e850a5a20969edd00e707666adc7c9149051928bb00b578f2a1ee5c00a0a8c4ee9cbae0a1bed8ec40f43f8815ddf9589faea429f925d633072fa0555afcec67d6198cec8a52ba9ae090a006448802a0129acc1aa3ba6926b533d7b6a3f4e334359b1b0d413');
INSERT INTO sightline.bodies OVERRIDING SYSTEM VALUE VALUES ('\xa8e82f9291a5febf38cd5975897102dd220c465c9e4b38c79f0b63e9fbb0b553', 2, 's', NULL, 0, 0, 0, '\x28b52ffd20463102007b226d6f64656c223a20226c61726765222c20226d65737361676573223a205b7b22726f6c65223a202275736572222c2022636f6e74656e74223a20227468726565227d5d7d');
INSERT INTO sightline.bodies OVERRIDING SYSTEM VALUE VALUES ('\xe818c354d650b5f2cb492a98743dd894894cca54facf13deee894f41765069fd', 3, 's', NULL, 0, 0, 0, '\x28b52ffd207ce502007285121890391d74c56e4248b2f06c9ffec2be8db062458ea5c97d728990fcc4098a54a055b3237c2a6a928dc31158e801483952ce708e7291b7432f831ece2795f9e31a3fc132f7b01db9e32505004d75e2a9fd38cd0c65c5c2524f');

INSERT INTO sightline.caps VALUES ('daily', 'tokens', '[]', '2026-09-21', 1200, 300, 5000);

INSERT INTO sightline.exchanges VALUES ('x_1', 'dc1cb3fc-f01b-42fb-bf51-998312e2540e', 1, 0, 7, 1790000000, 'finished', 'openai-chat', 'acme', 'large', 's', '', '/v1/chat/completions', 200, 'stop', '', '', false, 1000, 100, 0, 0.0045, 0, 1, '[]', 0.2, 0.9, '', '', false, 'tell a Dad Joke', '\xf098c53411d767214fe5e9f2cc38fb6a', '', '', '', 'http', '', '', NULL, false, false);
INSERT INTO sightline.exchanges VALUES ('x_2', 'dc1cb3fc-f01b-42fb-bf51-998312e2540e', 1, 0, 6, 1790000005, 'finished', 'openai-chat', 'acme', 'large', 's', '', '/v1/chat/completions', 200, 'stop', '', '', false, 1000, 100, 0, 0.0045, 0, 1, '[]', 0.2, 0.9, '', 'x_1', false, 'Who is there?', '\xdbe05c70a469ac954edb8ba987d0d612', '', '', '', 'http', '', '', NULL, false, false);
INSERT INTO sightline.exchanges VALUES ('x_3', 'dc1cb3fc-f01b-42fb-bf51-998312e2540e', 1, 0, 2, 1790000009, 'failed', 'openai-chat', '', 'large', 's', '', '/v1/chat/completions', 429, '', 'rate_limited', 'slow down', false, NULL, NULL, NULL, NULL, 0, 0, '[]', NULL, NULL, '', '', false, 'three', '\x53aaaf9a4458ab5519475b9f156cb24d', '', '', '', 'http', '', '', NULL, false, false);

INSERT INTO sightline.facts VALUES ('x_1', 0, 1790000000, '\x8aa46b696e64a87265636569766564a76469616c656374ab6f70656e61692d63686174a56d6f64656ca56c61726765a6736861323536d94065383138633335346436353062356632636234393261393837343364643839343839346363613534666163663133646565653839346634313736353036396664a773657373696f6ea173a6636c69656e74a0a470617468b42f76312f636861742f636f6d706c6574696f6e73a969735f73747265616dc2a76865616465727390a66f726967696ea0');
INSERT INTO sightline.facts VALUES ('x_1', 1, 1790000001, '\x89a46b696e64a7617474656d7074a66e756d62657201a870726f7669646572a461636d65a6736861323536d94065383138633335346436353062356632636234393261393837343364643839343839346363613534666163663133646565653839346634313736353036396664a6726561736f6ea0a664657461696ca0a6776169746564cb0000000000000000a56d6f64656ca56c61726765a76469616c656374a0');
INSERT INTO sightline.facts VALUES ('x_1', 6, 1790000006, '\x8ba46b696e64a866696e6973686564a666696e697368a473746f70a6737461747573ccc8a7686561646572739192ac636f6e74656e742d74797065b1746578742f6576656e742d73747265616da6736861323536d94033303736333634393734373835636665393833623163373132313436373563633261636164616333386636353065653066313736633838663838633963393862a56d6f64656ca56c61726765a5757361676583ac696e7075745f746f6b656e73cd03e8ad6f75747075745f746f6b656e7364ad6361636865645f746f6b656e7300a5746f6f6c7390aa66697273745f62797465cb3fc999999999999aa7656c6170736564cb3feccccccccccccda77761726e696e67a0');
INSERT INTO sightline.facts VALUES ('x_2', 0, 1790000005, '\x8aa46b696e64a87265636569766564a76469616c656374ab6f70656e61692d63686174a56d6f64656ca56c61726765a6736861323536d94030306362316531626437643231343364343466646134336134353932633962653761323066383265616664333834376137356464323439653230383064393432a773657373696f6ea173a6636c69656e74a0a470617468b42f76312f636861742f636f6d706c6574696f6e73a969735f73747265616dc2a76865616465727390a66f726967696ea0');
INSERT INTO sightline.facts VALUES ('x_2', 1, 1790000006, '\x89a46b696e64a7617474656d7074a66e756d62657201a870726f7669646572a461636d65a6736861323536d94030306362316531626437643231343364343466646134336134353932633962653761323066383265616664333834376137356464323439653230383064393432a6726561736f6ea0a664657461696ca0a6776169746564cb0000000000000000a56d6f64656ca56c61726765a76469616c656374a0');
INSERT INTO sightline.facts VALUES ('x_2', 5, 1790000010, '\x8ba46b696e64a866696e6973686564a666696e697368a473746f70a6737461747573ccc8a7686561646572739192ac636f6e74656e742d74797065b1746578742f6576656e742d73747265616da6736861323536d94039626662356431636635386332333432663733306439353232633637306364396563656565623566393536356139666534656535353538633134373539336265a56d6f64656ca56c61726765a5757361676583ac696e7075745f746f6b656e73cd03e8ad6f75747075745f746f6b656e7364ad6361636865645f746f6b656e7300a5746f6f6c7390aa66697273745f62797465cb3fc999999999999aa7656c6170736564cb3feccccccccccccda77761726e696e67a0');
INSERT INTO sightline.facts VALUES ('x_3', 0, 1790000009, '\x8aa46b696e64a87265636569766564a76469616c656374ab6f70656e61692d63686174a56d6f64656ca56c61726765a6736861323536d94061386538326639323931613566656266333863643539373538393731303264643232306334363563396534623338633739663062363365396662623062353533a773657373696f6ea173a6636c69656e74a0a470617468b42f76312f636861742f636f6d706c6574696f6e73a969735f73747265616dc2a76865616465727390a66f726967696ea0');
INSERT INTO sightline.facts VALUES ('x_3', 1, 1790000000, '\x8aa46b696e64a66661696c6564a4636f6465ac726174655f6c696d69746564a76d657373616765a9736c6f7720646f776ea468696e74a0a6737461747573cd01ada76865616465727390a6736861323536a0a57573616765c0aa66697273745f62797465cb0000000000000000a7656c6170736564cb0000000000000000');

INSERT INTO sightline.frames VALUES ('x_1', 2, '\x28b52ffd60c200ad0600c20a292c604ddbdd80a95cf0470690bba1604b04a8ca3a92e4406f1672598886c1777c0fae0827092811200c93687d078c390c8cc34233401d1874244c04387a3a791bfb4f07a58738a5cb085ea54638d624e0a1a0302e3410aab5360026c6aa532befd3ef0d0ea97fb3a3107cbc0ac1368ec0e79225cd369eb0e5c77ebc22f6e22f2984a289ef85ba481b4a403cafc205cddbf849966c73d43d895ad55a161f4c8687420599a61300186b062e300884cbc45803363005e40586d05861de60656261d2e16b5b1856251a5e85cd8c5a979922cf8012');
INSERT INTO sightline.frames VALUES ('x_2', 2, '\x28b52ffd604400350600428a272c80b76d7a6c5d9db8b9cc2bcc5af61a3bb45a48243ab09c4e9225bc1d87a6415b26e9d1260d12eda8fc982f3bce3d91660271160c0e454b16df6a6ffc29605e5a29d44fc9158670a0d0c85a6b0f89cbb9fce4dc0f49871886029824f571b5de11472ffb29cc835dbdacb42de7c1beefd44e27a8d4f4a55a8a3f920aac2f384eec3f2060fb29cdf07eb0256debc188a3b4b096b5b6e0d024343c32c465100f006008c80396c110111bbd63c1328a99811ba7984ea9c595907215c2312a1833af930125');

INSERT INTO sightline.instructions VALUES ('\x1ad687527b7227b4b5f1f293bfe11315', 'x_1');

INSERT INTO sightline.log_lines VALUES (1, 1, 1790000000, '\x7b2261223a317d');
INSERT INTO sightline.log_lines VALUES (1, 2, 1790000000, '\x7b2262223a327d');

INSERT INTO sightline.logs OVERRIDING SYSTEM VALUE VALUES (1, 'chat', 2, 1790000000, 1790000000);

INSERT INTO sightline.uses VALUES ('x_1', '\xe818c354d650b5f2cb492a98743dd894894cca54facf13deee894f41765069fd');
INSERT INTO sightline.uses VALUES ('x_2', '\x00cb1e1bd7d2143d44fda43a4592c9be7a20f82eafd3847a75dd249e2080d942');
INSERT INTO sightline.uses VALUES ('x_3', '\xa8e82f9291a5febf38cd5975897102dd220c465c9e4b38c79f0b63e9fbb0b553');

INSERT INTO sightline.version VALUES (10);

INSERT INTO sightline.words OVERRIDING SYSTEM VALUE VALUES (1, 'x_1', 'x_3', 65, '\x28b52ffd20598d020064049295a3785f313233c44162652062726965662e0a74656c6c206120646164206a6f6b65006b6e6f636b200077686f2069732074686572653f006772c3bcc39f6500746872656503004b110ff23d7345');

SELECT pg_catalog.setval('sightline.bodies_number_seq', 3, true);

SELECT pg_catalog.setval('sightline.logs_id_seq', 1, true);

SELECT pg_catalog.setval('sightline.words_id_seq', 1, true);

ALTER TABLE ONLY sightline.bodies
    ADD CONSTRAINT bodies_pkey PRIMARY KEY (sha256);

ALTER TABLE ONLY sightline.cap_reservations
    ADD CONSTRAINT cap_reservations_pkey PRIMARY KEY (holder, cap, unit, bucket, period);

ALTER TABLE ONLY sightline.caps
    ADD CONSTRAINT caps_pkey PRIMARY KEY (cap, unit, bucket, period);

ALTER TABLE ONLY sightline.exchanges
    ADD CONSTRAINT exchanges_pkey PRIMARY KEY (id);

ALTER TABLE ONLY sightline.facts
    ADD CONSTRAINT facts_pkey PRIMARY KEY (exchange, n);

ALTER TABLE ONLY sightline.frames
    ADD CONSTRAINT frames_pkey PRIMARY KEY (exchange, n);

ALTER TABLE ONLY sightline.instructions
    ADD CONSTRAINT instructions_pkey PRIMARY KEY (hash);

ALTER TABLE ONLY sightline.log_lines
    ADD CONSTRAINT log_lines_pkey PRIMARY KEY (log, n);

ALTER TABLE ONLY sightline.logs
    ADD CONSTRAINT logs_name_key UNIQUE (name);

ALTER TABLE ONLY sightline.logs
    ADD CONSTRAINT logs_pkey PRIMARY KEY (id);

ALTER TABLE ONLY sightline.uses
    ADD CONSTRAINT uses_pkey PRIMARY KEY (exchange, sha256);

ALTER TABLE ONLY sightline.words
    ADD CONSTRAINT words_pkey PRIMARY KEY (id);

CREATE INDEX bodies_base ON sightline.bodies USING btree (base) WHERE (base IS NOT NULL);

CREATE INDEX bodies_near ON sightline.bodies USING btree (near, number) WHERE (near <> ''::text);

CREATE INDEX exchanges_by_time ON sightline.exchanges USING btree (at);

CREATE INDEX exchanges_continues ON sightline.exchanges USING btree (continues) WHERE (continues <> ''::text);

CREATE INDEX exchanges_open ON sightline.exchanges USING btree (replica, slot) WHERE (state = ANY (ARRAY['received'::text, 'held'::text, 'sending'::text]));

CREATE INDEX exchanges_reply_id ON sightline.exchanges USING btree (reply_id) WHERE (reply_id <> ''::text);

CREATE INDEX exchanges_thread ON sightline.exchanges USING btree (thread) WHERE (thread IS NOT NULL);

CREATE INDEX exchanges_to_do ON sightline.exchanges USING btree (replica, slot, id) WHERE (todo > 0);

CREATE INDEX instructions_of_exchange ON sightline.instructions USING btree (exchange);

CREATE INDEX uses_of_body ON sightline.uses USING btree (sha256);
