"""Point 5: a quote is what a real run costs."""

from panel import Panel, Turn

from .texts import handbuch, manual, protokoll, readings, thorough, 日誌, 解説

NOTE = {"reply": manual(2), "tldr": ["The strainer first, then the pump."]}


def priced(name: str, mode: str, message: str, lang: str = "en", **facts) -> Panel:
    """A question is quoted and then asked by somebody who never asked before."""
    facts = thorough(**{**NOTE, **facts})
    turns = [Turn(message, do="quote", checks=["free"]), Turn(message, c=(0.7, 1), checks=["quoted"])]
    return Panel(name, 5, turns, facts, lang=lang, mode=mode)


def longer(name: str, mode: str, texts: list[str], lang: str = "en") -> Panel:
    """Each of the questions is longer than the one before; none is cheaper."""
    turns = [Turn(t, do="quote", checks=["free"] + (["not cheaper"] if n else [])) for n, t in enumerate(texts)]
    return Panel(name, 5, turns, {}, lang=lang, mode=mode)


PANELS = [
    priced("quote-ask", "ask", "What should I look at first when the station in the opera hums?"),
    priced("quote-audit", "audit", "What should I look at first when the station in the palace hums?", reply=manual(4)),
    priced("quote-deep", "deep", "What should I look at first when the station in the castle hums?", reply=manual(8)),
    priced(
        "quote-ask-6000", "ask", readings("Is there a fault in these readings of the station in the arena?", 6000, 2014)
    ),
    priced(
        "quote-audit-3000",
        "audit",
        readings("Is there a fault in these readings of the station in the abbey?", 3000, 2013),
        reply=manual(4),
    ),
    priced("quote-ask-19000", "ask", readings("Is there a fault in the readings of the pier?", 19000, 2012)),
    priced("quote-audit-26000", "audit", readings("Is there a fault in the readings of the wharf?", 26000, 2011)),
    Panel(
        "quote-ask-30000",
        5,
        [
            Turn(readings("Is there a fault in the readings of the quay?", 30000, 2010), do="quote", checks=["free"]),
            Turn(readings("Is there a fault in the readings of the quay?", 30000, 2010), outcome="", checks=["quoted"]),
        ],
        thorough(**NOTE),
        mode="ask",
    ),
    priced(
        "angebot-audit",
        "audit",
        "Welche Bauteile der Station im Rathaus muss ich vor dem Winter prüfen, und in welcher Reihenfolge?",
        "de",
        reply=handbuch(4),
        tldr=["Zuerst den Schmutzfänger."],
    ),
    priced(
        "見積-deep",
        "deep",
        "条件を表す文法の違いを例文とともに説明してください。",
        "ja",
        reply=解説(6),
        tldr=["四つの形を比べます。"],
    ),
    longer(
        "longer-is-not-cheaper-ask",
        "ask",
        [readings("Is there a fault?", n) for n in (100, 1000, 4000, 8000, 14000, 15000, 18000, 26000, 29000, 31000)],
    ),
    longer(
        "longer-is-not-cheaper-audit",
        "audit",
        [readings("Is there a fault?", n) for n in (100, 3000, 6000, 12000, 16000, 20000)],
    ),
    longer(
        "länger-ist-nicht-billiger",
        "deep",
        [protokoll("Ist eine Störung erkennbar?", n) for n in (100, 6000, 16000, 32000)],
        "de",
    ),
    longer("長くても安くならない", "deep", [日誌("異常はありますか。", n) for n in (50, 3000, 10000, 20000)], "ja"),
    Panel(
        "deep-is-not-quoted-like-ask",
        5,
        [
            Turn("Should we repair or replace the station in the old mill?", do="quote", mode="ask"),
            Turn(
                "Should we repair or replace the station in the old mill?",
                do="quote",
                mode="deep",
                checks=["dearer than ask", "free"],
            ),
        ],
    ),
]
