/* One row per judge: the first that fits the records judges them. Included more than once, so
 * without a guard. */
ROW(rules)
ROW(audit)
ROW(overflow)
ROW(weights)
ROW(first_bad)
