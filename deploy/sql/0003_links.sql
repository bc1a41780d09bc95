-- The links. Rows stay for ever: a retired one is the tombstone that keeps its code taken.

-- state: 1 active, 2 disabled, 3 deleted, 4 expired (as LinkState in proto/dunlin/v1/link.proto).
CREATE TABLE dunlin.links (
    code            text COLLATE "C" PRIMARY KEY CHECK (code ~ '^[0-9A-Za-z_-]{4,30}$'),
    long_url        text COLLATE "C" CHECK (octet_length(long_url) BETWEEN 1 AND 8192 AND long_url !~ '[^!-~]'),
    owner_id        text COLLATE "C" NOT NULL CHECK (owner_id ~ '^[0-9A-Za-z._-]{1,64}$'),
    source          text COLLATE "C" NOT NULL CHECK (source IN ('range', 'alias', 'random', 'hash')),
    custom          boolean     NOT NULL GENERATED ALWAYS AS (source = 'alias') STORED,
    state           smallint    NOT NULL DEFAULT 1 CHECK (state BETWEEN 1 AND 4),
    redirect_status smallint    NOT NULL DEFAULT 302 CHECK (redirect_status IN (301, 302, 307, 308)),
    max_age         int         NOT NULL DEFAULT 0 CHECK (max_age BETWEEN 0 AND 31536000),
    strict          boolean     NOT NULL DEFAULT false,
    permanent       boolean     NOT NULL DEFAULT false,
    forward_query   boolean     NOT NULL DEFAULT false,
    create_id       bytea       NOT NULL CHECK (octet_length(create_id) = 16),
    version         bigint      NOT NULL DEFAULT 1 CHECK (version >= 1),
    created_at      timestamptz NOT NULL,
    updated_at      timestamptz NOT NULL CHECK (updated_at >= created_at),
    expires_at      timestamptz CHECK (expires_at < '10000-01-01 00:00:00+00'),
    CONSTRAINT links_url_of_live CHECK ((state IN (1, 2)) = (long_url IS NOT NULL)),
    CONSTRAINT links_permanent CHECK (NOT permanent OR (redirect_status IN (301, 308) AND NOT strict))
);

-- Three steps, each safe to repeat, so that the first and the last can live with the owner and the middle one with the
-- code: reserve the key with its owner, insert the link with its code, confirm. A create that carries no idempotency key
-- has nothing to reserve, and its insert is its confirmation.
CREATE FUNCTION dunlin.link_create(p_code text, p_url text, p_owner text, p_source text, p_expires_at_us bigint,
                                   p_create_id bytea, p_slot int, p_counter bigint)
RETURNS TABLE (outcome text, code text, url text, owner text, state int, source text, version bigint,
               created_at_us bigint, updated_at_us bigint, expires_at_us bigint)
LANGUAGE plpgsql VOLATILE SECURITY DEFINER SET search_path = dunlin, pg_temp AS $$
#variable_conflict use_column
DECLARE
    v_now     timestamptz := clock_timestamp();
    v_outcome text;
    v_created timestamptz;
    v_next    bigint;
