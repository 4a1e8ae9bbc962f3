-- The first column: 1 committed, 0 another version, 2 no such row.
UPDATE $4 SET $5=LAST_INSERT_ID($5+1) WHERE {own_name} AND $5=$K;
SELECT IF(ROW_COUNT()=1,1,2*(COUNT(*)=0)),LAST_INSERT_ID() FROM $4 WHERE {own_name}
