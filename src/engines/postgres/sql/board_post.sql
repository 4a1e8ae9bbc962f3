INSERT INTO holdfast_wait VALUES ($1, {ends:$3::bigint}, $2)
ON CONFLICT (client) DO UPDATE SET until = excluded.until, notice = excluded.notice
