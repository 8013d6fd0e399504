/* measured.h - what rules over ranks were measured to be worth
 *
 * MEASURED(id, right, of): of so many of its accusations, in cases that did not teach it, so many were right;
 * tests/RESULTS.md has the table, tests/selfcheck/without.py made it. A rule that is not here was not measured. */
#ifndef ACC_RANKS_MEASURED_H
#define ACC_RANKS_MEASURED_H

#define ACC_RANK_MEASURED(MEASURED) \
	MEASURED(unequal_weight, 13, 13) \
	MEASURED(odd_weight, 2, 2) \
	MEASURED(weight_drift, 12, 13) \
	MEASURED(tied_weight, 2, 2) \
	MEASURED(optimizer_state, 2, 2) \
	MEASURED(skipped_step, 2, 2) \
	MEASURED(learning_rate, 2, 2) \
	MEASURED(rank_number, 2, 2) \
	MEASURED(parallel_inputs, 2, 4) \
	MEASURED(call_switch, 4, 4) \
	MEASURED(data_parallel, 0, 2) \
	MEASURED(contrastive_labels, 1, 1) \
	MEASURED(gradient_shares, 1, 1) \
	MEASURED(gradient_factor, 3, 3) \
	MEASURED(gradient_divisor, 1, 1) \
	MEASURED(micro_batches, 6, 6) \
	MEASURED(double_counted, 2, 2) \
	MEASURED(double_reduction, 2, 2) \
	MEASURED(means_and_norms, 4, 4) \
	MEASURED(own_clip, 2, 2) \
	MEASURED(loss_divisor, 2, 4) \
	MEASURED(idle_optimizer, 0, 2) \
	MEASURED(stage_mean, 2, 2) \
	MEASURED(gradient_exchange, 1, 5) \
	MEASURED(stage_gradient, 2, 2) \
	MEASURED(send_receive, 6, 6) \
	MEASURED(wrong_group, 3, 3) \
	MEASURED(missing_reduction, 6, 6) \
	MEASURED(gathered_columns, 1, 1) \
	MEASURED(projected_gradient, 2, 2)

#endif
