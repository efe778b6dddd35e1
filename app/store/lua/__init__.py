"""Lua scripts of the store, one file each. A file `shared.lua` has the functions that the scripts beside it call."""

from pathlib import Path

_Constant = str | int | tuple[float, ...]


def read(path: str, **constants: _Constant) -> str:
    """Return the Lua code of a file, such as "account/charge", after a local variable for each constant."""
    code = (Path(__file__).parent / f"{path}.lua").read_text(encoding="utf-8")
    return "".join(f"local {name} = {_literal(value)}\n" for name, value in constants.items()) + code


def _literal(value: _Constant) -> str:
    if isinstance(value, tuple):
        return f"{{{', '.join(map(str, value))}}}"
    return f"'{value}'" if isinstance(value, str) else str(value)
