-- To the end of the line, without a wake-up; one that was called stays where it is.
WITH left_it AS (DELETE FROM holdfast_cond WHERE {me} AND NOT called
RETURNING id, number, ttl_ms, record, {ends:ttl_ms} AS until),
{stand_in_line:left_it}
