/* One row per family: a table acc_ops_FAMILY of operators in the file of that name. Included more
 * than once, so without a guard. */
TABLE(product)
TABLE(arithmetic)
TABLE(attention)
TABLE(pool)
TABLE(rotary)
TABLE(interpolate)
