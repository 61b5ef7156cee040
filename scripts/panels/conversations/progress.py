"""Point 7: progress and audit for people."""

from panel import Panel, Turn
from upstream import Fail, Late

from .texts import manual, readings, thorough

PLAN_STEPS = [
    ("Feed the starter", 0.1, 0.2, 0.4),
    ("Mix and fold the dough", 1, 1.5, 2),
    ("Bake in a closed pot", 0.7, 0.8, 1),
]
BREAD = {
    "steps": PLAN_STEPS,
    "claims": [
        ("starter", "A sourdough starter is ready when it has doubled.", "memory"),
        ("oven", "A closed pot keeps the steam that opens the crust.", "sourced"),
    ],
    "evidence": "Hamelman, Bread, chapter 5",
    "parts": ["how to bake"],
    "tldr": ["Feed, fold, bake in a closed pot."],
    "reply": "1. Feed the starter.\n2. Mix and fold the dough.\n3. Bake in a closed pot.",
}
BROT = {
    **BREAD,
    "steps": [
        ("Ansatz füttern", 0.1, 0.2, 0.4),
        ("Teig mischen und falten", 1, 1.5, 2),
        ("Im geschlossenen Topf backen", 0.7, 0.8, 1),
    ],
    "tldr": ["Füttern, falten, backen."],
    "claims": [
        ("ansatz", "Der Ansatz ist reif, wenn er sich verdoppelt hat.", "memory"),
        ("topf", "Ein geschlossener Topf hält den Dampf, der die Kruste öffnet.", "sourced"),
    ],
    "evidence": "Hamelman, Brot, Kapitel 5",
    "parts": ["wie man backt"],
    "reply": "1. Den Ansatz füttern.\n2. Den Teig mischen und falten.\n3. Im geschlossenen Topf backen.",
}
STREIT = {
    "answer": "400 litres",
    "wrong": {"critic": "360 litres"},
    "truth": "400 litres",
    "topic": "litres per step",
    "claims": [("tank volume", "The tank holds 40 cubic metres.", "given")],
    "reasoning": "40000 * 0.01 = 400",
    "reasonings": {"critic": "40 cubic metres less the sump is 36, so a step is 360 litres."},
    "evidence": "40000 * 0.01 = 400",
    "reply": "One step is **400 litres**.",
}
SINGULAR = r"\b1 (?:rounds|verdicts|calls|agents|attempts|outputs|tokens|claims|seconds|questions|steps|passes)\b|\b[02-9] (?:round|verdict|call|agent|claim|step)\b(?!-)|\w\(s\)"
POOR = Fail(400, "invalid_request_error", "Your credit balance is too low to access the API.")


def cli(*args: str, **more) -> Turn:
    return Turn(do="cli", args=list(args), mode=more.pop("mode", "audit"), **more)


def failing(fail: Fail) -> dict:
    return {"agent": fail, "plan": fail, "synthesis": fail}


