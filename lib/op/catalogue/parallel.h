/* Communication between ranks. See lib/op/catalogue.h for what a row says. */
OP("all_reduce reduce_from_mp_region reduce_from_tensor_model_parallel_region", "all_reduce", OTHER,
	0)
OP("all_gather all_gather_into_tensor all_gather_base", "all_gather", MOVE, FILLS)
OP("reduce_scatter reduce_scatter_tensor reduce_scatter_base", "reduce_scatter", OTHER, FILLS)
OP("all_to_all all_to_all_single", "all_to_all", MOVE, FILLS)
OP("send isend", "send", MOVE, 0)
OP("recv irecv", "recv", MOVE, FILLS)
