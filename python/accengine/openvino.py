"""OpenVINO: record(model, inputs, folder) of a file that it reads (.onnx, .xml) or an openvino.Model; in f32."""
import numpy as np
import openvino

from . import Recording

SKIP = ("Constant", "Result", "Parameter", "ShapeOf")


def name_of(output):
    return "%s.%d" % (output.get_node().get_friendly_name(), output.get_index()) if output.get_index() else \
        output.get_node().get_friendly_name()


def record(model, inputs, folder, device="CPU"):
    core = openvino.Core()
    m = core.read_model(model) if isinstance(model, str) else model.clone()
    ops = m.get_ordered_ops()
    watched = [op.output(k) for op in ops if op.get_type_name() not in SKIP for k in range(op.get_output_size())]
    m.add_outputs(watched)   # those that are outputs already stay the one that they are
    c = core.compile_model(m, device, {"INFERENCE_PRECISION_HINT": "f32"})
    result = c(inputs)
    made = {name_of(o.get_node().input_value(0)): np.array(result[c.outputs[i]]) for i, o in enumerate(m.outputs)}
    feeds = inputs if isinstance(inputs, dict) else dict(zip([p.get_friendly_name() for p in m.get_parameters()], inputs))
    with Recording(folder, "openvino " + openvino.__version__.split("-")[0]) as r:
        for op in ops:
            if op.get_type_name() in SKIP:
                continue
            given = []
            for v in op.input_values():
                source, name = v.get_node(), name_of(v)
                held = source.get_type_name() == "Constant" and name not in r.known
                given.append((name, source.get_data() if held else feeds.get(name)))
            r.node(op.get_type_name(), {name_of(op.output(k)): made[name_of(op.output(k))] for k in range(op.get_output_size())},
                   given, op.get_attributes())
    return made
