{list:LEFT(name,$Z)=$N}
