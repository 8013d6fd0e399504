load helper
# One run against itself. collective/*.acc.gz are of tests/data/make_collective.py; selfcheck.tar.gz of
#	tests/selfcheck/make.py OUT dp2-noise dp2-noise-tokens pp2-noise-tied drop2-noise-dropout \
#		ep2-noise-router tp2-noise-lost --task statistics
#	tar -C OUT --sort=name --owner=0 --group=0 --mtime=2026-01-01 -cf - . | gzip -9n
# fresh.tar.gz, the same way, of
#	tests/selfcheck/fresh.py OUT conv-noise-again conv-noise-eval edp-noise-egroup hsdp-noise \
#		hsdp-noise-node hsdp-noise-rgroup lstm-noise-init pipe-noise-crossed ring-noise-kvgrad vocab-noise \
#		vocab-noise-rowbias vocab-noise-sumexp --steps 1 --task statistics
#	tests/parallel/make.py OUT tp4-group --layers 2 --task statistics
# others.tar.gz, the same way, of
#	tests/selfcheck/others.py OUT accum-noise-again accum-noise-last flat-noise-clippart flat-noise-offset \
#		gather-noise-detach mqa-noise-amplified mqa-noise-qknorm ppdp-noise-buffer syncbn-noise-means \
#		tpdp-noise-clipdup tpdp-noise-tpdata ulysses-noise-half --task statistics
#	tests/selfcheck/others.py OUT ulysses-noise ulysses-noise-back --task md5
#	tests/selfcheck/fresh.py OUT zero-noise-order hsdp-noise-nosync --task statistics
#	tests/selfcheck/more.py OUT lora-noise-loradiv mixer-noise-addbias three-noise-repeated tokens-noise-count \
#		--task statistics
#	tests/selfcheck/unseen.py OUT replicated-noise-routers tables-noise --task statistics
# without step1, except of mqa-noise-qknorm and hsdp-noise-nosync. collective/masks.acc.gz and stages.acc.gz
# are, without step1, of
#	tests/selfcheck/others.py OUT seqdrop-noise-samemask; accdump-read --inline OUT/* | gzip -9n
#	tests/selfcheck/more.py OUT three-noise-swapped; accdump-read --inline OUT/* | gzip -9n