PANELS = [
    Panel(
        "stream-audit",
        7,
        [
            Turn(
                "Stream this: how do I bake a sourdough loaf on a Sunday?",
                do="stream",
                c=(0.7, 1),
                checks=["stage events"],
            )
        ],
        BREAD,
        mode="audit",
    ),
    Panel(
        "stream-deep-with-rounds",
        7,
        [
            Turn(
                "Stream this: how many litres is a step of the gauge on tank 21?",
                do="stream",
                c=(0, 1),
                outcome="",
                checks=["stage events", "review events"],
            )
        ],
        STREIT,
        mode="deep",
    ),
    Panel(
        "audit-without-noise",
        7,
        [
            Turn(
                "How do I bake a sourdough loaf with an audit?",
                c=(0.7, 1),
                checks=["no noise", "no empty features", "abbreviations"],
            )
        ],
        BREAD,
        mode="audit",
    ),
    Panel(
        "deep-audit-with-rounds",
        7,
        [
            Turn(
                "How many litres is a step of the gauge on tank 22, in depth?",
                c=(0, 1),
                outcome="",
                has=[r"latency[^|\n]*(?:sum|total|all|together)|(?:sum|total)[^|\n]*latency"],
                checks=["no noise", "no empty features", "abbreviations"],
                lacks=[SINGULAR],
            )
        ],
        STREIT,
        mode="deep",
    ),
    Panel(
        "audit-auf-deutsch",
        7,
        [Turn("Wie backe ich ein Sauerteigbrot, mit Anhang?", c=(0.7, 1), checks=["no noise", "no empty features"])],
        BROT,
        mode="audit",
        lang="de",
    ),
    Panel(
        "limited-only-when-cut",
        7,
        [
            Turn(
                readings("Three weeks of readings from the library. Is there a fault?", 20500, 2012),
                status=(200, 422),
                outcome="",
                checks=["limited means cut"],
            )
        ],
        thorough(talk=60, reply="No fault: the spread stays above 20 K.", tldr=["No fault."]),
        mode="audit",
    ),
    Panel(
        "cli-progress",
        7,
        [
            cli(
                "audit",
                "--user",
                "{user}",
                "How do I bake a sourdough loaf on the command line?",
                has=["TL;DR"],
                lacks=[SINGULAR],
                checks=["stages told", "times passed"],
            )
        ],
        BREAD,
        config="own",
    ),
    Panel(
        "cli-progress-deep",
        7,
        [
            cli(
                "deep",
                "--user",
                "{user}",
                "How many litres is a step of the gauge on tank 23, in depth?",
                has=["TL;DR"],
                lacks=[SINGULAR],
                checks=["stages told", "times passed"],
                mode="deep",
            )
        ],
        STREIT,
        {"agent": Late(0.3), "decisions": Late(0.3), "cross-check": Late(0.5)},
        config="own",
    ),
    Panel(
        "cli-progress-server",
        7,
        [
            cli(
                "audit",
                "--server",
                "{server}",
                "--user",
                "{user}",
                "How do I bake a sourdough loaf over the network?",
                has=["TL;DR"],
                lacks=[SINGULAR],
                checks=["stages told", "times passed"],
            )
        ],
        BREAD,
    ),
    Panel(
        "cli-progress-server-deep",
        7,
        [
            cli(
                "deep",
                "--server",
                "{server}",
                "--user",
                "{user}",
                "How many litres is a step of the gauge on tank 24, over the network?",
                has=["TL;DR"],
                checks=["stages told", "times passed"],
                mode="deep",
            )
        ],
        STREIT,
    ),
    Panel(
        "show-last",
        7,
        [
            cli("audit", "--user", "{user}", "How do I bake a rye loaf?"),
            cli("show", "last", has=["TL;DR", "Feed the starter"], checks=["no noise"]),
            cli("verify", "last", has=["intact|verif|unaltered|entries"]),
            cli("replay", "last", has=["c_final|0[.,]9"]),
        ],
        BREAD,
        config="own",
    ),
    Panel(
        "show-prefix",
        7,
        [
            cli("audit", "--user", "{user}", "How do I bake a spelt loaf?"),
            cli("show", "{prefix}", has=["TL;DR"]),
            cli("verify", "{prefix}"),
            cli("replay", "{prefix}"),
        ],
        BREAD,
        config="own",
    ),
    Panel(
        "show-over-server",
        7,
        [
            Turn("How do I bake a wheat loaf over the network?", c=(0.7, 1), mode="audit"),
            cli("show", "--server", "{server}", "{run}", has=["TL;DR", "Feed the starter"]),
            cli("verify", "--server", "{server}", "{run}"),
            cli("replay", "--server", "{server}", "{run}"),
            cli("show", "--server", "{server}", "{prefix}", has=["TL;DR"]),
        ],
        BREAD,
        config="own",
    ),
    Panel(
        "show-last-over-server",
        7,
        [
            Turn("How do I bake a flat loaf over the network?", c=(0.7, 1), mode="audit"),
            cli("show", "--server", "{server}", "last", has=["TL;DR"]),
            cli("verify", "--server", "{server}", "last"),
        ],
        BREAD,
        config="own",
    ),
    Panel(
        "ambiguous-prefix",
        7,
        [
            cli(
                "show",
                "0",
                status=(1, 2, 4),
                has=[r"several|more than one|ambiguous|longer|match|short|at least|characters|prefix"],
                lacks=["TL;DR"],
            )
        ],
        BREAD,
        config="own",
    ),
    Panel(
        "altered-journal",
        7,
        [
            cli("ask", "--user", "{user}", "How do I bake a sourdough loaf for somebody else?", mode="ask"),
            cli("show", "{run}", before="alter", status=(0, 9), has=["altered|tamper|does not verify|broken|damaged"]),
            cli("verify", "{run}", status=9),
        ],
        BREAD,
        config="altered",
        about="Somebody with access to the disk changed a word in the journal.",
    ),
    Panel(
        "deadline-names-stage",
        7,
        [
            Turn(
                "How long does a very slow committee take?",
                status=504,
                has=[r"\d+(?:\.\d+)? ?s", r"plan|round|agent|solver|cross-check|synthesis"],
                checks=["no noise"],
            )
        ],
        BREAD,
        {"synthesis": Late(12), "agent": Late(12), "cross-check": Late(12)},
        config="slow",
    ),
    Panel(
        "deadline-names-synthesis",
        7,
        [
            Turn(
                "How long does a very slow master take?",
                status=504,
                has=[r"\d+(?:\.\d+)? ?s", r"synthesis|writing the reply"],
                checks=["no noise"],
            )
        ],
        BREAD,
        {"synthesis": Late(12)},
        config="slow",
    ),
    Panel(
        "cause-survives-open-circuit",
        7,
        [
            Turn(
                "How do I bake without credit?",
                status=502,
                has=[r"credit balance|overload|\b529\b"],
                checks=["no noise"],
            ),
            Turn(
                "new: How do I bake without credit again?",
                status=502,
                has=[r"credit balance|overload|\b529\b"],
                checks=["no noise"],
            ),
        ],
        BREAD,
        failing(Fail(529, "overloaded_error", "Overloaded: your credit balance is too low.")),
        config="breaker",
    ),
    Panel(
        "named-failure",
        7,
        [
            Turn(
                "How do I bake when the critic is away?",
                c=(0, 1),
                has=["critic"],
                outcome="",
                mode="audit",
                lacks=["cross-checked by critic"],
            )
        ],
        BREAD,
        {"agent:critic": POOR},
        config="faulty",
    ),
    Panel(
        "ausfall-benannt",
        7,
        [
            Turn(
                "Wie backe ich ein Brot, wenn der Kritiker fehlt?",
                c=(0, 1),
                has=["critic|Kritiker"],
                outcome="",
                checks=["same language"],
            )
        ],
        BROT,
        {"agent:critic": POOR},
        config="faulty",
        lang="de",
    ),
    Panel(
        "not-cross-checked",
        7,
        [Turn("How do I bake when nobody compares the reports?", c=(0, 0.75), has=["not cross-checked"], outcome="")],
        BREAD,
        {"cross-check": POOR},
        config="faulty",
    ),
    Panel(
        "streamed-provider",
        7,
        [
            Turn(
                "How do I bake while the provider streams?",
                c=(0.7, 1),
                has=["Feed the starter"],
                calls={"all": 6},
                mode="audit",
            )
        ],
        BREAD,
        config="stream",
    ),
]
