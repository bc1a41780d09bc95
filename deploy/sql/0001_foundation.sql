-- The schema, the roles of the services, and what all functions share.
-- The role that runs this owns everything; services get EXECUTE on their own functions and nothing else.

CREATE SCHEMA IF NOT EXISTS dunlin;

-- Roles belong to the whole server: another database of it may have made them, or be making them now.
DO $$
DECLARE
    v_role text;
BEGIN
    FOREACH v_role IN ARRAY ARRAY['dunlin_keyrange', 'dunlin_writer', 'dunlin_redirector', 'dunlin_clicks',
                                  'dunlin_analyst'] LOOP
        IF NOT EXISTS (SELECT FROM pg_roles WHERE rolname = v_role) THEN
            BEGIN
                EXECUTE format('CREATE ROLE %I LOGIN', v_role);
            EXCEPTION WHEN duplicate_object OR unique_violation THEN
                NULL;
            END;
        END IF;
        EXECUTE format('GRANT CONNECT ON DATABASE %I TO %I', current_database(), v_role);
        EXECUTE format('GRANT USAGE ON SCHEMA dunlin TO %I', v_role);
    END LOOP;
    -- Nobody here needs temporary tables, and they fill disks.
    EXECUTE format('REVOKE TEMPORARY ON DATABASE %I FROM PUBLIC', current_database());
END
$$;

-- PUBLIC may run every new function unless this is said, and saying it for one schema alone has no effect.
ALTER DEFAULT PRIVILEGES REVOKE EXECUTE ON FUNCTIONS FROM PUBLIC;

-- Instants cross the boundary as microseconds since 1970-01-01T00:00:00Z. One multiplication would go through a double
-- and round in the year 2255; whole days are exact in it, and so is what is left. ('24 hours', because the length of
-- '1 day' depends on the session's time zone.)
CREATE FUNCTION dunlin.instant(p_us bigint) RETURNS timestamptz
LANGUAGE sql STABLE STRICT PARALLEL SAFE
RETURN timestamptz '1970-01-01 00:00:00+00'
    + (p_us / 86400000000) * interval '24 hours' + (p_us % 86400000000) * interval '1 microsecond';

CREATE FUNCTION dunlin.instant_us(p_instant timestamptz) RETURNS bigint
LANGUAGE sql STABLE STRICT PARALLEL SAFE
RETURN (extract(epoch FROM p_instant) * 1000000)::bigint;

-- What a function promised must survive a crash, whatever the session or the server was set to. A SET clause of the
-- function would end before the commit does; this lasts until then. Stronger settings stay.
CREATE FUNCTION dunlin.commit_durably() RETURNS void
LANGUAGE plpgsql VOLATILE AS $$
BEGIN
    IF current_setting('synchronous_commit') NOT IN ('on', 'remote_apply') THEN
        PERFORM set_config('synchronous_commit', 'on', true);
    END IF;
END
$$;

CREATE FUNCTION dunlin.bad_argument(p_what text) RETURNS void
LANGUAGE plpgsql VOLATILE AS $$
BEGIN
    RAISE EXCEPTION 'bad argument: %', p_what USING ERRCODE = 'DN009', DETAIL = 'BAD_ARGUMENT';
END
$$;

CREATE FUNCTION dunlin.database_now() RETURNS bigint
LANGUAGE sql VOLATILE SECURITY DEFINER SET search_path = dunlin, pg_temp
RETURN dunlin.instant_us(clock_timestamp());

GRANT EXECUTE ON FUNCTION dunlin.database_now() TO dunlin_keyrange, dunlin_writer, dunlin_redirector, dunlin_clicks;
