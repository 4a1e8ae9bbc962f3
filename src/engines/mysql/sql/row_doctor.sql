{row_doctor:$2}
