/* The catalogue of operators, and how their names are read. */
#include "acc/op.h"

#include <ctype.h>
#include <pthread.h>

/* Flags as rows write them. */
enum {
	WEIGHTS = ACC_OP_WEIGHTS,
	INPLACE = ACC_OP_INPLACE,
	KEYWORDS = ACC_OP_KEYWORDS,
	NUMBERS = ACC_OP_NUMBERS,
	HANDS_ON = ACC_OP_HANDS_ON,
	FILLS = ACC_OP_FILLS,
	TALKS = ACC_OP_TALKS
};

static const struct acc_op_info rows[] = {
#define OP(names, family, cls, flags) {names, family, ACC_OP_##cls, flags},
#include "op/catalogue.h"
#undef OP
};

/* All names, one after another, and a hash table of them: more places than there are letters. */
enum {
	ROOM = 0
#define OP(names, family, cls, flags) +sizeof(names)
#include "op/catalogue.h"
#undef OP
};
static char text[ROOM];
static struct slot {
	uint16_t at, n, row; /* of text; n is 0: free */
} slots[ROOM];
_Static_assert(ROOM <= UINT16_MAX, "places in text are 16 bits");

/* --- names --- */

/* The name with what stands around it, such as __add__ or add_. Of an ATen operator, an overload
 * follows it. */
static struct acc_str
last_part(struct acc_str op)
{
	static const char *const atens[] = {"Aten.", "aten.", "torch.ops.aten.", "aten::"};
	bool aten = false;
	/* Of most the first letter tells that they are none. */
	const bool may = op.n > 0 && (op.p[0] == 'A' || op.p[0] == 'a' || op.p[0] == 't');
	for (size_t i = 0; i < sizeof atens / sizeof *atens && may && !aten; i++) {
		const uint32_t n = (uint32_t)strlen(atens[i]);
		aten = acc_str_starts(op, atens[i]);
		op = aten ? (struct acc_str){op.p + n, op.n - n} : op;
	}
	for (uint32_t i = 0; aten && i < op.n; i++)
		if (op.p[i] == '.')
			op.n = i;
	const char *dot = op.n == 0 ? NULL : memrchr(op.p, '.', op.n);
	return dot == NULL ? op : (struct acc_str){dot + 1, op.n - (uint32_t)(dot - op.p) - 1};
}

static struct acc_str
trim(struct acc_str s)
{
	while (s.n > 1 && s.p[s.n - 1] == '_')
		s.n--;
	while (s.n > 1 && s.p[0] == '_')
		s = (struct acc_str){s.p + 1, s.n - 1};
	return s;
}

/* What all spellings of a name have in common, into buf. */
static struct acc_str
fold(struct acc_str s, char *buf, size_t size)
{
	uint32_t n = 0;
	s = trim(s);
	if (acc_str_starts(s, "npu_") && s.n > 4)
		s = (struct acc_str){s.p + 4, s.n - 4};
	for (uint32_t i = 0; i < s.n && n < size; i++)
		if (s.p[i] != '_' || s.n == 1)
			buf[n++] = (char)tolower((unsigned char)s.p[i]);
	return (struct acc_str){buf, n};
}

/* Is a name of a row that very spelling alone? */
static bool
is_exact(struct acc_str name)
{
	for (uint32_t i = 0; i < name.n; i++)
		if (isupper((unsigned char)name.p[i]))
			return true;
	return name.n > 0 && name.p[0] == '_';
}

/* --- the table --- */

static struct slot *
find(struct acc_str s)
{
	size_t i = acc_hash(s.p, s.n) % ROOM;
	while (slots[i].n != 0 && !acc_str_eq(s, (struct acc_str){text + slots[i].at, slots[i].n}))
		i = (i + 1) % ROOM;
	return &slots[i];
}

static void
enter(struct acc_str name, size_t row, size_t *used)
{
	struct acc_str s = {text + *used, name.n};
	if (is_exact(name))
		memcpy(text + *used, name.p, name.n);
	else
		s = fold(name, text + *used, name.n);
	struct slot *at = find(s);
	if (at->n != 0)
		return;
	*at = (struct slot){(uint16_t)*used, (uint16_t)s.n, (uint16_t)row};
	*used += s.n;
}

