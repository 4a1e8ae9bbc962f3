{row_take:#, % | $1, $3}
