-- & version_table, ~ column
SELECT ~ FROM & WHERE {own_name}