# held.tar.gz, the same way, of
#	tests/selfcheck/held.py OUT scan-noise-state scan-noise-stategrad chunks-noise-zerograd \
#		chunks-noise-tiedinit pairs-noise-nograd adapters-noise-loratwice grouped-noise-kvall \
#		grouped-noise-kvmean denoise-noise-samedata --task statistics
# without step1, and with it of
#	tests/selfcheck/held.py OUT denoise-noise-freqs policy-noise-oldpolicy pairs-noise-temp \
#		latent-noise-jitter hybrid-noise --task statistics
#	tests/selfcheck/more.py OUT layers-noise-prefetch --task statistics
#	tests/selfcheck/unseen.py OUT cell-noise-decay --task statistics
#	tests/parallel/make.py OUT zero4-noise --task statistics --seed 13
# legal.tar.gz, the same way, with step1, of
#	tests/selfcheck/legal.py OUT ones-noise depth-noise norms-noise exits-noise experts-noise loops-noise \
#		line-noise seeded-noise turns-noise choice-noise pupils-noise copies-noise rowcol-noise masks-noise \
#		sharp-noise chief-noise ends-noise --task statistics
#	tests/selfcheck/blind.py OUT branch-noise pipe-noise branch-noise-unused --task statistics
#	tests/selfcheck/afresh.py OUT prompt units --task statistics
# of units without step1
# last.tar.gz, the same way, of
#	tests/selfcheck/last.py OUT capacity-noise-turned square-noise-wrongpeers states-noise-gatednorm \
#		thirds-noise-fewer ring-noise ring-noise-stalekv --task statistics
#	tests/selfcheck/held.py OUT policy-noise-whiten --task statistics
#	tests/selfcheck/joined.py OUT whole-noise-logtp whole-noise-onemean text-noise-ringtext nodes-noise-overcount \
#		stages-noise-clip heads-noise-clipfirst --task statistics
# without step1, and with it of
#	tests/selfcheck/last.py OUT teacher-noise-ema teacher-noise-center --task statistics
#	tests/selfcheck/joined.py OUT seldom-noise bank-noise-repeated --task statistics
# uneven.tar.gz, the same way, of
#	tests/selfcheck/uneven.py OUT counts-noise-begins scales-noise-ownscale --task statistics
#	tests/selfcheck/blind.py OUT lowrank-noise-factors gated-noise-duplicates --task statistics
# without step1, and with it of
#	tests/selfcheck/uneven.py OUT counts-noise lengths-noise heads-noise chunks-noise scales-noise sketch-noise \
#		backlog-noise chosen-noise routed-noise points-noise chunks-noise-partnorm backlog-noise-lose \
#		--task statistics
#	tests/selfcheck/blind.py OUT rows-noise rows-noise-owncount remat-noise-layerdrop --task statistics
# sound.tar.gz, the same way, with step1, of
#	tests/selfcheck/sound.py OUT gan round stale skips --task statistics
# and without it of
#	tests/selfcheck/sound.py OUT gpt ring --task statistics
# afresh.tar.gz, the same way, with step1, of
#	tests/selfcheck/afresh.py OUT moe-sharedpart vit-ownmask moe-ownnoise moe-summedtwice llama-sameshard \
#		llama-partnorm speech-ownwords recs-onlyfirst --task statistics
# tracked.tar.gz, the same way, of
#	tests/selfcheck/tracked.py OUT speech-noise-unwaited vit-noise-early vit-noise-resumed --task statistics
# with the first two steps, and with the first alone of
#	tests/selfcheck/tracked.py OUT mqa-noise-tpdrop syncbn-noise-twice context-noise-ropezero \
#		context-noise-owncount context-noise-cpscale speech-noise-firstsync --task statistics
#	tests/selfcheck/uneven.py OUT shared-noise --task statistics
# tracked_experts.tar.gz, the same way, of
#	tests/selfcheck/tracked.py OUT moe-noise-router moe-noise-edp moe-noise-doubled --task statistics
# with the first two steps, of the last with the first alone.
# reported.tar.gz, the same way, of
#	tests/selfcheck/reported.py OUT accum-noise-notzeroed --task statistics
# with the first two steps, and with the first alone of
#	tests/selfcheck/reported.py OUT gated-noise-dupnorm robot-noise-ownrate mixed-noise-hookorder \
#		--task statistics
#	tests/selfcheck/tracked.py OUT stages-noise-recent --task statistics
# of the latter ranks 0 and 2.
# kinds.tar.gz, the same way, of
#	tests/selfcheck/kinds.py OUT accumulated-noise-resumed twostages-noise-unjoined ulysses-noise-headscale \
#		vit-noise-qknorm --task statistics
# and without step1 of
#	tests/selfcheck/kinds.py OUT vit-noise-normstoo dropped-noise-gatesum gathered-noise-undivided \
#		exchanged-noise-gateseed halves-noise-jitter gathered-noise-oldbias fourstages-noise-endsaverage \
#		ring-noise --task statistics
# scripts.tar.gz, the same way, of recordings of accrecord, of
#	tests/selfcheck/scripts.py OUT ddp-resume byhand-divisor byhand-bcast tokens-noworld accum-accumonce \
#		seqpar-spbias seqpar moe-a2aback moe-expertdiv zero-zerolr tpdp-divworld moedp ring-ringback \
#		--task statistics
# calm.tar.gz, the same way, of calm/, and programs.tar.gz, where stages is stages-right, of
#	tests/selfcheck/calm.py OUT retrieve gan frozen fednova gossip delayed --task statistics
#	tests/selfcheck/programs.py OUT stages gan-oncemore scan-cpaverage --task statistics
# trainers.tar.gz, the same way but with all steps, of
#	tests/selfcheck/trainers.py OUT hsdp-stale moe-normtwice moetp-reducetwice zero-foundinf --task statistics
#	tests/selfcheck/library.py OUT context-hooks context-valid sharded shared tagger --task statistics
#	tests/selfcheck/quiet.py OUT halo --task statistics
#	tests/selfcheck/rebuilt.py OUT zero-zerobcast zero-lastmicro moe-coalesce --task statistics
# torch2.tar.gz is, under PyTorch 2.6, of
#	tests/selfcheck/torch2.py torch2 fsdp1 fsdp1-rate fsdp1-localclip whole whole-notreduced fsdp2-divides \
#		sp-ratesp zero-ratezero --small --task statistics
# collective/alone.acc.gz, momentum.acc.gz, context.acc.gz, physics.acc.gz and scaled.acc.gz are, as masks.acc.gz and
# with all steps, of
#	tests/selfcheck/trainers.py OUT speech-emacopy speech-resumeopt
#	tests/selfcheck/library.py OUT context
#	tests/selfcheck/quiet.py OUT physics scaled
# and lengths.acc.gz and clipfirst.acc.gz, of their first step, of
#	tests/selfcheck/uneven.py OUT lengths
#	tests/selfcheck/trainers.py OUT nanogpt-clipfirst --task statistics
# and early.acc.gz, epscale.acc.gz, probgather.acc.gz, stagescale.acc.gz, hookdiv.acc.gz and tieclip.acc.gz, too, of
#	tests/selfcheck/library.py OUT sharded-early
#	tests/selfcheck/sixkinds.py OUT gather-epscale gather-probgather
#	tests/selfcheck/scripts.py OUT pipe-stagescale hook-hookdiv
#	tests/selfcheck/programs.py OUT stages-tieclip --task statistics
#	tests/selfcheck/othersix.py OUT cpdp-cptokens --task statistics
# (the last groupcount.acc.gz), and latewgrad.acc.gz of
#	tests/selfcheck/trainers.py OUT pipezero-latewgrad
# of two steps are notreduced.acc.gz and otherbuffer.acc.gz, of
#	tests/selfcheck/sixagain.py OUT titan-notreduced gpt2-otherbuffer --task statistics
# collective/flatgroup.acc.gz, startsum.acc.gz, crossed.acc.gz, epdiv.acc.gz and routerinit.acc.gz are, of one step,
# and partial.acc.gz, of two, of
#	tests/selfcheck/sixagain.py OUT rwkv-dpgroup
#	tests/selfcheck/tworanks.py OUT pipe-tiedearly tpmoe-gatepartial
#	tests/selfcheck/twomore.py OUT moe-expertsmean moe-expertscale mixtral-routerinit
# and sumstwice.acc.gz, of one step, skiplocal.acc.gz, of all, and partsmean.acc.gz, of two with
# --keep='Functional.embedding.*', of
#	tests/selfcheck/twofresh.py OUT longdoc-cptwice spikes-skiplocal mindspeed-spmean
# and nosync.acc.gz, of all, of
#	tests/selfcheck/twolast.py OUT accelerate-nosync
# and balance.acc.gz, decay.acc.gz, putback.acc.gz and zeros.acc.gz, of all steps, of
#	tests/selfcheck/library.py OUT moe-balance --task statistics
#	tests/record/decay.py OUT
#	tests/record/putback.py OUT
#	tests/record/zeros.py OUT
# collective/written.acc.gz and tokens.acc.gz are, as masks.acc.gz and with step1, of
#	tests/selfcheck/legal.py OUT masks --task accrecord
#	tests/selfcheck/more.py OUT tokens --task accrecord
# collective/table.acc.gz, unzeroed.acc.gz, columns.acc.gz, below.acc.gz and labels.acc.gz are, without step1, as
# masks.acc.gz, of
#	tests/selfcheck/uneven.py OUT table-noise table-noise-unzeroed shapes-noise shapes-noise-rows
#	tests/selfcheck/after.py OUT clip-noise-openoff
# and masked.acc.gz of
#	tests/selfcheck/sound.py OUT sequence-noise
# collective/halo.acc.gz, doubled.acc.gz, home.acc.gz and lost.acc.gz are, without step1, as
# masks.acc.gz, of
#	tests/selfcheck/held.py OUT halo-noise-haloback
#	tests/selfcheck/joined.py OUT doubling-noise-double doubling-noise-meanback
#	tests/selfcheck/after.py OUT sizes-noise-microdrop
# places.acc.gz, peers.acc.gz, targets.acc.gz and dropped.acc.gz, the same way, of
#	tests/selfcheck/uneven.py OUT ordered-noise-places
#	tests/selfcheck/afresh.py OUT sft-otherpeers
#	tests/selfcheck/held.py OUT pairs-noise-targets
#	tests/selfcheck/tracked.py OUT mega-noise-samemask
# halves.acc.gz and twice.acc.gz, the same way, of
#	tests/selfcheck/reported.py OUT switch-noise
#	tests/selfcheck/reported.py OUT switch-noise --seed 5
# counted.acc.gz, the same way, and copies.acc.gz, with step1, of
#	tests/selfcheck/afresh.py OUT sft-wholecount choice-copiesonly

