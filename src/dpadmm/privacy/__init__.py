"""What is promised: budgets, samplers, events, accountants, plans and statements. No row is ever seen here."""
