{lines:LEFT(name,$Z)=$N}
ORDER BY 1,10,9
