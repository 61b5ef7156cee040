"""Point 2: questions that are worth an answer, asked once, in the user's language."""

from panel import Panel, Turn
from upstream import Fail, Raw

GENERIC = r"short version|long version|another angle|shorter version|kurze Fassung|lange Fassung|anderer Blick|versión corta|versión larga|otro ángulo|短い版|長い版|別の角度"
PLAIN = r"best answer|as it stands|beste Antwort|mejor respuesta|最善|最も"
DEEPER = r"deep|thorough|gründlich|tiefer|profund|詳しい|深"
STOP = r"stop|leave it|abbrech|aufhören|beenden|parar|dejar|terminar|やめ|終了|中止"
THREE = ["A\\W", "B\\W", "C\\W"]
TWO_OF_THEM = r"(400|360|380).*(400|360|380)"
SAME = {"question": "Which one?", "options": ["A yes: it is so", "A yes: it is so", "A yes: it is so"]}
TWO = {"question": "Which one?", "options": ["A the first: it is so", "B the second: it is not"]}
BAD = {"question": "Tell me more", "options": []}


def contested(lang: str, **more) -> dict:
    """Three agents give three figures, and nothing in the request decides."""
    base = {
        "en": ("400 litres", "360 litres", "380 litres"),
        "de": ("400 Liter", "360 Liter", "380 Liter"),
        "es": ("400 litros", "360 litros", "380 litros"),
        "ja": ("400リットル", "360リットル", "380リットル"),
    }[lang]
    lead = {"en": "The answer is", "de": "Die Antwort ist", "es": "La respuesta es", "ja": "答えは"}[lang]
    asks = {
        "en": (
            "Does the gauge count the gross or the usable volume?",
            "A gross: one step is 400 litres",
            "B usable: one step is 360 litres",
            "C to the overflow: one step is 380 litres",
        ),
        "de": (
            "Zählt die Anzeige das Brutto- oder das Nutzvolumen?",
            "A brutto: ein Schritt sind 400 Liter",
            "B nutzbar: ein Schritt sind 360 Liter",
            "C bis zum Überlauf: ein Schritt sind 380 Liter",
        ),
        "es": (
            "¿El indicador cuenta el volumen bruto o el útil?",
            "A bruto: un paso son 400 litros",
            "B útil: un paso son 360 litros",
            "C hasta el rebosadero: un paso son 380 litros",
        ),
        "ja": (
            "計器は総容量と有効容量のどちらを示しますか。",
            "A 総容量：一目盛りは400リットル",
            "B 有効容量：一目盛りは360リットル",
            "C 溢れ口まで：一目盛りは380リットル",
        ),
    }[lang]
    return {
        "question": asks[0],
        "options": list(asks[1:]),
        "answer": base[0],
        "wrong": {"critic": base[1], "verifier": base[2]},
        "truth": "",
        "evidence": "",
        "penalty": 0.5,
        "lead": lead,
        "reply": f"{lead} **{base[0]}**.",
        **more,
    }


def agreed(answer: str, **more) -> dict:
    """After the question was answered all agents agree."""
    return {
        "answer": answer,
        "wrong": {},
        "truth": answer,
        "penalty": 0,
        "evidence": "The user's answer says so.",
        "basis": "given",
        **more,
    }


def doubtful(**more) -> dict:
    """The reports agree, but the master holds an open point against them."""
    return {"penalty": 0.5, **more}


OPEN = doubtful(
    claims=[
        ("lease", "The lease ends on 30 June unless it is renewed in writing.", "given"),
        ("notice", "A notice has to arrive three months before.", "sourced"),
    ],
    evidence="The wording of the request says so.",
    reply="Send the notice by 31 March.",
    tldr=["The notice must arrive by 31 March."],
    parts=["when to give notice"],
    question="Was the lease renewed in writing?",
    options=[
        "A it was renewed: the notice is due a year later",
        "B it was not renewed: the notice is due by 31 March",
        "C it was renewed by mail: it depends on the form clause",
    ],
)

