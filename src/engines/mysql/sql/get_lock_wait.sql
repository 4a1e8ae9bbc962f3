{get_lock:$D | 3600}
