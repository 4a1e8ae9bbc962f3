{row_break:{row_owner}}
