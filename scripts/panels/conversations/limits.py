"""Point 1: limits are told and fit, and what was bought reaches the reader."""

from panel import Panel, Turn
from upstream import Fail

from .texts import handbuch, manual, protokoll, readings, thorough, 日誌, 解説

ALONE = [r"one agent's (?:text|report) alone", r"single report", r"only the solver", r"not a synthesis"]
FEW = {"synthesis": (1, 2), "repair": (0, 1), "continuation": (0, 1), "all": (5, 9)}

LOG_FACTS = {
    "claims": [
        ("spread", "The spread between supply and return stays above 20 K in every line of the log.", "given"),
        ("flow", "The flow never falls below 11 m3/h in the log.", "given"),
    ],
    "tldr": ["The readings show no fault: the spread stays above 20 K and the flow above 11 m3/h."],
    "reply": "The readings show **no fault**. The spread between supply and return stays above 20 K, and the flow never falls below 11 m3/h.",
}


def log_facts(**more) -> dict:
    return thorough(**{"talk": 350, **LOG_FACTS, **more})


def fits(name: str, mode: str, message: str, lang: str = "en", **more) -> Panel:
    """A long question: it is answered with whole reports, or refused for nothing with its price."""
    facts = log_facts(**more)
    turn = Turn(message, status=(200, 422), outcome="", checks=["whole or refused"], has=[r"11|USD"])
    return Panel(name, 1, [turn], facts, lang=lang, mode=mode)


