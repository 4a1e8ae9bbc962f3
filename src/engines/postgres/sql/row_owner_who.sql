{row_who:{owner}}
