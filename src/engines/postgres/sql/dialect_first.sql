{set}
{dialect_first}
