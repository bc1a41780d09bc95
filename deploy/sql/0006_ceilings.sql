-- Ceilings: no code at or past its slot's ceiling was ever handed out, so that redirectors answer such codes without a
-- lookup. They trust a ceiling for 20 s from when they asked for it; a block is therefore handed out only below one that
-- everybody could read for 30 s.

-- ceiling is what is published, 0 for a slot that nobody uses. Blocks are handed out below ceiling_ready; where the two
-- differ, ceiling is on its way: ceiling_seen_at is when a transaction later than ceiling_set_by found it committed.
ALTER TABLE dunlin.key_ranges
    ADD COLUMN ceiling         bigint NOT NULL DEFAULT 0,
    ADD COLUMN ceiling_ready   bigint NOT NULL DEFAULT 0,
    ADD COLUMN ceiling_set_by  xid8,
    ADD COLUMN ceiling_seen_at timestamptz,
    ADD CONSTRAINT key_ranges_ceilings CHECK (ceiling_ready BETWEEN 0 AND ceiling);

-- 62^7 / 8 values become codes of 7 characters, the next 62^8 / 8 become codes of 8.
CREATE FUNCTION dunlin.counters_end() RETURNS bigint
LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN 440201825776 + 27292513198112;

-- At least 2^31 above the counter, so that a jump by 2^30 lands below a ceiling that is ready; 2^27 more, so that it is
-- raised about once a day and not at each claim.
CREATE FUNCTION dunlin.ceiling_for(p_next bigint) RETURNS bigint
LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN least(p_next + (1::bigint << 31) + (1::bigint << 27), dunlin.counters_end());

-- Slot 0, for new installations, and slots that are in use are ready at once. That is sound here and nowhere else: before
-- this transaction is visible there is no function that a ceiling could have been asked with, so nobody trusts a lower one.
UPDATE dunlin.key_ranges
SET ceiling = dunlin.ceiling_for(next_start), ceiling_ready = dunlin.ceiling_for(next_start)
WHERE slot = 0 OR next_start > 0;

-- The row as it should be before values up to p_end are handed out; the caller holds its lock and stores it. A raise that
-- is on its way is let finish, unless it wouldn't be enough.
CREATE FUNCTION dunlin.ceiling_tended(p_range dunlin.key_ranges, p_end bigint) RETURNS dunlin.key_ranges
LANGUAGE plpgsql VOLATILE AS $$
DECLARE
    v_this xid8 := pg_current_xact_id();
BEGIN
    IF p_range.ceiling > p_range.ceiling_ready THEN
        IF p_range.ceiling_seen_at IS NULL THEN
            IF p_range.ceiling_set_by IS DISTINCT FROM v_this THEN
                p_range.ceiling_seen_at := clock_timestamp();
            END IF;
        ELSIF p_range.ceiling_seen_at <= clock_timestamp() - interval '30 seconds' THEN
            p_range.ceiling_ready := p_range.ceiling;
            p_range.ceiling_seen_at := NULL;
        END IF;
    END IF;
    IF p_range.ceiling < least(p_end + (1::bigint << 31), counters_end())
        AND (p_range.ceiling = p_range.ceiling_ready OR p_range.ceiling < p_end) THEN
        p_range.ceiling := ceiling_for(p_end);
        p_range.ceiling_set_by := v_this;
        p_range.ceiling_seen_at := NULL;
    END IF;
    RETURN p_range;
END
$$;

-- The next number of jumps: higher than any that was used before, also by a history of this database that was lost since,
-- because caches keep entries by it.
CREATE FUNCTION dunlin.jumps_after(p_jumps bigint) RETURNS bigint
LANGUAGE plpgsql VOLATILE AS $$
BEGIN
    RETURN greatest(p_jumps + 1, instant_us(clock_timestamp()));
END
$$;

