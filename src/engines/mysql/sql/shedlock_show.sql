{shedlock_list} {shedlock_named}
