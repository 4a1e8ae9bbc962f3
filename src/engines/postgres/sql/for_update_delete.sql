DELETE FROM holdfast_row WHERE name = $1
