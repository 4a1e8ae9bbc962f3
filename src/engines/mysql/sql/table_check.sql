-- How many holders there are, and how many have the token.
SELECT COUNT(*),COALESCE(SUM(token=$K),0) FROM (
SELECT token FROM holdfast_lock WHERE name=$N AND until>{now}
UNION ALL
SELECT token FROM holdfast_ticket WHERE name=$N AND role=1 AND until>{now}) h
