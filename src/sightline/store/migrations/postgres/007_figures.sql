-- What each process has reserved of the caps, by the number of its lock.
CREATE TABLE sightline.cap_reservations (
    holder bigint NOT NULL,
    cap text COLLATE "C" NOT NULL,
    unit text COLLATE "C" NOT NULL,
    bucket text COLLATE "C" NOT NULL,
    period text COLLATE "C" NOT NULL,
    amount bigint NOT NULL,
    PRIMARY KEY (holder, cap, unit, bucket, period)
);

-- The tag that a client gave its request, and what it saved that tokens came from a cache, in US dollars.
ALTER TABLE sightline.exchanges ADD COLUMN tag text COLLATE "C" NOT NULL DEFAULT '';
ALTER TABLE sightline.exchanges ADD COLUMN saved double precision;
