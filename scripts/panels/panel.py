"""The form of a panel: who asks what, in which order, what the models say, and what a reader must get."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

Range = tuple[float, float]


@dataclass
class Turn:
    """One step of a panel.

    `again` are the agents that must be asked again, `spared` those that must not be. `plain` allows a
    clarification without a question mark, `loose` a reply of any form.

    `do` is `chat`, `stream` (the same as server-sent events), `quote` or `cli`. `facts` and `script` are
    laid over those of the panel from this turn on. `pick` is a pattern: the message is then the letter of
    the option of the last question that fits it, or with `pick_text` the option's text. In `args` of a `cli` turn `{run}`, `{prefix}`,
    `{server}` and `{user}` stand for the last run, a short prefix of it, the service and the user.
    """

    message: str = ""
    mode: str = ""
    do: str = "chat"
    args: list[str] = field(default_factory=list)
    facts: dict = field(default_factory=dict)
    script: dict = field(default_factory=dict)
    attachments: list[dict] = field(default_factory=list)
    user: str = ""
    before: str = ""
    pick: str = ""
    pick_text: bool = False

    status: Any = 200
    outcome: str = "answered"
    c: Range = (0.0, 1.0)
    has: list[str] = field(default_factory=list)
    lacks: list[str] = field(default_factory=list)
    calls: dict[str, Any] = field(default_factory=dict)
    cost: Range = (0.0, 1.0)
    again: list[str] = field(default_factory=list)
    spared: list[str] = field(default_factory=list)
    checks: list[str] = field(default_factory=list)
    plain: bool = False
    loose: bool = False


@dataclass
class Panel:
    """A conversation with the service, its scripted models and the expectations of each turn."""

    name: str
    point: int
    turns: list[Turn]
    facts: dict = field(default_factory=dict)
    script: dict = field(default_factory=dict)
    lang: str = "en"
    mode: str = "ask"
    config: str = "shipped"
    example: bool = False
    about: str = ""

    def __post_init__(self) -> None:
        for turn in self.turns:
            turn.mode = turn.mode or self.mode


def good(
    name: str, mode: str, message: str, lang: str = "en", example: bool = False, turn: dict | None = None, **facts: Any
) -> Panel:
    """An honest panel in which nothing is wrong: one question, one answer that ships."""
    expected = {
        "c": (0.7, 1.0),
        "calls": {"plan": 1, "agent": (3, 5), "synthesis": 1, "question": 0, "repair": 0},
        **(turn or {}),
    }
    return Panel(name, 0, [Turn(message, **expected)], facts, lang=lang, mode=mode, example=example)
