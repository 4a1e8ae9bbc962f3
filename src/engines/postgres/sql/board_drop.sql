-- Sequential scans are off (table_first.sql), and would be compiled at great
-- cost: all rows by the index.
DELETE FROM holdfast_wait WHERE client > '' AND (client = $1 OR until < clock_timestamp())
