{row_list:{row_owner} | {row_begins}}
