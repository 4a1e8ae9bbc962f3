SELECT name, mode, slots, token, record, -{ms_until:since}, {ms_until:until}, ttl_ms
FROM holdfast_place WHERE ($1::text IS NULL OR name = $1) AND starts_with(name, $2)
AND until >= clock_timestamp() ORDER BY name, token IS NULL, place LIMIT 100000
