"""Families of labelled conversations. Each module gives functions that yield Case; `docs/cases.md` says what they are about."""
