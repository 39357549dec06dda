"""The simulated device as torch_npu sees it, and what the device can tell about itself."""

import ctypes

import torch
import torch_npu  # noqa: F401  registers the device

DEVICE = "npu:0"

_library = ctypes.CDLL("libascendcl.so")
_library.cressetSimReport.restype = ctypes.c_char_p
_library.cressetSimReport.argtypes = [ctypes.c_char_p]
_library.cressetSimConfigure.argtypes = [ctypes.c_char_p, ctypes.c_char_p]


def configure(variable: str, value: str) -> None:
    """Changes a setting of the device while the program runs."""
    code = _library.cressetSimConfigure(variable.encode(), value.encode())
    if code != 0:
        raise ValueError(f"{variable}={value} was refused with {code}")


def count_calls() -> None:
    """Starts to count calls anew."""
    configure("CRESSET_SIM_CALLS", "1")


def operators_called() -> dict[str, int]:
    """How often each aclnn operator ran since `count_calls`."""
    lines = _library.cressetSimReport(b"calls").decode().split("\n")
    pairs = (line.split(" ") for line in lines if line)
    return {name: int(count) for name, count in pairs if name.startswith("aclnn") and not name.endswith("Size")}


def functions_called() -> dict[str, int]:
    """How often each C function was called since `count_calls`."""
    lines = _library.cressetSimReport(b"calls").decode().split("\n")
    return {name: int(count) for name, count in (line.split(" ") for line in lines if line)}


def to_device(value):
    """The same arguments with tensors on the device, as leaves of a graph of their own."""
    if isinstance(value, torch.Tensor):
        return _twin(value.detach()).requires_grad_(value.requires_grad)
    if isinstance(value, torch.device):
        return torch.device(DEVICE)
    if isinstance(value, (list, tuple)) and not isinstance(value, torch.Size):
        return type(value)(to_device(item) for item in value)
    if isinstance(value, dict):
        return {key: to_device(item) for key, item in value.items()}
    return value


def _twin(tensor):
    """The same view of the same storage, on the device: what is not contiguous stays so."""
    if tensor.numel() == 0 or tensor.layout != torch.strided or tensor.is_conj() or tensor.is_neg():
        return tensor.to(DEVICE)
    elements = tensor.untyped_storage().nbytes() // tensor.element_size()
    whole = tensor.as_strided((elements,), (1,), 0).to(DEVICE)
    return whole.as_strided(tensor.shape, tensor.stride(), tensor.storage_offset())
