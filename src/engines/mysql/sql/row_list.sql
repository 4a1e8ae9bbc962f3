{row_list:_utf8mb4'unknown' | {row_begins}}