PANELS = [
    Panel(
        "question-from-contest",
        2,
        [
            Turn(
                "How many litres does one step of the gauge on tank 7 stand for, at 1 % steps?",
                outcome="clarification",
                c=(0, 0.69),
                has=["400", "360", "380"],
                lacks=[GENERIC],
            )
        ],
        contested("en"),
        {"question": [BAD, BAD, BAD], "repair:question": BAD},
        about="The question call gives nothing usable: the contested positions are the options.",
    ),
    Panel(
        "question-call-fails",
        2,
        [
            Turn(
                "How many litres is a step of the gauge on tank 8, at 1 % steps?",
                outcome="clarification",
                c=(0, 0.69),
                has=[TWO_OF_THEM],
                lacks=[GENERIC],
            )
        ],
        contested("en"),
        {"question": Fail(400, "invalid_request_error", "bad")},
    ),
    Panel(
        "frage-aus-streit",
        2,
        [
            Turn(
                "Wie viele Liter bedeutet ein Schritt der Anzeige an Tank 7 bei 1 % je Schritt?",
                outcome="clarification",
                c=(0, 0.69),
                has=[TWO_OF_THEM],
                lacks=[GENERIC],
                checks=["same language"],
            )
        ],
        contested("de"),
        {"question": Raw("Ich weiß es nicht."), "repair:question": Raw("Ich weiß es nicht.")},
        lang="de",
    ),
    Panel(
        "pregunta-del-conflicto",
        2,
        [
            Turn(
                "¿Cuántos litros vale un paso del indicador del depósito 7, con pasos del 1 %?",
                outcome="clarification",
                c=(0, 0.69),
                has=[TWO_OF_THEM],
                lacks=[GENERIC],
                checks=["same language"],
            )
        ],
        contested("es"),
        {"question": TWO, "repair:question": TWO},
        lang="es",
    ),
    Panel(
        "質問-対立から",
        2,
        [
            Turn(
                "タンク7の計器は1%刻みです。一目盛りは何リットルですか。",
                outcome="clarification",
                c=(0, 0.69),
                has=[TWO_OF_THEM],
                lacks=[GENERIC],
                checks=["same language"],
            )
        ],
        contested("ja"),
        {"question": SAME, "repair:question": SAME},
        lang="ja",
    ),
    Panel(
        "fallback-is-repaired",
        2,
        [
            Turn(
                "When do I have to give notice for my shop's lease that ends on 30 June?",
                outcome="clarification",
                c=(0.01, 0.69),
                has=["renewed"],
                lacks=[GENERIC],
                calls={"synthesis": 1},
            )
        ],
        OPEN,
        {"synthesis": {"audit": {"fallbackQuestion": SAME}}},
        about="The synthesis brings no usable question: it is repaired, or the question call asks.",
    ),
    Panel(
        "fallback-then-question-call",
        2,
        [
            Turn(
                "When do I have to give notice for my office's lease that ends on 30 June?",
                outcome="clarification",
                c=(0.01, 0.69),
                has=["renewed"],
                lacks=[GENERIC],
                calls={"question": 1},
            )
        ],
        OPEN,
        {"synthesis": {"audit": {"fallbackQuestion": TWO}}, "repair:synthesis": {"audit": {"fallbackQuestion": TWO}}},
        about="The repair is of no use either: the question call asks.",
    ),
    Panel(
        "nothing-to-ask",
        2,
        [
            Turn(
                "When do I have to give notice for my garage's lease that ends on 30 June?",
                outcome="clarification",
                c=(0.01, 0.69),
                has=[PLAIN, DEEPER, STOP],
                lacks=[GENERIC],
                plain=True,
            ),
            Turn(pick=PLAIN, c=(0, 1), has=["31 March"], calls={"agent": 0}),
        ],
        OPEN,
        {
            "synthesis": {"audit": {"fallbackQuestion": SAME}},
            "repair:synthesis": {"audit": {"fallbackQuestion": SAME}},
            "question": SAME,
            "repair:question": SAME,
        },
        example=True,
        about="No usable question and no contested position: the run says so and offers the best answer, a deeper run, or to stop. The best answer is chosen and nothing is bought twice.",
    ),
    Panel(
        "nichts-zu-fragen",
        2,
        [
            Turn(
                "Bis wann muss ich den Mietvertrag meiner Werkstatt kündigen, der am 30. Juni endet?",
                outcome="clarification",
                c=(0.01, 0.69),
                has=[PLAIN, DEEPER, STOP],
                lacks=[GENERIC],
                plain=True,
                checks=["same language"],
            ),
            Turn(pick=STOP, outcome="", loose=True, status=(200, 422), checks=["free"]),
        ],
        {
            **OPEN,
            "claims": [("ende", "Der Vertrag endet am 30. Juni, wenn er nicht schriftlich verlängert wurde.", "given")],
            "reply": "Kündige bis zum 31. März.",
            "tldr": ["Bis zum 31. März."],
        },
        {
            "synthesis": {"audit": {"fallbackQuestion": SAME}},
            "repair:synthesis": {"audit": {"fallbackQuestion": SAME}},
            "question": SAME,
            "repair:question": SAME,
        },
        lang="de",
        about="The user chooses to stop: nothing more is bought.",
    ),
    Panel(
        "option-by-letter",
        2,
        [
            Turn(
                "How many litres is one step of the gauge on tank 9, at 1 % steps?",
                outcome="clarification",
                c=(0, 0.69),
                has=["usable"],
            ),
            Turn(
                "B",
                facts=agreed(
                    "360 litres", reply="One step is **360 litres**, because the gauge counts the usable volume."
                ),
                c=(0.7, 1),
                has=["360"],
                calls={"plan": 0, "agent": (1, 3)},
            ),
        ],
        contested(
            "en",
            question="Does the gauge count the gross or the usable volume?",
            options=[
                "A the gross volume: one step is 400 litres",
                "B the usable volume: one step is 360 litres",
                "C up to the overflow: one step is 380 litres",
            ],
        ),
        example=True,
        about="An option is chosen by its letter, and the reply honours it.",
    ),
    Panel(
        "option-by-text",
        2,
        [
            Turn(
                "Wie viele Liter sind ein Schritt der Anzeige an Tank 9 bei 1 % je Schritt?",
                outcome="clarification",
                c=(0, 0.69),
                has=["Nutz"],
            ),
            Turn(
                pick="Nutz",
                pick_text=True,
                facts=agreed(
                    "360 Liter", reply="Ein Schritt sind **360 Liter**, weil die Anzeige das Nutzvolumen zählt."
                ),
                c=(0.7, 1),
                has=["360"],
                calls={"plan": 0, "agent": (1, 3)},
            ),
        ],
        contested(
            "de",
            question="Zählt die Anzeige das Brutto- oder das Nutzvolumen?",
            options=[
                "A das Bruttovolumen: ein Schritt sind 400 Liter",
                "B das Nutzvolumen: ein Schritt sind 360 Liter",
                "C bis zum Überlauf: ein Schritt sind 380 Liter",
            ],
        ),
        lang="de",
    ),
    Panel(
        "contested-position-chosen",
        2,
        [
            Turn(
                "How many litres is a step of the gauge on tank 10, at 1 % steps?",
                outcome="clarification",
                c=(0, 0.69),
                has=[TWO_OF_THEM],
            ),
            Turn(pick="400", facts=agreed("400 litres", reply="One step is **400 litres**."), c=(0, 1), has=["400"]),
        ],
        contested("en"),
        {"question": BAD, "repair:question": BAD},
        about="The options are the contested positions themselves; one is chosen.",
    ),
    *[
        Panel(
            name,
            2,
            [
                Turn(first, outcome="clarification", c=(0, 0.69)),
                Turn(second, c=(0, 0.69), has=["400|360|380"], calls={"question": 0}),
            ],
            contested(lang, **extra),
            lang=lang,
            about="The agents differ still after the answer: the run ships with its figure, and asks nothing more.",
        )
        for name, lang, first, second, extra in [
            (
                "ships-after-one-question",
                "en",
                "How many litres is a step of the gauge on tank 11, at 1 % steps?",
                "I do not know, it is an old tank.",
                {},
            ),
            (
                "liefert-nach-einer-frage",
                "de",
                "Wie viele Liter sind ein Schritt an der Anzeige von Tank 11 bei 1 % je Schritt?",
                "Das weiß ich nicht, der Tank ist alt.",
                {},
            ),
            (
                "responde-tras-una-pregunta",
                "es",
                "¿Cuántos litros es un paso del indicador del depósito 11, con pasos del 1 %?",
                "No lo sé, el depósito es antiguo.",
                {},
            ),
            (
                "一度の質問の後は答える",
                "ja",
                "タンク11の計器は1%刻みです。一目盛りで何リットルになりますか。",
                "分かりません。古いタンクです。",
                {},
            ),
        ]
    ],
    Panel(
        "plan-asks-twice",
        2,
        [
            Turn("Make it faster, please.", outcome="clarification", c=(0, 0), calls={"plan": 1, "agent": 3, "all": 4}),
            Turn("The nightly report of our shop, it is an SQL query.", c=(0, 1), has=["index"], calls={"agent": 3}),
        ],
        {
            "claims": [
                ("index", "An index on order_date lets the report read one day instead of the table.", "sourced")
            ],
            "evidence": "PostgreSQL manual, chapter 11.",
            "type": "TECHNICAL_EXECUTION",
            "reply": "Add an index on `order_date`: the report then reads one day instead of the whole table.",
            "tldr": ["Add an index on order_date."],
        },
        {
            "plan": {
                "needsClarification": True,
                "clarificationQuestion": {
                    "question": "What is slow?",
                    "options": [
                        "A a web page: caching will be advised",
                        "B a query: an index will be advised",
                        "C a computer: hardware will be advised",
                    ],
                },
            }
        },
        about="The plan asks again, and is not heard a second time.",
    ),
    Panel(
        "third-turn-does-not-ask",
        2,
        [
            Turn(
                "How many litres is a step of the gauge on tank 12, at 1 % steps?", outcome="clarification", c=(0, 0.69)
            ),
            Turn("A", c=(0, 1)),
            Turn("A1 is wrong: the tank is half buried", c=(0, 0.69), has=["400|360|380"]),
        ],
        contested(
            "en",
            assumptions=["The tank stands upright."],
            question="Gross or usable volume?",
            options=["A gross: 400 litres", "B usable: 360 litres", "C to the overflow: 380 litres"],
        ),
        about="A correction after an answered question belongs to the same lineage: it never asks again.",
    ),
    Panel(
        "unrelated-while-pending",
        2,
        [
            Turn(
                "How many litres is a step of the gauge on tank 13, at 1 % steps?", outcome="clarification", c=(0, 0.69)
            ),
            Turn("What is a good name for a ship's cat?", c=(0, 1), has=[r"taken as|as (?:the|an|your) answer|new:"]),
        ],
        contested("en"),
        about="While a question is pending every message is its answer, and the reply says so.",
    ),
    Panel(
        "fremdes-während-frage",
        2,
        [
            Turn(
                "Wie viele Liter sind ein Schritt der Anzeige an Tank 13 bei 1 % je Schritt?",
                outcome="clarification",
                c=(0, 0.69),
            ),
            Turn("Wie heißt der höchste Berg Österreichs?", c=(0, 1), has=[r"als (?:die |deine |eine )?Antwort|new:"]),
        ],
        contested("de"),
        lang="de",
    ),
    Panel(
        "pendiente-otra-cosa",
        2,
        [
            Turn(
                "¿Cuántos litros vale un paso del indicador del depósito 13, con pasos del 1 %?",
                outcome="clarification",
                c=(0, 0.69),
            ),
            Turn("¿Qué tiempo hará mañana en Sevilla?", c=(0, 1), has=[r"como (?:la |una |su |tu )?respuesta|new:"]),
        ],
        contested("es"),
        lang="es",
    ),
    Panel(
        "new-starts-afresh",
        2,
        [
            Turn(
                "How many litres is a step of the gauge on tank 14, at 1 % steps?", outcome="clarification", c=(0, 0.69)
            ),
            Turn(
                "new: How many degrees has a right angle?",
                facts=agreed(
                    "90 degrees",
                    reply="A right angle has **90 degrees**.",
                    basis="sourced",
                    evidence="Euclid, Elements, book I",
                ),
                c=(0.7, 1),
                has=["90"],
                lacks=["taken as"],
                calls={"plan": 1, "agent": 3},
            ),
        ],
        contested("en"),
        about="`new:` leaves the pending question alone.",
    ),
]
