UPDATE & SET ~ = ~ + 1 WHERE {own_name} AND ~ = $3::bigint RETURNING ~