static void
enter_all(void)
{
	size_t used = 0;
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
		for (const char *p = rows[i].names; *p != '\0'; p += *p == ' ') {
			uint32_t n = (uint32_t)strcspn(p, " ");
			enter((struct acc_str){p, n}, i, &used);
			p += n;
		}
}

/* The row that has this very spelling. */
static const struct acc_op_info *
exactly(struct acc_str part)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;
	pthread_once(&once, enter_all);
	const struct slot *at = is_exact(part) ? find(part) : NULL;
	return at == NULL || at->n == 0 ? NULL : &rows[at->row];
}

const struct acc_op_info *
acc_op_info_of(struct acc_str op)
{
	char buf[128];
	struct acc_str part = last_part(op);
	const struct acc_op_info *o = exactly(part);
	if (o != NULL)
		return o;
	const struct slot *at = find(fold(part, buf, sizeof buf));
	return at->n == 0 ? NULL : &rows[at->row];
}

struct acc_str
acc_op_name(struct acc_str op)
{
	struct acc_str part = last_part(op);
	return exactly(part) != NULL ? part : trim(part);
}

const struct acc_op_info *
acc_op_info_at(size_t i)
{
	return i < sizeof rows / sizeof *rows ? &rows[i] : NULL;
}

struct acc_str
acc_op_own_name(const struct acc_op_info *o)
{
	return (struct acc_str){o->names, (uint32_t)strcspn(o->names, " ")};
}

/* --- questions --- */

bool
acc_op_is_module(struct acc_str op)
{
	return acc_str_starts(op, "Module.") || acc_str_starts(op, "Cell.");
}

uint64_t
acc_op_family(struct acc_str op)
{
	const struct acc_op_info *o = acc_op_info_of(op);
	char buf[128];
	struct acc_str s = o != NULL ? acc_str(o->family) : fold(last_part(op), buf, sizeof buf);
	return acc_hash(s.p, s.n);
}

enum acc_op_class
acc_op_class(struct acc_str op)
{
	const struct acc_op_info *o = acc_op_info_of(op);
	enum acc_op_class cls = o == NULL ? ACC_OP_OTHER : o->cls;
	if (!acc_op_is_module(op))
		return cls;
	return cls == ACC_OP_CONTRACT || acc_str_ends(op, "Linear") ? ACC_OP_CONTRACT
								    : ACC_OP_OTHER;
}

bool
acc_op_same(struct acc_str a, struct acc_str b)
{
	const struct acc_op_info *x = acc_op_info_of(a), *y = acc_op_info_of(b);
	char buf[2][128];
	if (x != NULL || y != NULL)
		return x == y;
	return acc_str_eq(fold(last_part(a), buf[0], sizeof *buf),
		fold(last_part(b), buf[1], sizeof *buf));
}

enum acc_op_sums
acc_op_sums(struct acc_str op)
{
	const struct acc_op_info *o = acc_op_is_module(op) ? NULL : acc_op_info_of(op);
	/* Of these losses no element of the result moves further than those of the first input do,
	 * twice at most: they are means of differences of logarithms. */
	static const char *const losses[] = {"cross_entropy", "kl_div",
		"binary_cross_entropy_with_logits"};
	for (size_t i = 0; o != NULL && i < sizeof losses / sizeof *losses; i++)
		if (strcmp(o->family, losses[i]) == 0)
			return ACC_MEAN;
	return o == NULL                        ? ACC_NO_SUM
	       : strcmp(o->family, "mean") == 0 ? ACC_MEAN
	       : strcmp(o->family, "sum") == 0  ? ACC_SUM
						: ACC_NO_SUM;
}

