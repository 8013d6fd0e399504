ROW(first_bad)
ROW(overflow)
ROW(rules)
ROW(weights)
