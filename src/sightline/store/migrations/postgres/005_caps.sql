-- What was counted for caps, in tokens or billionths of a dollar: by requests that have ended, and by those under way.
CREATE TABLE sightline.caps (
    cap text COLLATE "C" NOT NULL,
    unit text COLLATE "C" NOT NULL,
    bucket text COLLATE "C" NOT NULL,
    period text COLLATE "C" NOT NULL,
    spent bigint NOT NULL DEFAULT 0,
    reserved bigint NOT NULL DEFAULT 0,
    raised bigint NOT NULL DEFAULT 0,
    PRIMARY KEY (cap, unit, bucket, period)
);
