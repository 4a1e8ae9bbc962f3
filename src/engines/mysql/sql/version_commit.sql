-- The second statement is the commit.
INSERT INTO holdfast_version VALUES($N,0) ON DUPLICATE KEY UPDATE name=name;
UPDATE holdfast_version SET version=LAST_INSERT_ID(GREATEST(version+1,{now})) WHERE name=$N AND version=$K;
SELECT ROW_COUNT(),LAST_INSERT_ID()