-- How far the log of this database is durable: in one history it only grows.
CREATE FUNCTION dunlin.wal_position() RETURNS bigint
LANGUAGE plpgsql VOLATILE AS $$
BEGIN
    RETURN pg_wal_lsn_diff(pg_current_wal_flush_lsn(), '0/0');
END
$$;

-- All counters jump, unused slots' too: the one that is behind tells that the database is. p_least[slot + 1], unless NULL,
-- is what is known from outside of a slot that is behind. The caller holds the lock of database_identity and counts the
-- jump. Raised ceilings wait anew: their stamps may be another machine's clock.
CREATE FUNCTION dunlin.counters_jump(p_least bigint[]) RETURNS void
LANGUAGE plpgsql VOLATILE AS $$
BEGIN
    UPDATE key_ranges AS r
    SET next_start = j.next,
        ceiling = CASE WHEN r.ceiling = 0 AND p_least[r.slot + 1] IS NULL THEN 0
                       ELSE greatest(r.ceiling, ceiling_for(j.next)) END,
        ceiling_set_by = pg_current_xact_id(), ceiling_seen_at = NULL, updated_at = clock_timestamp()
    FROM (SELECT k.slot, greatest(k.next_start, p_least[k.slot + 1]) + (1::bigint << 30) AS next
          FROM key_ranges AS k ORDER BY k.slot FOR UPDATE) AS j
    WHERE j.slot = r.slot;
END
$$;

-- As before, but for the ceilings and the number of jumps.
CREATE OR REPLACE FUNCTION dunlin.database_guard() RETURNS TABLE (jumps bigint, jumped boolean)
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
    PERFORM counters_jump('{}');
    RETURN QUERY
        UPDATE database_identity AS i
        SET system_identifier = v_now.system_identifier, timeline = v_now.timeline,
            database_oid = v_now.database_oid, table_oid = v_now.table_oid,
            jumps = jumps_after(i.jumps), changed_at = clock_timestamp()
        RETURNING i.jumps, true;
END
$$;

-- What callers remember, 0 for nothing: counters and ceilings by slot + 1, the number of jumps, and the log's position while
-- it was that. Where the database is behind any of it, it was put back: all counters jump, to 2^30 past what is known. The
-- word of somebody with another key isn't heard. One that would move a counter by more than 2^33 is refused, so that nobody
-- can use up a slot by lying.
CREATE FUNCTION dunlin.counters_recall(p_fingerprint bytea, p_counters bigint[], p_ceilings bigint[], p_jumps bigint,
                                       p_position bigint)
RETURNS TABLE (jumps bigint, jumped boolean)
LANGUAGE plpgsql VOLATILE SECURITY DEFINER SET search_path = dunlin, pg_temp AS $$
#variable_conflict use_column
DECLARE
    v_least  bigint[];
    v_far    smallint;
    v_jumps  bigint;
    v_behind boolean;
