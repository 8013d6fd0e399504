/* Products summed up. See lib/op/catalogue.h for what a row says. */
OP("matmul mm bmm mv dot vdot inner1d bmm_v2 matmul_v2", "matmul", CONTRACT, 0)
OP("batch_matmul batch_matmul_ext matmul_ext", "matmul", CONTRACT, 0)
OP("rmatmul", "matmul", CONTRACT, 0)
OP("imatmul", "matmul", CONTRACT, INPLACE)
OP("addmm baddbmm addmv", "matmul", CONTRACT, 0)
OP("addbmm", "matmul", CONTRACT, 0)
OP("chain_matmul", "matmul", CONTRACT, 0)
OP("einsum", "matmul", CONTRACT, 0)
OP("inner", "matmul", CONTRACT, 0)
OP("tensordot", "tensordot", CONTRACT, 0)
OP("outer ger", "outer", CONTRACT, 0)
OP("addr", "addr", OTHER, 0)
OP("cross linalg_cross", "cross", OTHER, 0)
OP("linear dense", "linear", CONTRACT, WEIGHTS)
OP("fc column_parallel_linear row_parallel_linear", "linear", CONTRACT, 0)
OP("bilinear", "bilinear", CONTRACT, WEIGHTS)
OP("grouped_matmul", "grouped_matmul", CONTRACT, 0)

OP("conv1d conv2d conv3d", "conv1d", CONTRACT, WEIGHTS)
OP("conv convolution", "conv1d", CONTRACT, WEIGHTS)
OP("conv_transpose1d conv_transpose2d conv_transpose3d", "conv_transpose1d", CONTRACT, WEIGHTS)

OP("scaled_dot_product_attention", "scaled_dot_product_attention", ATTEND, KEYWORDS)
OP("fusion_attention fusion_attention_v2", "scaled_dot_product_attention", ATTEND, KEYWORDS)
OP("flash_attention_score", "scaled_dot_product_attention", ATTEND, 0)
OP("flash_attn_func", "scaled_dot_product_attention", ATTEND, 0)
OP("flash_attn flash_attn_varlen_func fused_attention flash_attention prompt_flash_attention"
   " memory_efficient_attention",
	"scaled_dot_product_attention", ATTEND, 0)
OP("multi_head_attention_forward", "multi_head_attention_forward", ATTEND, WEIGHTS)

OP("rotary_mul rotary_position_embedding", "rotary_mul", OTHER, 0)
OP("apply_rotary_pos_emb", "rotary_mul", OTHER, 0)
OP("rotary_embedding rope fused_rope rotary_pos_emb apply_rotary_pos_emb_v2", "rotary_mul", OTHER,
	0)
