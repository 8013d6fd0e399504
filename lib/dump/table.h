/* One row per dump format. Included more than once, so without a guard. */
ROW(msprobe)
ROW(ptdbg)
ROW(npy)
ROW(pt)
ROW(acc)
