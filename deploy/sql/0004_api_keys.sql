-- API keys, known by their hash alone.

CREATE TABLE dunlin.api_keys (
    id         text COLLATE "C" PRIMARY KEY CHECK (id ~ '^[0-9A-Za-z_-]{1,31}$'),
    hash       bytea       NOT NULL UNIQUE CHECK (octet_length(hash) = 32),
    owner_id   text COLLATE "C" NOT NULL CHECK (owner_id ~ '^[0-9A-Za-z._-]{1,64}$'),
    scope      text COLLATE "C" NOT NULL CHECK (scope IN ('links', 'operator')),
    created_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    revoked_at timestamptz
);

-- Run again after a lost answer it finds its own row and is done; an id with another key behind it is 23505.
CREATE FUNCTION dunlin.key_create(p_id text, p_hash bytea, p_owner text, p_scope text) RETURNS void
LANGUAGE plpgsql VOLATILE SECURITY DEFINER SET search_path = dunlin, pg_temp AS $$
BEGIN
    PERFORM commit_durably();
    IF EXISTS (SELECT FROM api_keys
               WHERE id = p_id AND hash = p_hash AND owner_id = p_owner AND scope = p_scope) THEN
        RETURN;
    END IF;
    INSERT INTO api_keys (id, hash, owner_id, scope) VALUES (p_id, p_hash, p_owner, p_scope);
END
$$;

CREATE FUNCTION dunlin.key_find(p_hash bytea) RETURNS TABLE (id text, owner text, scope text)
LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path = dunlin, pg_temp AS $$
#variable_conflict use_column
BEGIN
    RETURN QUERY SELECT k.id, k.owner_id, k.scope FROM api_keys AS k WHERE k.hash = p_hash AND k.revoked_at IS NULL;
END
$$;

CREATE FUNCTION dunlin.key_list()
RETURNS TABLE (id text, owner text, scope text, created_at_us bigint, revoked_at_us bigint)
LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path = dunlin, pg_temp AS $$
#variable_conflict use_column
BEGIN
    RETURN QUERY
        SELECT k.id, k.owner_id, k.scope, instant_us(k.created_at), instant_us(k.revoked_at)
        FROM api_keys AS k ORDER BY k.created_at, k.id;
END
$$;

-- False where there is no such key. Revoked again it keeps its first instant.
CREATE FUNCTION dunlin.key_revoke(p_id text) RETURNS boolean
LANGUAGE plpgsql VOLATILE SECURITY DEFINER SET search_path = dunlin, pg_temp AS $$
BEGIN
    PERFORM commit_durably();
    UPDATE api_keys SET revoked_at = coalesce(revoked_at, clock_timestamp()) WHERE id = p_id;
    RETURN FOUND;
END
$$;

GRANT EXECUTE ON FUNCTION dunlin.key_create(text, bytea, text, text) TO dunlin_writer;
GRANT EXECUTE ON FUNCTION dunlin.key_find(bytea) TO dunlin_writer, dunlin_clicks;
GRANT EXECUTE ON FUNCTION dunlin.key_list() TO dunlin_writer;
GRANT EXECUTE ON FUNCTION dunlin.key_revoke(text) TO dunlin_writer;
