-- What several statements share; engines/sql/embed.cmake puts it in.

-- ---- mode=advisory ----

-- The numbers of a sequence are logged 32 at a time, and only the session that
-- logs them waits for the disk. One that may have been given a number of a record
-- that is not there yet writes something, and so waits as well when its
-- transaction ends. A number of the transaction alone (pg_current_xact_id) does
-- not make the server wait.
--fragment flushed_number
{number}, CASE WHEN pg_current_wal_flush_lsn() < pg_current_wal_insert_lsn()
THEN pg_logical_emit_message(true, 'holdfast', ''::text) END
-- A backend: its process and when it was started, which together are never used
-- again.
--fragment backend
pg_stat_activity WHERE pid = $1::int AND backend_start::text = $2

-- ---- mode=table ----

-- Of a token, or of a place in line: no two are the same.
--fragment number
nextval('holdfast_token')
--fragment me
name = $1 AND id = $2
--fragment ends
clock_timestamp() + {1} * interval '1 ms'
--fragment my_end
{ends:$3::bigint}
-- Nearly the same, and costs no look at the clock.
--fragment now
statement_timestamp()
--fragment my_end_soon
{now} + $3::bigint * interval '1 ms'
--fragment ms_until
(extract(epoch FROM {1} - clock_timestamp()) * 1000)::bigint
-- Rows that p has to wait for stand before it: holders, and those that came first.
--fragment before
r.name = $1 AND r.place <> p.place AND (r.token IS NOT NULL OR r.place < p.place)
-- Tell the client that has the row: its identity and the ticket are its id. A
-- channel is a half of the identity, and the other half is said there: a client
-- that only knows the channel can say nothing that is believed.
--fragment tell
pg_notify('hf_' || left(id, 16), 'g ' || substr(id, 17) || ' ' || token)
--fragment place
INSERT INTO holdfast_place (name, place, alone, id, mode, slots, ttl_ms, record, token, until, since)
-- Another one since a standby was promoted: what the old primary had answered may be
-- missing there.
--fragment timeline
left(pg_walfile_name(pg_current_wal_insert_lsn()), 8)
--fragment list_columns
name, mode, slots, token, record, -{ms_until:since} AS since, {ms_until:until} AS lease, ttl_ms
-- All names are more than '': without that there would be no scan by the index.
--fragment listed
name > '' AND ($1::text IS NULL OR name = $1) AND starts_with(name, $2) AND until >= clock_timestamp()
--fragment writer
$2, 0, 0, $3::bigint, $4,
-- Those of {1} stand in line from now on, in the order of their numbers. A row
-- that is alone is so no more. TABLE_GRANT follows, or the holder is there.
--fragment stand_in_line
crowd AS (UPDATE holdfast_place SET alone = false
WHERE name = $1 AND alone AND EXISTS (SELECT FROM {1}))
{place}
SELECT $1, {number}, false, id, 0, 0, ttl_ms, record, NULL::bigint, until, clock_timestamp()
FROM (SELECT * FROM {1} ORDER BY number) c
-- Call {1} of those that are parked. Who is overdue, and passed over, goes, even if it
-- is renewed meanwhile: it is told so, and misses nothing.
--fragment call
dead AS (DELETE FROM holdfast_cond WHERE name = $1
AND id IN (SELECT id FROM holdfast_cond WHERE name = $1 AND NOT called AND until < {now})),
next AS (UPDATE holdfast_cond SET called = true WHERE name = $1 AND id IN ({1})
RETURNING id, number, ttl_ms, record, until),
{stand_in_line:next}

-- ---- the first statements on a connection ----

-- Limits that a role or database may set would end a wait as if it had failed. A
-- waiter whose process was killed leaves the server's queue when the server looks
-- at the connection.
--fragment set
SET lock_timeout = 0; SET statement_timeout = 0;
SET idle_session_timeout = 0;
SET idle_in_transaction_session_timeout = 0;
SET client_connection_check_interval = 250;
SET default_transaction_isolation = 'read committed';
-- Our backend; {1} is there a sequence, {2} are there tables?
--fragment with
SELECT pg_backend_pid(), backend_start, pg_is_in_recovery(), {1}, {2}
FROM pg_stat_activity WHERE pid = pg_backend_pid()
--fragment backend_row
{with:{has_sequence} | {has_tables}}
--fragment has_sequence
coalesce(has_sequence_privilege(to_regclass('holdfast_token'), 'USAGE'), false)
--fragment has_tables
CASE WHEN EXISTS (SELECT FROM pg_attribute
WHERE attrelid = to_regclass('holdfast_place') AND attname = 'client') THEN 'old'
WHEN coalesce(has_table_privilege(to_regclass('holdfast_place'), 'SELECT, INSERT, UPDATE, DELETE')
AND has_table_privilege(to_regclass('holdfast_row'), 'SELECT, INSERT, DELETE'), false)
THEN CASE WHEN NOT coalesce(has_table_privilege(to_regclass('holdfast_cond'),
'SELECT, INSERT, UPDATE, DELETE'), false) THEN 'without conditions'
WHEN to_regclass('holdfast_wait') IS NULL THEN 'without board' ELSE 'true' END
ELSE 'false' END
-- One at a time: CREATE … IF NOT EXISTS fails when two do it at once.
--fragment alone
SELECT pg_advisory_xact_lock(7524410947216830836);

-- ---- the tables of others: @ ----

-- Parameters are the key, its region where it has one, the holder, and how long
-- in ms. Instants are of the server's clock, in UTC and without a zone. A column
-- without fractions loses up to a second.
--fragment utc
timezone('utc', clock_timestamp())
--fragment until
{utc} + ({1}::bigint + 1000) * interval '1 ms'
--fragment ms
(extract(epoch FROM {2} - {1}) * 1000)::bigint
--fragment is_there
to_regclass('@') IS NOT NULL
--fragment dialect_first
{with:{is_there} | {is_there}}
--fragment shedlock_who
SELECT locked_by, {ms:{utc} | lock_until}, greatest(0, {ms:locked_at | {utc}})
--fragment shedlock_ours
name = $1 AND locked_by = $2 AND lock_until > {utc}
--fragment spring_who
SELECT CLIENT_ID, {ms:{utc} | EXPIRED_AFTER}, -1
--fragment spring_ours
LOCK_KEY = $1 AND REGION = $2 AND CLIENT_ID = $3

-- ---- tables of the application: @ table, # key, % owner_column ----

-- The key comes as the column's type and as a text: a column may take two names
-- for one.
--fragment own_name
# = $1 AND #::text = $2::text
-- A name that is not the row's divides by 0. {1} columns, {2} values.
--fragment row_take
INSERT INTO @ ({1}) VALUES ({2}) ON CONFLICT (#) DO NOTHING
RETURNING 1 / (#::text = $2::text)::int
--fragment row_who
SELECT {1}, -1, -1 FROM @ WHERE {own_name}
--fragment row_renew
SELECT 1 FROM @ WHERE {own_name} AND {1} = $3::text
--fragment row_release
DELETE FROM @ WHERE {own_name} AND {1} = $3::text RETURNING 1
--fragment row_held
SELECT {1}, -1, -1, #::text FROM @ WHERE starts_with(#::text, $1) LIMIT 100000
--fragment owner
coalesce(%::text, '')
--fragment no_owner
'unknown'::text
