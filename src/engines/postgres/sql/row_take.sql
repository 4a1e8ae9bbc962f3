{row_take:# | $1}
