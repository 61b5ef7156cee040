"""Point 3: a shipped reply does not ask."""

from panel import Panel, Turn

BASE = {
    "claims": [
        ("valve", "The valve closes against a spring and needs 24 volts to open (data sheet).", "sourced"),
        ("fuse", "A blown fuse leaves the valve closed.", "sourced"),
    ],
    "evidence": "The data sheet says so.",
    "parts": ["why it stays closed"],
    "tldr": ["Check the fuse first."],
}
TLDR = {
    "en": "Closed without voltage, open with it.",
    "de": "Ohne Spannung zu, mit Spannung offen.",
    "es": "Sin tensión, cerrada; con tensión, abierta.",
    "ja": "電圧がなければ閉じ、あれば開きます。",
}
ANSWER = (
    "The valve stays closed because it gets no voltage. Check the fuse first, then measure 24 volts at the terminals."
)


def ends(
    name: str,
    lang: str,
    message: str,
    answer: str,
    tail: str,
    lacks: str,
    mode: str = "ask",
    stubborn: bool = False,
    example: bool = False,
) -> Panel:
    """The reply ends in a question or an offer: it is repaired once, and cut if it still does."""
    script = {
        "synthesis": [
            {"replyMarkdown": f"{answer}\n\n{tail}"},
            {"replyMarkdown": f"{answer}\n\n{tail}" if stubborn else answer},
        ]
    }
    script["repair:synthesis"] = {"replyMarkdown": f"{answer}\n\n{tail}" if stubborn else answer}
    turn = Turn(
        message,
        c=(0.7, 1),
        has=[answer[:40]],
        lacks=[lacks],
        calls={"agent": 3, "all": (6, 7) if mode == "ask" else (6, 8)},
        checks=["ends whole"],
    )
    return Panel(
        name,
        3,
        [turn],
        {**BASE, "reply": answer, "tldr": [TLDR[lang]]},
        script,
        lang=lang,
        mode=mode,
        example=example,
        about="The model ends with a question to the user. It is asked once to end with its answer." if example else "",
    )


def stays(name: str, lang: str, message: str, answer: str, mark: str, mode: str = "ask") -> Panel:
    """The question marks in the reply are no questions to the user: the reply stays as it is."""
    turn = Turn(message, c=(0.7, 1), has=[mark], calls={"repair": 0, "synthesis": 1})
    return Panel(name, 3, [turn], {**BASE, "reply": answer, "tldr": [TLDR[lang]]}, lang=lang, mode=mode)


PANELS = [
    ends(
        "ends-in-question",
        "en",
        "Why does the heating valve in room 101 stay closed?",
        ANSWER,
        "Shall I also draw the wiring for you?",
        "Shall I",
        example=True,
    ),
    ends(
        "ends-in-question-audit",
        "en",
        "Why does the heating valve in room 102 stay closed?",
        ANSWER,
        "Which voltage do you measure at the terminals?",
        "Which voltage do you",
        "audit",
    ),
    ends(
        "still-asks-after-repair",
        "en",
        "Why does the heating valve in room 103 stay closed?",
        ANSWER,
        "Do you want me to list the tools?",
        "Do you want",
        stubborn=True,
    ),
    ends(
        "ends-in-offer",
        "en",
        "Why does the heating valve in room 104 stay closed?",
        ANSWER,
        "Let me know if you would like a wiring diagram as well.",
        "Let me know",
        stubborn=True,
    ),
    ends(
        "endet-mit-frage",
        "de",
        "Warum bleibt das Heizungsventil in Raum 201 zu?",
        "Das Ventil bleibt zu, weil es keine Spannung bekommt. Prüfe zuerst die Sicherung.",
        "Soll ich dir auch einen Schaltplan zeichnen?",
        "Soll ich",
    ),
    ends(
        "endet-mit-angebot",
        "de",
        "Warum bleibt das Heizungsventil in Raum 202 zu?",
        "Das Ventil bleibt zu, weil es keine Spannung bekommt. Prüfe zuerst die Sicherung.",
        "Sag mir gern Bescheid, wenn ich dir einen Schaltplan zeichnen soll.",
        "Sag mir gern",
        stubborn=True,
    ),
    ends(
        "termina-en-pregunta",
        "es",
        "¿Por qué no abre la válvula de calefacción de la sala 301?",
        "La válvula no abre porque no recibe tensión. Comprueba primero el fusible.",
        "¿Quieres que dibuje también el esquema?",
        "¿Quieres",
    ),
    ends(
        "質問で終わる",
        "ja",
        "401号室の暖房弁が開かないのはなぜですか。",
        "弁が開かないのは、電圧が届いていないためです。まずヒューズを確認してください。",
        "配線図もお描きしましょうか？",
        "お描きしましょうか",
        stubborn=True,
    ),
    stays(
        "rhetorical-question-stays",
        "en",
        "Explain to a trainee why a closed valve without voltage is a safe design.",
        "Why close without voltage? Because a broken wire must not flood the room. The spring closes the valve, the voltage holds it open, and every fault ends closed.",
        r"Why close without voltage\?",
    ),
    stays(
        "quoted-question-stays",
        "en",
        "Write the one sentence with which our hotline should open a call about a cold room.",
        "Open the call with this sentence:\n\n> Is the room cold since today, or since the last maintenance?\n\nIt tells a fault from a wrong setting with one answer.",
        r"since the last maintenance\?",
    ),
    stays(
        "code-question-stays",
        "en",
        "Which regular expression matches color and colour, and nothing longer?",
        "Use an optional letter:\n\n```text\n^colou?r$\n```\n\nThe `u?` makes the letter optional, and the anchors forbid anything longer.",
        r"colou\?r",
    ),
    stays(
        "rhetorische-frage-bleibt",
        "de",
        "Erkläre kurz, warum ein Ventil ohne Strom schließen soll.",
        "Warum schließt es ohne Strom? Weil ein Kabelbruch nicht zur Überschwemmung führen darf. Die Feder schließt, die Spannung hält offen.",
        r"ohne Strom\?",
    ),
    stays(
        "cita-con-pregunta-queda",
        "es",
        "Escribe la frase con la que el técnico debe empezar la llamada.",
        "Empieza con esta frase: «¿Desde cuándo está fría la sala?». Así se distingue una avería de un ajuste.",
        r"¿Desde cuándo está fría la sala\?",
    ),
]
