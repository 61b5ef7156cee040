"""Point 6: a plan has an estimate, and its figures can be true."""

from panel import Panel, Turn

STEPS = {
    "en": [("Back up the database", 0.5, 1, 2), ("Move the disks", 1, 2, 4), ("Start and test", 0.5, 1, 3)],
    "de": [("Datenbank sichern", 0.5, 1, 2), ("Platten umbauen", 1, 2, 4), ("Starten und prüfen", 0.5, 1, 3)],
    "es": [("Copiar la base de datos", 0.5, 1, 2), ("Trasladar los discos", 1, 2, 4), ("Arrancar y probar", 0.5, 1, 3)],
    "ja": [("データベースを保存する", 0.5, 1, 2), ("ディスクを移す", 1, 2, 4), ("起動して確認する", 0.5, 1, 3)],
}
HEADS = {
    "en": ("Plan", "Step", "Work"),
    "de": ("Umsetzungsplan", "Schritt", "Arbeit"),
    "es": ("Plan de trabajo", "Paso", "Trabajo"),
    "ja": ("作業計画", "手順", "作業"),
}
TLDR = {
    "en": "Back up, move, test.",
    "de": "Sichern, umbauen, prüfen.",
    "es": "Copiar, trasladar, probar.",
    "ja": "保存し、移し、確認します。",
}
SCHEMA_FREE = {
    "claims": [
        ("backup", "A dump taken before the move is the only way back.", "memory"),
        ("downtime", "The disks cannot be moved while the database writes.", "given"),
    ],
    "evidence": "The request says so.",
    "parts": ["a plan"],
    "type": "TECHNICAL_EXECUTION",
    "unit": "hours",
}


def facts(lang: str, **more) -> dict:
    return {**SCHEMA_FREE, "steps": STEPS[lang], "tldr": [TLDR[lang]], **more}


def tabled(name: str, lang: str, message: str, mode: str = "ask", example: bool = False) -> Panel:
    """The steps stand in a table under a plan's heading, and the draft has no times."""
    head, step, work = HEADS[lang]
    rows = "\n".join(f"| {n} | {s[0]} |" for n, s in enumerate(STEPS[lang], 1))
    reply = f"### {head}\n\n| {step} | {work} |\n| --- | --- |\n{rows}"
    turn = Turn(
        message, c=(0.7, 1), checks=["has estimate", "steps estimated"], calls={"estimate": (0, 1), "all": (6, 8)}
    )
    return Panel(
        name,
        6,
        [turn],
        facts(lang, reply=reply),
        {"synthesis": {"meta": {"planSteps": []}}},
        lang=lang,
        mode=mode,
        example=example,
        about="The steps stand in a table, and the model gave no times: they are asked for." if example else "",
    )


def listed(lang: str) -> str:
    return "\n".join(f"{n}. {s[0]}." for n, s in enumerate(STEPS[lang], 1))


def figures(
    name: str, lang: str, message: str, first: tuple, second: tuple | None = None, lacks: str = "", mode: str = "ask"
) -> Panel:
    """The first times are of no use; they are asked for once more."""

    def timed(omp: tuple) -> dict:
        return {"meta": {"planSteps": [{"step": s[0], "o": omp[0], "m": omp[1], "p": omp[2]} for s in STEPS[lang]]}}

    times = [{"step": s[0], "o": first[0], "m": first[1], "p": first[2]} for s in STEPS[lang]]
    script: dict = {"synthesis": [timed(first), {}]}
    if second:
        again = [{"step": s[0], "o": second[0], "m": second[1], "p": second[2]} for s in STEPS[lang]]
        script = {
            "synthesis": timed(first),
            "repair:synthesis": timed(second),
            "estimate": {"planSteps": again, "steps": again},
        }
    turn = Turn(
        message,
        c=(0.7, 1),
        checks=["has estimate", "steps estimated"] if not second else [],
        calls={"all": 7},
        lacks=[lacks] if lacks else [],
        has=[r"1[.,]08", r"2[.,]17"] if not second else [],
    )
    return Panel(name, 6, [turn], facts(lang, reply=listed(lang), badSteps=times), script, lang=lang, mode=mode)


PANELS = [
    tabled("plan-as-table", "en", "How do we move the database server's disks to the new machine?"),
    tabled("plan-as-table-deep", "en", "How do we move the archive server's disks to the new machine?", "deep"),
    tabled(
        "plan-als-tabelle", "de", "Wie ziehen wir die Platten des Datenbankservers auf die neue Maschine um?", "audit"
    ),
    tabled("plan-en-tabla", "es", "¿Cómo trasladamos los discos del servidor de datos a la máquina nueva?"),
    tabled("表の計画", "ja", "データベースサーバーのディスクを新しい機械に移す方法を教えてください。"),
    Panel(
        "ordered-list-without-times",
        6,
        [
            Turn(
                "Give me the steps to move the mail server's disks.",
                c=(0.7, 1),
                checks=["has estimate", "steps estimated"],
                calls={"all": 7},
            )
        ],
        facts("en", reply=listed("en")),
        {"synthesis": {"meta": {"planSteps": []}}},
        about="An ordered list of three steps is a plan; the times are asked for.",
    ),
    Panel(
        "comparison-table-is-no-plan",
        6,
        [
            Turn(
                "Compare NVMe, SATA and SAS disks for a small database.",
                c=(0.7, 1),
                lacks=["Execution time estimate"],
                calls={"estimate": 0, "all": 6},
            )
        ],
        facts(
            "en",
            steps=[],
            reply="| disk | strength | price |\n| --- | --- | --- |\n| NVMe | latency | high |\n| SATA | price | low |\n| SAS | two ports | middle |\n\nTake NVMe for the log and SATA for the rest.",
        ),
    ),
    figures("times-of-zero", "en", "Give me the steps to move the file server's disks.", (0, 0, 0)),
    figures("zeiten-null", "de", "Nenne mir die Schritte für den Umzug des Dateiservers.", (0, 0, 0), mode="audit"),
    figures(
        "absurd-times",
        "en",
        "Give me the steps to move the web server's disks.",
        (1e9, 1e9, 1e9),
        lacks=r"1000000000|\b1e\+?0?9\b|1[.,]000[.,]000",
    ),
    figures(
        "horas-absurdas",
        "es",
        "Dame los pasos para trasladar los discos del servidor web.",
        (5e8, 1e9, 2e9),
        lacks=r"1000000000|\b1e\+?0?9\b|1[.,]000[.,]000",
        mode="audit",
    ),
    figures("zero-twice", "en", "Give me the steps to move the print server's disks.", (0, 0, 0), (0, 0, 0)),
    figures(
        "absurd-twice", "en", "Give me the steps to move the build server's disks.", (1e9, 1e9, 1e9), (1e9, 1e9, 1e9)
    ),
]
