"""Lua scripts of the store, one file each. A file `shared.lua` has the functions that the scripts beside it call."""

import re
from pathlib import Path

_Constant = str | int | tuple[float, ...]


def read(path: str, **constants: _Constant) -> str:
    """Return the Lua code of a file, such as "account/charge", after a local variable for each constant."""
    code = (Path(__file__).parent / f"{path}.lua").read_text(encoding="utf-8")
    return "".join(f"local {name} = {_literal(value)}\n" for name, value in constants.items()) + code


def commands() -> list[str]:
    """Return the commands of the store that scripts call."""
    code = "".join(path.read_text(encoding="utf-8") for path in sorted(Path(__file__).parent.rglob("*.lua")))
    return sorted({*re.findall(r"redis\.p?call\('(\w+)'", code)})


def _literal(value: _Constant) -> str:
    if isinstance(value, tuple):
        return f"{{{', '.join(map(str, value))}}}"
    return f"'{value}'" if isinstance(value, str) else str(value)
