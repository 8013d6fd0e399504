/* group_rules.h - the rules of a group of ranks as a whole, as functions */
#ifndef ACC_RANKS_GROUP_RULES_H
#define ACC_RANKS_GROUP_RULES_H

#include "ranks/near.h"

/* Those of a group as a whole, in the order in which they speak: the first of a record stays. */
#define ACC_GROUP_RULES(RULE) \
	RULE(gradient_factor, acc_rule_factor) \
	RULE(clip_factor, acc_rule_numbers) \
	RULE(micro_batches, acc_rule_micro) \
	RULE(gradient_exchange, acc_rule_dual) \
	RULE(missing_reduction, acc_rule_roles) \
	RULE(other_group, acc_rule_groups) \
	RULE(running_state, acc_rule_state) \
	RULE(joined_moments, acc_rule_moments) \
	RULE(adjoint, acc_rule_adjoint) \
	RULE(double_counted, acc_rule_whole) \
	RULE(other_reduction, acc_rule_kinds) \
	RULE(accumulated_gradient, acc_rule_terms) \
	RULE(projected_gradient, acc_rule_project) \
	RULE(gathered_columns, acc_rule_columns) \
	RULE(split_embedding, acc_rule_lookup) \
	RULE(gradient_divisor, acc_fleet_divisor) \
	RULE(loss_terms, acc_rule_own_counts) \
	RULE(counted_labels, acc_rule_counted) \
	RULE(loss_divisor, acc_rule_total) \
	RULE(loss_divisor, acc_rule_divided) \
	RULE(seed_gradient, acc_rule_begins) \
	RULE(missing_backward, acc_rule_back) \
	RULE(learning_rate, acc_rule_rates) \
	RULE(stage_mean, acc_rule_shared) \
	RULE(sequence_positions, acc_rule_sequence) \
	RULE(contrastive_labels, acc_rule_contrast) \
	RULE(stale_shard, acc_rule_kept) \
	RULE(optimizer_gradients, acc_rule_gradients) \
	RULE(stale_weight, acc_rule_stay) \
	RULE(skipped_step, acc_rule_skipped) \
	RULE(late_gradient, acc_rule_late) \
	RULE(own_clip, acc_rule_clipped) \
	RULE(local_mean, acc_rule_doubt) \
	RULE(cut_gradient, acc_rule_cut_off) \
	RULE(unreduced_gradient, acc_rule_unreduced)
typedef int acc_group_rule(struct acc_replicas *t, const struct acc_rank_group *g,
	const struct acc_seen_call **room, struct acc_err *e);
#define ACC_DECLARE(id, function) acc_group_rule function;
ACC_GROUP_RULES(ACC_DECLARE)
#undef ACC_DECLARE

#endif
