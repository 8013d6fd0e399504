"""ExecuTorch: record(etdump, etrecord, folder, buffer) of a run with event tracing: the intermediate outputs, by the names of
the graph in the ETRecord (devtools' Inspector joins them by debug handle)."""
from importlib.metadata import version

import torch
from executorch.devtools import Inspector

from . import Recording, frames


def record(etdump, etrecord, folder, buffer=None):
    inspector = Inspector(etdump_path=etdump, etrecord=etrecord, debug_buffer_path=buffer)
    seen = set()
    with Recording(folder, "executorch " + version("executorch")) as r:
        for block in inspector.event_blocks:
            for e in block.events:
                out = [t for t in torch.utils._pytree.tree_leaves(e.debug_data or []) if isinstance(t, torch.Tensor) and t.numel() > 0]
                # Every event stands there twice: of the call, and of the operator in it.
                key = (str(e._instruction_id), tuple(t.numpy().tobytes() for t in out))
                if not out or key in seen:
                    continue
                seen.add(key)
                names = list((e.stack_traces or {}).items())
                name = names[-1][0] if names else "event_%s" % e._instruction_id
                r.node((e.op_types or [e.name])[-1], {name + (".%d" % i if i else ""): t.numpy() for i, t in enumerate(out)},
                       at=frames(names[-1][1]) if names else (), attrs={"debug_handle": str(e.debug_handles)})
