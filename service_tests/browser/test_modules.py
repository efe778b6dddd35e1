"""The page's own reading and writing of files, held against NumPy's, in the browser that does it."""

import io
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from numpy.typing import NDArray

from service_tests.checks import npy

if TYPE_CHECKING:
    from playwright.sync_api import Page

pytestmark = pytest.mark.nightly

_CALL = """async ([module, work, given]) => {
  const source = document.querySelector('script[type=module]').src;
  const found = await import(new URL(module, source).href);
  const bytes = (list) => new Uint8Array(list);
  const plain = (rows) => ({ ...rows, values: Array.from(rows.values, String) });
  try {
    if (work === 'read') return plain(found.read(bytes(given)));
    if (work === 'axis') return { ends: found.range(given), ticks: found.ticks(...found.range(given)) };
    if (work === 'ticks') return found.ticks(...given);
    if (work === 'parse') return plain(found.parse(given));
    if (work === 'firstRows') {
      const pieces = [];
      for (let at = 0; at < given.length; at += 100) pieces.push(bytes(given.slice(at, at + 100)));
      let sent = 0;
      const body = new ReadableStream(
        { pull(to) { to.enqueue(pieces[sent]); sent += 1; if (sent === pieces.length) to.close(); } },
        { highWaterMark: 0 });
      return { ...plain(await found.firstRows({ body }, 3)), sent };
    }
    return Array.from(new Uint8Array(found.write({ ...given, values: new Float64Array(given.values) })));
  } catch (error) { return { error: error.message }; }
}"""
ROWS = np.arange(-6, 6).reshape(4, 3)
DTYPES = ["<f4", "<f8", ">f4", ">f8", "i1", "u1", "?", "<i2", ">u2", "<i4", "<u4", "<i8", ">i8", "<u8"]


def call(page: "Page", module: str, work: str, given: Any) -> Any:
    return page.evaluate(_CALL, [module, work, list(given) if isinstance(given, bytes) else given])


def rows_of(found: Any) -> NDArray[np.float64]:
    assert "error" not in found, found
    return np.array([float(one) for one in found["values"]]).reshape(found["n"], found["d"])


@pytest.fixture(scope="module")
def modules(site: Any, chromium: Any) -> Any:
    from service_tests.browser.browsing import watched

    with watched(chromium, site.url) as seen:
        seen.page.goto("/")
        yield seen.page


@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("dtype", DTYPES)
def test_files_of_numpy_are_read(modules: "Page", dtype: str, order: Any) -> None:
    rows = np.abs(ROWS) if np.dtype(dtype).kind in "ub" else ROWS / 4 if np.dtype(dtype).kind == "f" else ROWS
    stored = np.array(rows.astype(dtype), order=order)
    np.testing.assert_array_equal(rows_of(call(modules, "npy.js", "read", npy(stored))), stored.astype(np.float64))


def test_complex_numbers_are_two_columns(modules: "Page") -> None:
    stored = (ROWS + 1j * ROWS[::-1]).astype(np.complex64)
    found = rows_of(call(modules, "npy.js", "read", npy(stored)))
    np.testing.assert_array_equal(found, stored.view(np.float32).astype(np.float64))


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"1,2,3\n4,5,6\n", "no .npy"),
        (npy(ROWS)[:-1], "cut off"),
        (npy(ROWS)[:40], "cut off"),
        (npy(np.array([["a"]])), "no plain numbers"),
        (npy(np.array([[{}]], dtype=object)), "no plain numbers"),
        (npy(np.float64(3)), "single number"),
    ],
    ids=["text", "short data", "short head", "words", "objects", "a scalar"],
)
def test_other_files_are_refused_by_name(modules: "Page", content: bytes, said: str) -> None:
    assert said in call(modules, "npy.js", "read", content)["error"]


def test_what_is_written_is_what_numpy_reads(modules: "Page") -> None:
    rows = np.random.default_rng(3).normal(size=(7, 5))
    written = call(modules, "npy.js", "write", {"n": 7, "d": 5, "values": rows.ravel().tolist()})
    np.testing.assert_array_equal(np.load(io.BytesIO(bytes(written))), rows)


def test_of_a_long_answer_the_first_rows_are_read_and_no_more(modules: "Page") -> None:
    rows = np.random.default_rng(3).normal(size=(5000, 4))
    found = call(modules, "npy.js", "firstRows", npy(rows)[:20_000] + bytes(npy(rows)[20_000:]))
    np.testing.assert_array_equal(rows_of(found), rows[:3])
    assert found["of"] == 5000
    assert found["sent"] <= 4, "of 1,602 pieces"


