{row_break:_utf8mb4'unknown'}
