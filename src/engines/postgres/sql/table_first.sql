-- A plan that is made while the table is empty would read all of it, and be kept
-- while the rows of thousands that came and went lie there. No statement is worth
-- being compiled. A session that the caller gets is not set so.
{set}
SET enable_seqscan = off; SET enable_bitmapscan = off; SET jit = off;
SET plan_cache_mode = force_generic_plan;
{backend_row}
