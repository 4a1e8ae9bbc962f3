{list:name=$N}
