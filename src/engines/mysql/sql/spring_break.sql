DELETE FROM $1 WHERE {spring_key} AND CLIENT_ID=_utf8mb4 $O;
{broken:{spring_held}}