BEGIN
    IF (p_source = 'range') IS DISTINCT FROM (p_slot IS NOT NULL AND p_counter IS NOT NULL) THEN
        PERFORM bad_argument('slot and counter belong to source range');
    ELSIF (p_expires_at_us >= 253402300800000000) IS TRUE THEN
        PERFORM bad_argument('expires_at is before the year 10000');
    END IF;
    PERFORM commit_durably();

    -- Never a link that the counter doesn't cover: after a restore its code would be made again.
    IF p_source = 'range' THEN
        SELECT next_start INTO v_next FROM key_ranges WHERE slot = p_slot;
        IF (p_counter >= 0 AND p_counter < v_next) IS NOT TRUE THEN
            RAISE EXCEPTION 'counter % of slot % was not handed out', p_counter, p_slot
                USING ERRCODE = 'DN003', DETAIL = 'COUNTER_NOT_COVERED';
        END IF;
    END IF;

    IF p_expires_at_us IS NULL OR p_expires_at_us > instant_us(v_now) THEN
        INSERT INTO links (code, long_url, owner_id, source, create_id, created_at, updated_at, expires_at)
        VALUES (p_code, p_url, p_owner, p_source, p_create_id, v_now, v_now, instant(p_expires_at_us))
        ON CONFLICT (code) DO NOTHING
        RETURNING 'created', created_at INTO v_outcome, v_created;
    END IF;
    -- Not inserted: by now whoever was first has committed. If that was this very create, its answer is given again,
    -- as it was, whatever became of the link or the clock since.
    IF v_outcome IS NULL THEN
        SELECT 'replayed', created_at INTO v_outcome, v_created
        FROM links WHERE code = p_code AND create_id = p_create_id AND owner_id = p_owner;
    END IF;
    IF v_outcome IS NULL AND p_expires_at_us <= instant_us(v_now) THEN
        RAISE EXCEPTION 'expires_at is not in the future' USING ERRCODE = 'DN004', DETAIL = 'EXPIRES_AT_PAST';
    END IF;

    IF v_outcome IS NULL THEN
        RETURN QUERY SELECT 'taken', NULL::text, NULL::text, NULL::text, NULL::int, NULL::text, NULL::bigint,
                            NULL::bigint, NULL::bigint, NULL::bigint;
    ELSE
        RETURN QUERY SELECT v_outcome, p_code, p_url, p_owner, 1, p_source, 1::bigint,
                            instant_us(v_created), instant_us(v_created), p_expires_at_us;
    END IF;
END
$$;

-- p_owner NULL: any owner's, for operators.
CREATE FUNCTION dunlin.link_get(p_code text, p_owner text)
RETURNS TABLE (code text, url text, owner text, state int, source text, version bigint,
               created_at_us bigint, updated_at_us bigint, expires_at_us bigint)
LANGUAGE plpgsql VOLATILE SECURITY DEFINER SET search_path = dunlin, pg_temp AS $$
#variable_conflict use_column
BEGIN
    RETURN QUERY
        SELECT l.code, CASE WHEN NOT e.expired THEN l.long_url END, l.owner_id,
               CASE WHEN e.expired THEN 4 ELSE l.state END::int, l.source, l.version,
               instant_us(l.created_at), instant_us(l.updated_at), instant_us(l.expires_at)
        FROM links AS l,
             LATERAL (SELECT l.state IN (1, 2) AND coalesce(clock_timestamp() >= l.expires_at, false) AS expired) AS e
        WHERE l.code = p_code AND (p_owner IS NULL OR l.owner_id = p_owner);
END
$$;

-- The redirect's lookup. PL/pgSQL keeps its plan for the session; a function in SQL is planned at each call, which made
-- this one three times as slow.
CREATE FUNCTION dunlin.link_find(p_code text)
RETURNS TABLE (code text, version bigint, state int, expires_at_us bigint, redirect_status int, max_age int,
               permanent boolean, strict boolean, forward_query boolean, url text, now_us bigint)
LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path = dunlin, pg_temp AS $$
#variable_conflict use_column
BEGIN
    RETURN QUERY
        SELECT l.code, l.version, CASE WHEN e.expired THEN 4 ELSE l.state END::int, instant_us(l.expires_at),
               l.redirect_status::int, l.max_age, l.permanent, l.strict, l.forward_query,
               CASE WHEN NOT e.expired THEN l.long_url END, instant_us(t.now)
        FROM links AS l, (SELECT clock_timestamp() AS now) AS t,
             LATERAL (SELECT l.state IN (1, 2) AND coalesce(t.now >= l.expires_at, false) AS expired) AS e
        WHERE l.code = p_code;
END
$$;

GRANT EXECUTE ON FUNCTION dunlin.link_create(text, text, text, text, bigint, bytea, int, bigint) TO dunlin_writer;
GRANT EXECUTE ON FUNCTION dunlin.link_get(text, text) TO dunlin_writer;
GRANT EXECUTE ON FUNCTION dunlin.link_find(text) TO dunlin_redirector;
