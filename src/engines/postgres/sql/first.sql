{set}
{backend_row}
