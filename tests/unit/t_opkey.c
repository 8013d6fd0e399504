/* What acc_opkey_parse makes of the keys that the recorders write. */
#include "acc/dump.h"

#include "tap.h"

static void
is(const char *key, char sep, const char *op, int64_t call, const char *pass)
{
	struct acc_opkey k;
	bool known = acc_opkey_parse(acc_str(key), sep, &k);
	ok(known == (pass[0] != '\0') && acc_str_is(k.op, op) && k.call == call &&
			acc_str_is(k.pass, pass),
		"%s is (%.*s, %lld, %.*s)", key, ACC_PRS(k.op), (long long)k.call, ACC_PRS(k.pass));
}

int
main(void)
{
	is("Functional.linear.3.forward", '.', "Functional.linear", 3, "forward");
	is("Tensor.__getitem__.12.backward", '.', "Tensor.__getitem__", 12, "backward");
	is("Module.layers.0.attn.qkv.Linear.forward.7", '.', "Module.layers.0.attn.qkv.Linear", 7,
		"forward");
	is("Cell.net.fc.Dense.backward.0", '.', "Cell.net.fc.Dense", 0, "backward");
	is("Module.fc.Linear.parameters_grad", '.', "Module.fc.Linear", -1, "parameters_grad");
	is("Module.fc.Linear.parameters_grad.2", '.', "Module.fc.Linear", 2, "parameters_grad");
	is("Module.layers.0.parameters_grad", '.', "Module.layers.0", -1, "parameters_grad");
	is("x.0.debug", '.', "x", 0, "debug");
	is("self.x_grad.1.debug", '.', "self.x_grad", 1, "debug");
	is("Functional_conv2d_0_forward", '_', "Functional_conv2d", 0, "forward");
	is("Tensor___add___4_backward", '_', "Tensor___add__", 4, "backward");
	is("Module_conv1_Conv2d_forward_0", '_', "Module_conv1_Conv2d", 0, "forward");
	is("Tensor.relu.forward", '.', "Tensor.relu", -1, "forward");
	is("Tensor.relu.007.forward", '.', "Tensor.relu", 7, "forward");
	is("Tensor.relu.99999999999999999999.forward", '.', "Tensor.relu.99999999999999999999", -1,
		"forward");
	is("forward", '.', "forward", -1, "");
	is(".forward", '.', ".forward", -1, "");
	is("0.forward", '.', "0", -1, "forward");
	is("forward.0", '.', "forward.0", -1, "");
	is("optimizer", '.', "optimizer", -1, "");
	is("a.b.3", '.', "a.b.3", -1, "");
	is("", '.', "", -1, "");
	return done();
}
