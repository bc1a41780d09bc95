-- The counters that codes are made from, and the identity of the database that holds them.

-- One counter per region's slot. Values below next_start were handed out and are never handed out again.
CREATE TABLE dunlin.key_ranges (
    slot       smallint    PRIMARY KEY CHECK (slot BETWEEN 0 AND 6),
    next_start bigint      NOT NULL DEFAULT 0 CHECK (next_start >= 0),
    updated_at timestamptz NOT NULL DEFAULT clock_timestamp()
);
INSERT INTO dunlin.key_ranges (slot) SELECT generate_series(0, 6);

-- Which key turns counters into codes: two keys on one set of counters would make one code twice.
CREATE TABLE dunlin.permutation_key (
    single      boolean     PRIMARY KEY DEFAULT true CHECK (single),
    fingerprint bytea       NOT NULL CHECK (octet_length(fingerprint) = 8),
    stored_at   timestamptz NOT NULL DEFAULT clock_timestamp()
);

-- What a copy of the data doesn't have in common with its original. A restored or failed-over database may have
-- forgotten what it handed out last.
CREATE TABLE dunlin.database_identity (
    single            boolean     PRIMARY KEY DEFAULT true CHECK (single),
    system_identifier bigint      NOT NULL,
    timeline          text        NOT NULL,
    database_oid      oid         NOT NULL,
    table_oid         oid         NOT NULL,
    jumps             bigint      NOT NULL DEFAULT 0 CHECK (jumps >= 0),
    changed_at        timestamptz NOT NULL DEFAULT clock_timestamp()
);

-- The timeline is the write position's: it changes when a standby is promoted. Fails on a standby.
CREATE FUNCTION dunlin.identity_now(OUT system_identifier bigint, OUT timeline text, OUT database_oid oid,
                                    OUT table_oid oid)
LANGUAGE sql VOLATILE AS $$
    SELECT c.system_identifier, substr(pg_walfile_name(pg_current_wal_lsn()), 1, 8), d.oid,
           'dunlin.key_ranges'::regclass::oid
    FROM pg_control_system() AS c, pg_database AS d
    WHERE d.datname = current_database()
$$;

INSERT INTO dunlin.database_identity (system_identifier, timeline, database_oid, table_oid)
SELECT * FROM dunlin.identity_now();

-- All counters jump, those at 0 too: a slot that a backup knows as unused may have been used since.
CREATE FUNCTION dunlin.database_guard() RETURNS TABLE (jumps bigint, jumped boolean)
LANGUAGE plpgsql VOLATILE SECURITY DEFINER SET search_path = dunlin, pg_temp AS $$
#variable_conflict use_column
DECLARE
    v_now    record;
    v_stored database_identity;
BEGIN
    IF pg_is_in_recovery() THEN
        RAISE EXCEPTION 'the identity is checked on a primary' USING ERRCODE = 'read_only_sql_transaction';
    END IF;
    v_now := identity_now();
    SELECT * INTO v_stored FROM database_identity;
    IF (v_stored.system_identifier, v_stored.timeline, v_stored.database_oid, v_stored.table_oid)
        IS NOT DISTINCT FROM (v_now.system_identifier, v_now.timeline, v_now.database_oid, v_now.table_oid) THEN
        RETURN QUERY SELECT v_stored.jumps, false;
        RETURN;
    END IF;

    PERFORM commit_durably();
    -- Of several that come here at once the first jumps and the others find its work. A row that is missing is another
    -- identity, and its number of jumps is not known: later ones must still be higher.
    INSERT INTO database_identity (system_identifier, timeline, database_oid, table_oid, jumps)
    VALUES (0, '', 0, 0, instant_us(clock_timestamp()) / 1000000) ON CONFLICT DO NOTHING;
    SELECT * INTO STRICT v_stored FROM database_identity FOR UPDATE;
    IF (v_stored.system_identifier, v_stored.timeline, v_stored.database_oid, v_stored.table_oid)
        IS NOT DISTINCT FROM (v_now.system_identifier, v_now.timeline, v_now.database_oid, v_now.table_oid) THEN
        RETURN QUERY SELECT v_stored.jumps, false;
        RETURN;
    END IF;
    UPDATE key_ranges SET next_start = next_start + (1::bigint << 30), updated_at = clock_timestamp();
    RETURN QUERY
        UPDATE database_identity AS i
        SET system_identifier = v_now.system_identifier, timeline = v_now.timeline,
            database_oid = v_now.database_oid, table_oid = v_now.table_oid,
            jumps = i.jumps + 1, changed_at = clock_timestamp()
        RETURNING i.jumps, true;
END
$$;

CREATE FUNCTION dunlin.database_jumps() RETURNS bigint
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = dunlin, pg_temp
RETURN (SELECT jumps FROM dunlin.database_identity);

CREATE FUNCTION dunlin.range_claim(p_slot int, p_size bigint, p_fingerprint bytea)
RETURNS TABLE (block_start bigint, block_end bigint)
LANGUAGE plpgsql VOLATILE SECURITY DEFINER SET search_path = dunlin, pg_temp AS $$
#variable_conflict use_column
DECLARE
    -- 62^7 / 8 values become codes of 7 characters, the next 62^8 / 8 become codes of 8.
    c_counters CONSTANT bigint := 440201825776 + 27292513198112;
    v_key bytea;
BEGIN
    IF (p_slot BETWEEN 0 AND 6) IS NOT TRUE THEN
        PERFORM bad_argument('slot is 0 to 6');
    ELSIF (p_size BETWEEN 1 AND 16777216) IS NOT TRUE THEN
        PERFORM bad_argument('size is 1 to 2^24');
    ELSIF (octet_length(p_fingerprint) = 8) IS NOT TRUE THEN
        PERFORM bad_argument('fingerprint is 8 bytes');
    END IF;
    PERFORM commit_durably();
    PERFORM database_guard();

    SELECT fingerprint INTO v_key FROM permutation_key;
    IF NOT FOUND THEN
        INSERT INTO permutation_key (fingerprint) VALUES (p_fingerprint) ON CONFLICT DO NOTHING;
        SELECT fingerprint INTO STRICT v_key FROM permutation_key;
    END IF;
    IF v_key <> p_fingerprint THEN
        RAISE EXCEPTION 'these counters belong to another permutation key'
            USING ERRCODE = 'DN001', DETAIL = 'KEY_MISMATCH';
    END IF;

    RETURN QUERY
        UPDATE key_ranges
        SET next_start = next_start + p_size, updated_at = clock_timestamp()
        WHERE slot = p_slot AND next_start <= c_counters - p_size
        RETURNING next_start - p_size, next_start;
    IF NOT FOUND THEN
        RAISE EXCEPTION 'slot % has no % counter values left', p_slot, p_size
            USING ERRCODE = 'DN002', DETAIL = 'COUNTERS_EXHAUSTED';
    END IF;
END
$$;

GRANT EXECUTE ON FUNCTION dunlin.database_guard() TO dunlin_keyrange, dunlin_writer;
GRANT EXECUTE ON FUNCTION dunlin.database_jumps() TO dunlin_redirector, dunlin_writer;
GRANT EXECUTE ON FUNCTION dunlin.range_claim(int, bigint, bytea) TO dunlin_keyrange;
