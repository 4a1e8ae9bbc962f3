{row_renew:{no_owner}}
