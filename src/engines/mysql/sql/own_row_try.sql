{lock_own_row} NOWAIT
