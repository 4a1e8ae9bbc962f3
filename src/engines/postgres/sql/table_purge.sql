DELETE FROM holdfast_place WHERE name = $1 AND until < clock_timestamp()
