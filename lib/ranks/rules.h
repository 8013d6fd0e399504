/* rules.h - what ranks say of each other, by name
 *
 * RULE(id, principle, needs, level, what it holds). A rule's id stands in `audit.rule`, in the finding, in
 * accaudit(1); --no-rule and --doubt take it. Principles:
 *	EXACT   what communication makes is what its operands give
 *	SAME    what is the same on all ranks stays the same
 *	SUM     a gradient is one number times the sum over the ranks that hold its weight, each once
 *	BACK    what goes to other ranks in the forward pass comes back in the backward pass
 *	LINE    the calls of one line of code go the same way
 * needs GROUPS: it asks who communicates with whom, and is left out where recorded groups contradict the ranks. */
#ifndef ACC_RANKS_RULES_H
#define ACC_RANKS_RULES_H

#include "acc/ranks.h"

#define ACC_RANK_RULES(RULE) \
	RULE(collective, EXACT, GROUPS, ACCUSES, \
		"a communication leaves on each rank what the operands of its group give") \
	/* the same on all ranks */ \
	RULE(unequal_weight, SAME, GROUPS, ACCUSES, \
		"ranks that join the gradients of a weight begin with the same weight") \
	RULE(odd_weight, SAME, GROUPS, ACCUSES, \
		"a weight that all ranks but one have alike, as the others of its line, is the same on that one") \
	RULE(weight_drift, SAME, NOTHING, ACCUSES, \
		"a weight that ranks had alike in one step they have alike in the next") \
	RULE(tied_weight, SAME, NOTHING, ACCUSES, \
		"a weight that two stages share stays the same on both") \
	RULE(weight_update, SAME, NOTHING, ACCUSES, \
		"what makes a weight anew makes it alike where ranks had it alike") \
	RULE(optimizer_state, SAME, NOTHING, ACCUSES, \
		"states and numbers of optimizers are the same where weights and gradients are") \
	RULE(forward_parts, SAME, GROUPS, ACCUSES, \
		"what ranks computed alike before stays so on the way to a weight that they share") \
	RULE(skipped_step, SAME, GROUPS, ACCUSES, \
		"between two communications all ranks take as many steps of their optimizers") \
	RULE(learning_rate, SAME, GROUPS, ACCUSES, \
		"the rate of an optimizer is the same on ranks that join gradients or weights") \
	RULE(optimizer_gradients, SAME, GROUPS, ACCUSES, \
		"optimizers are given the same gradients where the weights are the same") \
	RULE(stale_shard, SAME, GROUPS, ACCUSES, \
		"what the next step begins with was gathered after the step of the optimizer, and no rank has lost it") \
	RULE(stale_weight, SAME, GROUPS, DOUBTS, \
		"a weight moves once an optimizer has changed what it is gathered or copied from") \
	RULE(running_state, SAME, GROUPS, ACCUSES, \
		"a state that ranks had alike, such as a running mean, they have alike after each step") \
	RULE(random_draw, SAME, GROUPS, ACCUSES, \
		"random numbers are the same where what they are for is the same on all ranks") \
	RULE(rank_number, SAME, GROUPS, ACCUSES, \
		"an op call that is given the same on all ranks makes the same on all") \
	RULE(parallel_inputs, SAME, GROUPS, ACCUSES, \
		"ranks that hold parts of weights are given the same data, and masks of their own for parts") \
	RULE(routing, SAME, GROUPS, ACCUSES, \
		"what chooses experts for the same tokens chooses alike on all ranks") \
	RULE(call_switch, SAME, GROUPS, ACCUSES, \
		"an op call of ranks with the same weights has the same switches and numbers") \
	RULE(loss_labels, SAME, GROUPS, ACCUSES, \
		"the same predictions are compared with the same labels") \
	RULE(unequal_loss, SAME, GROUPS, ACCUSES, \
		"ranks that share their data and hold parts of weights have one loss") \
	RULE(data_parallel, SAME, GROUPS, ACCUSES, \
		"ranks with the same weights have data of their own, and the same of all that is no data") \
	RULE(sequence_positions, SAME, GROUPS, ACCUSES, \
		"each part of a sequence begins at the position where the one before it ends") \
	RULE(contrastive_labels, SAME, GROUPS, ACCUSES, \
		"labels of a rank's rows name the columns that it gave") \
	/* each once in the sum */ \
	RULE(gradient_shares, SUM, NOTHING, ACCUSES, \
		"of all ranks that hold a weight, each has as large a part in the gradient that its optimizer is given") \
	RULE(gradient_factor, SUM, GROUPS, ACCUSES, \
		"gradients of all weights are scaled by one number on their way to the optimizer") \
	RULE(gradient_divisor, SUM, GROUPS, ACCUSES, \
		"gradients of losses that are means are averaged over the ranks") \
	RULE(clip_factor, SUM, GROUPS, ACCUSES, \
		"what scales all gradients, such as a norm that clips them, is one number for all ranks") \
	RULE(micro_batches, SUM, GROUPS, ACCUSES, \
		"gradients of all micro-batches are joined over the ranks, each once") \
	RULE(accumulated_gradient, SUM, GROUPS, DOUBTS, \
		"gradients of micro-batches that are added up count once each") \
	RULE(late_gradient, SUM, GROUPS, ACCUSES, \
		"no gradient of a rank's own is added to what the ranks have summed up already") \
	RULE(double_counted, SUM, GROUPS, ACCUSES, \
		"what all ranks have whole is not summed up, gathered or exchanged as if it were a part") \
	RULE(double_reduction, SUM, GROUPS, ACCUSES, \
		"what ranks have summed up, or dealt out, they do not sum up again") \
	RULE(means_and_norms, SUM, GROUPS, ACCUSES, \
		"a reduction averages means of as many elements, and sums up norms of parts, each once") \
	RULE(own_clip, SUM, GROUPS, ACCUSES, \
		"gradients are not clipped by a rank's own norm before they are joined") \
	RULE(loss_divisor, SUM, GROUPS, ACCUSES, \
		"together the labels of all ranks count once each in the loss") \
	RULE(seed_gradient, SUM, GROUPS, ACCUSES, \
		"a loss that is divided by a number of the ranks begins backward with a gradient that fits it") \
	RULE(loss_terms, SUM, GROUPS, ACCUSES, \
		"the terms of one loss, on ranks that hold parts, are divided by one number, once") \
	RULE(counted_labels, SUM, GROUPS, DOUBTS, \
		"a reduction counts each label that the losses have, once") \
	RULE(local_mean, SUM, GROUPS, DOUBTS, \
		"means whose gradients are joined are over as many elements") \
	RULE(unreduced_gradient, SUM, GROUPS, ACCUSES, \
		"where most gradients of weights that ranks have alike are joined, all are, with no optimizer recorded") \
	RULE(idle_optimizer, SUM, NOTHING, ACCUSES, \
		"an optimizer that takes a step behind a backward pass is given a gradient") \
	RULE(stage_mean, SUM, GROUPS, ACCUSES, \
		"stages that share a weight sum up their parts of its gradient") \
	/* and back */ \
	RULE(adjoint, BACK, GROUPS, ACCUSES, \
		"the gradient of what goes to other ranks is the sum of what all of them make of it") \
	RULE(gradient_exchange, BACK, GROUPS, ACCUSES, \
		"the gradient of what was exchanged or gathered is exchanged, too") \
	RULE(missing_backward, BACK, GROUPS, ACCUSES, \
		"what is exchanged and wants a gradient is followed by an exchange in the backward pass") \
	RULE(cut_gradient, BACK, GROUPS, DOUBTS, \
		"what is given to other ranks and wants a gradient is not cut off from it") \
	RULE(stage_gradient, BACK, NOTHING, ACCUSES, \
		"the gradient that a stage is given is that of what it sent") \
	RULE(send_receive, BACK, NOTHING, ACCUSES, \
		"what is received is used, and its gradient is sent back, once") \
	/* the same way */ \
	RULE(wrong_group, LINE, GROUPS, ACCUSES, \
		"ranks join gradients of the same weight, in the same order") \
	RULE(missing_reduction, LINE, GROUPS, ACCUSES, \
		"what went through a reduction in one call of a line goes through one in all") \
	RULE(other_group, LINE, GROUPS, DOUBTS, \
		"what an op call is given comes from ranks of one group, as in the others of its line") \
	RULE(other_reduction, LINE, GROUPS, DOUBTS, \
		"the reductions of one line are all sums, all means or all largest") \
	RULE(joined_moments, LINE, GROUPS, ACCUSES, \
		"a deviation from a mean that was joined over the ranks is joined, too") \
	RULE(gathered_columns, LINE, GROUPS, ACCUSES, \
		"parts of the columns of a product are gathered beside each other") \
	RULE(split_embedding, LINE, GROUPS, ACCUSES, \
		"what is looked up in a part of a table is masked on all ranks but one before it is summed up") \
	RULE(projected_gradient, LINE, GROUPS, ACCUSES, \
		"gradients that are brought to fewer numbers before a sum are so by one factor on all ranks")

#define ACC_RULE_ENUM(id, principle, needs, level, what) ACC_RULE_##id,
enum acc_rank_rule_id { ACC_RANK_RULES(ACC_RULE_ENUM) ACC_RANK_NRULES };

#endif
