{row_release:{no_owner}}