enum acc_op_response
acc_op_response(struct acc_str op)
{
	static const struct {
		const char *family;
		enum acc_op_response response;
	} known[] = {{"sqrt", ACC_OP_ROOT}, {"rsqrt", ACC_OP_ROOT}, {"addcdiv", ACC_OP_ROOT},
		{"norm", ACC_OP_ROOT}, {"exp", ACC_OP_EXPONENT}, {"sin", ACC_OP_EXPONENT},
		{"cos", ACC_OP_EXPONENT}, {"softmax", ACC_OP_SOFTMAX},
		{"cross_entropy", ACC_OP_LOGITS},
		{"binary_cross_entropy_with_logits", ACC_OP_LOGITS},
		{"batch_norm", ACC_OP_DEVIATION}, {"relu", ACC_OP_KINK},
		{"leaky_relu", ACC_OP_KINK}, {"clamp", ACC_OP_KINK}, {"abs", ACC_OP_KINK},
		{"hardswish", ACC_OP_KINK}, {"max", ACC_OP_KINK}, {"min", ACC_OP_KINK},
		{"max_pool2d", ACC_OP_KINK}, {"topk", ACC_OP_KINK},
		/* of |x| and max(0, x), not of the squares that are of its family */
		{"l1_loss", ACC_OP_KINK}, {"margin_ranking_loss", ACC_OP_KINK},
		{"hinge_embedding_loss", ACC_OP_KINK}, {"multi_margin_loss", ACC_OP_KINK_ROWS},
		{"triplet_margin_loss", ACC_OP_KINK_ROWS},
		{"cosine_embedding_loss", ACC_OP_KINK_ROWS}};
	const struct acc_op_info *o = acc_op_is_module(op) ? NULL : acc_op_info_of(op);
	for (size_t i = 0; o != NULL && i < sizeof known / sizeof *known; i++)
		if (strcmp(o->family, known[i].family) == 0 ||
			acc_str_is(acc_op_own_name(o), known[i].family))
			return known[i].response;
	return ACC_OP_EVEN;
}

double
acc_op_slope(struct acc_str op)
{
	/* The largest |f'|, rounded up: of x sigmoid(x) 1.0998 at 2.40; of x Phi(x) 1.1289 at root 2, of
	 * its tanh form 1.1290 at 1.42; of x tanh(softplus(x)) 1.0885 at 1.49; of x (x + 3) / 6 it is
	 * (2 x + 3) / 6 up to 3. */
	static const struct {
		const char *family;
		double slope;
	} known[] = {{"silu", 1.1}, {"gelu", 1.13}, {"mish", 1.09}, {"hardswish", 1.5}};
	const struct acc_op_info *o = acc_op_info_of(op);
	for (size_t i = 0; o != NULL && i < sizeof known / sizeof *known; i++)
		if (strcmp(o->family, known[i].family) == 0)
			return known[i].slope;
	return 1;
}

bool
acc_op_ranks(struct acc_str op)
{
	/* Behaviour torch-topk-ties, openvino-topk-ties. */
	static const char *const families[] = {"argmax", "topk", "max", "min", "aminmax",
		"kthvalue", "median", "cummax", "cummin", "max_pool2d", "moe_gating_top_k_softmax"};
	const struct acc_op_info *o = acc_op_is_module(op) ? NULL : acc_op_info_of(op);
	for (size_t i = 0; o != NULL && i < sizeof families / sizeof *families; i++)
		if (strcmp(o->family, families[i]) == 0)
			return true;
	return false;
}

unsigned
acc_op_steps(struct acc_str op)
{
	static const struct {
		const char *family;
		unsigned steps;
	} known[] = {{"softmax", 5}, /* x - max, exp, sum, /; log_softmax: log of the sum, - */
		{"softmin", 5}, {"logsumexp", 5}, {"cross_entropy", 7}, {"kl_div", 4},
		{"binary_cross_entropy", 6}, {"binary_cross_entropy_with_logits", 6},
		{"layer_norm", 8}, /* mean, x - mean, square, mean, + eps, rsqrt, *, * + */
		{"group_norm", 8}, {"batch_norm", 8}, {"rms_norm", 6}, {"normalize", 4}, {"var", 5},
		{"norm", 3}, {"gelu", 9}, /* x x, x, *, +, *, tanh, 1 +, x / 2, * */
		{"silu", 4}, {"sigmoid", 3}, {"tanh", 4}, {"mish", 6}, {"softplus", 4},
		{"logsigmoid", 5}, {"hardswish", 4}, {"cosine_similarity", 8}};
	const struct acc_op_info *o = acc_op_is_module(op) ? NULL : acc_op_info_of(op);
	for (size_t i = 0; o != NULL && i < sizeof known / sizeof *known; i++)
		if (strcmp(o->family, known[i].family) == 0)
			return known[i].steps;
	return 1;
}

bool
acc_op_in_place(struct acc_str op)
{
	struct acc_str s = last_part(op);
	const struct acc_op_info *o = acc_op_info_of(op);
	bool spelled = s.n > 1 && s.p[s.n - 1] == '_' && s.p[s.n - 2] != '_';
	return spelled || (o != NULL && (o->flags & ACC_OP_INPLACE) != 0);
}

