{alone}
CREATE SEQUENCE IF NOT EXISTS holdfast_token;
CREATE UNLOGGED TABLE IF NOT EXISTS holdfast_row (name text COLLATE "C" PRIMARY KEY);
CREATE TABLE IF NOT EXISTS holdfast_place (
name text COLLATE "C" NOT NULL,
place bigint NOT NULL, alone boolean NOT NULL,
id text COLLATE "C" NOT NULL, mode int NOT NULL,
slots int NOT NULL, ttl_ms bigint NOT NULL, record text NOT NULL,
token bigint, until timestamptz NOT NULL,
since timestamptz NOT NULL, PRIMARY KEY (name, place));
CREATE TABLE IF NOT EXISTS holdfast_version (name text COLLATE "C" PRIMARY KEY, version bigint NOT NULL);
CREATE UNLOGGED TABLE IF NOT EXISTS holdfast_wait (
client text COLLATE "C" PRIMARY KEY, until timestamptz NOT NULL, notice text NOT NULL);
CREATE TABLE IF NOT EXISTS holdfast_cond (
name text COLLATE "C" NOT NULL, id text COLLATE "C" NOT NULL,
number bigint NOT NULL, cond text COLLATE "C" NOT NULL, called boolean NOT NULL,
ttl_ms bigint NOT NULL, record text NOT NULL, until timestamptz NOT NULL,
since timestamptz NOT NULL, PRIMARY KEY (name, id));
{backend_row}
