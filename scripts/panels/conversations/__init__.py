"""All panels, file by file."""

from . import good_english, good_other, images, limits, plans, progress, questions, quotes, replies, reuse

FILES = (good_english, good_other, limits, questions, replies, reuse, quotes, plans, progress, images)
PANELS = [panel for file in FILES for panel in file.PANELS]
