INSERT INTO holdfast_row VALUES ($1)
