"""torch.export: record(program, inputs, folder) runs an ExportedProgram node by node, before or after it is quantised or
lowered to Edge: each node with its module, its line, and the debug handle by which numeric debuggers and ExecuTorch know it."""
import torch

from . import Recording, frames


def array(t):
    t = t.detach().cpu().contiguous()
    if t.dtype == torch.bfloat16:
        t = t.float()
    return t.numpy()


def scope(node):
    stack = list((node.meta.get("nn_module_stack") or {}).values())
    return stack[-1][0].replace("L['self'].", "") if stack else None


class Watch(torch.fx.Interpreter):
    def __init__(self, module, recording):
        super().__init__(module)
        self.recording = recording

    def run_node(self, n):
        y = super().run_node(n)
        if n.op != "call_function":
            return y
        out = [t for t in (y if isinstance(y, (list, tuple)) else [y]) if isinstance(t, torch.Tensor)]
        given = []
        for a in torch.utils._pytree.tree_leaves(list(n.args)):
            t = self.env.get(a) if isinstance(a, torch.fx.Node) else None
            given.append((a.name, array(t)) if isinstance(t, torch.Tensor) else a if isinstance(a, (bool, int, float)) else None)
        attrs = {k: v for k, v in n.kwargs.items() if not isinstance(v, torch.fx.Node) and k not in ("device", "pin_memory")}
        handle = (n.meta.get("custom") or {}).get("numeric_debug_handle", n.meta.get("debug_handle"))
        if handle is not None:
            attrs["debug_handle"] = handle
        if out:
            self.recording.node(str(n.target), {n.name + (".%d" % i if i else ""): array(t) for i, t in enumerate(out)}, given, attrs,
                                scope(n), frames(n.meta.get("stack_trace")))
        return y


def record(program, inputs, folder):
    module = program.module() if hasattr(program, "module") else program
    with Recording(folder, "pytorch " + torch.__version__.split("+")[0]) as r, torch.no_grad():
        # Parameters live where they are needed, so that nothing of the graph is freed before it was written.
        return Watch(module, r).run(*inputs)
