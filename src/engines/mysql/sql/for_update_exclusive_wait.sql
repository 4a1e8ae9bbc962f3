-- A session of for_update is always in a transaction, so that the statement that
-- locks the row is its first. One row is "changed" if the row is there. How long
-- the server lets it wait is a variable of the session (connection.c).
{lock_our_row:FOR UPDATE}
