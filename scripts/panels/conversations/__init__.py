"""All panels, file by file."""
from . import good_english, good_other

PANELS = [*good_english.PANELS, *good_other.PANELS]
