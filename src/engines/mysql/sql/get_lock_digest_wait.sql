{get_lock:{digest} | 3600}
