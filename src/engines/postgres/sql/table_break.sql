-- The owner is the third line of a record.
DELETE FROM holdfast_place WHERE name = $1 AND token IS NOT NULL
AND (token = $2::bigint OR ($2::bigint = 0 AND split_part(record, chr(10), 3) = $3))
RETURNING pg_notify('hf_' || left(id, 16), 'b ' || substr(id, 17))
