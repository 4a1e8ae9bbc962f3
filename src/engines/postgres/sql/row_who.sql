{row_who:{no_owner}}
