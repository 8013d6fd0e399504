"""Which functions are op calls, and what the recorders call them."""
from __future__ import annotations

import contextlib
import functools
from typing import Any, Callable, Dict, List, Optional, Sequence

import torch
import torch.nn.functional as F

from .errors import lacking
from .values import Part, leaves

# They ask for something, make something out of nothing or random numbers, or belong to autograd.
SKIP = set("""
    dim size numel nelement ndimension stride storage_offset is_contiguous data_ptr item tolist
    numpy element_size storage untyped_storage storage_type get_device has_names backward
    register_hook register_post_accumulate_grad_hook requires_grad_ retain_grad detach detach_
    allclose equal result_type can_cast promote_types type share_memory_ pin_memory is_same_size
    set_ resize_ resize_as_ as_subclass apply_ map_ map2_ record_stream names rename rename_
    refine_names align_to align_as uniform_ normal_ random_ exponential_ bernoulli_ cauchy_
    geometric_ log_normal_ zero_ get_num_threads set_num_threads is_tensor typename
    manual_seed seed initial_seed save load compile no_grad enable_grad set_grad_enabled
    is_grad_enabled is_inference_mode_enabled broadcast_shapes finfo iinfo Generator
    tensor as_tensor from_numpy frombuffer sparse_coo_tensor asarray scalar_tensor
    empty empty_like empty_strided empty_quantized new_empty new_empty_strided new_tensor
    zeros zeros_like new_zeros ones ones_like new_ones full full_like new_full eye arange range
    linspace logspace rand rand_like randn randn_like randint randint_like randperm normal
    bernoulli multinomial poisson tril_indices triu_indices hann_window hamming_window
    bartlett_window blackman_window kaiser_window complex_out
    __len__ __bool__ __repr__ __str__ __format__ __hash__ __deepcopy__ __reduce_ex__ __array__
    __array_wrap__ __setstate__ __contains__ __iter__ __dir__ __get__ __set__ __delete__ __float__
    __int__ __index__ __complex__ __long__ __nonzero__ __cuda_array_interface__ __dlpack__
    __dlpack_device__ __reversed__ __init__ __new__ __class__ __getattribute__ __setattr__
    __subclasshook__ __init_subclass__ __sizeof__ __dir__ __torch_function__ __torch_dispatch__
    has_torch_function boolean_dispatch handle_torch_function assert_int_or_pair list obj""".split())
INPLACE = set("__iadd__ __isub__ __imul__ __itruediv__ __idiv__ __ifloordiv__ __imod__ __ipow__ "
              "__iand__ __ior__ __ixor__ __ilshift__ __irshift__ __setitem__".split())


def wanted(name: str) -> bool:
    """Is a function of this name an op call?"""
    return name.startswith(("_foreach_", "_amp_")) or not (
        name in SKIP or name.startswith("is_") or (name.startswith("_") and not name.endswith("__")))


@functools.lru_cache(None)
def op_names() -> Dict[Callable[..., Any], str]:
    """Of each function its name as the recorders write it. The first that has it counts; of several in one place
    that which the operator has: torch.mm is torch.dsmm, too, and says that this is its name."""
    spaces = [("Functional", F), ("Torch", torch), ("Tensor", torch.Tensor),
              ("Torch.linalg", getattr(torch, "linalg", None)),
              ("Torch.fft", getattr(torch, "fft", None)),
              ("Torch.special", getattr(torch, "special", None))]
    names: Dict[Callable[..., Any], str] = {}
    for family, space in spaces:
        here: Dict[Callable[..., Any], str] = {}
        for name in dir(space) if space is not None else []:
            fn = getattr(space, name, None)
            if not wanted(name) or not callable(fn) or isinstance(fn, type):
                continue
            with contextlib.suppress(TypeError):
                if here.setdefault(fn, name) != name and not hasattr(torch.ops.aten, here[fn]) and \
                        hasattr(torch.ops.aten, name):
                    here[fn] = name
        for fn, name in here.items():
            names.setdefault(fn, f"{family}.{name}")
    return names


