-- Without a row this divides by 0.
SELECT 1 / count(*) FROM (SELECT FROM @ WHERE {own_name} FOR UPDATE) r