BEGIN
    IF (octet_length(p_fingerprint) = 8) IS NOT TRUE THEN
        PERFORM bad_argument('fingerprint is 8 bytes');
    ELSIF (cardinality(p_counters) = 7 AND cardinality(p_ceilings) = 7) IS NOT TRUE
        OR EXISTS (SELECT FROM unnest(p_counters || p_ceilings) AS k (known)
                   WHERE (known BETWEEN 0 AND counters_end()) IS NOT TRUE) THEN
        PERFORM bad_argument('counters and ceilings are 7 each, and no more than there are');
    END IF;
    SELECT i.jumps INTO v_jumps FROM database_identity AS i;
    IF EXISTS (SELECT FROM permutation_key WHERE fingerprint <> p_fingerprint)
        OR NOT (coalesce(p_jumps > v_jumps OR (p_jumps = v_jumps AND p_position > wal_position()), false)
                OR EXISTS (SELECT FROM key_ranges
                           WHERE p_counters[slot + 1] > next_start OR p_ceilings[slot + 1] > ceiling)) THEN
        RETURN QUERY SELECT v_jumps, false;
        RETURN;
    END IF;

    PERFORM commit_durably();
    -- Of several that come here at once the first jumps and the others find its work.
    SELECT i.jumps INTO v_jumps FROM database_identity AS i FOR UPDATE;
    v_behind := coalesce(p_jumps > v_jumps OR (p_jumps = v_jumps AND p_position > wal_position()), false);
    PERFORM FROM key_ranges ORDER BY slot FOR UPDATE;
    SELECT array_agg(b.known ORDER BY b.slot),
           min(b.slot) FILTER (WHERE b.known + (1::bigint << 30) - b.next_start > 1::bigint << 33)
    INTO v_least, v_far
    FROM (SELECT slot, next_start,
                 greatest(CASE WHEN p_counters[slot + 1] > next_start THEN p_counters[slot + 1] END,
                          CASE WHEN p_ceilings[slot + 1] > ceiling THEN p_ceilings[slot + 1] END) AS known
          FROM key_ranges) AS b;
    IF v_far IS NOT NULL THEN
        RAISE EXCEPTION 'slot % is further behind than a word can move it', v_far
            USING ERRCODE = 'DN006', DETAIL = 'COUNTER_TOO_FAR';
    END IF;
    IF NOT v_behind AND cardinality(array_remove(v_least, NULL)) = 0 THEN
        RETURN QUERY SELECT v_jumps, false;
        RETURN;
    END IF;
    PERFORM counters_jump(v_least);
    RETURN QUERY
        UPDATE database_identity AS i SET jumps = jumps_after(greatest(i.jumps, p_jumps)), changed_at = clock_timestamp()
        RETURNING i.jumps, true;
END
$$;

CREATE OR REPLACE FUNCTION dunlin.range_claim(p_slot int, p_size bigint, p_fingerprint bytea)
RETURNS TABLE (block_start bigint, block_end bigint)
LANGUAGE plpgsql VOLATILE SECURITY DEFINER SET search_path = dunlin, pg_temp AS $$
#variable_conflict use_column
DECLARE
    v_key   bytea;
    v_range key_ranges;
    v_end   bigint;
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

    SELECT * INTO STRICT v_range FROM key_ranges WHERE slot = p_slot FOR UPDATE;
    v_end := v_range.next_start + p_size;
    IF v_end > counters_end() THEN
        RAISE EXCEPTION 'slot % has no % counter values left', p_slot, p_size
            USING ERRCODE = 'DN002', DETAIL = 'COUNTERS_EXHAUSTED';
    END IF;
    v_range := ceiling_tended(v_range, v_end);
    IF v_end > v_range.ceiling_ready THEN
        RAISE EXCEPTION 'the ceiling of slot % is not ready', p_slot
            USING ERRCODE = 'DN005', DETAIL = 'CEILING_NOT_READY';
    END IF;
    UPDATE key_ranges
    SET next_start = v_end, ceiling = v_range.ceiling, ceiling_ready = v_range.ceiling_ready,
        ceiling_set_by = v_range.ceiling_set_by, ceiling_seen_at = v_range.ceiling_seen_at, updated_at = clock_timestamp()
    WHERE slot = p_slot;
    RETURN QUERY SELECT v_end - p_size, v_end;
END
$$;

-- After DN005, which undid all that its claim did: publishes the ceiling that the claim needs, or brings it on. The seconds
-- until it may be ready, 0 where it is.
CREATE FUNCTION dunlin.ceiling_prepare(p_slot int) RETURNS int
LANGUAGE plpgsql VOLATILE SECURITY DEFINER SET search_path = dunlin, pg_temp AS $$
DECLARE
    c_block CONSTANT bigint := 16777216;
    v_range key_ranges;
    v_end   bigint;