# torch.nn.functional and its kin choose between two functions by a flag.
ALIAS = {f"Functional.{n}_with_indices": f"Functional.{n}" for n in (
    "max_pool1d max_pool2d max_pool3d adaptive_max_pool1d adaptive_max_pool2d "
    "adaptive_max_pool3d fractional_max_pool2d fractional_max_pool3d").split()}


def registered(fn: Any) -> Optional[List[str]]:
    """(namespace, name) of torch.ops.namespace.name; or None."""
    if type(fn).__name__ not in ("OpOverload", "OpOverloadPacket"):
        return None
    return getattr(fn, "overloadpacket", fn)._qualified_op_name.split("::")[:2]


def overwritten(fn: Any, args: Sequence[Any], kwargs: Dict[str, Any]) -> List[Part]:
    """Of a registered operator that gives nothing: the arguments that it changes, by its schema."""
    try:
        schemas = [fn._schema] if hasattr(fn, "_schema") else [getattr(fn, o)._schema for o in fn.overloads()]
    except (AttributeError, RuntimeError):
        return []
    for schema in schemas:
        names = [a.name for a in schema.arguments]
        if len(args) <= len(names) and set(kwargs) <= set(names):
            given = dict(zip(names, args), **kwargs)
            return [pv for i, a in enumerate(schema.arguments)
                    if a.alias_info is not None and a.alias_info.is_write and a.name in given
                    for pv in leaves(given[a.name], str(i))]
    return []


def name_elsewhere(fn: Any) -> Optional[str]:
    """Of operators that others registered, and those of torch that have no place of their own."""
    plain, module = getattr(fn, "__name__", ""), getattr(fn, "__module__", None) or ""
    known = registered(fn)
    if known:
        space, plain = known
        if "c10d" in space:
            if plain != "wait_tensor" and plain[0] != "_":   # those of FUNCTIONAL are seen elsewhere
                lacking("some collectives of torch.distributed._functional_collectives, such as " + plain)
        elif space == "aten":
            return f"Aten.{plain}" if wanted(plain) else None
        elif space not in ("profiler", "prim"):
            return f"NPU.{plain}" if space == "npu" else f"Torch.ops.{space}.{plain}"
    elif getattr(fn, "__qualname__", "").startswith("_VariableFunctions") and wanted(plain):
        return f"Torch.{plain}" if module.split(".")[0] == "torch" or not hasattr(torch, "npu") else f"NPU.{plain}"
    elif module == "torch._C._nn" and wanted(plain):
        return f"Functional.{plain}"
    return None


# Attributes that are op calls; a mode sees that they are got.
TURNED = {getattr(torch.Tensor, n): f"Tensor.{n}" for n in ("T", "mT", "H", "mH") if hasattr(torch.Tensor, n)}


def name_of(fn: Any) -> Optional[str]:
    """Of a function its name as recorders write it, Functional.linear; None: it is not recorded."""
    if getattr(fn, "__name__", "") == "__get__":
        return TURNED.get(getattr(fn, "__self__", None))
    try:
        name = op_names().get(fn)
    except TypeError:
        return None
    if name is None:
        plain = getattr(fn, "__name__", "")
        module = getattr(fn, "__module__", None) or ""
        if module == "torch.nn.functional" and plain.startswith("_") and wanted(plain[1:]):
            name = "Functional." + plain[1:]   # what boolean_dispatch chose
        elif plain and wanted(plain) and hasattr(torch.Tensor, plain) and \
                getattr(fn, "__qualname__", "").startswith(("_TensorBase.", "TensorBase.",
                                                            "Tensor.")):
            name = "Tensor." + plain
        else:
            name = name_elsewhere(fn)
    return ALIAS.get(name, name) if name is not None else None


def changes(name: str, kwargs: Dict[str, Any]) -> bool:
    """Does an op call change what it is given?"""
    plain = name.rsplit(".", 1)[1]
    return plain in INPLACE or bool(kwargs.get("inplace")) or kwargs.get("out") is not None or \
        (plain.endswith("_") and not plain.endswith("__"))
