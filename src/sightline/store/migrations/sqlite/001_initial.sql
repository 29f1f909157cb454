-- One row for an exchange: its place in the record, what is still to be done for it, and its summary.
CREATE TABLE exchanges (
    seq INTEGER PRIMARY KEY,
    id TEXT NOT NULL UNIQUE,
    slot INTEGER NOT NULL,
    next_n INTEGER NOT NULL,
    todo INTEGER NOT NULL DEFAULT 0,
    at REAL NOT NULL,
    state TEXT NOT NULL,
    dialect TEXT NOT NULL,
    provider TEXT NOT NULL,
    model TEXT NOT NULL,
    session TEXT NOT NULL,
    client TEXT NOT NULL,
    path TEXT NOT NULL,
    status INTEGER NOT NULL,
    finish TEXT NOT NULL,
    fault TEXT NOT NULL,
    message TEXT NOT NULL,
    is_stream INTEGER NOT NULL,
    input_tokens INTEGER,
    output_tokens INTEGER,
    cached_tokens INTEGER,
    cost REAL,
    losses INTEGER NOT NULL,
    attempts INTEGER NOT NULL,
    tools TEXT NOT NULL,
    first_byte REAL,
    elapsed REAL,
    origin TEXT NOT NULL,
    previous TEXT NOT NULL DEFAULT '',
    is_side INTEGER NOT NULL DEFAULT 0,
    title TEXT NOT NULL DEFAULT '',
    thread BLOB
);
CREATE INDEX exchanges_to_do ON exchanges (slot) WHERE todo > 0;
CREATE INDEX exchanges_open ON exchanges (slot) WHERE state IN ('received', 'held', 'sending');
CREATE INDEX exchanges_thread ON exchanges (thread) WHERE thread IS NOT NULL;

CREATE TABLE facts (
    exchange INTEGER NOT NULL,
    n INTEGER NOT NULL,
    at REAL NOT NULL,
    data BLOB NOT NULL,
    PRIMARY KEY (exchange, n)
) WITHOUT ROWID;

-- The raw reply: runs of frames with their times, each run packed as one.
CREATE TABLE frames (
    exchange INTEGER NOT NULL,
    n INTEGER NOT NULL,
    data BLOB NOT NULL
);
CREATE UNIQUE INDEX frames_of_exchange ON frames (exchange, n);

-- Request bodies, each once, most of them as a change of another.
CREATE TABLE bodies (
    id INTEGER PRIMARY KEY,
    sha256 BLOB NOT NULL UNIQUE,
    near TEXT NOT NULL,
    size INTEGER NOT NULL,
    base INTEGER,
    prefix INTEGER NOT NULL,
    suffix INTEGER NOT NULL,
    depth INTEGER NOT NULL,
    data BLOB NOT NULL
);
CREATE INDEX bodies_near ON bodies (near, id) WHERE near <> '';
CREATE INDEX bodies_base ON bodies (base) WHERE base IS NOT NULL;

CREATE TABLE uses (
    exchange INTEGER NOT NULL,
    body INTEGER NOT NULL,
    PRIMARY KEY (exchange, body)
) WITHOUT ROWID;
CREATE INDEX uses_of_body ON uses (body);

-- What can be searched: twice an exchange's number for its request, one more for its reply. The index holds no texts,
-- so it must be told the old ones when they go.
CREATE TABLE texts (
    id INTEGER PRIMARY KEY,
    words BLOB NOT NULL
);
CREATE VIRTUAL TABLE search USING fts5 (words, content = '', detail = none, tokenize = 'trigram');

-- Instructions are searched in the first exchange that has them.
CREATE TABLE instructions (
    hash BLOB PRIMARY KEY,
    exchange INTEGER NOT NULL
) WITHOUT ROWID;
CREATE INDEX instructions_of_exchange ON instructions (exchange);
