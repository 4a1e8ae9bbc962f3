{row_list:{row_owner} | {own_name}}
