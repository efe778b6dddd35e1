"""HTTP: routes, negotiation, admission, problem documents."""