PANELS = [
    Panel(
        "audit-long-answer",
        1,
        [
            Turn(
                "Write the fault manual of our district heating station, part by part.",
                c=(0.7, 1),
                checks=["limit told", "nothing cut", "whole answer"],
                calls={"synthesis": 1, "repair": 0},
                lacks=ALONE,
            )
        ],
        thorough(
            reply=manual(), type="TECHNICAL_EXECUTION", tldr=["Sixteen parts, each with its sign, cause and check."]
        ),
        mode="audit",
    ),
    Panel(
        "deep-long-answer",
        1,
        [
            Turn(
                "Write a thorough fault manual of our second district heating station, part by part.",
                c=(0.7, 1),
                checks=["limit told", "nothing cut", "whole answer"],
                calls={"synthesis": 1, "repair": 0},
                lacks=ALONE,
            )
        ],
        thorough(
            reply=manual(), type="TECHNICAL_EXECUTION", tldr=["Sixteen parts, each with its sign, cause and check."]
        ),
        mode="deep",
    ),
    Panel(
        "deep-has-more-room",
        1,
        [
            Turn(
                "Describe the faults of the station in Hall 3 as an audited note.",
                mode="audit",
                c=(0.7, 1),
                checks=["limit told"],
            ),
            Turn(
                "new: Describe the faults of the station in Hall 4 in depth.",
                mode="deep",
                c=(0.7, 1),
                checks=["limit told", "more room"],
            ),
        ],
        thorough(reply=manual(6), tldr=["Six parts fail, each with its own sign."]),
    ),
    Panel(
        "ask-tells-250-words",
        1,
        [
            Turn(
                "What are the first parts to check when our heating station whistles?",
                c=(0.7, 1),
                checks=["limit told", "nothing cut", "whole answer"],
            )
        ],
        thorough(reply=manual(4), tldr=["The strainer first, then the pump."]),
    ),
    Panel(
        "handbuch-lang",
        1,
        [
            Turn(
                "Schreibe das Störungshandbuch unserer Fernwärmestation, Bauteil für Bauteil.",
                c=(0.7, 1),
                checks=["limit told", "nothing cut", "whole answer"],
                calls={"synthesis": 1, "repair": 0},
            )
        ],
        thorough(reply=handbuch(), tldr=["Vierzehn Bauteile, jedes mit Zeichen, Ursache und Vorgehen."]),
        mode="audit",
        lang="de",
    ),
    Panel(
        "文法-長い解説",
        1,
        [
            Turn(
                "日本語の条件や時間を表す文法を、形ごとに例文を付けて詳しく解説してください。",
                c=(0.7, 1),
                checks=["limit told", "nothing cut", "whole answer"],
            )
        ],
        {
            "claims": [
                ("条件の形", "「ば」「と」「たら」「なら」はそれぞれ異なる条件を表す。", "sourced"),
                ("例文", "例文は主語を変えて練習すると身につく。", "memory"),
            ],
            "evidence": "『日本語文型辞典』の各項目に一致する。",
            "reply": 解説(),
            "tldr": ["十二の形を例文とともに説明します。"],
            "parts": ["解説", "例文"],
        },
        mode="deep",
        lang="ja",
    ),
    Panel(
        "audit-answer-cut",
        1,
        [
            Turn(
                "Write the complete inspection guide of our station in the harbour, every part with sign, cause and check.",
                c=(0.7, 1),
                lacks=ALONE,
                checks=["bought reaches", "ends whole", "marked"],
                calls=FEW,
            )
        ],
        thorough(
            reply=manual(16, ("pier 1", "pier 2", "pier 3")),
            obeys=False,
            tldr=["Every part with its sign, cause and check."],
        ),
        mode="audit",
        example=True,
        about="The model wrote more than it was told, so its text was cut. What was bought is kept, to the last whole paragraph.",
    ),
    Panel(
        "deep-answer-cut",
        1,
        [
            Turn(
                "Write the complete inspection guide of our station at the airport, every part with sign, cause and check.",
                c=(0.7, 1),
                lacks=ALONE,
                checks=["bought reaches", "ends whole", "marked"],
                calls={**FEW, "all": (6, 12)},
            )
        ],
        thorough(
            reply=manual(16, ("hall A", "hall B", "hall C", "hall D", "hall E", "hall F")),
            obeys=False,
            tldr=["Every part with its sign, cause and check."],
        ),
        mode="deep",
    ),
    Panel(
        "antwort-abgeschnitten",
        1,
        [
            Turn(
                "Schreibe die vollständige Prüfanleitung der Station am Hafen, jedes Bauteil mit Zeichen, Ursache und Vorgehen.",
                c=(0.7, 1),
                checks=["bought reaches", "ends whole", "marked"],
                calls=FEW,
            )
        ],
        thorough(
            reply=handbuch(14, ("Kai 1", "Kai 2", "Kai 3")),
            obeys=False,
            tldr=["Jedes Bauteil mit Zeichen, Ursache und Vorgehen."],
        ),
        mode="audit",
        lang="de",
    ),
    Panel(
        "cut-and-continuation-fails",
        1,
        [
            Turn(
                "Write the complete inspection guide of our station at the stadium, every part with sign, cause and check.",
                c=(0.7, 1),
                lacks=ALONE,
                checks=["bought reaches", "ends whole", "marked"],
            )
        ],
        thorough(
            reply=manual(16, ("block 1", "block 2")), obeys=False, tldr=["Every part with its sign, cause and check."]
        ),
        {
            "continuation": Fail(400, "invalid_request_error", "bad"),
            "repair:synthesis": Fail(400, "invalid_request_error", "bad"),
        },
        mode="audit",
    ),
    Panel(
        "cut-without-money",
        1,
        [
            Turn(
                "Write the complete inspection guide of our small station in the school, every part with sign, cause and check.",
                c=(0.7, 1),
                lacks=ALONE,
                checks=["bought reaches", "ends whole", "marked"],
                cost=(0, 0.055),
            )
        ],
        thorough(
            reply=manual(16, ("block 1", "block 2")), obeys=False, tldr=["Every part with its sign, cause and check."]
        ),
        mode="audit",
        config="tight",
    ),
    fits("question-6000-audit", "audit", readings("Do these readings of our heating station show a fault?", 6000)),
    fits("question-6000-ask", "ask", readings("Is anything wrong in this log of the station in the mill?", 6000, 2024)),
    fits(
        "question-12000-ask",
        "ask",
        readings("Look through this log of the station in the brewery: is there a fault?", 12000, 2023),
    ),
    fits(
        "question-16000-ask",
        "ask",
        readings("A fortnight of readings from the swimming pool. Is there a fault?", 16000, 2018),
    ),
    fits(
        "question-20000-audit",
        "audit",
        readings("Three weeks of readings from the hospital. Is there a fault?", 20000, 2017),
    ),
    fits(
        "question-24000-ask", "ask", readings("A month of readings from the town hall. Is there a fault?", 24000, 2016)
    ),
    fits(
        "question-26000-audit",
        "audit",
        readings("Four weeks of readings from the museum. Is there a fault?", 26000, 2015),
    ),
    fits("question-29000-ask", "ask", readings("Five weeks of readings from the theatre. Is there a fault?", 29000, 2014)),
    fits(
        "question-31000-audit", "audit", readings("Six weeks of readings from the arena. Is there a fault?", 31000, 2013)
    ),
    fits(
        "question-32000-ask", "ask", readings("Half a year of readings from the bakery. Is there a fault?", 32000, 2022)
    ),
    fits(
        "question-32000-audit",
        "audit",
        readings("Half a year of readings from the dairy. Is there a fault?", 32000, 2021),
    ),
    fits(
        "question-32000-deep",
        "deep",
        readings("Half a year of readings from the laundry. Is there a fault?", 32000, 2020),
    ),
    fits("frage-32000-audit", "audit", protokoll("Hier das Schichtbuch. Ist eine Störung erkennbar?", 32000), "de"),
    fits(
        "frage-9000-ask",
        "ask",
        protokoll("Hier ein Auszug aus dem Schichtbuch der Brauerei. Ist eine Störung erkennbar?", 9000),
        "de",
    ),
    fits("質問-6000-audit", "audit", 日誌("この運転日誌に異常はありますか。理由も教えてください。", 6000), "ja"),
    fits("質問-32000-ask", "ask", 日誌("運転日誌を貼ります。異常はありますか。", 32000), "ja"),
    fits("質問-32000-deep", "deep", 日誌("半年分の運転日誌です。異常の有無を詳しく調べてください。", 32000), "ja"),
    Panel(
        "reports-at-their-limits",
        1,
        [
            Turn(
                "Name the parts of the station in the cinema that fail most often, with the reasons.",
                c=(0.7, 1),
                checks=["nothing cut", "whole answer"],
                calls={"agent": 3, "repair": 0},
                lacks=["not a synthesis"],
            )
        ],
        thorough(talk=350, reply=manual(2), tldr=["The strainer and the pump."]),
        about="Each agent writes as much as its prompt allows.",
    ),
    Panel(
        "ask-over-the-limit-fits",
        1,
        [
            Turn(
                "Which parts of the station in the theatre fail, and how do I see it?",
                c=(0.7, 1),
                checks=["nothing cut", "whole answer"],
                calls={"synthesis": 1},
            )
        ],
        thorough(reply=manual(7), obeys=False, tldr=["Seven parts, each with its sign."]),
    ),
]
