{spring_list} {spring_held}
