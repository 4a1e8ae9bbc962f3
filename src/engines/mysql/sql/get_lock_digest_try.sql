{get_lock:{digest} | 0}
