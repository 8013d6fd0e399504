/* One row per dump format. Included more than once, so without a guard. */
ROW(acc)
ROW(msprobe)
ROW(ptdbg)
ROW(npy)
ROW(pt)
