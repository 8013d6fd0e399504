"""Writes files as torch.save did before torch 1.6, with storages numbered in order: torch's own
writer (_use_new_zipfile_serialization=False) names them by their addresses in this run."""
import pickle
import struct

import torch

TYPED = getattr(torch.storage, "TypedStorage", None) or torch.storage._TypedStorage


class Pickler(pickle.Pickler):
    def __init__(self, f, protocol):
        super().__init__(f, protocol)
        self.storages = {}

    def persistent_id(self, obj):
        if not isinstance(obj, TYPED):
            return None
        at = obj.data_ptr() or id(obj)
        key, _ = self.storages.setdefault(at, (str(len(self.storages)), obj))
        kind = getattr(torch, obj.pickle_storage_type())
        return ("storage", kind, key, "cpu", obj.size(), None)


def save(obj, path, protocol=2):
    with open(path, "wb") as f:
        pickle.dump(0x1950a86a20f9469cfc6c, f, protocol)
        pickle.dump(1001, f, protocol)
        pickle.dump({"protocol_version": 1001, "little_endian": True,
                     "type_sizes": {"short": 2, "int": 4, "long": 4}}, f, protocol)
        p = Pickler(f, protocol)
        p.dump(obj)
        keys = {key: s for key, s in p.storages.values()}
        pickle.dump(sorted(keys), f, protocol)
        for key in sorted(keys):
            s = keys[key]
            f.write(struct.pack("<Q", s.size()))
            f.write(bytes(s.untyped() if hasattr(s, "untyped") else s._storage))
