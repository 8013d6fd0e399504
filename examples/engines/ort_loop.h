/* ort_loop.h - record what a session of ONNX Runtime gives, in C++
 *
 *	Ort::Session session(env, "all-outputs.onnx", options);     every tensor an output, as acc-engines(7) says
 *	acc_record_session(session, input_names, inputs, n, "device");
 *
 * then: accdiff device bench. Integers are left out; what cannot be recorded ends nothing.
 */
#include <acc/accrec1.h>
#include <onnxruntime_cxx_api.h>

#include <string>
#include <vector>

static const char *
acc_ort_dtype(ONNXTensorElementDataType t)
{
	return t == ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT      ? "f32"
	       : t == ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT16  ? "f16"
	       : t == ONNX_TENSOR_ELEMENT_DATA_TYPE_BFLOAT16 ? "bf16"
	       : t == ONNX_TENSOR_ELEMENT_DATA_TYPE_DOUBLE   ? "f64"
							     : nullptr;
}

static std::vector<Ort::Value>
acc_record_session(Ort::Session &session, const char *const *input_names, const Ort::Value *inputs,
	size_t n, const char *folder)
{
	Ort::AllocatorWithDefaultOptions allocator;
	std::vector<std::string> names;
	std::vector<const char *> c_names;
	for (size_t i = 0; i < session.GetOutputCount(); i++)
		names.push_back(session.GetOutputNameAllocated(i, allocator).get());
	for (const std::string &s : names)
		c_names.push_back(s.c_str());
	std::vector<Ort::Value> out = session.Run(Ort::RunOptions{nullptr}, input_names, inputs, n,
		c_names.data(), c_names.size());
	struct acc1 *a = acc1_open_for(folder, ("onnxruntime " + Ort::GetVersionString()).c_str());
	for (size_t i = 0; i < out.size(); i++) {
		auto info = out[i].GetTensorTypeAndShapeInfo();
		const std::vector<int64_t> shape = info.GetShape();
		if (const char *dtype = acc_ort_dtype(info.GetElementType()))
			acc1_array(a, c_names[i], dtype, (uint32_t)shape.size(), shape.data(),
				nullptr, out[i].GetTensorRawData());
	}
	acc1_close(a);
	return out;
}
