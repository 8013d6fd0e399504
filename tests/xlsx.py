#!/usr/bin/env python3
"""A spreadsheet of accfmt read back with openpyxl against the same stream as CSV, cell by cell:
	xlsx.py FILE.xlsx FILE.csv [check]
Sheets behind the first are the rows of the CSV, in order, once they are put together. With "check",
what does not show in cells is looked at, too: filters, frozen titles, colours, notes."""
import csv
import math
import sys

import openpyxl


def same(cell, text):
    v = cell.value
    if v is None:
        return text == ""
    if isinstance(v, bool):
        return text == str(v).lower()
    if isinstance(v, (int, float)):
        # Spreadsheets have 15 digits, the library writes 16.
        return math.isfinite(v) and math.isclose(float(text), v, rel_tol=1e-15)
    # A control character is no text of XML; CSV keeps a formula from acting.
    plain = "".join(c if c in "\n\t" or ord(c) >= 32 and not 127 <= ord(c) < 160 else "\ufffd" for c in text)
    return v in (text, plain, plain.removeprefix("'")) and cell.data_type == "s"


book = openpyxl.load_workbook(sys.argv[1])
want = list(csv.reader(open(sys.argv[2], encoding="utf-8", errors="replace", newline="")))
front, sheets = book.worksheets[0], book.worksheets[1:]
assert front.title == "Finding"
titles, rows = want[0], want[1:]
if "kind" in titles: # findings have a sheet of their own
    rows = [w for w in rows if w[titles.index("kind")] != "finding"]
got = []
for ws in sheets:
    assert [c.value for c in ws[1]] == titles, [c.value for c in ws[1]]
    got += list(ws.iter_rows(min_row=2))
assert len(got) == len(rows), (len(got), len(rows))
for g, w in zip(got, rows):
    for cell, text in zip(g, w, strict=True):
        assert same(cell, text), (cell.parent.title, cell.coordinate, cell.value, text)
if "check" in sys.argv:
    for ws in sheets:
        assert ws.freeze_panes == "B2", ws.freeze_panes
        assert ws.auto_filter.ref == ws.dimensions, ws.auto_filter.ref
    fills = {c.value: c.fill.fgColor.rgb for ws in sheets for row in ws for c in row if c.value in ("error", "warning")}
    assert fills.get("error") == "FFF8CBC6", fills
    assert front["B3"].value and front["A3"].value == "first bad op call"
    assert any(c.comment and "model.py" in c.comment.text for ws in sheets for row in ws for c in row)
    tiny = [c for ws in sheets for row in ws for c in row if isinstance(c.value, float) and 0 < abs(c.value) < 1e-6]
    assert tiny and all(c.number_format == "0.00E+00" for c in tiny)
    zero = [c for ws in sheets for row in ws for c in row if c.value == 0 and c.data_type == "n"]
    assert all(c.number_format == "General" for c in zero)
    links = [c.hyperlink.location for row in front for c in row if c.hyperlink]
    # Those of the list of sheets, and of what a finding names; they lead to the first bad row.
    assert len(links) == len(sheets) + 1, links
    ws, cell = front["C3"].hyperlink.location.replace("'", "").rsplit("!", 1)
    assert book[ws][cell].value.startswith(front["C3"].value) and book[ws]["B" + cell[1:]].value == "error", (ws, cell)
    # As high as its text is long; on paper across.
    for row in range(3, front.max_row + 1):
        text = front.cell(row, 2).value
        assert text is None or len(text) <= 105 or front.row_dimensions[row].height >= 15 * len(text) / 110, text
    assert all(ws.page_setup.orientation == "landscape" for ws in book.worksheets)
    assert front.sheet_properties.pageSetUpPr.fitToPage
    assert all((ws.print_title_rows, ws.print_title_cols) == ("$1:$1", "$A:$A") for ws in sheets)