setup_file() {
	tar -C "$BATS_FILE_TMPDIR" -xzf "$DATA/selfcheck.tar.gz"
	tar -C "$BATS_FILE_TMPDIR" -xzf "$DATA/fresh.tar.gz"
	tar -C "$BATS_FILE_TMPDIR" -xzf "$DATA/others.tar.gz"
	tar -C "$BATS_FILE_TMPDIR" -xzf "$DATA/held.tar.gz"
	tar -C "$BATS_FILE_TMPDIR" -xzf "$DATA/last.tar.gz"
	tar -C "$BATS_FILE_TMPDIR" -xzf "$DATA/legal.tar.gz"
	tar -C "$BATS_FILE_TMPDIR" -xzf "$DATA/uneven.tar.gz"
	tar -C "$BATS_FILE_TMPDIR" -xzf "$DATA/sound.tar.gz"
	tar -C "$BATS_FILE_TMPDIR" -xzf "$DATA/afresh.tar.gz"
	tar -C "$BATS_FILE_TMPDIR" -xzf "$DATA/tracked.tar.gz"
	tar -C "$BATS_FILE_TMPDIR" -xzf "$DATA/tracked_experts.tar.gz"
	tar -C "$BATS_FILE_TMPDIR" -xzf "$DATA/reported.tar.gz"
	tar -C "$BATS_FILE_TMPDIR" -xzf "$DATA/kinds.tar.gz"
	tar -C "$BATS_FILE_TMPDIR" -xzf "$DATA/scripts.tar.gz"
	tar -C "$BATS_FILE_TMPDIR" -xzf "$DATA/calm.tar.gz"
	tar -C "$BATS_FILE_TMPDIR" -xzf "$DATA/programs.tar.gz"
	tar -C "$BATS_FILE_TMPDIR" -xzf "$DATA/trainers.tar.gz"
	tar -C "$BATS_FILE_TMPDIR" -xzf "$DATA/torch2.tar.gz"
}

# Nothing is said of what these runs record.
right() { # run ...
	for run; do
		accdump-read "$run" >in
		accaudit in 2>/dev/null >out || [ $? -eq 2 ]
		accfmt --json out | jq -es 'map(select(.["audit.ok"] == false)) == []' || { echo "$run"; return 1; }
	done
}

setup() {
	cd "$BATS_FILE_TMPDIR" || return
}

@test "communication: what numpy makes of the operands is right, and what was made wrong is said" {
	accaudit "$DATA/collective/sums.acc.gz" | accfmt --json |
		jq -c 'select(.kind == "tensor" and .io == "out" and (.pos | startswith("0")))' >v
	jq -es 'map(select(has("audit.ok") | not)) == []' v
	jq -es 'map(select(has("x-wrong"))) | length == 40' v
	jq -es 'map(select(.["audit.ok"] and (has("x-wrong") | not))) | length == 289' v
	jq -es 'map(select(has("x-wrong")) | select(.["audit.ok"] or .["audit.ranks"] == null or
		(.["x-wrong"] as $w | .["audit.cause"] | contains($w) | not))) == []' v
}

@test "communication: statistics accuse nothing that is right, and say what they contradict" {
	accaudit "$DATA/collective/statistics.acc.gz" 2>/dev/null >out || [ $? -eq 2 ]
	accfmt --json out | jq -c 'select(.kind == "tensor" and .io == "out" and (.pos | startswith("0")))' >v
	jq -es 'map(select(.["audit.ok"])) == []' v
	jq -es 'map(select(.["audit.ok"] == false)) | length == 34' v
	jq -es 'map(select(has("x-wrong") | not)) | length == 319 and all(has("audit.skip"))' v
	jq -es 'map(select(has("x-wrong") and (.["x-wrong"] as $w | .["audit.cause"] | contains($w) | not))) == []' v
}

