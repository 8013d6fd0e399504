/* One row per output format. Included more than once, so without a guard. */
ROW(json)
