{lock_our_row:FOR SHARE}
