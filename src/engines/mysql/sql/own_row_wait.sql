{lock_own_row}
