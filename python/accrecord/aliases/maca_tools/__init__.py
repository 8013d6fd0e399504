"""accrecord under the name by which maca_tools' scripts import it."""
import accrecord as accuracy

__all__ = ["accuracy"]
