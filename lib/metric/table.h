/* One row per metric, in the order of the fields. Included more than once, so without a
 * guard. */

/* one tensor: one.c */
ROW(s_min)
ROW(s_max)
ROW(s_mean)
ROW(s_norm)
ROW(s_nan)
ROW(s_posinf)
ROW(s_neginf)
ROW(s_zero)
ROW(s_sat)
ROW(s_hash)

/* direction: cosine.c */
ROW(cosine)
ROW(one_minus_cosine)

/* distance: distance.c */
ROW(euclid)
ROW(rel_l2)
ROW(rmse)
ROW(snr)
ROW(mean_abs)
ROW(max_abs)
ROW(worst)

/* relative to b: relative.c */
ROW(max_rel)
ROW(mean_rel)
ROW(thousandth)
ROW(five_thousandths)
ROW(b_zero)

/* units in the last place: ulp.c */
ROW(ulp_max)
ROW(ulp_hist)

/* agreement: agree.c */
ROW(outside)
ROW(rtol)
ROW(atol)
ROW(same)
ROW(nonfinite)
ROW(equal)

/* for attribution: attribution.c */
ROW(err_rms)
ROW(err_max)

/* of recorded statistics: statistics.c */
ROW(max_diff)
ROW(min_diff)
ROW(mean_diff)
ROW(norm_diff)
ROW(max_relerr)
ROW(min_relerr)
ROW(mean_relerr)
ROW(norm_relerr)

/* the structure of the error: where.c */
ROW(where)
ROW(where_axis)
ROW(where_set)
ROW(where_share)
ROW(where_of)
ROW(where_how)
ROW(where_by)
ROW(where_along)

/* scores along the last axis: logits.c */
ROW(logits_top1)
ROW(logits_top5)
ROW(logits_kl)
ROW(logits_first)

/* the two of maca_tools: maca.c */
ROW(diff1)
ROW(diff2)

/* the ten metrics of msaccucmp: acu.c */
ROW(acu_cosine)
ROW(acu_max_abs)
ROW(acu_sum_rel)
ROW(acu_rel_euclid)
ROW(acu_kld)
ROW(acu_std)
ROW(acu_mean_abs)
ROW(acu_rmse)
ROW(acu_max_rel)
ROW(acu_mean_rel)