bool
acc_op_may_write(struct acc_str op)
{
	return acc_word_in("relu relu6 hardtanh leaky_relu elu celu selu silu mish hardswish "
			   "hardsigmoid threshold rrelu dropout dropout1d dropout2d dropout3d "
			   "alpha_dropout feature_alpha_dropout",
		acc_op_name(op));
}

bool
acc_op_talks(struct acc_str op)
{
	const struct acc_op_info *o;
	if (acc_str_starts(op, "Distributed."))
		return true;
	/* torch's tensors have methods of such names that stay on their rank. */
	if (acc_str_starts(op, "Tensor.") || acc_str_starts(op, "Torch.") || acc_op_is_module(op))
		return false;
	o = acc_op_info_of(op);
	return o != NULL && (o->flags & ACC_OP_TALKS) != 0;
}

bool
acc_op_hands(struct acc_str op)
{
	return acc_op_talks(op) &&
	       acc_word_in("send recv isend irecv batch_isend_irecv Send Receive", acc_op_name(op));
}

/* Does it write to its first argument without reading it, as what sets a weight does? What stands there may never have been
 * set. */
static bool
overwrites(struct acc_str op)
{
	static const char *const names[] = {"fill", "zero", "copy", "normal", "uniform",
		"bernoulli", "cauchy", "exponential", "geometric", "log_normal", "random"};
	const struct acc_str name = acc_op_name(op);
	bool is = false;
	for (size_t i = 0; i < sizeof names / sizeof *names && acc_str_ends(op, "_"); i++)
		is |= acc_str_is(name, names[i]);
	return is;
}

bool
acc_op_writes_partly(struct acc_str op)
{
	return acc_op_in_place(op) &&
	       acc_word_in("setitem index_put index_copy index_fill masked_fill masked_scatter "
			   "scatter put fill_diagonal copy_to fill_slice",
		       acc_op_name(op));
}

/* Does it look at no element of what it is given? */
static bool
is_of_form(struct acc_str op)
{
	return !acc_op_is_module(op) &&
	       acc_word_in("stride size shape dim ndimension numel nelement element_size "
			   "storage_offset is_contiguous data_ptr empty_like new_empty "
			   "new_empty_strided zeros_like ones_like full_like rand_like randn_like "
			   "randint_like new_zeros new_ones new_full",
		       acc_op_name(op));
}

bool
acc_op_is_early(struct acc_str op)
{
	/* Behaviour msprobe-p2p-before-wait. */
	return acc_op_talks(op) && acc_word_in("batch_isend_irecv", acc_op_name(op));
}

bool
acc_op_is_filled_later(struct acc_str op, struct acc_str pos)
{
	/* Behaviour fsdp-gathers-into-empty. */
	return acc_word_in("all_gather_copy_in", acc_op_name(op)) && acc_str_is(pos, "1");
}

bool
acc_op_may_fill(struct acc_str op)
{
	return overwrites(op) || is_of_form(op) || acc_op_is_early(op) ||
	       acc_op_is_filled_later(op, ACC_STR("1")) || acc_str_starts(op, "Distributed.");
}

bool
acc_op_fills(struct acc_str op, struct acc_str pos)
{
	static const char *const names[] = {"output", "output_tensor", "output_tensor_list",
		"output_tensors", "tensor_list"};
	const struct acc_op_info *o = NULL;
	if (overwrites(op))
		return acc_str_is(pos, "0");
	if (is_of_form(op) || acc_op_is_early(op) || acc_op_is_filled_later(op, pos))
		return true;
	if (acc_str_starts(op, "Distributed."))
		o = acc_op_info_of(op);
	if (o == NULL || (o->flags & ACC_OP_FILLS) == 0)
		return false;
	pos.n = pos.n > 0 && memchr(pos.p, '.', pos.n) != NULL
			? (uint32_t)((const char *)memchr(pos.p, '.', pos.n) - pos.p)
			: pos.n;
	bool first = acc_str_is(pos, "0");
	for (size_t i = 0; i < sizeof names / sizeof *names && !first; i++)
		first = acc_str_is(pos, names[i]);
	return first || (acc_str_is(pos, "tensor") && strcmp(o->family, "recv") == 0);
}
