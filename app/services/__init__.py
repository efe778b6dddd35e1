"""Operations of the service, independent of HTTP: they combine core and store."""
