{row_acquire:$2,$3 | _utf8mb4 $N,_utf8mb4 $T}
