DELETE FROM holdfast_place WHERE {me} AND place = 0 AND alone
