{lock_our_row:LOCK IN SHARE MODE}
