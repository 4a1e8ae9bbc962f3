{lines:name=$N}
ORDER BY 1,10,9
