{row_held:{owner}}
