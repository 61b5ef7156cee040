"""All panels, file by file."""
from . import good_english, good_other, limits

PANELS = [*good_english.PANELS, *good_other.PANELS, *limits.PANELS]
