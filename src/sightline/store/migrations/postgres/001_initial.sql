-- One row for an exchange: who writes it, what is still to be done for it, and its summary.
CREATE TABLE sightline.exchanges (
    id text COLLATE "C" PRIMARY KEY,
    replica text NOT NULL,
    slot integer NOT NULL,
    todo integer NOT NULL DEFAULT 0,
    next_n bigint NOT NULL DEFAULT 0,
    at double precision NOT NULL DEFAULT 0,
    state text NOT NULL DEFAULT 'received',
    dialect text NOT NULL DEFAULT '',
    provider text NOT NULL DEFAULT '',
    model text NOT NULL DEFAULT '',
    session text NOT NULL DEFAULT '',
    client text NOT NULL DEFAULT '',
    path text NOT NULL DEFAULT '',
    status bigint NOT NULL DEFAULT 0,
    finish text NOT NULL DEFAULT '',
    fault text NOT NULL DEFAULT '',
    message text NOT NULL DEFAULT '',
    is_stream boolean NOT NULL DEFAULT false,
    input_tokens bigint,
    output_tokens bigint,
    cached_tokens bigint,
    cost double precision,
    losses bigint NOT NULL DEFAULT 0,
    attempts bigint NOT NULL DEFAULT 0,
    tools text NOT NULL DEFAULT '[]',
    first_byte double precision,
    elapsed double precision,
    origin text NOT NULL DEFAULT '',
    previous text NOT NULL DEFAULT '',
    is_side boolean NOT NULL DEFAULT false,
    title text NOT NULL DEFAULT '',
    thread bytea
);
CREATE INDEX exchanges_by_time ON sightline.exchanges (at);
CREATE INDEX exchanges_to_do ON sightline.exchanges (replica, slot, id) WHERE todo > 0;
CREATE INDEX exchanges_open ON sightline.exchanges (replica, slot) WHERE state IN ('received', 'held', 'sending');
CREATE INDEX exchanges_thread ON sightline.exchanges (thread) WHERE thread IS NOT NULL;

CREATE TABLE sightline.facts (
    exchange text COLLATE "C" NOT NULL,
    n bigint NOT NULL,
    at double precision NOT NULL,
    data bytea NOT NULL,
    PRIMARY KEY (exchange, n)
);

-- The raw reply: runs of frames with their times, each run packed as one.
CREATE TABLE sightline.frames (
    exchange text COLLATE "C" NOT NULL,
    n bigint NOT NULL,
    data bytea NOT NULL,
    PRIMARY KEY (exchange, n)
);

-- Request bodies, each once, most of them as a change of another.
CREATE TABLE sightline.bodies (
    sha256 bytea PRIMARY KEY,
    number bigint GENERATED ALWAYS AS IDENTITY,
    near text NOT NULL,
    base bytea,
    prefix bigint NOT NULL,
    suffix bigint NOT NULL,
    depth integer NOT NULL,
    data bytea NOT NULL
);
CREATE INDEX bodies_near ON sightline.bodies (near, number) WHERE near <> '';
CREATE INDEX bodies_base ON sightline.bodies (base) WHERE base IS NOT NULL;

CREATE TABLE sightline.uses (
    exchange text COLLATE "C" NOT NULL,
    sha256 bytea NOT NULL,
    PRIMARY KEY (exchange, sha256)
);
CREATE INDEX uses_of_body ON sightline.uses (sha256);

-- What can be searched: 0 is the request of an exchange, 1 its reply.
CREATE TABLE sightline.texts (
    exchange text COLLATE "C" NOT NULL,
    part smallint NOT NULL,
    words text NOT NULL,
    PRIMARY KEY (exchange, part)
);

-- Instructions are searched in the first exchange that has them.
CREATE TABLE sightline.instructions (
    hash bytea PRIMARY KEY,
    exchange text COLLATE "C" NOT NULL
);
CREATE INDEX instructions_of_exchange ON sightline.instructions (exchange);

-- What is packed already would only be tried again in vain.
ALTER TABLE sightline.frames ALTER COLUMN data SET STORAGE EXTERNAL;
ALTER TABLE sightline.bodies ALTER COLUMN data SET STORAGE EXTERNAL;
