-- Daily counts and how far each partition of the click stream is counted.

-- A code need not be a link's: what was put on record is counted.
CREATE TABLE dunlin.clicks_daily (
    code   text COLLATE "C" NOT NULL CHECK (octet_length(code) BETWEEN 1 AND 30),
    day    date   NOT NULL,
    clicks bigint NOT NULL CHECK (clicks > 0),
    PRIMARY KEY (code, day)
) PARTITION BY RANGE (day);
CREATE TABLE dunlin.clicks_daily_default PARTITION OF dunlin.clicks_daily DEFAULT;

CREATE TABLE dunlin.click_offsets (
    stream      text COLLATE "C" NOT NULL CHECK (octet_length(stream) BETWEEN 1 AND 255),
    topic       text COLLATE "C" NOT NULL CHECK (octet_length(topic) BETWEEN 1 AND 255),
    partition   int         NOT NULL CHECK (partition >= 0),
    next_offset bigint      NOT NULL CHECK (next_offset >= 0),
    updated_at  timestamptz NOT NULL DEFAULT clock_timestamp(),
    PRIMARY KEY (stream, topic, partition)
);

-- Days cross the boundary as days since 1970-01-01.
CREATE FUNCTION dunlin.calendar_day(p_day int) RETURNS date
LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE
RETURN date '1970-01-01' + p_day;

CREATE FUNCTION dunlin.clicks_position(p_stream text, p_topic text, p_partition int) RETURNS bigint
LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path = dunlin, pg_temp AS $$
BEGIN
    RETURN (SELECT o.next_offset FROM click_offsets AS o
            WHERE o.stream = p_stream AND o.topic = p_topic AND o.partition = p_partition);
END
$$;

-- The position moves from p_from (-1: there is none yet) to p_next together with the counts; false, and nothing done,
-- where it is not at p_from any more.
CREATE FUNCTION dunlin.clicks_apply(p_stream text, p_topic text, p_partition int, p_from bigint, p_next bigint,
                                    p_codes text[], p_days int[], p_counts bigint[]) RETURNS boolean
LANGUAGE plpgsql VOLATILE SECURITY DEFINER SET search_path = dunlin, pg_temp AS $$
BEGIN
    IF (p_from >= -1 AND p_next >= 0) IS NOT TRUE THEN
        PERFORM bad_argument('from is -1 or an offset, next an offset');
    ELSIF p_codes IS NULL OR cardinality(p_codes) IS DISTINCT FROM cardinality(p_days)
        OR cardinality(p_codes) IS DISTINCT FROM cardinality(p_counts) THEN
        PERFORM bad_argument('codes, days and counts are equally long');
    END IF;
    PERFORM commit_durably();

    IF p_from = -1 THEN
        INSERT INTO click_offsets (stream, topic, partition, next_offset)
        VALUES (p_stream, p_topic, p_partition, p_next) ON CONFLICT DO NOTHING;
    ELSE
        UPDATE click_offsets SET next_offset = p_next, updated_at = clock_timestamp()
        WHERE stream = p_stream AND topic = p_topic AND partition = p_partition AND next_offset = p_from;
    END IF;
    IF NOT FOUND THEN
        RETURN false;
    END IF;

    -- Sorted, so that two partitions' consumers lock the rows of hot codes in one order.
    INSERT INTO clicks_daily AS d (code, day, clicks)
    SELECT t.code COLLATE "C", calendar_day(t.day), sum(t.clicks)
    FROM unnest(p_codes, p_days, p_counts) AS t (code, day, clicks)
    GROUP BY 1, 2 ORDER BY 1, 2
    ON CONFLICT (code, day) DO UPDATE SET clicks = d.clicks + excluded.clicks;
    RETURN true;
END
$$;

-- A row for each day, zero days too; none where the link is absent or somebody else's (p_owner NULL: anybody's).
CREATE FUNCTION dunlin.clicks_get(p_code text, p_owner text, p_from int, p_to int)
RETURNS TABLE (day int, clicks bigint, lifetime bigint)
LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path = dunlin, pg_temp AS $$
#variable_conflict use_column
DECLARE
    v_lifetime bigint;
