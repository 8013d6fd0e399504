/* One row per way of pairing; the first is the default. Included more than once, so without a
 * guard. */
ROW(sequence)
ROW(name)
ROW(msprobe)
ROW(msprobe_26)
ROW(msprobe_8_3)
ROW(ptdbg)
