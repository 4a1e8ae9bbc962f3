{get_lock:$D | 0}
