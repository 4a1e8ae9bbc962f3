-- A crowded name: 1 row in line, or none.
{place}
SELECT $1, {number}, false, {writer} NULL, {my_end_soon}, {now}
FROM (SELECT FROM holdfast_place WHERE name = $1 AND NOT alone
ORDER BY place DESC LIMIT 1 FOR KEY SHARE) l