@test "communication: a group that was not recorded is not all ranks, whatever the recorded ones show" {
	accaudit "$DATA/collective/pairs.acc.gz" 2>/dev/null >out || [ $? -eq 2 ]
	accfmt --json out | jq -es 'map(select(.["audit.ok"] == false)) == [] and
		(map(select(.["audit.skip"] // "" | contains("seems not to be the ranks"))) | length == 8)'
}

@test "communication: the first that is wrong is the culprit, its rank is named" {
	run -1 bash -c 'accaudit "$DATA/collective/sums.acc.gz" | accfirstbad | accfmt --json'
	jq -es 'map(select(.what == "culprit"))[0] | .rank == 1 and
		.name == "Distributed.all_reduce.1.forward" and
		(.text | contains("its output is this rank'"'"'s own operand: nothing was reduced here (rule collective, of ranks 0-2"))' \
		<<<"$output"
}

# The culprit's name, step and rank, and what is said of it, of statistics alone.
named() { # run, name, step, rank, text
	run -1 bash -c "accdump-read $1 | accaudit | accfirstbad | accfmt --json"
	jq -r 'select(.what == "culprit") | .text' <<<"$output"
	jq -es --arg n "$2" --argjson s "$3" --argjson r "$4" --arg t "$5" 'map(select(.what == "culprit"))
		| length == 1 and (.[0] | .name == $n and .step == $s and .rank == $r and
		(.text | contains($t)))' <<<"$output"
}

# The same of a stream with its elements.
alone() { # stream, name, text
	run -1 bash -c "accaudit $DATA/collective/$1.acc.gz | accfirstbad | accfmt --json"
	jq -r 'select(.what == "culprit") | .text' <<<"$output"
	jq -es --arg n "$2" --arg t "$3" 'map(select(.what == "culprit"))[0] | .name == $n and (.text | contains($t))' \
		<<<"$output"
}

@test "replicas: what was the same on all ranks, and parts" {
	named dp2-noise-tokens Tensor.div_.0.forward 0 1 "a number differs by rank"
	named pp2-noise-tied Functional.embedding.0.backward 0 0 "was given to no reduction"
	named drop2-noise-dropout Functional.dropout.0.forward 0 1 "made of other random numbers on each rank"
	named ep2-noise-router Functional.linear.6.forward 0 1 "which join its gradients"
	named tp2-noise-lost Tensor.__add__.7.forward 0 0 "a reduction is missing"
}

@test "replicas: a run that is right is not accused" {
	right dp2-noise vocab-noise hsdp-noise ulysses-noise tables-noise hybrid-noise zero4-noise ring-noise seldom-noise
}

@test "replicas: weights of stages that begin alike are none" {
	right ones-noise pipe-noise line-noise seeded-noise turns-noise copies-noise pupils-noise
}

@test "replicas: norms of experts that begin alike are none" {
	right chosen-noise routed-noise
}

@test "replicas: a weight is the same one by its value, where each rank leaves out other op calls" {
	right branch-noise depth-noise norms-noise exits-noise experts-noise loops-noise choice-noise
	named branch-noise-unused Functional.linear.3.forward 1 1 "that stayed as it was on rank 1 alone"
}

@test "replicas: columns of a product, masks of samples, weights that each rank moves to take the gradient there" {
	right rowcol-noise masks-noise sharp-noise
	# One rank does the step; ranks have other numbers of calls.
	right chief-noise ends-noise prompt
	# Norms in f16.
	right units
}

@test "replicas: ranks that do not have as much data, or as many heads" {
	right counts-noise lengths-noise heads-noise chunks-noise rows-noise points-noise
	named counts-noise-begins Functional.linear.0.forward 0 1 "which join its gradients"
	named chunks-noise-partnorm Functional.layer_norm.1.backward 0 0 "was given to no reduction"
}

@test "reductions: of what is a sum already, of other parts, among others than elsewhere" {
	named conv-noise-again Distributed.all_reduce.6.forward 0 0 \
		"sums up what Torch.cat.0.forward joined: parts of it are sums over these ranks already, others are not"
	named hsdp-noise-rgroup Distributed.all_reduce.0.forward 0 0 \
		"sums up what Distributed.reduce_scatter_tensor.0.forward has dealt out among the same ranks"
	named hsdp-noise-node Distributed.all_reduce.0.forward 0 0 \
		"joins the gradients of weights that are not the same: that of Functional.linear.7.forward on rank 0, of Functional.linear.7.forward on rank 2"
	named edp-noise-egroup Distributed.all_reduce.9.forward 0 0 "is it the right group?"
	named lstm-noise-init Functional.embedding.0.forward 0 1 "is a weight that is not the same on rank 0 and on rank 1"
	named tp4-group Tensor.__add__.7.forward 0 0 "among 2 ranks; at Tensor.__add__.1.forward"
}

@test "op calls beside those of other ranks" {
	named conv-noise-eval Functional.batch_norm.0.forward 0 1 "different switches or numbers on rank 1"
	named vocab-noise-rowbias Functional.linear.2.forward 0 0 "is counted 2 times"
	named vocab-noise-sumexp Torch.sum.0.forward 0 0 "differs between the ranks, and so is the loss"
	named pipe-noise-crossed Torch.tanh.2.backward 0 0 \
		"made of the gradient of what Torch.tanh.11.forward gave to rank 1"
	named ring-noise-kvgrad Torch.matmul.5.backward 0 0 "a reduction is missing"
}

@test "gradients of a weight: joined once, all of them, in one order, by one number" {
	named accum-noise-again Distributed.all_reduce.11.forward 0 0 \
		"sums up what Distributed.all_reduce.0.forward has summed up among these ranks already"
	named accum-noise-last Distributed.all_reduce.0.forward 0 0 \
		"which 3 op calls of one line are given: that of Functional.embedding.0.backward is given to no reduction"
	named replicated-noise-routers Functional.linear.6.forward 0 1 "the other weights of its line and shape, 1, are the same"
	named zero-noise-order Distributed.reduce_scatter_tensor.0.forward 0 0 "is it the same order on all ranks?"
	named flat-noise-offset Functional.layer_norm.0.forward 0 1 "which join its gradients"
	named flat-noise-clippart Tensor.mul_.0.forward 0 0 "on rank 0 and by 0.111202 on rank 1"
	named mqa-noise-amplified Distributed.all_reduce.5.forward 0 0 "it is 2 times too large"
	named mqa-noise-qknorm Functional.layer_norm.3.backward 0 0 "was given to no reduction"
	named hsdp-noise-nosync Distributed.reduce_scatter_tensor.0.forward 0 0 \
		"in step 1 at Distributed.all_gather_into_tensor.7.forward"
	named lora-noise-loradiv Tensor.div_.10.forward 0 0 "of the 10 gradients of weights is 0.25 times it"
	named tokens-noise-count Tensor.div_.0.forward 0 1 "a number differs by rank"
	named ulysses-noise-half Tensor.div_.0.forward 0 0 "2 times too small; gradients must be summed up"
}

@test "communication: its backward pass, what it counts, what it is given" {
	named ulysses-noise-back Tensor.transpose.9.backward 0 0 "it must be exchanged, too"
	named gather-noise-detach Distributed.all_gather_into_tensor.0.forward 0 0 "the weight of Functional.linear.1.forward"
	named syncbn-noise-means Distributed.all_reduce.0.forward 0 0 "means over 6 elements on rank 0 and over 4 on rank 1"
	named tpdp-noise-clipdup Distributed.all_reduce.23.forward 0 0 "norms of 11 tensors that are whole"
	named tpdp-noise-tpdata Functional.linear.0.forward 0 0 "these ranks must be given the same data"
	named ppdp-noise-buffer Distributed.recv.1.forward 0 2 "what Distributed.recv.0.forward received"
	named three-noise-repeated Distributed.send.2.forward 0 1 "what Tensor.__add__.8.forward put out is given to nobody"
	named mixer-noise-addbias Tensor.__add__.1.forward 0 0 "is counted 2 times"
	run -1 bash -c 'accaudit "$DATA/collective/stages.acc.gz" | accfirstbad | accfmt --json'
	jq -es 'map(select(.what == "culprit"))[0] | .name == "Tensor.__add__.5.backward" and
		(.text | contains("of what Tensor.__add__.8.forward gave to rank 1"))' <<<"$output"
	run -1 bash -c 'accaudit "$DATA/collective/masks.acc.gz" | accfirstbad | accfmt --json'
	jq -es 'map(select(.what == "culprit"))[0] | .name == "Functional.dropout.0.forward" and
		(.text | contains("drops the same elements on all ranks"))' <<<"$output"
}

@test "stages: what is received is used, its gradient is sent back, what both hold begins alike" {
	named scan-noise-state Distributed.recv.1.forward 0 1 "although what the other 2 calls of its line received is"
	named scan-noise-stategrad Tensor.__mul__.4.backward 0 1 \
		"what Distributed.recv.1.forward received, which is sent to nobody"
	named chunks-noise-zerograd Functional.linear.6.backward 0 1 "which is sent to nobody"
	named chunks-noise-tiedinit Functional.linear.8.forward 0 1 "is not the same on rank 0 and on rank 1"
}

@test "sums over ranks: of all gradients, of what is not whole, by one number, among the right ranks" {
	named pairs-noise-nograd Tensor.transpose.1.backward 0 0 \
		"is the gradient of what Distributed.all_gather_into_tensor.1.forward gathered"
	named adapters-noise-loratwice Tensor.__add__.1.forward 0 0 "is counted 2 times"
	named grouped-noise-kvall Distributed.all_reduce.6.forward 0 0 "is it the right group?"
	named grouped-noise-kvmean Tensor.div_.0.forward 0 0 "those of 11 other weights end as 1 times that"
}

@test "ranks that differ by their data alone" {
	named denoise-noise-samedata Torch.sigmoid.0.forward 0 0 "they do the same work"
	named denoise-noise-freqs Tensor.__mul__.1.forward 0 1 "is the same in all steps, and differs between rank 1"
	named policy-noise-oldpolicy Functional.linear.0.forward 0 1 "a frozen weight or a buffer"
	named pairs-noise-temp Torch.exp.0.backward 0 0 "was given to no reduction"
	named cell-noise-decay Functional.embedding.0.forward 1 1 "differs between rank 1 and rank 0 since step 1"
	named latent-noise-jitter Tensor.__add__.6.forward 0 0 "which nobody made"
}

@test "likes: what others of a line, and other ranks, are given is given here, too" {
	doubted square-noise-wrongpeers Distributed.all_to_all.6.forward 0 \
		"comes from ranks 0, 2; what Torch.matmul.3.forward is given beside it comes from ranks 0-1"
	named states-noise-gatednorm Tensor.__mul__.10.forward 0 0 \
		"what Torch.sum.0.forward put out went through Distributed.all_reduce.0.forward first: a reduction is missing"
	doubted whole-noise-onemean Distributed.all_reduce.1.forward 0 "is a mean over the ranks, while 2 others of its line"
}

@test "what a step leaves for the next one, and averages of weights" {
	named teacher-noise-ema Functional.linear.0.forward 1 1 "such as an average, that was the same on these ranks in step 0"
	named teacher-noise-center Tensor.__sub__.0.forward 1 1 \
		"was the same on all ranks in step 0, and is not since then: Tensor.__add__.4.forward made it there"
}

@test "what all ranks made anew in a step, and one of them has lost" {
	right backlog-noise
	named backlog-noise-lose Tensor.__sub__.0.forward 1 1 \
		"is what it was in step 0, although Tensor.__add__.0.forward made it anew there, as on the other ranks"
}

@test "ranks that go their own ways by design; what is alike at first alone is no copy" {
	right gan round stale
}

@test "gradients of parts are no operands of the reductions of others, zeros are none of what was received" {
	right gpt ring
}

@test "a sum of what overflowed on another rank makes no Inf" {
	accdump-read skips | accmetric | accfirstbad >out
	accfmt --json out | jq -es 'map(select(.what == "overflow")) == []'
}

@test "a number that is each rank's own, where that of its likes is one for all" {
	right scales-noise
	named scales-noise-ownscale Tensor.__mul__.3.forward 0 0 \
		"what Torch.max.0.forward put out went through Distributed.all_reduce.0.forward first"
}

@test "what is exchanged is no whole, what is summed up has one factor" {
	named gated-noise-duplicates Distributed.all_to_all.0.forward 0 0 "each is sent the same by all 2 of them"
	right sketch-noise
	named lowrank-noise-factors Torch.matmul.0.forward 0 0 "projects the gradient of each rank with"
}

@test "parts of columns that are gathered stand beside each other" {
	run -0 --separate-stderr bash -c 'accaudit "$DATA/collective/columns.acc.gz" | accfirstbad | accfmt --json'
	alone below Tensor.reshape.0.forward "has the parts that Distributed.all_gather.0.forward gathered one behind the other"
}

@test "what other ranks look up in their parts of a table is masked" {
	run -0 --separate-stderr bash -c 'accaudit "$DATA/collective/table.acc.gz" | accfirstbad | accfmt --json'
	run -0 --separate-stderr bash -c 'accaudit "$DATA/collective/masked.acc.gz" | accfirstbad | accfmt --json'
	alone unzeroed Functional.embedding.0.forward "Distributed.all_reduce.0.forward sums up what the others took, too"
}

@test "the same predictions have the same labels" {
	alone labels Functional.cross_entropy.0.forward "and is compared with different labels there"
}

@test "why a weight parts: what was put together of what all have, other layers" {
	named rows-noise-owncount Torch.cat.3.forward 0 0 "of what Distributed.all_gather.2.forward gathered for all of them"
	named remat-noise-layerdrop Functional.layer_norm.0.forward 0 1 "do they call other layers?"
}

@test "why a gradient parts: a part beside a sum, numbers drawn on each rank" {
	named moe-sharedpart Tensor.__add__.0.forward 0 0 "of a part that each has, which nothing sums up"
	named vit-ownmask Functional.dropout.1.forward 0 0 "though what it is made of is the same"
	named moe-ownnoise Tensor.__mul__.2.forward 0 0 "is made of something else on each rank, which nobody made"
}

@test "what is summed up with a part is no part, a part of a weight is another on each rank" {
	named moe-summedtwice Tensor.__add__.2.forward 0 0 "is counted 2 times"
	named llama-sameshard Functional.linear.6.forward 0 0 "did all ranks load the same part?"
}

@test "one number for all ranks: what scales what they have alike, what a loss is divided by, what all of them need" {
	named llama-partnorm Tensor.mul_.0.forward 0 1 "a number differs by rank"
	named speech-ownwords Torch.sum.0.forward 0 0 "is what the loss is divided by, 5 on rank 0 and 2 on rank 1"
	doubted "$DATA/collective/counted.acc.gz" Distributed.all_reduce.0.forward 0 "counts 16 labels of rank 0 and the same of rank 1"
	alone copies Tensor.div_.1.forward "is a mean over 2 ranks of the gradients of 4 weights"
}

@test "ranks that hold parts of a sequence: positions, keys, what their losses are divided by" {
	right shared-noise
	named context-noise-ropezero Tensor.__mul__.6.forward 0 0 "every rank counts positions from 0"
	alone places Functional.embedding.1.forward "is of the positions 0 to 5 on all ranks"
	alone peers Distributed.all_gather.1.forward "takes keys of attention to ranks that hold the same positions"
	named context-noise-owncount Tensor.__truediv__.2.forward 0 0 "5 on rank 0 and 7 on rank 1"
	named context-noise-cpscale Tensor.div_.0.forward 0 0 "which Distributed.all_reduce.0.forward made for all these ranks"
}

@test "rows of each rank have columns of their own, parts masks of their own" {
	alone targets Functional.cross_entropy.0.forward "names columns that rank 0 gave, as on all other ranks"
	alone dropped Functional.dropout.3.forward "drops the same elements on all ranks"
	named mqa-noise-tpdrop Functional.dropout.1.forward 0 1 "is made of other random numbers on each rank"
}

@test "gradients of all micro-batches, by all who hold the weight, once, awaited" {
	named speech-noise-firstsync Distributed.all_reduce.1.forward 0 0 \
		"that of Functional.conv1d.1.backward is given to no reduction"
	named speech-noise-unwaited Distributed.all_reduce.1.forward 0 0 "is a wait() missing?"
	named moe-noise-edp Functional.linear.10.backward 0 0 "was given to no reduction that joins them"
	named moe-noise-router Distributed.all_reduce.1.forward 0 0 "joins the gradient of a weight that rank 2 had alike"
	named moe-noise-doubled Tensor.div_.0.forward 0 0 "is a mean over 2 ranks of the gradients of 8 weights"
	named syncbn-noise-twice Distributed.all_reduce.2.forward 0 0 "sums up what Torch.cat.2.forward joined"
}

@test "the next step begins with what this one left" {
	named vit-noise-early Distributed.all_gather_into_tensor.4.forward 0 0 "it is a step behind"
	named vit-noise-resumed Tensor.mul_.4.forward 1 2 "what is kept from step to step is lost there"
	named accum-noise-notzeroed Tensor.add_.0.forward 1 1 "it was not begun anew there"
}

@test "sums of squares are norms; the rate of a step, the order of a bucket, what is sent" {
	named gated-noise-dupnorm Distributed.all_reduce.9.forward 0 0 "sums up norms of 7 tensors that are whole"
	named robot-noise-ownrate Tensor.sub_.3.forward 0 2 "a number, such as the rate, differs by rank"
	named mixed-noise-hookorder Distributed.all_reduce.0.forward 0 0 "is it the same order on all ranks?"
	named stages-noise-recent Distributed.send.0.forward 0 2 "is sent more than once"
}

@test "what is cut before it is sent, or joined to the same again, is not used twice" {
	run -0 --separate-stderr bash -c 'accaudit "$DATA/collective/halves.acc.gz" | accfirstbad | accfmt --json'
	run -0 --separate-stderr bash -c 'accaudit "$DATA/collective/twice.acc.gz" | accfirstbad | accfmt --json'
}

@test "what is whole, and each rank's own: no part, and no moment of all" {
	named whole-noise-logtp Distributed.all_reduce.4.forward 0 0 "which is whole, the same on all ranks: it is 2 times too large"
	named text-noise-ringtext Distributed.all_gather_into_tensor.0.forward 0 0 \
		"what Functional.linear.1.forward made of that is whole, the same on all ranks: it stands there 2 times"
	named nodes-noise-overcount Distributed.all_reduce.8.forward 0 0 "is the same on 2 of these: it counts as often"
	named policy-noise-whiten Torch.sum.1.forward 0 0 "that Distributed.all_reduce.0.forward joined over the ranks"
	named bank-noise-repeated Functional.linear.0.forward 0 2 "is made of the same data as on rank 1"
}

@test "numbers that scale all gradients, and what each counts" {
	named thirds-noise-fewer Tensor.div_.0.forward 0 0 "as the sum over the 3 ranks divided by 2"
	named stages-noise-clip Tensor.mul_.0.forward 0 1 "is scaled by 0.00712474, as all gradients of weights of rank 1 are"
	named heads-noise-clipfirst Tensor.mul_.0.forward 0 1 "each rank clips by its own norm"
	doubted "$DATA/collective/doubled.acc.gz" Tensor.__add__.34.forward 0 "counts them 4, 2, 1 times"
	doubted "$DATA/collective/lost.acc.gz" Tensor.__add__.15.forward 1 "counts them 1, 0, 1 times"
}

@test "the gradient of what other ranks get is the sum of what they make of it" {
	alone halo Functional.relu.0.backward "and lacks what rank 1 makes of that"
	alone home Functional.linear.4.backward "is 0.5 times what these make of that"
}

@test "one rank alone has nothing that is compared" {
	accdump-read ep2-noise-router/step0/rank1 >in
	accaudit in 2>/dev/null >out || [ $? -eq 2 ]
	accfmt --json out | jq -es 'map(select(.["audit.ranks"] != null)) == []'
}

@test "a weight parts: by its update, or as nothing joins a gradient that is the sum of several" {
	named accumulated-noise-resumed Tensor.mul_.0.forward 0 1 "is a state that differs between rank 1 and rank 0"
	named ddp-resume Functional.sgd.0.forward 0 0 "is a state that rank 0 has and rank 1 has not"
	named zero-zerolr Functional.adamw.0.forward 1 1 "is made with the rate 0.02 on rank 1 and 0.01 on rank 0"
	named gan-oncemore Functional.adam.1.forward 0 1 "is of a step of the optimizer that rank 1 takes and rank 0 does not"
	named twostages-noise-unjoined Functional.embedding.0.backward 0 0 "was given to no reduction that joins them"
	named ulysses-noise-headscale Tensor.__getitem__.8.backward 0 0 "was given to no reduction that joins them"
	named vit-noise-qknorm Functional.layer_norm.2.backward 0 0 "was given to no reduction that joins them"
	named seqpar-spbias Tensor.add.0.backward 0 0 "was given to no reduction that joins them"
}

@test "gradients that end as more or less than what the ranks make together" {
	named vit-noise-normstoo Distributed.all_reduce.6.forward 0 0 "it is 2 times too large"
	named dropped-noise-gatesum Distributed.all_reduce.2.forward 0 0 "it is 3 times too large"
	named gathered-noise-undivided Functional.linear.2.backward 0 0 "are means over all 3 ranks: it is 3 times too large"
	named moe-expertdiv Functional.linear.2.backward 0 0 "are means over all 2 ranks: it is 2 times too large"
	named byhand-divisor Tensor.div_.0.forward 0 0 "as the sum over the 3 ranks divided by 2"
	named tpdp-divworld Tensor.div_.0.forward 0 0 "is scaled wrongly"
	named tokens-noworld Distributed.all_reduce.1.forward 0 0 "3 times too small"
	named scan-cpaverage Tensor.div_.0.forward 0 0 "divided by what they counted together: 3 times too small"
	named accum-accumonce Functional.smooth_l1_loss.0.backward 0 1 "which divides its loss by 3"
	named fourstages-noise-endsaverage Distributed.all_reduce.0.forward 0 0 "it must be their sum"
}

@test "weights, biases and random numbers that are not the same, and gradients that do not come back" {
	named exchanged-noise-gateseed Functional.linear.0.forward 0 2 "is a weight that is not the same on rank 0 and on rank 2"
	named byhand-bcast Functional.linear.1.forward 0 1 "is a weight that is not the same on rank 0 and on rank 1"
	named gathered-noise-oldbias Tensor.__add__.1.forward 0 1 "has a bias added that is another on rank 1"
	named halves-noise-jitter Tensor.__mul__.8.forward 0 1 "is made of other random numbers on each rank"
	named moe-a2aback Distributed.all_to_all_single.2.forward 0 0 "does not come back"
	named ring-ringback Tensor.__getitem__.3.backward 0 1 "nothing is sent in the backward pass"
}

@test "what accrecord wrote is right: a ring, experts with copies, parts of a sequence, masks and labels by their elements" {
	right ring-noise moedp seqpar "$DATA/collective/written.acc.gz" "$DATA/collective/tokens.acc.gz"
}

@test "steps that end elsewhere on one rank, or that others take more of; averages of weights; what is detached" {
	right stages-right calm/frozen calm/gan calm/fednova calm/gossip calm/delayed calm/retrieve
}

# What may be by design: a warning, exit status 1 with --strict alone, but 2 where nothing was recomputed.
doubted() { # run, name, rank, text
	if [[ $1 == *.gz ]]; then cat "$1"; else accdump-read "$1"; fi | accaudit 2>/dev/null >in || [ $? -eq 2 ]
	run accfirstbad in
	[ "$status" -ne 1 ]
	accfirstbad in | accfmt --json >out || [ $? -eq 2 ]
	jq -es --arg n "$2" --argjson r "$3" --arg t "$4" 'map(select(.what == "culprit")) == [] and
		(map(select(.what == "warning" and .rule == "design")) | length == 1 and (.[0] | .name == $n and .rank == $r and
		(.text | contains($t))))' out
	accfmt --json in | jq -es --arg t "$4" 'map(select(.["audit.doubt"] // "" | contains($t))) | length > 0'
}

@test "what may be by design is a warning: counts of each rank's own, sums of equal gradients" {
	doubted context-valid Tensor.div.0.forward 0 "one of rank 0 counts 4 times as much as one of rank 1"
	doubted moetp-reducetwice Distributed.all_reduce.2.forward 0 "which are the same on all ranks"
	doubted halo Distributed.all_reduce.1.forward 0 "unless the loss makes up for that"
	accaudit "$DATA/collective/lengths.acc.gz" >in
	run -0 bash -c "accfirstbad in | accfmt"
	[[ $output == *"may be by design: its output is a mean over 56 on rank 0 and over 32 on rank 1"* ]]
	run -1 bash -c "accfirstbad --strict in >out"
}

@test "what optimizers are given, and the steps that they take" {
	named "-s 0 context-hooks" Functional.layer_norm.1.backward 0 0 "Functional.nadam.0.forward is given it as it is"
	doubted hsdp-stale Functional.linear.0.forward 0 "is a weight as it was in the step before, as all 12 are"
	named zero-foundinf Functional.adam.0.forward 1 0 "of 3 and 2 steps between the same communications"
	named zero-lastmicro Tensor.add_.7.forward 0 0 "to what they summed up already, as 4 calls do"
	named moe-coalesce Distributed.all_reduce.2.forward 0 0 "joins the gradients of weights that are not the same"
	named zero-zerobcast Functional.linear.1.forward 1 0 "stayed as it was on rank 0 alone"
	alone momentum Functional.sgd.0.forward "its input 2.0 is a state that differs between rank 1"
	alone alone Tensor.lerp_.0.forward "becomes the weight of Functional.linear.15.forward, and rank 1 has no call of this line"
}

@test "norms of what all have whole, and each rank's own that clips" {
	named moe-normtwice Distributed.all_reduce.2.forward 0 0 "norms of 21 tensors, all of which are whole"
	alone clipfirst Tensor.mul_.0.forward "is scaled by 0.239088 on rank 0 and by 0.305592 on rank 1"
}

@test "of whose gradients those are made that optimizers are given" {
	alone early Distributed.all_reduce.1.forward "0.5 times that of ranks 0-1, 1 times that of rank 2, 0 times that of rank 3; those of 10 other weights"
	alone latewgrad Functional.adam.0.forward "0.5 times that of ranks 0-1, 0 times that of rank 2, 1 times that of rank 3"
	alone epscale Torch.einsum.0.backward "it ends as 1 times the sum of theirs, and those of 4 weights that all have, or that are given such, as 0.5 times"
	alone stagescale Tensor.div_.1.forward "output is the gradient of a weight of rank 0, or what is made of it, and ends as 0.5 times"
	doubted "$DATA/collective/hookdiv.acc.gz" Functional.sgd.0.forward 0 "count 2 times together"
}

@test "gradients are said to be scaled where they are, and to be joined with those of other weights" {
	alone flatgroup Distributed.all_reduce.1.forward "all 10 end so that each of the 16 labels of all ranks"
	alone epdiv Tensor.div_.3.forward "the gradient of one of 4 weights that 1 of 2 ranks have"
	alone crossed Distributed.all_reduce.3.forward "of Tensor.__getitem__.7.forward on rank 0, of Tensor.__getitem__.7.forward on rank 1"
}

@test "a mean of parts of a gradient; sums that count twice; as many steps, taken at other times" {
	alone partsmean Tensor.div_.0.forward "a mean over 2 ranks of parts of a weight's gradient, which they make of the same data; gradients of 8 other"
	alone nosync Functional.linear.1.backward "that was the same on these ranks in step 1, differs between them, and was given to no reduction"
	alone skiplocal Functional.sgd.0.forward "rank 0 takes and rank 1 does not: of 2 and 2 steps"
	doubted "$DATA/collective/sumstwice.acc.gz" Distributed.all_reduce.2.forward 0 "which are sums, count 2 times their mean together"
}

@test "a weight that is summed up before the first step is one" {
	alone startsum Distributed.all_reduce.1.forward "is not of all gradients of its weight, which 2 op calls of one line are given"
}

@test "a router's weight that is not the same on all ranks; since when gradients part" {
	alone routerinit Functional.linear.0.forward "input 1 is a weight that is another on rank 1, by which Tensor.topk.0.forward chooses"
	alone partial Functional.linear.1.backward "have different gradients since Tensor.mul.0.backward"
}

@test "a weight that diverges is reported at the call that made it so" {
	alone decay Functional.adamw.0.forward "differs between rank 1 and rank 0 since then: its weight_decay is 0.5, and 0.1 there"
	alone balance Tensor.add_.1.forward "is a bias that was the same on these ranks in step 0"
	alone otherbuffer Tensor.copy_.9.forward "is the weight of Functional.embedding.0.forward in step 1, which was the same on these ranks"
	alone notreduced Functional.linear.2.backward "was given to no reduction that joins them"
	alone tieclip Distributed.all_reduce.1.forward "norms of 1 tensors that are the same on several ranks"
	doubted "$DATA/collective/groupcount.acc.gz" Tensor.div.2.forward 0 "is a mean over 6 on rank 0 and over 15 on rank 3"
	right "$DATA/collective/putback.acc.gz"
	# Zeros are the gradients of several weights.
	right "$DATA/collective/zeros.acc.gz"
	doubted "$DATA/collective/probgather.acc.gz" Distributed.all_gather.1.forward 0 "comes of what Tensor.scatter.0.forward made"
}

@test "hooks of gradients, torch.distributed.nn, gradients of gradients and what overflows are right" {
	# Behaviour torch-nadam-once-more: the loop of NAdam in torch 1.13 is another than its foreach.
	right shared sharded tagger "$DATA/collective/context.acc.gz" "$DATA/collective/physics.acc.gz" \
		"$DATA/collective/scaled.acc.gz"
	accaudit "$DATA/collective/physics.acc.gz" | accfmt --json | jq -es 'map(select(.["audit.skip"] // "" |
		contains("a gradient of its gradients was taken"))) | length > 0'
}

@test "parts of PyTorch 2: FSDP, DTensors, ZeroRedundancyOptimizer" {
	right torch2/fsdp1 torch2/whole
	named torch2/fsdp1-rate Functional.adamw.0.forward 0 1 "is made with the rate 0.02 on rank 1 and 0.01 on rank 0"
	named torch2/sp-ratesp Functional.adamw.0.forward 0 1 "is made with the rate 0.02 on rank 1 and 0.01 on rank 0"
	named torch2/fsdp1-localclip Torch._foreach_mul_.0.forward 0 1 "one norm, of all parts, must clip them"
	named torch2/whole-notreduced Torch.mul.0.backward 0 0 "whose gradients are dealt out to them"
	named torch2/fsdp2-divides Functional.cross_entropy.0.backward 0 0 "which divides its loss by 2"
	doubted torch2/zero-ratezero Functional.adamw.0.forward 1 "is made with the rate 0.02 on rank 1"
}