BEGIN
    IF (p_slot BETWEEN 0 AND 6) IS NOT TRUE THEN
        PERFORM bad_argument('slot is 0 to 6');
    END IF;
    PERFORM commit_durably();
    SELECT * INTO STRICT v_range FROM key_ranges WHERE slot = p_slot FOR UPDATE;
    v_end := least(v_range.next_start + c_block, counters_end());
    v_range := ceiling_tended(v_range, v_end);
    UPDATE key_ranges
    SET ceiling = v_range.ceiling, ceiling_ready = v_range.ceiling_ready,
        ceiling_set_by = v_range.ceiling_set_by, ceiling_seen_at = v_range.ceiling_seen_at
    WHERE slot = p_slot;
    RETURN CASE WHEN v_end <= v_range.ceiling_ready THEN 0
                ELSE 1 + extract(epoch FROM coalesce(v_range.ceiling_seen_at, clock_timestamp())
                                            + interval '30 seconds' - clock_timestamp())::int END;
END
$$;

-- By hand. Only upward, and by 2^33 at most unless it is forced; it is a jump, so that caches start empty too. What the
-- counter is then.
CREATE FUNCTION dunlin.range_advance(p_slot int, p_to bigint, p_force boolean) RETURNS bigint
LANGUAGE plpgsql VOLATILE SECURITY DEFINER SET search_path = dunlin, pg_temp AS $$
DECLARE
    v_next bigint;
BEGIN
    IF (p_slot BETWEEN 0 AND 6) IS NOT TRUE THEN
        PERFORM bad_argument('slot is 0 to 6');
    ELSIF (p_to BETWEEN 0 AND counters_end()) IS NOT TRUE THEN
        PERFORM bad_argument('to is a counter');
    END IF;
    PERFORM commit_durably();
    PERFORM FROM database_identity FOR UPDATE;
    SELECT next_start INTO STRICT v_next FROM key_ranges WHERE slot = p_slot FOR UPDATE;
    IF p_to <= v_next THEN
        RETURN v_next;
    ELSIF p_to - v_next > 1::bigint << 33 AND p_force IS NOT TRUE THEN
        RAISE EXCEPTION 'slot % would advance by more than 2^33', p_slot
            USING ERRCODE = 'DN006', DETAIL = 'COUNTER_TOO_FAR';
    END IF;
    UPDATE key_ranges
    SET next_start = p_to, ceiling = CASE WHEN ceiling = 0 THEN 0 ELSE greatest(ceiling, ceiling_for(p_to)) END,
        ceiling_set_by = pg_current_xact_id(), ceiling_seen_at = NULL, updated_at = clock_timestamp()
    WHERE slot = p_slot;
    UPDATE database_identity SET jumps = jumps_after(jumps), changed_at = clock_timestamp();
    RETURN p_to;
END
$$;

-- One row per slot. The fingerprint is NULL before the first claim.
CREATE FUNCTION dunlin.ceilings_get()
RETURNS TABLE (slot int, counter bigint, ceiling bigint, fingerprint bytea, jumps bigint, wal_position bigint)
LANGUAGE plpgsql VOLATILE SECURITY DEFINER SET search_path = dunlin, pg_temp AS $$
#variable_conflict use_column
BEGIN
    RETURN QUERY
        SELECT r.slot::int, least(r.next_start, counters_end()), r.ceiling,
               (SELECT fingerprint FROM permutation_key), (SELECT i.jumps FROM database_identity AS i), wal_position()
        FROM key_ranges AS r ORDER BY r.slot;
END
$$;

GRANT EXECUTE ON FUNCTION dunlin.counters_recall(bytea, bigint[], bigint[], bigint, bigint) TO dunlin_keyrange;
GRANT EXECUTE ON FUNCTION dunlin.ceiling_prepare(int) TO dunlin_keyrange;
GRANT EXECUTE ON FUNCTION dunlin.range_advance(int, bigint, boolean) TO dunlin_keyrange;
GRANT EXECUTE ON FUNCTION dunlin.ceilings_get() TO dunlin_keyrange;
