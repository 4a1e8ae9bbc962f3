{row_held:{no_owner}}
