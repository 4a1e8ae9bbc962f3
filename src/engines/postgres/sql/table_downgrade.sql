UPDATE holdfast_place SET mode = 1 WHERE {me} AND token IS NOT NULL RETURNING 1
