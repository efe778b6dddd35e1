"""HTTP layer: routes, content negotiation, admission, problem documents."""