BEGIN
    IF (p_from::bigint <= p_to AND p_to::bigint - p_from < 3660) IS NOT TRUE THEN
        PERFORM bad_argument('from and to span 1 to 3,660 days');
    END IF;
    IF NOT EXISTS (SELECT FROM links AS l WHERE l.code = p_code AND (p_owner IS NULL OR l.owner_id = p_owner)) THEN
        RETURN;
    END IF;
    SELECT coalesce(sum(c.clicks), 0) INTO v_lifetime FROM clicks_daily AS c WHERE c.code = p_code;
    RETURN QUERY
        SELECT s.day, coalesce(c.clicks, 0), v_lifetime
        FROM generate_series(p_from, p_to) AS s (day)
        LEFT JOIN (SELECT n.day, n.clicks FROM clicks_daily AS n
                   WHERE n.code = p_code AND n.day BETWEEN calendar_day(p_from) AND calendar_day(p_to)) AS c
            ON c.day = calendar_day(s.day)
        ORDER BY s.day;
END
$$;

-- Makes the partitions of this month and the p_ahead next ones, and returns how many were missing. Rows of such a month
-- that the default partition caught move into it. Counting waits meanwhile, and what would wait here for counting longer
-- than a moment fails and is tried again later, so that no queue builds up behind it.
CREATE FUNCTION dunlin.clicks_months_ensure(p_ahead int) RETURNS int
LANGUAGE plpgsql VOLATILE SECURITY DEFINER SET search_path = dunlin, pg_temp SET lock_timeout = '2s' AS $$
DECLARE
    v_month date := date_trunc('month', clock_timestamp() AT TIME ZONE 'UTC');
    v_next  date;
    v_name  text;
    v_made  int := 0;
BEGIN
    IF (p_ahead BETWEEN 0 AND 120) IS NOT TRUE THEN
        PERFORM bad_argument('ahead is 0 to 120 months');
    END IF;
    PERFORM pg_advisory_xact_lock(hashtextextended('dunlin.clicks_months', 0));
    FOR i IN 0 .. p_ahead LOOP
        v_next := v_month + interval '1 month';
        v_name := 'clicks_daily_' || to_char(v_month, 'YYYYMM');
        IF to_regclass('dunlin.' || v_name) IS NULL THEN
            -- Taken before rows move, or one that is inserted meanwhile would make ATTACH fail.
            LOCK TABLE clicks_daily_default IN ACCESS EXCLUSIVE MODE;
            EXECUTE format('CREATE TABLE dunlin.%I (LIKE dunlin.clicks_daily INCLUDING ALL)', v_name);
            EXECUTE format('WITH moved AS (DELETE FROM clicks_daily_default WHERE day >= $1 AND day < $2 RETURNING *) '
                           'INSERT INTO dunlin.%I SELECT * FROM moved', v_name) USING v_month, v_next;
            EXECUTE format('ALTER TABLE dunlin.clicks_daily ATTACH PARTITION dunlin.%I FOR VALUES FROM (%L) TO (%L)',
                           v_name, v_month, v_next);
            v_made := v_made + 1;
        END IF;
        v_month := v_next;
    END LOOP;
    RETURN v_made;
END
$$;

-- What analysts see.
CREATE VIEW dunlin.clicks_by_day AS SELECT code, day, clicks FROM dunlin.clicks_daily;

GRANT SELECT ON dunlin.clicks_by_day TO dunlin_analyst;
GRANT EXECUTE ON FUNCTION dunlin.clicks_position(text, text, int) TO dunlin_clicks;
GRANT EXECUTE ON FUNCTION dunlin.clicks_apply(text, text, int, bigint, bigint, text[], int[], bigint[]) TO dunlin_clicks;
GRANT EXECUTE ON FUNCTION dunlin.clicks_get(text, text, int, int) TO dunlin_clicks;
GRANT EXECUTE ON FUNCTION dunlin.clicks_months_ensure(int) TO dunlin_clicks;

SELECT dunlin.clicks_months_ensure(2);
