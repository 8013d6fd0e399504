// llama_cpp MODEL.gguf FOLDER TOKEN ... - one pass of llama.cpp, recorded; see llama_cpp.sh
#include <cstdlib>
#include <llama.h>
#include <vector>

#include "../../examples/engines/llama_cb_eval.h"

int main(int argc, char **argv)
{
	llama_log_set([](ggml_log_level, const char *, void *) {}, nullptr);
	llama_model *model = llama_model_load_from_file(argv[1], llama_model_default_params());
	llama_context_params p = llama_context_default_params();
	acc1 *rec = acc1_open_for(argv[2], "llama.cpp");
	p.cb_eval = acc_record_ggml;
	p.cb_eval_user_data = rec;
	p.type_k = p.type_v = GGML_TYPE_F32;
	p.flash_attn_type = LLAMA_FLASH_ATTN_TYPE_DISABLED;
	p.n_threads = p.n_threads_batch = 1;
	llama_context *c = llama_init_from_model(model, p);
	llama_batch b = llama_batch_init(argc, 0, 1);
	for (int i = 3; i < argc; i++) {
		b.token[b.n_tokens] = atoi(argv[i]);
		b.pos[b.n_tokens] = i - 3;
		b.n_seq_id[b.n_tokens] = 1;
		b.seq_id[b.n_tokens][0] = 0;
		b.logits[b.n_tokens++] = true;
	}
	const int failed = llama_decode(c, b);
	return acc1_close(rec) != 0 || failed != 0;
}
