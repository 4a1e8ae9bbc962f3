-- At the moment when the row is locked, not when the statement began: a signal in
-- between has passed over who was overdue, and it stays so.
UPDATE holdfast_cond SET until={now_inside}+$L
WHERE name=$N AND ticket=$T AND called=0 AND until>{now_inside}