@pytest.mark.parametrize(
    ("text", "rows", "note"),
    [
        ("1,2\n3,4", [[1, 2], [3, 4]], ""),
        ("1;2\r\n\r\n3;4\r\n", [[1, 2], [3, 4]], ""),
        ("# made by hand\n1\t2\n3 4", [[1, 2], [3, 4]], ""),
        ("a,b\n1e3,-2.5\n.5,+4", [[1000, -2.5], [0.5, 4]], "Left out: the first line, of names."),
        (
            'x,letter,y\n1,"T",2\n3,"I",4',
            [[1, 2], [3, 4]],
            "Left out: the first line, of names, 1 column without numbers.",
        ),
        ("a,letter,b\n1,T,2\n3,I,4", [[1, 2], [3, 4]], "Left out: the first line, of names, 1 column without numbers."),
        ("1,5;2\n3;,25", [[1.5, 2], [3, 0.25]], ""),
        (
            'x,who\n1,"Smith, John"\n3,New York',
            [[1], [3]],
            "Left out: the first line, of names, 1 column without numbers.",
        ),
        ("1,,3\n4,nan,6", [[1, np.nan, 3], [4, np.nan, 6]], ""),
        ("7", [[7]], ""),
    ],
    ids=[
        "commas",
        "semicolons",
        "blanks",
        "names",
        "quoted",
        "letters",
        "decimal commas",
        "words in cells",
        "missing",
        "one number",
    ],
)
def test_texts_of_rows_are_read(modules: "Page", text: str, rows: list[list[float]], note: str) -> None:
    found = call(modules, "csv.js", "parse", text)
    np.testing.assert_array_equal(rows_of(found), rows)
    assert found["note"] == note


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("1,2\n3", "Row 2 has 1 cells; the first has 2"),
        ("1,2\n3,x", "Row 2, column 2: “x”"),
        ("1\t2\n3\t4,5", "“4,5” is no number"),
        ("\n#\n", "no rows of numbers"),
        ("a,b", "no rows of numbers"),
    ],
)
def test_what_is_no_rows_is_told_by_its_place(modules: "Page", text: str, said: str) -> None:
    assert said in call(modules, "csv.js", "parse", text)["error"]


@pytest.mark.parametrize(
    ("numbers", "ticks"),
    [
        ([0, 1], [0, 0.2, 0.4, 0.6, 0.8, 1]),
        ([-2.5, 4], [-2, 0, 2, 4]),
        ([1e-300, 2e-300], [1e-300, 1.2e-300, 1.4e-300, 1.6e-300, 1.8e-300, 2e-300]),
        ([1e9, 1e9 + 2], [1e9, 1e9 + 0.5, 1e9 + 1, 1e9 + 1.5, 1e9 + 2]),
        ([8, 8.000000000000002], [4, 6, 8, 10, 12]),
        ([-3, -3, -3], [-4.5, -4, -3.5, -3, -2.5, -2, -1.5]),
        ([0, 0], [-0.4, -0.2, 0, 0.2, 0.4]),
        ([], [0, 0.2, 0.4, 0.6, 0.8, 1]),
    ],
    ids=["shares", "both signs", "tiny", "far from 0", "by rounding", "alike", "zeros", "none"],
)
def test_axes_have_few_round_numbers(modules: "Page", numbers: list[float], ticks: list[float]) -> None:
    found = call(modules, "chart.js", "axis", numbers)
    assert found["ends"][0] < found["ends"][1]
    np.testing.assert_allclose(found["ticks"], ticks, rtol=1e-9, atol=1e-12 * max(map(abs, numbers), default=1))


def test_between_neighbouring_numbers_no_ticks_are_sought_for_ever(modules: "Page") -> None:
    assert len(call(modules, "chart.js", "ticks", [8, 8.000000000000002])) < 20


def test_seeds_keep_all_their_digits(modules: "Page") -> None:
    text = '{"seed":18446744073709551615,"s":8,"none":{"seed":null},"small":{"seed":7}}'
    told = modules.evaluate(
        """async (text) => {
          const source = document.querySelector('script[type=module]').src;
          const { number, parse, stringify } = await import(new URL("json.js", source).href);
          return [stringify(parse(text)), stringify({ seed: number("9007199254740993") })];
        }""",
        text,
    )
    assert told == [text, '{"seed":9007199254740993}'], "a double has 53 bits of them"
