{lock_our_row:FOR UPDATE} NOWAIT
