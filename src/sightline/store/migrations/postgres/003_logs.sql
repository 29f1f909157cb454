-- Logs beside the record, each under its name: lines that are only ever added.
CREATE TABLE sightline.logs (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    name text COLLATE "C" NOT NULL UNIQUE,
    lines bigint NOT NULL,
    began double precision NOT NULL,
    latest double precision NOT NULL
);

CREATE TABLE sightline.log_lines (
    log bigint NOT NULL,
    n bigint NOT NULL,
    at double precision NOT NULL,
    data bytea NOT NULL,
    PRIMARY KEY (log, n)
);
