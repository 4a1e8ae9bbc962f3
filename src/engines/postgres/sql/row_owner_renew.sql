{row_renew:{owner}}
