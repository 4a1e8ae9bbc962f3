SELECT {list_columns}, NULL::text FROM holdfast_place WHERE {listed}
ORDER BY name, token IS NULL, place LIMIT 100000
