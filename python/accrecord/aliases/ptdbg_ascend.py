"""accrecord under the name by which ptdbg_ascend's scripts import it."""
from accrecord import *  # noqa: F401, F403
