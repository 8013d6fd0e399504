/* One row per output format. Included more than once, so without a guard. */
ROW(table)
ROW(json)
ROW(csv)
ROW(tsv)
ROW(md)
ROW(html)
ROW(xlsx)
