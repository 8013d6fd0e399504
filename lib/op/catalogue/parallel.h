/* Communication between ranks. See lib/op/catalogue.h for what a row says. */
OP("all_reduce reduce_from_mp_region reduce_from_tensor_model_parallel_region", "all_reduce", OTHER,
	TALKS)
OP("all_gather all_gather_into_tensor all_gather_base", "all_gather", MOVE, FILLS | TALKS)
OP("reduce_scatter reduce_scatter_tensor reduce_scatter_base", "reduce_scatter", OTHER,
	FILLS | TALKS)
OP("all_to_all all_to_all_single AlltoAll", "all_to_all", MOVE, FILLS | TALKS)
OP("send isend", "send", MOVE, TALKS)
OP("recv irecv Receive", "recv", MOVE, FILLS | TALKS)
/* Of Ascend: a product and its communication in one kernel. */
OP("mm_all_reduce_base mm_all_reduce MatMulAllReduce", "mm_all_reduce_base", OTHER, TALKS)
OP("mm_reduce_scatter_base MatmulReduceScatter", "mm_reduce_scatter_base", OTHER, TALKS)
OP("all_gather_base_mm AllGatherMatmul", "all_gather_base_mm", OTHER, TALKS)
