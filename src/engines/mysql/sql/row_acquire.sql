{row_acquire:$2 | _utf8mb4 $N}
