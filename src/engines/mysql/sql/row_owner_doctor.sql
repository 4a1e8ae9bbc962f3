{row_doctor:$2,$3}
