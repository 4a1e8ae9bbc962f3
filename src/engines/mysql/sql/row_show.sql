{row_list:_utf8mb4'unknown' | {own_name}}
