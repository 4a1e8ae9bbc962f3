{row_release:{owner}}
